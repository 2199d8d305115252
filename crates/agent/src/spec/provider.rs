//! What a provider of models is, as data.

use std::time::Duration;

use runyard_llm::http::Limits;
use serde::{Deserialize, Serialize};

/// What a provider of models is, as data. Its key is given beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderSpec {
    /// What models call it, unique among the providers.
    pub id: String,
    /// What it speaks.
    pub wire: WireKind,
    /// Where it listens, such as `https://api.example.com/v1`.
    pub base_url: String,
    /// How long a connection may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<u64>,
    /// How long the head of an answer may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_ms: Option<u64>,
    /// How long an answer may pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
}

/// What a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireKind {
    /// The Responses API of OpenAI.
    Responses,
    /// Chat completions.
    Chat,
    /// Anthropic Messages.
    Messages,
}

impl ProviderSpec {
    /// A provider that speaks this, here.
    pub fn new(id: impl Into<String>, wire: WireKind, base_url: impl Into<String>) -> Self {
        ProviderSpec {
            id: id.into(),
            wire,
            base_url: base_url.into(),
            connect_ms: None,
            head_ms: None,
            idle_ms: None,
        }
    }

    /// How long it may take.
    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::default();
        let or = |ms: Option<u64>, usual: Duration| ms.map_or(usual, Duration::from_millis);
        Limits {
            connect: or(self.connect_ms, usual.connect),
            head: or(self.head_ms, usual.head),
            idle: or(self.idle_ms, usual.idle),
        }
    }
}
