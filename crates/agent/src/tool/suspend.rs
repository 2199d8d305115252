//! A call that waits for an answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a call waits for. It is stored with the run, which needs nothing else while it waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SuspendTicket {
    /// By what the answer is found.
    pub id: String,
    /// What is asked for, as a word: `confirm`, say.
    pub action: String,
    /// What is asked, for a person.
    pub message: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub parameters: Value,
    /// The schema of an answer, where it is more than yes or no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// What happens with the answer.
    #[serde(default)]
    pub resume: ResumeMode,
}

/// What happens with the answer to a call that waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumeMode {
    /// The call is made as if nothing had been.
    #[default]
    ReplayToolCall,
    /// The answer is the call's result.
    UseDecisionAsResult,
    /// The call is made, and the tool finds the answer in its context.
    PassDecisionToTool,
}

impl SuspendTicket {
    /// A question for a person, after which the call is made.
    pub fn new(id: impl Into<String>, action: impl Into<String>, message: impl Into<String>) -> Self {
        SuspendTicket {
            id: id.into(),
            action: action.into(),
            message: message.into(),
            parameters: Value::Null,
            response_schema: None,
            resume: ResumeMode::default(),
        }
    }
}
