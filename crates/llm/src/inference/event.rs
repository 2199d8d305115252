//! What a model says, piece by piece.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::usage::Usage;

/// One piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// More of the text.
    Text(String),
    /// More of what it thinks.
    Reasoning(String),
    /// A thought is whole. What its maker wants back with the next request comes with it.
    ReasoningEnded {
        /// See [`Reasoning::sealed`](super::Reasoning::sealed).
        sealed: Option<Value>,
    },
    /// A call begins. Several may be open at a time.
    ToolCallStarted {
        /// Which call of the answer.
        index: u32,
        /// By what its result is found.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of a call's arguments, as JSON in a text.
    ToolCallArguments {
        /// Which call of the answer.
        index: u32,
        /// The piece.
        text: String,
    },
    /// A call is whole; without arguments it had none.
    ToolCallEnded {
        /// Which call of the answer.
        index: u32,
    },
    /// What the answer cost so far. The last one counts.
    Usage(Usage),
    /// It is still at it: something came that is nothing of the answer, such as a sign of life or a thought that is not shown.
    Alive,
    /// The answer is whole. A stream that ends without it was interrupted.
    Stopped(StopReason),
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model had said all.
    EndTurn,
    /// It calls tools.
    ToolUse,
    /// It was cut at the most that it may say.
    MaxTokens,
}
