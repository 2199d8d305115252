//! The conversation in turns: on this wire two sides take turns, and a turn holds the results of the last one's calls first.

use serde_json::{Value, json};

use super::{REDACTED, THINKING};
use crate::inference::{Image, ImageSource, Message, Part, Role, ToolSpec, plain_id};
use crate::wire::arguments;
use crate::wire::sealed::Maker;

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    User,
    Assistant,
}

/// The turns of a conversation. What the application says in the midst of it is said on the person's side: there is no third.
pub(super) fn turns<'a>(messages: impl Iterator<Item = &'a Message>, maker: &Maker) -> Vec<Value> {
    let mut turns: Vec<(Side, Vec<Value>)> = Vec::new();
    for message in messages {
        let (side, blocks) = match message.role {
            Role::Assistant => (Side::Assistant, thought_through(message, maker)),
            Role::System | Role::User | Role::Tool => {
                (Side::User, message.content.iter().filter_map(block).collect())
            }
        };
        if blocks.is_empty() {
            continue;
        }
        match turns.last_mut() {
            Some((last, said)) if *last == side => said.extend(blocks),
            _ => turns.push((side, blocks)),
        }
    }
    turns.into_iter().map(turn).collect()
}

fn turn((side, mut blocks): (Side, Vec<Value>)) -> Value {
    if side == Side::User {
        // Results go before whatever else was said.
        blocks.sort_by_key(|block| block["type"] != "tool_result");
    }
    json!({"role": if side == Side::User { "user" } else { "assistant" }, "content": blocks})
}

/// What the model did in one go. A thought that nothing followed is left out: a turn may not end with one.
fn thought_through(message: &Message, maker: &Maker) -> Vec<Value> {
    let mut blocks = Vec::new();
    let mut thoughts = Vec::new();
    for part in &message.content {
        if let Part::Reasoning(reasoning) = part {
            thoughts.extend(maker.unseal(reasoning.sealed.as_ref(), &[THINKING, REDACTED]).cloned());
        } else if let Some(block) = block(part) {
            blocks.append(&mut thoughts);
            blocks.push(block);
        }
    }
    blocks
}

fn block(part: &Part) -> Option<Value> {
    match part {
        // An empty one is refused.
        Part::Text { text } if text.trim().is_empty() => None,
        Part::Text { text } => Some(json!({"type": "text", "text": text})),
        Part::Image(image) => Some(json!({"type": "image", "source": source(image)})),
        Part::ToolCall(call) => Some(json!({
            "type": "tool_use", "id": plain_id(&call.id), "name": ToolSpec::plain_name(&call.name), "input": arguments(&call.arguments),
        })),
        Part::ToolOutput(output) => {
            let mut result = json!({
                "type": "tool_result", "tool_use_id": plain_id(&output.call_id), "content": output.content,
            });
            if output.is_error {
                result["is_error"] = true.into();
            }
            Some(result)
        }
        Part::Reasoning(_) => None,
    }
}

fn source(image: &Image) -> Value {
    match &image.source {
        ImageSource::Data { media_type, data } => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
        ImageSource::Url { url } => json!({"type": "url", "url": url}),
    }
}
