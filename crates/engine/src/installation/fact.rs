//! The events of the installation's log, by type: a small closed set. Every one says by whom, beside what stands here.

use std::collections::BTreeMap;

use runyard_domain::gate::{OwnRuns, Preset, Rule};
use runyard_domain::run::{ProjectedHow, Resolution, Who};
use runyard_domain::{ApprovalId, RuleId, RunId, SessionId, Timestamp, TokenId, WorkspaceChanged};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::token::{Role, TokenDigest};

macro_rules! facts {
    ($(#[$doc:meta])* $visible:vis enum $name:ident { $($variant:ident($facts:ident) $kind:literal)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "each is named like its type, and its facts say the rest")]
        $visible enum $name {
            $($variant($facts),)*
        }

        impl $name {
            /// Its type, as it stands in the log. None is ever renamed.
            $visible const fn kind(&self) -> &'static str {
                match self {
                    $($name::$variant(_) => $kind,)*
                }
            }

            /// What it says, and by whom, as JSON.
            $visible fn payload(&self, by: &Who) -> serde_json::Result<Value> {
                let mut payload = match self {
                    $($name::$variant(facts) => serde_json::to_value(facts)?,)*
                };
                payload["by"] = serde_json::to_value(by)?;
                Ok(payload)
            }

            /// The fact of a type and payload; nothing where the type is none of these.
            $visible fn read(kind: &str, payload: &Value) -> serde_json::Result<Option<Self>> {
                match kind {
                    $($kind => $facts::deserialize(payload).map($name::$variant).map(Some),)*
                    _ => Ok(None),
                }
            }
        }
    };
}

facts! {
    /// A fact that changes tokens or rules.
    pub(super) enum RegistryFact {
        Opened(Opened) "installation.opened"
        TokenCreated(TokenCreated) "installation.token.created"
        TokenRevoked(TokenRevoked) "installation.token.revoked"
        RuleAdded(RuleAdded) "installation.rule.added"
        RuleRemoved(RuleRemoved) "installation.rule.removed"
        RuleUsed(RuleUsed) "installation.rule.used"
    }
}

facts! {
    /// A fact that is kept for whoever asks later who did what. It changes nothing.
    pub enum AuditFact {
        Login(Login) "audit.login"
        Decision(DecisionMade) "audit.decision"
        Applied(ChangesApplied) "audit.applied"
        Refused(ActionRefused) "audit.refused"
        Trust(TrustGiven) "audit.trust"
        TrustRevoked(TrustGiven) "audit.trust.revoked"
        Policy(PolicyRead) "audit.policy"
        Workspace(WorkspaceChanged) "audit.workspace"
        Secret(SecretProjected) "audit.secret"
        Session(SessionClosed) "audit.session"
    }
}

/// `installation.opened`: the log begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Opened {}

/// `installation.token.created`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenCreated {
    pub(super) token_id: TokenId,
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) digest: TokenDigest,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) expires: Option<Timestamp>,
}

/// `installation.token.revoked`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenRevoked {
    pub(super) token_id: TokenId,
    pub(super) name: String,
}

/// `installation.rule.added`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleAdded {
    pub(super) rule_id: RuleId,
    pub(super) rule: Rule,
}

/// `installation.rule.removed`. It says what the rule was, so that nobody has to look for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleRemoved {
    pub(super) rule_id: RuleId,
    pub(super) rule: Rule,
}

/// `installation.rule.used`: a rule that held once is used up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleUsed {
    pub(super) rule_id: RuleId,
}

/// `audit.login`: somebody came in, for the first time or again after a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    /// By which way: `http` or `browser`.
    pub how: String,
}

impl Login {
    /// With a token, recorded once an hour.
    pub const HTTP: &str = "http";
    /// With a session in a browser, recorded each time that one begins.
    pub const BROWSER: &str = "browser";

    /// What stands for somebody who comes in again in the same way.
    pub(super) fn quiet_as(&self, by: &Who) -> String {
        format!("{by:?} {}", self.how)
    }
}

/// `audit.applied`: what a run changed was brought to a person's files, or taken back, by the decision of the one that the entry names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangesApplied {
    /// The run that did so.
    pub run_id: RunId,
    /// The approval that allowed it.
    pub approval_id: ApprovalId,
    /// Stands for what was applied.
    pub digest: String,
    /// The commit that holds it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<String>,
}

/// `audit.decision`: an approval was resolved, by the one that the entry names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionMade {
    /// Which approval.
    pub approval_id: ApprovalId,
    /// The run that asked.
    pub run_id: RunId,
    /// How it ended.
    pub resolution: Resolution,
    /// The digest of what was decided on.
    pub digest: String,
    /// What they said about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// `audit.refused`: somebody tried what they may not do, such as an agent what is for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionRefused {
    /// What they tried.
    pub action: String,
    /// The run that it was about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub run_id: Option<RunId>,
    /// How often they had tried the same since the entry before, without an entry of its own for each.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub repeated: u64,
}

/// `audit.policy`: what a file says of the policy counts from now on, in place of what it said before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRead {
    /// The label of the workspace that they are bound to; the hub's own file has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workspace: Option<String>,
    /// All of its rules that count.
    pub rules: Vec<Rule>,
    /// Its preset, where it says one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub preset: Option<Preset>,
    /// The presets of the agent profiles that have another, by their id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub agents: BTreeMap<String, Preset>,
    /// Whether people approve what their own runs ask, where it says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub own_runs: Option<OwnRuns>,
}

impl PolicyRead {
    /// Whether everything in it is as it is where there is no file.
    pub(super) fn says_nothing(&self) -> bool {
        self.rules.is_empty()
            && self.agents.is_empty()
            && self.preset.unwrap_or_default() == Preset::default()
            && self.own_runs.unwrap_or_default() == OwnRuns::default()
    }
}

/// `audit.trust`: a project's configuration was trusted; `audit.trust.revoked`: it is no longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustGiven {
    /// The file, as it is shown.
    pub path: String,
    /// The digest of what was trusted.
    pub digest: String,
}

/// `audit.secret`: a profile's secrets were made available to one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretProjected {
    /// The run.
    pub run_id: RunId,
    /// The backend profile that they are for.
    pub profile: String,
    /// Which of its secrets, by name.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub keys: Vec<String>,
    /// How.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub how: Option<ProjectedHow>,
}

/// `audit.session`: a session was closed, and what agents kept of it removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionClosed {
    /// Which.
    pub session_id: SessionId,
}

const fn is_zero(number: &u64) -> bool {
    *number == 0
}
