//! What a run may do, as whoever starts it says.

use serde::{Deserialize, Serialize};

/// What a run may do. It can only narrow what the policy allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExecutionPolicy {
    /// How its processes are confined.
    pub sandbox: Sandbox,
    /// Whether it may use the network.
    pub network: Network,
    /// Whether people may be asked.
    pub approval: Approval,
    /// How long the whole run may take, not counting the time in which it waits for people.
    pub timeout_ms: u64,
    /// How long it may be silent.
    pub idle_ms: u64,
    /// What it may cost at most, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// The secrets that it may be given.
    pub secret_scope: SecretScope,
}

/// How processes are confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// They may read.
    ReadOnly,
    /// They may write in the run's checkout.
    #[default]
    WorkspaceWrite,
    /// They are not confined.
    None,
}

/// Whether the network may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// No.
    Deny,
    /// As the gate says.
    #[default]
    Ask,
    /// Yes.
    Allow,
}

/// Whether people may be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approval {
    /// Yes.
    #[default]
    Ask,
    /// No: what would be asked is denied.
    Never,
}

/// The secrets that a run may be given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SecretScope {
    /// Of which backend profile, and where they are.
    pub provider_credentials: Vec<ProviderCredential>,
}

/// One profile's secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderCredential {
    /// The backend profile.
    pub profile: String,
    /// Where they are.
    pub secret_ref: SecretRef,
}

/// A name for secrets, never their value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretRef {
    /// The name.
    pub name: String,
    /// Which of its keys.
    #[serde(default)]
    pub keys: Vec<String>,
}

impl ExecutionPolicy {
    /// The longest time that a run may be given.
    pub const TIMEOUT_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1000;
}

impl Default for ExecutionPolicy {
    fn default() -> Self {
        ExecutionPolicy {
            sandbox: Sandbox::default(),
            network: Network::default(),
            approval: Approval::default(),
            timeout_ms: 60 * 60 * 1000,
            idle_ms: 10 * 60 * 1000,
            budget: None,
            secret_scope: SecretScope::default(),
        }
    }
}
