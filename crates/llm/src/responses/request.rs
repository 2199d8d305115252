//! A request as a whole.

use serde_json::{Number, Value};

use super::{Choice, Item, Tool, fields::Fields, items, tools};
use crate::{LlmError, What};

/// What says nothing about the answer, and so has no counterpart in chat completions.
const HINTS: [&str; 8] = [
    // For whoever counts and traces requests.
    "client_metadata",
    // Labels of a stored response, and none is stored.
    "metadata",
    // Where the provider may find a prompt that it has seen; chat providers find it by its text.
    "prompt_cache_key",
    "prompt_cache_retention",
    // Which of the provider's customers' users it is, for abuse reports.
    "safety_identifier",
    "user",
    // How soon and at what price the answer comes, not what it is.
    "service_tier",
    // How the frames are padded.
    "stream_options",
];

/// How a message is to be said and reasoning to be shown, which changes no answer: chat completions has one way.
const TEXT_HINTS: [&str; 1] = ["verbosity"];
const REASONING_HINTS: [&str; 2] = ["summary", "generate_summary"];

/// The one addition to an answer that may be asked for: chat completions has no encrypted reasoning to add, and says its
/// reasoning openly.
const INCLUDED: &str = "reasoning.encrypted_content";

/// A request for one streamed answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The model's name, as the provider knows it.
    pub model: String,
    /// What stands before the conversation.
    pub instructions: Option<String>,
    /// The conversation.
    pub input: Vec<Item>,
    /// What the model may call.
    pub tools: Vec<Tool>,
    /// What the model should call.
    pub tool_choice: Option<Choice>,
    /// Whether one answer may hold several calls.
    pub parallel_tool_calls: Option<bool>,
    /// How much the model should reason.
    pub effort: Option<String>,
    /// The form of the answer, where it is not plain text.
    pub format: Option<Format>,
    /// How long the answer may be.
    pub max_output_tokens: Option<u64>,
    /// How freely the model chooses.
    pub temperature: Option<Number>,
    /// How much of what is likely it chooses from.
    pub top_p: Option<Number>,
}

/// The form of an answer that is JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum Format {
    /// Any object.
    JsonObject,
    /// What a schema describes.
    JsonSchema {
        /// The schema's name.
        name: String,
        /// What it is for.
        description: Option<String>,
        /// The schema.
        schema: Value,
        /// Whether the answer has to fit it exactly.
        strict: Option<bool>,
    },
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// Where it is no request, or holds anything that chat completions has no place for.
    pub fn read(value: Value) -> Result<Self, LlmError> {
        let Value::Object(fields) = value else {
            return Err(LlmError::Malformed { path: "request".into(), expected: "an object" });
        };
        let mut fields = Fields::of_request(fields);
        let model = fields.required_text("model")?;
        if fields.flag("stream")? != Some(true) {
            return Err(LlmError::untranslatable("stream", What::Value, "false"));
        }
        // What is not kept cannot be referred to later, and what runs on cannot be asked for.
        fields.must_be("store", false)?;
        fields.must_be("background", false)?;
        included(&mut fields)?;
        truncation(&mut fields)?;
        let (effort, format) = (effort(&mut fields)?, format(&mut fields)?);
        let request = Self {
            model,
            instructions: fields.text("instructions")?,
            input: items::read(fields.take("input"))?,
            tools: tools::read(fields.list("tools")?)?,
            tool_choice: fields.take("tool_choice").map(tools::choice).transpose()?,
            parallel_tool_calls: fields.flag("parallel_tool_calls")?,
            effort,
            format,
            max_output_tokens: fields.count("max_output_tokens")?,
            temperature: fields.number("temperature")?,
            top_p: fields.number("top_p")?,
        };
        fields.hints(&HINTS);
        fields.end()?;
        Ok(request)
    }
}

fn included(fields: &mut Fields) -> Result<(), LlmError> {
    for at in fields.list("include")? {
        let path = at.path.clone();
        let name = at.into_text()?;
        if name != INCLUDED {
            return Err(LlmError::untranslatable(path, What::Value, &name));
        }
    }
    Ok(())
}

/// A conversation that is too long is an error in chat completions; it never is shortened.
fn truncation(fields: &mut Fields) -> Result<(), LlmError> {
    match fields.text("truncation")? {
        Some(name) if name != "disabled" => {
            Err(LlmError::untranslatable(fields.path_of("truncation"), What::Value, &name))
        }
        _ => Ok(()),
    }
}

fn effort(fields: &mut Fields) -> Result<Option<String>, LlmError> {
    let Some(mut reasoning) = fields.fields("reasoning")? else { return Ok(None) };
    let effort = reasoning.text("effort")?;
    reasoning.hints(&REASONING_HINTS);
    reasoning.end()?;
    Ok(effort)
}

fn format(fields: &mut Fields) -> Result<Option<Format>, LlmError> {
    let Some(mut text) = fields.fields("text")? else { return Ok(None) };
    let format = text.fields("format")?.map(format_of).transpose()?;
    text.hints(&TEXT_HINTS);
    text.end()?;
    Ok(format.flatten())
}

fn format_of(mut fields: Fields) -> Result<Option<Format>, LlmError> {
    let kind = fields.required_text("type")?;
    let format = match kind.as_str() {
        "text" => None,
        "json_object" => Some(Format::JsonObject),
        "json_schema" => {
            let missing = LlmError::Malformed { path: fields.path_of("schema"), expected: "a schema" };
            Some(Format::JsonSchema {
                name: fields.required_text("name")?,
                description: fields.text("description")?,
                schema: fields.take("schema").ok_or(missing)?.value,
                strict: fields.flag("strict")?,
            })
        }
        _ => return Err(LlmError::untranslatable(fields.path(), What::Format, &kind)),
    };
    fields.end()?;
    Ok(format)
}
