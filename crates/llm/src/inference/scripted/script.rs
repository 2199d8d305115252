//! A script as data: what to answer, when, and with which mishaps.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::inference::{
    Fault, InferenceExecutionError, InferenceRequest, InterruptCause, InterruptSnapshot, Part, Role,
    StopReason, ToolCall,
};
use crate::usage::Usage;

/// What a scripted model answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The model's name.
    #[serde(default = "scripted")]
    pub name: String,
    /// What comes after the last answer.
    #[serde(default)]
    pub at_end: AtEnd,
    /// The answers: those without a condition one after the other, those with one whenever it holds.
    pub answers: Vec<ScriptedAnswer>,
}

fn scripted() -> String {
    "scripted".to_owned()
}

/// What comes after the last answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtEnd {
    /// [`InferenceExecutionError::InvalidRequest`].
    #[default]
    Fail,
    /// The first answer again.
    Repeat,
    /// The last answer again.
    Last,
}

/// One answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedAnswer {
    /// When it is given, other than in its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// How it begins.
    pub opens: Opens,
    /// What it says. Without a [`Step::Stop`] it breaks off at the end.
    pub steps: Vec<Step>,
}

/// A condition on the request's last message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// Its text, or the result in it, has this in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// This one says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// It holds this often, and then no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_max: Option<u32>,
}

/// How an answer begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opens {
    /// At once.
    #[default]
    AtOnce,
    /// After this time.
    AfterMs(u64),
    /// Never: the request hangs.
    Never,
    /// Not: the provider refuses.
    Failing(ScriptedError),
}

/// One step of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A piece of text.
    Text(String),
    /// A piece of what it thinks.
    Reasoning(String),
    /// A thought is whole; with what its maker wants back, unless that is null.
    ReasoningEnded(Value),
    /// A whole call.
    Call(ScriptedCall),
    /// A call begins.
    CallStarted {
        /// Which call.
        index: u32,
        /// By what its result is found.
        id: String,
        /// The tool.
        name: String,
    },
    /// A piece of a call's arguments.
    CallArguments {
        /// Which call.
        index: u32,
        /// The piece.
        text: String,
    },
    /// A call is whole.
    CallEnded {
        /// Which call.
        index: u32,
    },
    /// What it cost.
    Usage(ScriptedUsage),
    /// The answer is whole.
    Stop(StopReason),
    /// The answer breaks off.
    Fault(ScriptedFault),
    /// Nothing comes for this long.
    DelayMs(u64),
    /// Nothing comes any more.
    Stall,
}

/// A whole call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// By what its result is found.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments; left out, it has none.
    #[serde(default)]
    pub arguments: Value,
}

/// What an answer cost. See [`Usage`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedUsage {
    /// The conversation.
    pub input_tokens: u64,
    /// The answer.
    pub output_tokens: u64,
    /// What of the input was known.
    pub cached_tokens: u64,
    /// What of the output was thought.
    pub reasoning_tokens: u64,
}

/// How an answer breaks off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedFault {
    /// In the middle.
    Interrupted(InterruptCause),
    /// The provider says what is wrong.
    Failed(ScriptedError),
}

