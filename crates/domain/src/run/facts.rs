//! What each event of a run says. A field that is not optional is evidence: without it the event cannot be made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::artifact::{ArtifactReady, PreviewReady};

use super::changes::Carries;
use super::failure::Failure;
use super::fold::Metrics;
use crate::gate::{Effect, Request, Risk};
use crate::{
    ActorKind, ApprovalId, Code, CommandId, Comment, ExecutionPolicy, PlannedBackend, Preparation, RunId,
    SelectedFile, SessionId, Timestamp, WorkspaceRef,
};

/// Who did something, as a record names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Who {
    /// The actor's name.
    pub id: String,
    /// What kind of actor.
    #[serde(flatten)]
    pub kind: ActorKind,
}

impl Who {
    /// Runyard itself, where nobody else decided: an expiry, a recovery, a limit.
    pub fn runyard() -> Self {
        Who { id: "runyard".to_owned(), kind: ActorKind::Service }
    }
}

impl From<&crate::Actor> for Who {
    fn from(actor: &crate::Actor) -> Self {
        Who { id: actor.id.clone(), kind: actor.kind }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Task {
    /// A text for an agent.
    #[serde(rename = "text")]
    Text {
        /// The text, as it is stored and as the agent gets it.
        text: String,
        /// Whether redaction changed what the person wrote.
        redacted: bool,
    },
    /// One action with its input.
    #[serde(rename = "action")]
    Action {
        /// The action's name.
        action: String,
        /// Its input.
        input: Value,
    },
}

/// What happens to a run when an approval is rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnReject {
    /// The run ends as cancelled.
    #[default]
    Cancel,
    /// The agent is told and goes on.
    Continue,
}

/// `run.created`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Created {
    /// What is to be done.
    pub task: Task,
    /// Who wants it.
    pub actor: Who,
    /// Where.
    pub workspace: WorkspaceRef,
    /// The agent profile.
    pub agent_id: String,
    /// The backend profile: the caller's, else the agent profile's.
    pub backend_profile: String,
    /// The conversation.
    pub session_id: SessionId,
    /// What the run may do.
    pub execution_policy: ExecutionPolicy,
    /// What a rejected approval means.
    pub on_reject: OnReject,
    /// The run that this one continues, applies or undoes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent_run_id: Option<RunId>,
    /// The backend's thread that it goes on with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thread: Option<String>,
    /// The changes of another run that it applies or takes back; then it has no agent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub carries: Option<Carries>,
}

/// `run.planned`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    /// The edge that is to execute it.
    pub edge_id: String,
    /// How the workspace is checked.
    pub workspace_policy: String,
    /// The backend profile that is to drive it.
    pub runtime_profile: String,
    /// The preset of the gate, and the version of the policy.
    pub approval_policy: ApprovalPolicyRef,
    /// What brings its checkout to where the agent can begin.
    #[serde(skip_serializing_if = "Preparation::is_empty", default)]
    pub preparation: Preparation,
    /// The backend as it was configured then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub backend: Option<PlannedBackend>,
}

/// Which policy a run was planned under. A later version reaches the run too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApprovalPolicyRef {
    /// The preset.
    pub preset: String,
    /// The version of the policy.
    pub version: u64,
}

/// `run.accepted`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The edge that confirmed. It never changes from here on.
    pub edge_id: String,
}

/// What an edge checks before any run of it starts: the allow-list, the backend and that it is available, the policy, and what keeps
/// credentials apart. What it checks besides depends on the run.
pub const CHECKED: [&str; 4] = ["workspace", "backend", "policy", "credentials"];

/// `run.preparing`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Preparing {
    /// What is being checked, in order.
    pub checks: Vec<String>,
}

impl Preparing {
    /// Which of [`CHECKED`] it leaves out. The fold does not ask, since older logs name fewer.
    pub fn lacks(&self) -> Option<&'static str> {
        CHECKED.into_iter().find(|check| !self.checks.iter().any(|named| named == check))
    }
}

/// `run.started`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Started {
    /// The kind of backend that drives it.
    pub backend_kind: String,
    /// The protocol that it speaks.
    pub protocol: String,
    /// What was checked in Preparing, with what was found.
    pub checks: BTreeMap<String, String>,
}

impl Started {
    /// Of which of [`CHECKED`] it does not say what was found.
    pub fn lacks(&self) -> Option<&'static str> {
        CHECKED.into_iter().find(|check| self.checks.get(*check).is_none_or(|found| found.trim().is_empty()))
    }
}

/// `run.approval.requested`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequested {
    /// Its id.
    pub approval_id: ApprovalId,
    /// The backend's own name for the request, within its session.
    pub key: String,
    /// What is asked, exactly. What was redacted is a placeholder.
    pub request: Request,
    /// Whether something in it was redacted.
    pub redacted: bool,
    /// Stands for the raw content, made by the edge.
    pub digest: String,
    /// How much is at stake.
    pub risk: Risk,
    /// Why it is asked and not simply done.
    pub reason: String,
    /// What else there is to know, as which part only the sandbox bounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Where.
    pub workspace: WorkspaceRef,
    /// The agent that asks.
    pub actor: Who,
    /// When no answer counts as a rejection.
    pub expires_at: Timestamp,
}

/// How an approval ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// Yes.
    Approved,
    /// No.
    Rejected,
    /// Nobody answered in time, which is a no.
    Expired,
    /// The agent no longer asks, or the run ended.
    Withdrawn,
}

impl Resolution {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Resolution::Approved => "approved",
            Resolution::Rejected => "rejected",
            Resolution::Expired => "expired",
            Resolution::Withdrawn => "withdrawn",
        }
    }
}

