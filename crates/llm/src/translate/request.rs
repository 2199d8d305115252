//! A request as a whole.

use serde_json::Value;

use super::{Tools, messages, tools};
use crate::{
    LlmError, What,
    chat::{self, JsonSchema, NamedTool, ResponseFormat, StreamOptions, ToolChoice},
    responses::{Choice, Format, Request},
};

/// A request in chat completions, and what is needed to read the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Translated {
    /// What to send.
    pub request: chat::Request,
    /// What each tool was called before.
    pub tools: Tools,
}

/// Translates the body of a Responses request.
///
/// # Errors
/// Where it is no request, or holds anything that chat completions has no place for; nothing is left out.
pub fn to_chat(body: Value) -> Result<Translated, LlmError> {
    let request = Request::read(body)?;
    let names = Tools::of(&request.tools)?;
    let groups = tools::groups(&request.tools);
    let messages = messages::of(request.instructions, groups, request.input)?;
    let tool_choice = choice(request.tool_choice, &names)?;
    let offered: Vec<_> = request.tools.into_iter().map(tools::offered).collect();
    // Several calls are what chat completions does by itself, and without tools it knows neither word.
    let parallel_tool_calls = request.parallel_tool_calls.filter(|parallel| !parallel && !offered.is_empty());
    let request = chat::Request {
        model: request.model,
        messages,
        tools: offered,
        tool_choice,
        parallel_tool_calls,
        reasoning_effort: request.effort,
        response_format: request.format.map(format),
        max_tokens: request.max_output_tokens,
        temperature: request.temperature,
        top_p: request.top_p,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
    };
    Ok(Translated { request, tools: names })
}

fn choice(choice: Option<Choice>, tools: &Tools) -> Result<Option<ToolChoice>, LlmError> {
    let Some(choice) = choice else { return Ok(None) };
    let refused = |path: String, name: &str| Err(LlmError::untranslatable(path, What::ToolChoice, name));
    match choice {
        Choice::Auto | Choice::None if tools.is_empty() => Ok(None),
        Choice::Auto => Ok(Some(ToolChoice::Auto)),
        Choice::None => Ok(Some(ToolChoice::None)),
        Choice::Required if tools.is_empty() => refused("tool_choice".to_owned(), "required"),
        Choice::Required => Ok(Some(ToolChoice::Required)),
        Choice::Named { path, name } if !tools.has(&name) => refused(path, &name),
        Choice::Named { name, .. } => {
            Ok(Some(ToolChoice::Named { r#type: "function", function: NamedTool { name } }))
        }
    }
}

fn format(format: Format) -> ResponseFormat {
    match format {
        Format::JsonObject => ResponseFormat::JsonObject,
        Format::JsonSchema { name, description, schema, strict } => {
            ResponseFormat::JsonSchema { json_schema: JsonSchema { name, description, schema, strict } }
        }
    }
}
