//! The conversation of a request.

use serde_json::Value;

use super::fields::{At, Fields};
use crate::{LlmError, What};

/// Names of an item that only the service which stores items uses, and where the item stood in its making. `phase` says
/// whether an assistant's message was a remark or its last word, which the conversation's order shows as well.
const ITEM_HINTS: [&str; 3] = ["id", "status", "phase"];
/// Where in the text something is cited, and how likely each word was: about the text, and not part of it.
const TEXT_HINTS: [&str; 2] = ["annotations", "logprobs"];
/// The same reasoning as its text, in a form that only its maker reads.
const SEALED: &str = "encrypted_content";

/// One item of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// What somebody said.
    Message(Message),
    /// What the model thought, in its own words or as a summary.
    Reasoning {
        /// The text.
        text: String,
    },
    /// What the model called.
    Call(Call),
    /// What came of a call.
    Output(Output),
}

/// What somebody said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who.
    pub role: Role,
    /// What, in parts.
    pub content: Vec<Part>,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The application, also where it is called developer.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// A picture, by its address, which may hold it.
    Image {
        /// The address.
        url: String,
        /// How closely to look.
        detail: Option<String>,
    },
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// By what its result is found.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The group of tools that it belongs to.
    pub namespace: Option<String>,
    /// What it is given.
    pub payload: Payload,
}

/// What a tool is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// A function's arguments, as JSON in a text.
    Function {
        /// The arguments.
        arguments: String,
    },
    /// A custom tool's free text.
    Custom {
        /// The text.
        input: String,
    },
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Of which call.
    pub call_id: String,
    /// The result, in parts.
    pub content: Vec<Part>,
}

/// Reads the `input` of a request: a text of the user's, or a list of items.
pub(super) fn read(input: Option<At>) -> Result<Vec<Item>, LlmError> {
    match input {
        None => Ok(Vec::new()),
        Some(At { value: Value::String(text), .. }) => {
            Ok(vec![Item::Message(Message { role: Role::User, content: vec![Part::Text(text)] })])
        }
        Some(list) => list.into_list()?.into_iter().map(item).collect(),
    }
}

fn item(at: At) -> Result<Item, LlmError> {
    let mut fields = at.into_fields()?;
    // A message is the one kind that may come without its name.
    let kind = fields.text("type")?.unwrap_or_else(|| "message".to_owned());
    let item = match kind.as_str() {
        "message" => Item::Message(message(&mut fields)?),
        "reasoning" => Item::Reasoning { text: reasoning(&mut fields)? },
        "function_call" => {
            let arguments = fields.required_text("arguments")?;
            Item::Call(call(&mut fields, Payload::Function { arguments })?)
        }
        "custom_tool_call" => {
            let input = fields.required_text("input")?;
            Item::Call(call(&mut fields, Payload::Custom { input })?)
        }
        "function_call_output" | "custom_tool_call_output" => Item::Output(output(&mut fields)?),
        _ => return Err(LlmError::untranslatable(fields.path(), What::Item, &kind)),
    };
    fields.hints(&ITEM_HINTS);
    fields.end()?;
    Ok(item)
}

fn message(fields: &mut Fields) -> Result<Message, LlmError> {
    let role = fields.required_text("role")?;
    let role = match role.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" | "developer" => Role::System,
        _ => return Err(LlmError::untranslatable(fields.path_of("role"), What::Role, &role)),
    };
    Ok(Message { role, content: content(fields, "content")? })
}

/// A text, or a list of parts.
fn content(fields: &mut Fields, name: &str) -> Result<Vec<Part>, LlmError> {
    match fields.take(name) {
        None => Ok(Vec::new()),
        Some(At { value: Value::String(text), .. }) => Ok(vec![Part::Text(text)]),
        Some(list) => list.into_list()?.into_iter().map(part).collect(),
    }
}

fn part(at: At) -> Result<Part, LlmError> {
    let mut fields = at.into_fields()?;
    let kind = fields.required_text("type")?;
    let part = match kind.as_str() {
        "input_text" | "output_text" | "text" => Part::Text(fields.required_text("text")?),
        "refusal" => Part::Text(fields.required_text("refusal")?),
        "input_image" => {
            Part::Image { url: fields.required_text("image_url")?, detail: fields.text("detail")? }
        }
        _ => return Err(LlmError::untranslatable(fields.path(), What::Part, &kind)),
    };
    fields.hints(&TEXT_HINTS);
    fields.end()?;
    Ok(part)
}

fn reasoning(fields: &mut Fields) -> Result<String, LlmError> {
    let mut texts = Vec::new();
    for (list, kinds) in [("summary", &["summary_text"][..]), ("content", &["reasoning_text", "text"])] {
        for at in fields.list(list)? {
            let mut part = at.into_fields()?;
            let kind = part.required_text("type")?;
            if !kinds.contains(&kind.as_str()) {
                return Err(LlmError::untranslatable(part.path(), What::Part, &kind));
            }
            texts.push(part.required_text("text")?);
            part.end()?;
        }
    }
    if fields.take(SEALED).is_some() && texts.is_empty() {
        return Err(LlmError::untranslatable(fields.path_of(SEALED), What::Field, SEALED));
    }
    Ok(texts.join("\n\n"))
}

fn call(fields: &mut Fields, payload: Payload) -> Result<Call, LlmError> {
    let (call_id, name) = (fields.required_text("call_id")?, fields.required_text("name")?);
    Ok(Call { call_id, name, namespace: fields.text("namespace")?, payload })
}

fn output(fields: &mut Fields) -> Result<Output, LlmError> {
    let call_id = fields.required_text("call_id")?;
    // Only some clients repeat the name, and the call has it.
    fields.hints(&["name"]);
    Ok(Output { call_id, content: content(fields, "output")? })
}
