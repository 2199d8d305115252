//! What a user picks (agent profiles) and what drives it (backend profiles).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ExecutionPolicy;
use crate::gate::Preset;
use crate::run::OnReject;

/// What a user picks. It names a backend profile; the adapter behind that knows nothing of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentProfile {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub label: String,
    /// The backend profile that it runs on unless the caller names another.
    pub backend_profile: String,
    /// What it can do.
    pub capabilities: Vec<Capability>,
    /// The gate's preset.
    pub preset: Preset,
    /// What a rejected approval means.
    pub on_reject: OnReject,
    /// What its runs may do unless the caller narrows it.
    pub execution_policy: ExecutionPolicy,
    /// How many of its runs may be active at a time.
    pub runs_max: usize,
}

/// What an agent can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Read files.
    Read,
    /// Propose changes.
    Diff,
    /// Ask to write.
    WriteRequest,
    /// Ask to run commands.
    ShellRequest,
    /// Produce artifacts.
    Artifact,
    /// Review.
    Review,
    /// Publish.
    Publish,
}

/// A backend with its configuration. It holds names of secrets, never a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendProfile {
    /// Its name.
    pub profile: String,
    /// The kind of backend: which adapter.
    pub backend_kind: String,
    /// The profile whose secrets it uses, where those are another's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The secrets that it cannot do without.
    pub required_secret_keys: Vec<String>,
    /// The secrets that it is given where there are any.
    pub optional_secret_keys: Vec<String>,
    /// The program that it starts, with its arguments; empty where it is looked for.
    pub command: Vec<String>,
    /// Where its provider listens; the adapter's own where none is named.
    pub base_url: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// What its provider speaks.
    pub wire: Wire,
    /// Whether it reaches its provider through the edge's gateway, so that the provider's key never enters its processes.
    pub gateway: bool,
    /// Whether what it says is kept raw, but redacted, for whoever looks for a fault.
    pub debug_raw: bool,
    /// What else its adapter is told.
    pub settings: BTreeMap<String, String>,
}

impl BackendProfile {
    /// The name that its secrets are kept under.
    pub fn secrets_name(&self) -> &str {
        self.secret.as_deref().unwrap_or(&self.profile)
    }
}

/// The backend that a run was planned on, as it was configured then. It is told, and never executed: what is started comes from the
/// configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlannedBackend {
    /// Its kind.
    pub backend_kind: String,
    /// What is started, with its arguments.
    pub command: Vec<String>,
    /// Stands for the whole profile.
    pub digest: String,
}

/// What a model provider speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// The Responses API of OpenAI.
    #[default]
    Responses,
    /// Chat completions.
    Chat,
    /// Anthropic Messages.
    Messages,
}

impl Wire {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Wire::Responses => "responses",
            Wire::Chat => "chat",
            Wire::Messages => "messages",
        }
    }

    /// Where the provider listens whose API it is, for profiles that do not say. Chat completions are everybody's.
    pub const fn base_url(self) -> Option<&'static str> {
        match self {
            Wire::Responses => Some("https://api.openai.com/v1"),
            Wire::Chat => None,
            Wire::Messages => Some("https://api.anthropic.com/v1"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_is_called_as_configuration_names_it() {
        for (wire, word) in
            [(Wire::Responses, "responses"), (Wire::Chat, "chat"), (Wire::Messages, "messages")]
        {
            assert_eq!(wire.as_str(), word);
            assert_eq!(serde_json::to_value(wire).unwrap(), word);
        }
    }

    #[test]
    fn a_wire_is_its_own_providers_and_chat_completions_are_everybodys() {
        let addresses = [Wire::Responses, Wire::Chat, Wire::Messages].map(Wire::base_url);
        assert_eq!(
            addresses,
            [Some("https://api.openai.com/v1"), None, Some("https://api.anthropic.com/v1")]
        );
    }

    #[test]
    fn a_profile_uses_its_own_secrets_unless_it_names_others() {
        let own = BackendProfile { profile: "mine".into(), ..BackendProfile::default() };
        assert_eq!(own.secrets_name(), "mine");
        assert!(!serde_json::to_string(&own).unwrap().contains("\"secret\""));
        let shared = BackendProfile { secret: Some("ours".into()), ..own };
        assert_eq!(shared.secrets_name(), "ours");
    }
}
