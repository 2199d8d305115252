//! What a backend says: the adapters' one vocabulary.

use runyard_domain::gate::Request;
use runyard_domain::run::{FailureKind, PlanStep, ThreadRecorded, ToolOutcome, TurnOutcome, Usage};
use runyard_domain::{Code, CommandId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that a backend says. It becomes durable by [`Journal::record`](crate::Journal::record).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Signal {
    /// What it is doing, and what is known of it by now.
    Status {
        /// `starting`, `ready`, `resumed`, …
        phase: String,
        /// The model.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        model: Option<String>,
        /// The version of the program that really runs.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        version: Option<String>,
        /// Its conversation, by which it can be opened again. Said as soon as it is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        thread: Option<String>,
        /// What it used so far.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        usage: Option<Usage>,
    },
    /// A turn begins.
    TurnStarted {
        /// The command that asked for it; none for the task itself.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        command: Option<CommandId>,
    },
    /// It has a word that was said to it, and keeps it whatever happens; or it said with [`Signal::Error`] why it cannot take it.
    /// Until then it is told again when it is opened again.
    Heard {
        /// The command.
        command: CommandId,
    },
    /// The turn is over. The backend now waits for the next one, or to be closed.
    TurnEnded {
        /// How.
        outcome: TurnOutcome,
    },
    /// A piece of a message.
    Delta {
        /// The message.
        item: String,
        /// The piece.
        text: String,
    },
    /// A whole message. It counts, whatever pieces came before.
    Message {
        /// The message.
        item: String,
        /// All of it.
        text: String,
    },
    /// A message that was begun and is never completed. Its pieces do not count, and the agent said nothing with it.
    BrokeOff {
        /// The message.
        item: String,
        /// What people read in its place.
        text: String,
    },
    /// What the agent tells of its thinking, once it is whole.
    Reasoning {
        /// The backend's name for it.
        item: String,
        /// What it tells.
        text: String,
    },
    /// What the agent means to do: all of it, each time that it changes.
    Plan {
        /// The steps, in order.
        steps: Vec<PlanStep>,
    },
    /// Its conversation goes on: for a backend that keeps it in the run's log and nowhere else. Its texts are as the log has
    /// them already, by [`SessionSpec::redaction`](crate::SessionSpec::redaction), so that the model reads what is stored.
    Thread(ThreadRecorded),
    /// A line that the backend's program said or was told, as it is. Only where the profile keeps them.
    Raw {
        /// Whether it was told; else it said it.
        told: bool,
        /// The line, without its end.
        line: String,
    },
    /// A step begins. What needs asking was asked before.
    ToolCall {
        /// The backend's name for the step.
        call: String,
        /// The tool.
        tool: String,
        /// What it does, in a line.
        summary: String,
        /// Its arguments.
        arguments: Value,
        /// Whether doing it twice is the same as doing it once.
        idempotent: bool,
    },
    /// A piece of what a step prints.
    ToolOutput {
        /// The step.
        call: String,
        /// Where it printed it.
        stream: Stream,
        /// The piece.
        text: String,
    },
    /// A step is over.
    ToolResult {
        /// The step.
        call: String,
        /// How it went.
        outcome: ToolOutcome,
        /// The code of the error that ended it, where it has one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        code: Option<Code>,
        /// What came of it, in a line.
        summary: String,
    },
    /// A file was read.
    FileRead {
        /// Which, relative to the workspace.
        path: String,
    },
    /// Files were changed in the checkout.
    Patch {
        /// Which, relative to the workspace.
        files: Vec<String>,
        /// What the change is, in a line.
        summary: String,
    },
    /// It wants to do something and waits for [`Command::Answer`](crate::Command::Answer) with the same key.
    Ask {
        /// Its own name for the request, not used twice in a session.
        key: String,
        /// What.
        request: Request,
    },
    /// It no longer waits for an answer.
    Withdraw {
        /// The request's key.
        key: String,
    },
    /// It did something for which it had not asked.
    Unasked {
        /// What it would have had to ask for.
        request: Request,
    },
    /// Something cannot be relied on.
    Degraded {
        /// What.
        reason: String,
    },
    /// Something failed, and the backend goes on.
    Error {
        /// What kind of failure.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        failure_kind: Option<FailureKind>,
        /// What happened.
        message: String,
        /// Whether it tries again by itself.
        retrying: bool,
    },
    /// The backend is over, and not because it was closed. Nothing comes after it.
    Ended {
        /// How.
        ending: Ending,
    },
}

/// Where a step prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Ending {
    /// A failure of this kind.
    pub fn failed(failure_kind: FailureKind, message: impl Into<String>) -> Self {
        Ending::Failed { failure_kind, message: message.into(), cause: None }
    }
}

impl Stream {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// How a backend came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Ending {
    /// It failed.
    Failed {
        /// What kind of failure.
        failure_kind: FailureKind,
        /// What happened.
        message: String,
        /// The code of what our own agent loop failed with, where it did.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cause: Option<Code>,
    },
    /// Its process died or went silent for good, and it can be opened again: what it had done is not lost.
    Died {
        /// What is known about it.
        message: String,
    },
    /// It cannot go on without what it was refused, or what nobody can give.
    Blocked {
        /// What is missing.
        code: Code,
        /// What happened.
        message: String,
        /// The steps of which nobody knows, where that is why and they are over with it: what they did, in a line.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        step: Option<String>,
    },
    /// It ended because it was interrupted or cancelled.
    Cancelled,
}
