//! A question in the words of chat completions.

use serde_json::{Number, Value, json};

use super::{ChatOptions, OutputTokensField, REASONING_CONTENT, Structure};
use crate::chat::{
    self, Content, Function, FunctionCall, ImageUrl, JsonSchema, NamedTool, ResponseFormat, StreamOptions,
    Tool,
};
use crate::inference::{AnswerFormat, InferenceRequest, Message, Part, Role, ToolChoice, ToolSpec};
use crate::wire::order::in_order;
use crate::wire::responses::{url, word};
use crate::wire::sealed::Maker;
use crate::wire::{arguments, put, schema};

pub(in crate::wire) fn encode(options: &ChatOptions, maker: &Maker, request: &InferenceRequest) -> Value {
    let instructions = (!request.instructions.is_empty()).then(|| request.instructions.clone());
    // Providers of the older form take no schema, and refuse it where nothing in the conversation speaks of JSON.
    let in_words = request.format.as_ref().filter(|_| options.structure == Structure::JsonObject);
    let instructions = instructions.into_iter().chain(in_words.map(schema::in_words));
    let mut messages: Vec<chat::Message> =
        instructions.map(|content| chat::Message::System { content }).collect();
    messages.extend(in_order(&request.messages).into_iter().flat_map(|message| said(message, maker)));
    let has_tools = !request.tools.is_empty();
    let older = options.output_tokens_field == OutputTokensField::MaxTokens;
    let asked = chat::Request {
        model: maker.model.clone(),
        messages,
        tools: request.tools.iter().map(tool).collect(),
        tool_choice: has_tools.then(|| choice(&request.tool_choice)),
        // Several calls are what chat completions does by itself, and not every provider knows the field.
        parallel_tool_calls: (has_tools && !request.parallel_tool_calls).then_some(false),
        reasoning_effort: request.effort.map(|effort| word(effort).to_owned()),
        response_format: request.format.as_ref().map(|format| structure(options.structure, format)),
        max_tokens: request.output_tokens_max.filter(|_| older),
        temperature: request.temperature.and_then(Number::from_f64),
        top_p: request.top_p.and_then(Number::from_f64),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
    };
    // Its keys are texts and its numbers finite, so there is nothing that JSON could not say.
    let mut body = json!(asked);
    if let Some(fields) = body.as_object_mut() {
        put(fields, "max_completion_tokens", request.output_tokens_max.filter(|_| !older));
    }
    body
}

fn said(message: &Message, maker: &Maker) -> Vec<chat::Message> {
    match message.role {
        Role::System => vec![chat::Message::System { content: message.said() }],
        Role::User => vec![chat::Message::User { content: content(message) }],
        Role::Assistant => turn(message, maker).into_iter().collect(),
        Role::Tool => message.content.iter().filter_map(result).collect(),
    }
}

fn content(message: &Message) -> Content {
    if let [Part::Text { text }] = message.content.as_slice() {
        return Content::Text(text.clone());
    }
    let parts = message.content.iter().filter_map(|part| match part {
        Part::Text { text } => Some(chat::Part::Text { text: text.clone() }),
        Part::Image(image) => {
            Some(chat::Part::ImageUrl { image_url: ImageUrl { url: url(image), detail: None } })
        }
        Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolOutput(_) => None,
    });
    Content::Parts(parts.collect())
}

/// What the model did in one go, if it did anything.
fn turn(message: &Message, maker: &Maker) -> Option<chat::Message> {
    let thoughts = message.content.iter().filter_map(|part| match part {
        Part::Reasoning(thought) => {
            maker.unseal(thought.sealed.as_ref(), &[REASONING_CONTENT]).map(|_| thought.text.as_str())
        }
        _ => None,
    });
    let thought: String = thoughts.collect();
    let tool_calls: Vec<chat::ToolCall> = message.tool_calls().map(called).collect();
    let text = message.said();
    if text.is_empty() && tool_calls.is_empty() {
        return None;
    }
    Some(chat::Message::Assistant {
        content: (!text.is_empty()).then_some(text),
        reasoning_content: (!thought.is_empty()).then_some(thought),
        tool_calls,
    })
}

fn called(call: &crate::inference::ToolCall) -> chat::ToolCall {
    let arguments = arguments(&call.arguments).to_string();
    chat::ToolCall::Function {
        id: call.id.clone(),
        function: FunctionCall { name: ToolSpec::plain_name(&call.name), arguments },
    }
}

fn result(part: &Part) -> Option<chat::Message> {
    let Part::ToolOutput(output) = part else { return None };
    Some(chat::Message::Tool { tool_call_id: output.call_id.clone(), content: output.content.clone() })
}

fn tool(tool: &ToolSpec) -> Tool {
    let description = (!tool.description.is_empty()).then(|| tool.description.clone());
    let parameters = schema::parameters(&tool.parameters);
    Tool::Function { function: Function { name: tool.name.clone(), description, parameters, strict: None } }
}

fn choice(choice: &ToolChoice) -> chat::ToolChoice {
    match choice {
        ToolChoice::Auto => chat::ToolChoice::Auto,
        ToolChoice::None => chat::ToolChoice::None,
        ToolChoice::Required => chat::ToolChoice::Required,
        ToolChoice::Named(name) => {
            chat::ToolChoice::Named { r#type: "function", function: NamedTool { name: name.clone() } }
        }
    }
}

fn structure(structure: Structure, format: &AnswerFormat) -> ResponseFormat {
    let AnswerFormat { name, schema } = format;
    match structure {
        Structure::JsonObject => ResponseFormat::JsonObject,
        Structure::JsonSchema => {
            let (name, schema, strict) = (name.clone(), schema.clone(), Some(schema::is_strict(schema)));
            ResponseFormat::JsonSchema { json_schema: JsonSchema { name, description: None, schema, strict } }
        }
    }
}
