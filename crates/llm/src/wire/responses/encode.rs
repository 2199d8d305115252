//! A question in the words of the Responses API.

use serde_json::{Map, Value, json};

use super::{REASONING, ResponsesOptions};
use crate::inference::{
    AnswerFormat, Effort, Image, ImageSource, InferenceRequest, Message, Part, Role, ToolChoice, ToolSpec,
};
use crate::wire::order::in_order;
use crate::wire::sealed::Maker;
use crate::wire::{arguments, put, schema};

pub(in crate::wire) fn encode(
    options: &ResponsesOptions,
    maker: &Maker,
    request: &InferenceRequest,
) -> Value {
    let thinker = options.asks_for_sealed_reasoning.then_some(maker);
    let input: Vec<Value> =
        in_order(&request.messages).into_iter().flat_map(|message| items(message, thinker)).collect();
    let mut body = Map::new();
    body.insert("model".to_owned(), maker.model.clone().into());
    put(&mut body, "instructions", (!request.instructions.is_empty()).then(|| request.instructions.clone()));
    body.insert("input".to_owned(), input.into());
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
        body.insert("tool_choice".to_owned(), choice(&request.tool_choice));
        body.insert("parallel_tool_calls".to_owned(), request.parallel_tool_calls.into());
    }
    put(
        &mut body,
        "reasoning",
        request.effort.map(|effort| json!({"effort": word(effort), "summary": "auto"})),
    );
    put(&mut body, "text", request.format.as_ref().map(|format| json!({"format": structure(format)})));
    put(&mut body, "max_output_tokens", request.output_tokens_max);
    put(&mut body, "temperature", request.temperature);
    put(&mut body, "top_p", request.top_p);
    // A model that does not think refuses to be asked for its thoughts, and who wants it to think says how much.
    let is_asked = options.asks_for_sealed_reasoning && request.effort.is_some();
    put(&mut body, "include", is_asked.then(|| json!(["reasoning.encrypted_content"])));
    body.insert("store".to_owned(), false.into());
    body.insert("stream".to_owned(), true.into());
    body.into()
}

/// The items that say what a message says.
fn items(message: &Message, thinker: Option<&Maker>) -> Vec<Value> {
    match message.role {
        Role::System => vec![said("developer", content(message))],
        Role::User => vec![said("user", content(message))],
        Role::Assistant => turn(message, thinker),
        Role::Tool => message.content.iter().filter_map(result).collect(),
    }
}

fn said(role: &str, content: Vec<Value>) -> Value {
    json!({"type": "message", "role": role, "content": content})
}

fn content(message: &Message) -> Vec<Value> {
    let parts = message.content.iter().filter_map(|part| match part {
        Part::Text { text } => Some(json!({"type": "input_text", "text": text})),
        Part::Image(image) => Some(json!({"type": "input_image", "image_url": url(image)})),
        Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolOutput(_) => None,
    });
    parts.collect()
}

/// The picture's address, which may hold it.
pub(in crate::wire) fn url(image: &Image) -> String {
    match &image.source {
        ImageSource::Data { media_type, data } => format!("data:{media_type};base64,{data}"),
        ImageSource::Url { url } => url.clone(),
    }
}

/// What the model did in one go. A thought that nothing followed is left out: it is refused without what came of it.
fn turn(message: &Message, thinker: Option<&Maker>) -> Vec<Value> {
    let mut items = Vec::new();
    let mut thoughts = Vec::new();
    for part in &message.content {
        let item = match part {
            Part::Reasoning(reasoning) => {
                let own = thinker.and_then(|maker| maker.unseal(reasoning.sealed.as_ref(), &[REASONING]));
                thoughts.extend(own.cloned());
                continue;
            }
            Part::Text { text } if text.is_empty() => continue,
            Part::Text { text } => said("assistant", vec![json!({"type": "output_text", "text": text})]),
            Part::ToolCall(call) => json!({
                "type": "function_call", "call_id": call.id, "name": ToolSpec::plain_name(&call.name),
                "arguments": arguments(&call.arguments).to_string(),
            }),
            Part::Image(_) | Part::ToolOutput(_) => continue,
        };
        items.append(&mut thoughts);
        items.push(item);
    }
    items
}

fn result(part: &Part) -> Option<Value> {
    let Part::ToolOutput(output) = part else { return None };
    Some(json!({"type": "function_call_output", "call_id": output.call_id, "output": output.content}))
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function", "name": tool.name, "description": tool.description,
        "parameters": schema::parameters(&tool.parameters), "strict": false,
    })
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Named(name) => json!({"type": "function", "name": name}),
    }
}

/// The word for how much a model should think, which is the same on every wire.
pub(in crate::wire) fn word(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}

fn structure(format: &AnswerFormat) -> Value {
    let AnswerFormat { name, schema } = format;
    json!({"type": "json_schema", "name": name, "schema": schema, "strict": schema::is_strict(schema)})
}
