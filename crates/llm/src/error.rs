//! Why a request is refused, or a stream cannot be read on.
//!
//! A refusal names the place and the kind of what it refuses. It repeats no other value of a request.

use std::fmt;

use serde_json::{Value, json};

/// A name from a request is repeated only so far.
pub const NAME_CHARS_MAX: usize = 64;

/// What can go wrong here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// The request is not what a request looks like.
    #[error("`{path}` should be {expected}")]
    Malformed {
        /// Where in the request.
        path: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// The request holds what chat completions has no place for.
    #[error("chat completions has no place for the {what} `{name}` at `{path}`")]
    Untranslatable {
        /// Where in the request.
        path: String,
        /// What sort of thing it is.
        what: What,
        /// How the request names it.
        name: String,
    },
    /// Chat completions knows a call only with its result, and a result only after its call.
    #[error("the {what} at `{path}` stands alone: a call needs its result, and a result its call")]
    Unpaired {
        /// Where in the request.
        path: String,
        /// Whether it is the call or the result.
        what: What,
    },
    /// Two tools would have one name, so a call could not be told apart.
    #[error("the tool at `{path}` would be called `{name}`, like another one")]
    SameName {
        /// Where in the request.
        path: String,
        /// The name of both.
        name: String,
    },
    /// One event of a stream is longer than any should be.
    #[error("an event of the stream is longer than {max} bytes")]
    EventTooLong {
        /// How long it may be.
        max: usize,
    },
    /// One answer is longer than any should be.
    #[error("the answer is longer than {max} bytes")]
    AnswerTooLong {
        /// How long it may be.
        max: usize,
    },
    /// The stream holds what is not part of a chat completion.
    #[error("the stream holds what is not a chunk of a chat completion")]
    NotAChunk,
}

impl LlmError {
    pub(crate) fn untranslatable(path: impl Into<String>, what: What, name: &str) -> Self {
        Self::Untranslatable { path: path.into(), what, name: short(name) }
    }

    /// A stable word for the kind of error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "malformed_request",
            Self::Untranslatable { .. } => "untranslatable",
            Self::Unpaired { .. } => "unpaired_call",
            Self::SameName { .. } => "same_tool_name",
            Self::EventTooLong { .. } => "event_too_long",
            Self::AnswerTooLong { .. } => "answer_too_long",
            Self::NotAChunk => "not_a_chunk",
        }
    }

    /// The error as the body of a refusal, in the form that clients of these APIs read.
    #[must_use]
    pub fn body(&self) -> Value {
        let param = match self {
            Self::Malformed { path, .. }
            | Self::Untranslatable { path, .. }
            | Self::Unpaired { path, .. }
            | Self::SameName { path, .. } => Some(path),
            Self::EventTooLong { .. } | Self::AnswerTooLong { .. } | Self::NotAChunk => None,
        };
        json!({"error": {
            "message": self.to_string(), "type": "invalid_request_error", "param": param, "code": self.code(),
        }})
    }
}

/// What sort of thing is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A field by its name.
    Field,
    /// A field's value.
    Value,
    /// An item of the conversation.
    Item,
    /// A part of a message or of a tool's output.
    Part,
    /// A message's role.
    Role,
    /// A tool that is offered to the model.
    Tool,
    /// Which tool the model should use.
    ToolChoice,
    /// The form of an answer, or of a tool's input.
    Format,
    /// A call of a tool.
    Call,
    /// A call's result.
    Output,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Field => "field",
            Self::Value => "value",
            Self::Item => "item",
            Self::Part => "part",
            Self::Role => "role",
            Self::Tool => "tool",
            Self::ToolChoice => "tool choice",
            Self::Format => "format",
            Self::Call => "call",
            Self::Output => "result",
        })
    }
}

/// A name of somebody else's, bounded and on one line.
fn short(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(NAME_CHARS_MAX).collect()
}
