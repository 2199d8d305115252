//! What a run may do, as whoever starts it says.

use serde::{Deserialize, Serialize};

use crate::gate::Request;
use crate::run::Budget;

/// What a run may do. It can only narrow what the policy allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// How long it stays open for a further turn after one has ended; without it the run ends with its last turn. It keeps its
    /// place among the active runs meanwhile, and the time counts toward `timeout_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_open_ms: Option<u64>,
    /// What it may use at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What becomes of what it changed.
    #[serde(skip_serializing_if = "Changes::is_asked")]
    pub changes: Changes,
    /// The secrets that it may be given; those of its backend profile where it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_scope: Option<SecretScope>,
}

/// What whoever starts a run says of what it may do. What it leaves out is as the agent profile has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WantedExecution {
    /// How its processes are confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// Whether it may use the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Whether people may be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// How long the whole run may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long it may be silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// How long it stays open for a further turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_open_ms: Option<u64>,
    /// What it may use at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What becomes of what it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// The secrets that it may be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_scope: Option<SecretScope>,
}

impl WantedExecution {
    /// The policy that is wanted of a profile that has this one. It may be wider: whoever allows narrows it.
    #[must_use]
    pub fn of(&self, profile: &ExecutionPolicy) -> ExecutionPolicy {
        ExecutionPolicy {
            sandbox: self.sandbox.unwrap_or(profile.sandbox),
            network: self.network.unwrap_or(profile.network),
            approval: self.approval.unwrap_or(profile.approval),
            timeout_ms: self.timeout_ms.unwrap_or(profile.timeout_ms),
            idle_ms: self.idle_ms.unwrap_or(profile.idle_ms),
            keep_open_ms: self.keep_open_ms,
            budget: self.budget,
            changes: self.changes.unwrap_or(profile.changes),
            secret_scope: self.secret_scope.clone(),
        }
    }
}

impl From<ExecutionPolicy> for WantedExecution {
    fn from(policy: ExecutionPolicy) -> Self {
        WantedExecution {
            sandbox: Some(policy.sandbox),
            network: Some(policy.network),
            approval: Some(policy.approval),
            timeout_ms: Some(policy.timeout_ms),
            idle_ms: Some(policy.idle_ms),
            keep_open_ms: policy.keep_open_ms,
            budget: policy.budget,
            changes: Some(policy.changes),
            secret_scope: policy.secret_scope,
        }
    }
}

/// What becomes of what a run changed in its checkout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Changes {
    /// A person is asked to apply it before the run ends.
    #[default]
    Ask,
    /// It stays in the checkout, to be looked at and applied later.
    Keep,
}

impl Changes {
    fn is_asked(&self) -> bool {
        *self == Changes::Ask
    }
}

/// How processes are confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// No.
    Deny,
    /// As the gate says.
    #[default]
    Ask,
    /// Yes, where no rule of the gate asks or denies.
    Allow,
}

/// Whether people may be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SecretScope {
    /// Of which backend profile, and where they are.
    pub provider_credentials: Vec<ProviderCredential>,
}

/// One profile's secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderCredential {
    /// The backend profile.
    pub profile: String,
    /// Where they are.
    pub secret_ref: SecretRef,
}

/// A name for secrets, never their value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

    /// This policy, where `other` allows as much: of two words the stricter one counts, and of two limits the smaller.
    #[must_use]
    pub fn narrowed_by(&self, other: &ExecutionPolicy) -> ExecutionPolicy {
        ExecutionPolicy {
            sandbox: self.sandbox.min(other.sandbox),
            network: self.network.min(other.network),
            approval: self.approval.max(other.approval),
            timeout_ms: self.timeout_ms.min(other.timeout_ms),
            idle_ms: self.idle_ms.min(other.idle_ms),
            keep_open_ms: self.keep_open_ms.into_iter().chain(other.keep_open_ms).min(),
            changes: self.changes.max(other.changes),
            budget: self.budget,
            secret_scope: self.secret_scope.clone().or_else(|| other.secret_scope.clone()),
        }
    }

    /// Why it rules a request out, whatever the gate says; nothing where it does not.
    pub fn rules_out(&self, request: &Request) -> Option<&'static str> {
        match request {
            Request::Network { .. }
            | Request::GitPush { .. }
            | Request::Publish { .. }
            | Request::Deploy { .. }
                if self.network == Network::Deny =>
            {
                Some("the run's execution policy denies the network")
            }
            Request::Write { .. } | Request::Patch { .. } | Request::GitCommit { .. }
                if self.sandbox == Sandbox::ReadOnly =>
            {
                Some("the run's execution policy is read-only")
            }
            _ => None,
        }
    }
}

impl Default for ExecutionPolicy {
    fn default() -> Self {
        ExecutionPolicy {
            sandbox: Sandbox::default(),
            network: Network::default(),
            approval: Approval::default(),
            timeout_ms: 60 * 60 * 1000,
            idle_ms: 10 * 60 * 1000,
            keep_open_ms: None,
            budget: None,
            changes: Changes::default(),
            secret_scope: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b07_what_a_wanted_policy_leaves_out_is_the_profiles_but_for_what_is_each_runs_own() {
        let scope = SecretScope { provider_credentials: Vec::new() };
        let profile = ExecutionPolicy {
            sandbox: Sandbox::ReadOnly,
            network: Network::Deny,
            approval: Approval::Never,
            timeout_ms: 1,
            idle_ms: 2,
            keep_open_ms: Some(3),
            budget: Some(Budget { tokens: Some(4), ..Budget::default() }),
            changes: Changes::Keep,
            secret_scope: Some(scope),
        };
        let left_out = WantedExecution::default().of(&profile);
        let own = ExecutionPolicy { keep_open_ms: None, budget: None, secret_scope: None, ..profile.clone() };
        assert_eq!(left_out, own);
        assert_eq!(WantedExecution::from(profile.clone()).of(&ExecutionPolicy::default()), profile);
    }

    #[test]
    fn c11_an_execution_policy_rules_out_what_it_does_not_allow_and_nothing_else() {
        let text = str::to_owned;
        let writes = [
            Request::Write { path: text("a"), content: None },
            Request::Patch { files: vec![text("a")], patch: text("p") },
            Request::GitCommit { message: text("m") },
        ];
        let connects = [
            Request::Network { host: text("h"), port: None },
            Request::GitPush { remote: text("r"), branch: text("b") },
            Request::Publish { target: text("t") },
            Request::Deploy { target: text("t") },
        ];
        let others = [
            Request::Read { path: text("a") },
            Request::Shell { command: text("curl x > y"), cwd: text(".") },
        ];
        let read_only = ExecutionPolicy { sandbox: Sandbox::ReadOnly, ..ExecutionPolicy::default() };
        let offline = ExecutionPolicy { network: Network::Deny, ..ExecutionPolicy::default() };
        for (policy, ruled_out) in
            [(&read_only, &writes[..]), (&offline, &connects[..]), (&ExecutionPolicy::default(), &[])]
        {
            for request in writes.iter().chain(&connects).chain(&others) {
                assert_eq!(policy.rules_out(request).is_some(), ruled_out.contains(request), "{request:?}");
            }
        }
    }
}
