//! The events of a run, by type.

use serde_json::Value;

use super::changes::{Applied, Applying, DiffReady};
use super::command::{CancelRequested, CommandHeard, CommandReceived};
use super::facts::*;
use super::runtime::{RuntimeDied, RuntimeError, RuntimeStatus};
use super::telling::{PlanUpdated, Reasoning, SecretsProjected};
use super::thread::ThreadRecorded;

/// An event that this version cannot read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableEvent {
    /// Its type is none of ours.
    #[error("there is no event type \"{0}\"")]
    Type(String),
    /// Its payload does not have the shape of its type.
    #[error("the payload of {kind} cannot be read: {source}")]
    Payload {
        /// The type.
        kind: &'static str,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
}

macro_rules! events {
    ($($variant:ident($facts:ident) $kind:literal)*) => {
        /// A fact in a run's log.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "each is named like its type, and its facts say the rest")]
        pub enum RunEvent {
            $($variant($facts),)*
        }

        impl RunEvent {
            /// Every type, as it stands in the log. None is ever renamed.
            pub const KINDS: &'static [&'static str] = &[$($kind,)*];

            /// Its type.
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(RunEvent::$variant(_) => $kind,)*
                }
            }

            /// What it says, as JSON.
            pub fn payload(&self) -> Result<Value, serde_json::Error> {
                match self {
                    $(RunEvent::$variant(facts) => serde_json::to_value(facts),)*
                }
            }

            /// The event of a type and payload.
            pub fn read(kind: &str, payload: &Value) -> Result<Self, UnreadableEvent> {
                match kind {
                    $($kind => {
                        let facts: Result<$facts, _> = serde::Deserialize::deserialize(payload);
                        facts.map(RunEvent::$variant).map_err(|source| UnreadableEvent::Payload { kind: $kind, source })
                    })*
                    _ => Err(UnreadableEvent::Type(kind.to_owned())),
                }
            }

            /// The schema of what each type says, in the order of [`KINDS`](Self::KINDS), among the definitions of a
            /// generator.
            #[cfg(feature = "schema")]
            pub fn payload_schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
                vec![$(($kind, generator.subschema_for::<$facts>()),)*]
            }
        }

    };
}

events! {
    Created(Created) "run.created"
    Planned(Planned) "run.planned"
    Accepted(Accepted) "run.accepted"
    Preparing(Preparing) "run.preparing"
    Started(Started) "run.started"
    SecretsProjected(SecretsProjected) "run.secrets.projected"
    ApprovalRequested(ApprovalRequested) "run.approval.requested"
    ApprovalResolved(ApprovalResolved) "run.approval.resolved"
    ApprovalSnoozed(ApprovalSnoozed) "run.approval.snoozed"
    ApprovalUsed(ApprovalUsed) "run.approval.used"
    GateJudged(GateJudged) "run.gate.judged"
    Applying(Applying) "run.applying"
    Applied(Applied) "run.applied"
    Completed(Completed) "run.completed"
    Failed(Failed) "run.failed"
    Cancelled(Cancelled) "run.cancelled"
    Degraded(Degraded) "run.degraded"
    CommandReceived(CommandReceived) "run.command.received"
    CommandHeard(CommandHeard) "run.command.heard"
    CancelRequested(CancelRequested) "run.cancel.requested"
    TurnStarted(TurnStarted) "run.turn.started"
    TurnEnded(TurnEnded) "run.turn.ended"
    MessageDelta(MessageDelta) "run.message.delta"
    MessageCompleted(MessageCompleted) "run.message.completed"
    Reasoning(Reasoning) "run.reasoning"
    PlanUpdated(PlanUpdated) "run.plan.updated"
    ThreadRecorded(ThreadRecorded) "run.thread.recorded"
    ToolCall(ToolCall) "run.tool.call"
    ToolOutput(ToolOutput) "run.tool.output"
    ToolResult(ToolResult) "run.tool.result"
    FileRead(FileRead) "run.file.read"
    DiffReady(DiffReady) "run.diff.ready"
    PatchProposed(PatchProposed) "run.patch.proposed"
    ArtifactReady(ArtifactReady) "run.artifact.ready"
    PreviewReady(PreviewReady) "run.preview.ready"
    RuntimeStatus(RuntimeStatus) "runtime.status"
    RuntimeDied(RuntimeDied) "runtime.died"
    RuntimeError(RuntimeError) "runtime.error"
    RuntimeUnavailable(RuntimeError) "runtime.unavailable"
    RuntimeTimeout(RuntimeError) "runtime.timeout"
    SchemaValidationFailed(RuntimeError) "schema.validation_failed"
}
