//! Why a call ended without a result.

use runyard_actions::Issue;
use runyard_domain::Code;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Why a call ended without a result. It ends the call, not the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", content = "message", rename_all = "snake_case")]
pub enum ToolError {
    /// The arguments are not what the tool takes.
    #[error("invalid arguments: {0}")]
    InvalidArguments(String),
    /// It ran and failed.
    #[error("execution failed: {0}")]
    ExecutionFailed(String),
    /// It may not be called so.
    #[error("denied: {0}")]
    Denied(String),
    /// There is no such tool.
    #[error("not found: {0}")]
    NotFound(String),
    /// The tool itself is broken.
    #[error("internal error: {0}")]
    Internal(String),
    /// It was stopped: the run was cancelled, its time was up, or what it waited for was called off.
    #[error("cancelled: {0}")]
    Cancelled(String),
    /// Its process died while it was made, and it was not made again: it may have run, or not.
    #[error("outcome unknown: {0}")]
    OutcomeUnknown(String),
}

impl ToolError {
    /// Its row in the error table.
    pub const fn code(&self) -> Code {
        match self {
            Self::InvalidArguments(_) => Code::ToolInvalidArguments,
            Self::ExecutionFailed(_) => Code::ToolExecutionFailed,
            Self::Denied(_) => Code::ToolDenied,
            Self::NotFound(_) => Code::ToolNotFound,
            Self::Internal(_) => Code::ToolInternal,
            Self::Cancelled(_) => Code::ToolCancelled,
            Self::OutcomeUnknown(_) => Code::OutcomeUnknown,
        }
    }

    /// The error of which a model was told this, where the code is one of a call.
    pub(crate) fn told(code: Code, text: &str) -> Option<Self> {
        let variants: [fn(String) -> Self; 7] = [
            Self::InvalidArguments,
            Self::ExecutionFailed,
            Self::Denied,
            Self::NotFound,
            Self::Internal,
            Self::Cancelled,
            Self::OutcomeUnknown,
        ];
        let variant = variants.into_iter().find(|variant| variant(String::new()).code() == code)?;
        let told: Value = serde_json::from_str(text).unwrap_or_default();
        let message = told["message"].as_str().unwrap_or(text);
        let kind = variant(String::new()).to_string();
        Some(variant(message.strip_prefix(&kind).unwrap_or(message).to_owned()))
    }

    /// What the model is told: the code and the message, as JSON in a text.
    pub fn model_text(&self) -> String {
        json!({ "error": self.code().as_str(), "message": self.to_string() }).to_string()
    }
}

/// Arguments that were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Refusal {
    /// As the error of the call.
    pub error: ToolError,
    /// What the schema finds wrong, and where; none where the tool itself refused.
    pub issues: Vec<Issue>,
}

impl Refusal {
    /// What the model is told: the code and the message, and each violation with its path, as JSON in a text.
    pub fn model_text(&self) -> String {
        if self.issues.is_empty() {
            return self.error.model_text();
        }
        let code = self.error.code().as_str();
        json!({ "error": code, "message": "The arguments do not satisfy the tool's schema.", "issues": self.issues })
            .to_string()
    }
}

impl From<ToolError> for Refusal {
    fn from(error: ToolError) -> Self {
        Refusal { error, issues: Vec::new() }
    }
}

impl From<Vec<Issue>> for Refusal {
    fn from(issues: Vec<Issue>) -> Self {
        let said = issues.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Refusal { error: ToolError::InvalidArguments(said), issues }
    }
}
