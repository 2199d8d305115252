//! A request as it is sent.

use serde::Serialize;
use serde_json::{Number, Value};

/// A request for one streamed answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// The model's name.
    pub model: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// What the model may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// What the model should call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether one answer may hold several calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// How much the model should reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// The form of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// How long the answer may be. The older of two names, which every provider knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// How freely the model chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Number>,
    /// How much of what is likely it chooses from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<Number>,
    /// Always true.
    pub stream: bool,
    /// What the stream should tell besides.
    pub stream_options: StreamOptions,
}

/// What a stream should tell besides the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StreamOptions {
    /// What it cost.
    pub include_usage: bool,
}

/// One message, by who says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The application.
    System {
        /// What it says.
        content: String,
    },
    /// The person.
    User {
        /// What the person says.
        content: Content,
    },
    /// The model.
    Assistant {
        /// What it said; `null` where it only called.
        content: Option<String>,
        /// What it thought. Some providers want it back with the calls that came of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        /// What it called.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// A tool.
    Tool {
        /// Which call this is the result of.
        tool_call_id: String,
        /// The result.
        content: String,
    },
}

/// What a person says: text alone, or with pictures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// Text alone.
    Text(String),
    /// Parts, where one is a picture.
    Parts(Vec<Part>),
}

/// A part of what a person says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    ImageUrl {
        /// Where it is.
        image_url: ImageUrl,
    },
}

/// Where a picture is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageUrl {
    /// Its address, which may hold it.
    pub url: String,
    /// How closely to look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolCall {
    /// The one kind there is.
    Function {
        /// By what its result is found.
        id: String,
        /// What is called.
        function: FunctionCall,
    },
}

/// What is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionCall {
    /// The function's name.
    pub name: String,
    /// Its arguments, as JSON in a text.
    pub arguments: String,
}

/// A tool that is offered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Tool {
    /// The one kind there is.
    Function {
        /// What it is.
        function: Function,
    },
}

/// A function that is offered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its arguments' schema.
    pub parameters: Value,
    /// Whether the arguments have to fit it exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// What the model should call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// What it likes.
    Auto,
    /// Nothing.
    None,
    /// Something.
    Required,
    /// This tool.
    #[serde(untagged)]
    Named {
        /// Always `function`.
        r#type: &'static str,
        /// Which.
        function: NamedTool,
    },
}

/// A tool by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedTool {
    /// The name.
    pub name: String,
}

/// The form of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Any object.
    JsonObject,
    /// What a schema describes.
    JsonSchema {
        /// The schema.
        json_schema: JsonSchema,
    },
}

/// A schema with its name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JsonSchema {
    /// The name.
    pub name: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The schema.
    pub schema: Value,
    /// Whether the answer has to fit it exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}
