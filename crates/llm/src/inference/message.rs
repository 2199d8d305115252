//! A conversation, in no provider's own words.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The application.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// What was called: its message holds results alone.
    Tool,
}

/// What somebody said, in parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who.
    pub role: Role,
    /// What, in order.
    pub content: Vec<Part>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image(Image),
    /// What the model thought.
    Reasoning(Reasoning),
    /// What the model calls.
    ToolCall(ToolCall),
    /// What came of a call.
    ToolOutput(ToolOutput),
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Where it is.
    pub source: ImageSource,
}

/// Where a picture is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ImageSource {
    /// Here, in Base64.
    Data {
        /// `image/png`, say.
        media_type: String,
        /// The picture.
        data: String,
    },
    /// Where the provider can fetch it.
    Url {
        /// Its address.
        url: String,
    },
}

/// What the model thought.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// In words, or a summary of them; may be empty.
    pub text: String,
    /// What its maker wants back with the next request, as it was given: a signature, or the sealed thought itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sealed: Option<Value>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// By what its result is found.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments: an object, unless the model wrote something else. What is no JSON is here as a text.
    pub arguments: Value,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    /// Of which call.
    pub call_id: String,
    /// The result, as the model reads it.
    pub content: String,
    /// Whether it is an error.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_error: bool,
}

impl Message {
    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Message { role, content: vec![Part::Text { text: text.into() }] }
    }

    /// What the person says.
    pub fn user(text: impl Into<String>) -> Self {
        Message::text(Role::User, text)
    }

    /// What the application says.
    pub fn system(text: impl Into<String>) -> Self {
        Message::text(Role::System, text)
    }

    /// What the model says.
    pub fn assistant(text: impl Into<String>) -> Self {
        Message::text(Role::Assistant, text)
    }

    /// The result of a call.
    pub fn tool(output: ToolOutput) -> Self {
        Message { role: Role::Tool, content: vec![Part::ToolOutput(output)] }
    }

    /// All of its text, as one.
    pub fn said(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// What it calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

impl ToolCall {
    /// The arguments that a model wrote: none is the empty object, and what is no JSON stays the text that it is.
    pub fn arguments_of(text: &str) -> Value {
        if text.trim().is_empty() {
            return Value::Object(serde_json::Map::new());
        }
        serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
    }
}