/// An error of any class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "error", rename_all = "snake_case", deny_unknown_fields)]
pub enum ScriptedError {
    /// [`InferenceExecutionError::Provider`]
    Provider {
        /// What it says.
        #[serde(default)]
        message: String,
    },
    /// [`InferenceExecutionError::RateLimited`]
    RateLimited {
        /// What it says.
        #[serde(default)]
        message: String,
        /// When to come back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// [`InferenceExecutionError::Overloaded`]
    Overloaded {
        /// What it says.
        #[serde(default)]
        message: String,
        /// When to come back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// [`InferenceExecutionError::Timeout`]
    Timeout {
        /// What it says.
        #[serde(default)]
        message: String,
    },
    /// [`InferenceExecutionError::StreamInterrupted`], before anything came.
    StreamInterrupted {
        /// How.
        cause: InterruptCause,
    },
    /// [`InferenceExecutionError::ContextOverflow`]
    ContextOverflow {
        /// What it says.
        #[serde(default)]
        message: String,
    },
    /// [`InferenceExecutionError::InvalidRequest`]
    InvalidRequest {
        /// What it says.
        #[serde(default)]
        message: String,
    },
    /// [`InferenceExecutionError::Unauthorized`]
    Unauthorized {
        /// What it says.
        #[serde(default)]
        message: String,
    },
    /// [`InferenceExecutionError::ModelNotFound`]
    ModelNotFound {
        /// What it says.
        #[serde(default)]
        message: String,
    },
    /// [`InferenceExecutionError::ContentFiltered`]
    ContentFiltered {
        /// What it says.
        #[serde(default)]
        message: String,
    },
    /// [`InferenceExecutionError::AllModelsUnavailable`]
    AllModelsUnavailable,
    /// [`InferenceExecutionError::Cancelled`]
    Cancelled,
}

impl ScriptedAnswer {
    /// Says these steps.
    pub fn steps(steps: impl IntoIterator<Item = Step>) -> Self {
        ScriptedAnswer { steps: steps.into_iter().collect(), ..Self::default() }
    }

    /// Says this text, and that is all.
    pub fn text(text: impl Into<String>) -> Self {
        Self::steps([Step::Text(text.into()), Step::Stop(StopReason::EndTurn)])
    }

    /// Calls these tools.
    pub fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        let calls =
            calls.into_iter().map(|ToolCall { id, name, arguments }| ScriptedCall { id, name, arguments });
        Self::steps(calls.map(Step::Call).chain([Step::Stop(StopReason::ToolUse)]))
    }

    /// Refuses.
    pub fn failing(error: ScriptedError) -> Self {
        ScriptedAnswer { opens: Opens::Failing(error), ..Self::default() }
    }

    /// The same, only when the request's last message has `text` in it.
    #[must_use]
    pub fn when_contains(mut self, text: impl Into<String>) -> Self {
        self.when = Some(When { contains: Some(text.into()), ..When::default() });
        self
    }
}

impl When {
    pub(super) fn holds(&self, request: &InferenceRequest, times: u32) -> bool {
        let Some(last) = request.messages.last() else { return false };
        let has = |wanted: &String| {
            last.content.iter().any(|part| match part {
                Part::Text { text } => text.contains(wanted),
                Part::ToolOutput(output) => output.content.contains(wanted),
                Part::Image(_) | Part::Reasoning(_) | Part::ToolCall(_) => false,
            })
        };
        self.times_max.is_none_or(|most| times < most)
            && self.role.is_none_or(|role| role == last.role)
            && self.contains.as_ref().is_none_or(has)
    }
}

impl From<ScriptedUsage> for Usage {
    fn from(usage: ScriptedUsage) -> Self {
        Usage {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            reasoning_tokens: usage.reasoning_tokens,
        }
    }
}

impl From<ScriptedFault> for Fault {
    fn from(fault: ScriptedFault) -> Self {
        match fault {
            ScriptedFault::Interrupted(cause) => Fault::Interrupted(cause),
            ScriptedFault::Failed(error) => Fault::Failed(error.into()),
        }
    }
}

impl From<ScriptedError> for InferenceExecutionError {
    fn from(error: ScriptedError) -> Self {
        type To = InferenceExecutionError;
        let after = |ms: Option<u64>| ms.map(Duration::from_millis);
        match error {
            ScriptedError::Provider { message } => To::Provider(message),
            ScriptedError::RateLimited { message, retry_after_ms } => {
                To::RateLimited { message, retry_after: after(retry_after_ms) }
            }
            ScriptedError::Overloaded { message, retry_after_ms } => {
                To::Overloaded { message, retry_after: after(retry_after_ms) }
            }
            ScriptedError::Timeout { message } => To::Timeout(message),
            ScriptedError::StreamInterrupted { cause } => {
                To::StreamInterrupted { cause, snapshot: Box::new(InterruptSnapshot::default()) }
            }
            ScriptedError::ContextOverflow { message } => To::ContextOverflow(message),
            ScriptedError::InvalidRequest { message } => To::InvalidRequest(message),
            ScriptedError::Unauthorized { message } => To::Unauthorized(message),
            ScriptedError::ModelNotFound { message } => To::ModelNotFound(message),
            ScriptedError::ContentFiltered { message } => To::ContentFiltered(message),
            ScriptedError::AllModelsUnavailable => To::AllModelsUnavailable,
            ScriptedError::Cancelled => To::Cancelled,
        }
    }
}
