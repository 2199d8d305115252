//! What came of a call that ran.

use runyard_llm::inference;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SuspendTicket;
use crate::phase::StateCommand;

/// What came of a call that ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ToolResult {
    /// It did what it should.
    Success {
        /// What it gives.
        data: Value,
        /// The same for the model, where it should read something else than the data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// It ran, and this is the error that it has to tell.
    Error {
        /// More about it.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        data: Value,
        /// What the model reads.
        text: String,
    },
    /// It waits for an answer.
    Suspended {
        /// For what.
        ticket: Box<SuspendTicket>,
    },
}

/// A result, and what should follow from it in the state.
#[derive(Debug)]
pub struct ToolOutput {
    /// The result.
    pub result: ToolResult,
    /// What is to be changed, done and told.
    pub command: StateCommand,
}

impl ToolResult {
    /// It did what it should.
    pub fn success(data: impl Into<Value>) -> Self {
        ToolResult::Success { data: data.into(), text: None }
    }

    /// The same, with a text of its own for the model.
    pub fn success_saying(data: impl Into<Value>, text: impl Into<String>) -> Self {
        ToolResult::Success { data: data.into(), text: Some(text.into()) }
    }

    /// It ran, and has an error to tell.
    pub fn error(text: impl Into<String>) -> Self {
        ToolResult::Error { data: Value::Null, text: text.into() }
    }

    /// It waits.
    pub fn suspended(ticket: SuspendTicket) -> Self {
        ToolResult::Suspended { ticket: Box::new(ticket) }
    }

    /// What the model reads; nothing while the call waits. A text is itself, other data is its JSON.
    pub fn model_text(&self) -> Option<String> {
        match self {
            ToolResult::Success { text: Some(text), .. } | ToolResult::Error { text, .. } => {
                Some(text.clone())
            }
            ToolResult::Success { data: Value::String(text), text: None } => Some(text.clone()),
            ToolResult::Success { data, text: None } => Some(data.to_string()),
            ToolResult::Suspended { .. } => None,
        }
    }

    /// The same, and this before it for the model. While the call waits there is nothing to read.
    #[must_use]
    pub(crate) fn saying_first(self, word: &str) -> Self {
        let said = self.model_text().unwrap_or_default();
        let with = format!("{word}\n{said}");
        match self {
            ToolResult::Success { data, .. } => ToolResult::success_saying(data, with),
            ToolResult::Error { data, .. } => ToolResult::Error { data, text: with },
            waits @ ToolResult::Suspended { .. } => waits,
        }
    }

    /// The result as it stands in the conversation; nothing while the call waits.
    pub fn for_model(&self, call_id: impl Into<String>) -> Option<inference::ToolOutput> {
        let is_error = matches!(self, ToolResult::Error { .. });
        let content = self.model_text()?;
        Some(inference::ToolOutput { call_id: call_id.into(), content, is_error })
    }
}

impl ToolOutput {
    /// The result, and this with it.
    pub fn new(result: ToolResult, command: StateCommand) -> Self {
        ToolOutput { result, command }
    }
}

impl From<ToolResult> for ToolOutput {
    fn from(result: ToolResult) -> Self {
        ToolOutput { result, command: StateCommand::none() }
    }
}
