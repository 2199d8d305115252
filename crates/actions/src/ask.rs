//! Asking whoever called while an action runs: a form for a person, a text from the caller's model, the caller's folders.
//!
//! An action asks through its context and waits. How the question travels is the entry point's affair. Where a protocol has no
//! way back to the caller during a call, the entry point ends the attempt, answers with the questions, and begins the action
//! anew when the caller comes back with the answers; so what an action does before it asks may happen again, and what it
//! changes belongs after its last question.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{ActionError, Schema};

/// So many questions may be asked at once.
pub const QUESTIONS_MAX: usize = 16;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuestionKind {
    /// A form that a person fills in.
    Form,
    /// A text that the caller's model writes.
    Completion,
    /// The folders that the caller works in.
    Folders,
}

/// A question to whoever called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Question {
    /// A form that a person fills in.
    Form {
        /// What it is about.
        message: String,
        /// Its fields: a JSON Schema of an object with fields of one value each.
        schema: Value,
    },
    /// A text that the caller's model writes.
    Completion {
        /// What it is asked, as in MCP's `sampling/createMessage`.
        request: Value,
    },
    /// The folders that the caller works in.
    Folders,
}

impl Question {
    /// A form with these fields.
    pub fn form(message: impl Into<String>, schema: Value) -> Self {
        Question::Form { message: message.into(), schema }
    }

    /// A text from the caller's model, of at most so many tokens.
    pub fn completion(prompt: &str, tokens_max: u32) -> Self {
        let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
        Question::Completion { request: json!({"messages": [message], "maxTokens": tokens_max}) }
    }

    /// What kind of question it is.
    pub fn kind(&self) -> QuestionKind {
        match self {
            Question::Form { .. } => QuestionKind::Form,
            Question::Completion { .. } => QuestionKind::Completion,
            Question::Folders => QuestionKind::Folders,
        }
    }

    /// Whether this can be an answer: a form that was accepted holds what its schema asks for.
    pub fn takes(&self, answer: &Answer) -> bool {
        match self {
            Question::Form { schema, .. } => match answer.0.get("action").and_then(Value::as_str) {
                Some("accept") => {
                    let content = answer.0.get("content").unwrap_or(&Value::Null);
                    Schema::new(schema.clone())
                        .is_ok_and(|schema| schema.issues(content).is_ok_and(|issues| issues.is_empty()))
                }
                Some("decline" | "cancel") => true,
                _ => false,
            },
            Question::Completion { .. } => answer.0.get("content").is_some(),
            Question::Folders => answer.0.get("roots").is_some_and(Value::is_array),
        }
    }
}

/// An answer, as the caller gave it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Answer(pub Value);

impl Answer {
    /// What a person filled in; nothing where they declined.
    pub fn filled_in(&self) -> Option<&Value> {
        let accepted = self.0.get("action").and_then(Value::as_str) == Some("accept");
        self.0.get("content").filter(|_| accepted)
    }
}

/// The way back to whoever called.
#[async_trait]
pub trait Caller: Send + Sync {
    /// Whether such a question can be asked.
    fn can_answer(&self, kind: QuestionKind) -> bool;

    /// Asks, and waits for the answers, under the same keys.
    async fn ask(
        &self,
        questions: BTreeMap<String, Question>,
    ) -> Result<BTreeMap<String, Answer>, ActionError>;
}
