//! Why a model gave no answer, and what that means for trying again.

use std::fmt;
use std::time::Duration;

use runyard_domain::Code;
use serde::{Deserialize, Serialize};

use super::ToolCall;

/// Why a model gave no answer.
///
/// Ask [`is_retryable`](Self::is_retryable) and the like, rather than which variant it is: there may be more.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InferenceExecutionError {
    /// The provider failed.
    #[error("the provider failed: {0}")]
    Provider(String),
    /// The provider's limit is reached.
    #[error("the provider's limit is reached: {message}")]
    RateLimited {
        /// What it said.
        message: String,
        /// When it says to come back.
        retry_after: Option<Duration>,
    },
    /// The provider has too much to do.
    #[error("the provider is overloaded: {message}")]
    Overloaded {
        /// What it said.
        message: String,
        /// When it says to come back.
        retry_after: Option<Duration>,
    },
    /// No answer in time.
    #[error("no answer in time: {0}")]
    Timeout(String),
    /// The answer broke off.
    #[error("the answer broke off: {cause}")]
    StreamInterrupted {
        /// How.
        cause: InterruptCause,
        /// What had come by then.
        snapshot: Box<InterruptSnapshot>,
    },
    /// The conversation is longer than the model takes.
    #[error("the conversation is longer than the model takes: {0}")]
    ContextOverflow(String),
    /// The provider does not take the request.
    #[error("the provider does not take the request: {0}")]
    InvalidRequest(String),
    /// The provider does not take the credential.
    #[error("the provider does not take the credential: {0}")]
    Unauthorized(String),
    /// The provider has no such model.
    #[error("the provider has no such model: {0}")]
    ModelNotFound(String),
    /// The provider's filter withheld the answer.
    #[error("the provider's filter withheld the answer: {0}")]
    ContentFiltered(String),
    /// No model is left to try.
    #[error("no model is available")]
    AllModelsUnavailable,
    /// Whoever asked does not want it any more.
    #[error("cancelled")]
    Cancelled,
}

/// How an answer broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptCause {
    /// The connection ended.
    ConnectionReset,
    /// Nothing came for too long.
    IdleStall,
    /// The provider asked to be left alone: it is going down.
    GoAway,
    /// The provider failed with this status in the middle.
    Provider5xxMidStream(u16),
}

/// What had come when an answer broke off.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InterruptSnapshot {
    /// The text so far, of all attempts.
    pub text: Option<String>,
    /// The calls that were whole.
    pub completed_tool_calls: Vec<ToolCall>,
    /// The calls that had begun and were not whole, in order.
    pub in_flight_tools: Vec<OpenToolCall>,
}

/// A call whose arguments are not whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenToolCall {
    /// By what its result would have been found.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments so far.
    pub partial_arguments: String,
}

impl InferenceExecutionError {
    /// A limit that is reached, without word of when to come back.
    pub fn rate_limited(message: impl Into<String>) -> Self {
        Self::RateLimited { message: message.into(), retry_after: None }
    }

    /// Too much to do, without word of when to come back.
    pub fn overloaded(message: impl Into<String>) -> Self {
        Self::Overloaded { message: message.into(), retry_after: None }
    }

    /// Whether it may pass by itself.
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Provider(_)
                | Self::RateLimited { .. }
                | Self::Overloaded { .. }
                | Self::Timeout(_)
                | Self::StreamInterrupted { .. }
        )
    }

    /// Whether it says something about the model's health.
    pub const fn counts_toward_circuit_breaker(&self) -> bool {
        self.is_retryable()
    }

    /// When the provider says to come back.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Its row in the error table.
    pub const fn code(&self) -> Code {
        match self {
            Self::Provider(_) => Code::InferenceProvider,
            Self::RateLimited { .. } => Code::InferenceRateLimited,
            Self::Overloaded { .. } => Code::InferenceOverloaded,
            Self::Timeout(_) => Code::InferenceTimeout,
            Self::StreamInterrupted { .. } => Code::InferenceStreamInterrupted,
            Self::ContextOverflow(_) => Code::InferenceContextOverflow,
            Self::InvalidRequest(_) => Code::InferenceInvalidRequest,
            Self::Unauthorized(_) => Code::InferenceUnauthorized,
            Self::ModelNotFound(_) => Code::InferenceModelNotFound,
            Self::ContentFiltered(_) => Code::InferenceContentFiltered,
            Self::AllModelsUnavailable => Code::InferenceAllModelsUnavailable,
            Self::Cancelled => Code::InferenceCancelled,
        }
    }
}

impl fmt::Display for InterruptCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectionReset => f.write_str("the connection ended"),
            Self::IdleStall => f.write_str("nothing came for too long"),
            Self::GoAway => f.write_str("the provider is going down"),
            Self::Provider5xxMidStream(status) => write!(f, "the provider failed with {status}"),
        }
    }
}