/// How far a decision reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DecisionScope {
    /// To the one request.
    #[default]
    Once,
    /// To the same request, as often as it comes in the run.
    Run,
    /// As for the run; and a rule allows it in the runs of its session.
    Session,
    /// As for the run; and a rule allows it in the workspace.
    Project,
}

impl DecisionScope {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            DecisionScope::Once => "once",
            DecisionScope::Run => "run",
            DecisionScope::Session => "session",
            DecisionScope::Project => "project",
        }
    }
}

/// `run.approval.resolved`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApprovalResolved {
    /// Which one.
    pub approval_id: ApprovalId,
    /// How.
    pub resolution: Resolution,
    /// Who decided.
    pub decided_by: Who,
    /// What they said about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// How far the decision reaches.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scope: Option<DecisionScope>,
    /// The answer to a question.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answer: Option<Value>,
    /// Which part of a diff was approved; without it all of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub selection: Option<Vec<SelectedFile>>,
    /// What was said on lines of a diff.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub comments: Vec<Comment>,
    /// Whether the agent is to try again, with what was said.
    #[serde(skip_serializing_if = "is_false", default)]
    pub revise: bool,
}

fn is_false(truth: &bool) -> bool {
    !truth
}

/// `run.approval.snoozed`: somebody wants to decide later. It is no answer, and it expires later by as much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApprovalSnoozed {
    /// Which one.
    pub approval_id: ApprovalId,
    /// Until when.
    pub until: Timestamp,
    /// When no answer counts as a rejection, from now on.
    pub expires_at: Timestamp,
    /// Who.
    pub by: Who,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// `run.approval.used`: the decision was handed to the agent, which can happen once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApprovalUsed {
    /// Which one.
    pub approval_id: ApprovalId,
}

/// `run.gate.judged`: a request that needed nobody's decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GateJudged {
    /// The backend's own name for the request, within its session.
    pub key: String,
    /// What was asked for.
    pub request: Request,
    /// Allowed or denied.
    pub effect: Effect,
    /// Why.
    pub reason: String,
    /// The mark of the rule for one time that is used up by it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule_used: Option<String>,
}

/// What changed in the run's checkout, as far as it is known at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DiffState {
    /// Nothing changed.
    Unchanged,
    /// Something changed and is kept in the checkout.
    Kept,
    /// It was brought to the person's files, or to a branch.
    Applied,
    /// Nobody looked: the run had no checkout.
    None,
}

/// `run.completed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Completed {
    /// What the agent said last.
    pub response: String,
    /// The ids of what was produced.
    pub artifacts: Vec<String>,
    /// What changed.
    pub diff: DiffState,
    /// Time, tokens and cost, where known.
    pub metrics: Metrics,
    /// Approvals that were given and never asked for again.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unused_approvals: Vec<ApprovalId>,
}

/// `run.failed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    /// Why.
    #[serde(flatten)]
    pub failure: Failure,
    /// The backend's last word: `failed` or `blocked`.
    pub terminal_status: String,
    /// The step whose outcome nobody knows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step: Option<String>,
    /// Time, tokens and cost, where known.
    pub metrics: Metrics,
}

/// `run.cancelled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// Who.
    pub by: Who,
    /// Why.
    pub reason: String,
    /// `approval_rejected` where that was the cause.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<Code>,
    /// Time, tokens and cost, where known.
    pub metrics: Metrics,
}

/// `run.degraded`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Degraded {
    /// What cannot be relied on.
    pub reason: String,
}

/// `run.turn.started`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnStarted {
    /// The command that asked for it; the first turn is the task itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command_id: Option<CommandId>,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The agent was done.
    Completed,
    /// It was interrupted.
    Interrupted,
}

/// `run.turn.ended`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TurnEnded {
    /// How.
    pub outcome: TurnOutcome,
}

/// `run.message.delta`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MessageDelta {
    /// The message it belongs to.
    pub item: String,
    /// A piece of it.
    pub text: String,
    /// Where in the message it begins, in bytes.
    pub offset: u64,
}

/// `run.message.completed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MessageCompleted {
    /// The message.
    pub item: String,
    /// All of it.
    pub text: String,
    /// Whether it was never completed. Then the text stands in its place, and is nothing that the agent said.
    #[serde(skip_serializing_if = "is_false", default)]
    pub broke_off: bool,
}

/// `run.tool.call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The backend's name for it.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// What it does, in a line.
    pub summary: String,
    /// Whether doing it twice is the same as doing it once.
    pub idempotent: bool,
    /// Its arguments.
    #[serde(skip_serializing_if = "Value::is_null", default)]
    pub arguments: Value,
}

/// `run.tool.output`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    /// The call.
    pub call: String,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// A piece of it.
    pub text: String,
    /// Where in the stream it begins, in bytes.
    pub offset: u64,
    /// How many bytes were left out after it.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub omitted: u64,
    /// The artifact that holds what was left out, as far as that is kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub log_path: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// `run.tool.result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The call.
    pub call: String,
    /// How it went.
    pub outcome: ToolOutcome,
    /// The code of the error that ended it, where the agent is ours and one did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<Code>,
    /// What came of it, in a line.
    pub summary: String,
}

/// How a tool call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// It did what it should.
    Succeeded,
    /// It did not.
    Failed,
    /// The gate or a person said no.
    Denied,
    /// It was stopped, or given up.
    Cancelled,
}

/// `run.file.read`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileRead {
    /// The file, relative to the workspace.
    pub path: String,
}

/// `run.patch.proposed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PatchProposed {
    /// The files, relative to the workspace.
    pub files: Vec<String>,
    /// What it is, in a line.
    pub summary: String,
}
