//! What a model is asked.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Message;

/// A request for one answer. The model's own name is not in it: a [`Model`](super::Model) is one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InferenceRequest {
    /// What stands before the conversation.
    pub instructions: String,
    /// The conversation. Shared, since it is long and asked with again and again.
    pub messages: Messages,
    /// What the model may call.
    pub tools: Arc<[ToolSpec]>,
    /// What it should call.
    pub tool_choice: ToolChoice,
    /// Whether one answer may hold several calls.
    pub parallel_tool_calls: bool,
    /// How much it should think, where that can be said.
    pub effort: Option<Effort>,
    /// The form of the answer, where it is not plain text.
    pub format: Option<AnswerFormat>,
    /// How long the answer may be, in tokens.
    pub output_tokens_max: Option<u64>,
    /// How freely the model chooses.
    pub temperature: Option<f64>,
    /// How much of what is likely it chooses from.
    pub top_p: Option<f64>,
    /// Labels for whoever counts requests; not part of the question.
    pub labels: BTreeMap<String, String>,
}

/// A conversation. A clone costs nothing, however long it is; whoever changes one that is shared gets a copy of the list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Messages(Arc<Vec<Arc<Message>>>);

impl Deref for Messages {
    type Target = Vec<Arc<Message>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Messages {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Vec<Arc<Message>>> for Messages {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        Messages(Arc::new(messages))
    }
}

impl From<Messages> for Vec<Arc<Message>> {
    fn from(Messages(messages): Messages) -> Self {
        Arc::unwrap_or_clone(messages)
    }
}

impl FromIterator<Arc<Message>> for Messages {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        Messages::from(Vec::from_iter(messages))
    }
}

/// A tool that is offered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

impl ToolSpec {
    /// The longest name that every provider takes, in characters.
    pub const NAME_CHARS_MAX: usize = 64;

    /// Whether every provider takes this as a tool's name.
    pub fn is_name(name: &str) -> bool {
        (1..=Self::NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_plain)
    }

    /// A name that every provider takes, for one that a model made up: it has to be repeated to the model as what was called.
    pub(crate) fn plain_name(name: &str) -> String {
        let plain = name.chars().map(|c| if is_plain(c) { c } else { '_' });
        let plain: String = plain.take(Self::NAME_CHARS_MAX).collect();
        if plain.is_empty() { "_".to_owned() } else { plain }
    }
}

/// A call's id in the letters that every provider takes. A provider's own may hold others.
pub(crate) fn plain_id(id: &str) -> String {
    id.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// Whether every provider takes the character in a name.
pub(crate) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// What the model should call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// What it likes.
    #[default]
    Auto,
    /// Nothing.
    None,
    /// Something.
    Required,
    /// This tool.
    Named(String),
}

/// How much a model should think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Hardly.
    Low,
    /// Somewhat.
    Medium,
    /// Much.
    High,
}

/// The form of an answer that is JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerFormat {
    /// The schema's name.
    pub name: String,
    /// The schema.
    pub schema: Value,
}
