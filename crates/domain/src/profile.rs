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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendProfile {
    /// Its name.
    pub profile: String,
    /// The kind of backend: which adapter.
    pub backend_kind: String,
    /// The secrets that it needs.
    pub required_secret_keys: Vec<String>,
    /// What else its adapter is told.
    pub settings: BTreeMap<String, String>,
}
