//! A speech as chunks of chat completions, or as the completion that they add up to.
//!
//! Reasoning is `reasoning_content`, as the providers have it that speak only this.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Context, failure, waiting, with};
use crate::{
    reply::Piece,
    scenario::Ending,
    speech::{Beat, Kind, Part, Speech},
};

const DONE: &str = "data: [DONE]\n\n";

/// The chunks in order; the stream of a good answer ends with `[DONE]`.
pub(super) fn stream(context: &Context<'_>, speech: &Speech<'_>) -> Vec<Piece> {
    let mut chunks = Chunks { context, pieces: Vec::new() };
    chunks.delta(Duration::ZERO, json!({"role": "assistant", "content": ""}));
    for beat in speech.beats() {
        match beat {
            Beat::Open(at) => chunks.open(&speech.parts[at], speech.call_number(at)),
            Beat::Delta(at, delta) => chunks.say(&speech.parts[at], delta, speech.call_number(at)),
            // Nothing says here that a part is whole.
            Beat::Close(_) => {}
        }
    }
    if let Ending::Failed { code, message, status, retry_after_s } = speech.end {
        let error = match status {
            // As some say it that stand before others: the status is the code.
            Some(status) => json!({"message": message, "type": code, "param": null, "code": status}),
            None => {
                let kind = failure(code, message, None).kind;
                json!({"message": message, "type": kind, "param": null, "code": code})
            }
        };
        let error = waiting(error, *retry_after_s);
        chunks.pieces.push(Piece::now(format!("data: {}\n\n", json!({"error": error}))));
    }
    let Some(reason) = finish_reason(speech) else { return chunks.pieces };
    chunks.push(Duration::ZERO, json!([choice(json!({}), Some(reason))]), Value::Null);
    if context.include_usage {
        chunks.push(Duration::ZERO, json!([]), usage(context, speech));
    }
    chunks.pieces.push(Piece::now(DONE));
    chunks.pieces
}

/// The completion. One that never ends is told as if it did: only half of it is sent.
pub(super) fn whole(context: &Context<'_>, speech: &Speech<'_>) -> Value {
    let mut message =
        Map::from_iter([("role".to_owned(), json!("assistant")), ("content".to_owned(), Value::Null)]);
    let mut calls: Vec<Value> = Vec::new();
    for part in &speech.parts {
        match &part.kind {
            Kind::Reasoning => _ = message.insert("reasoning_content".to_owned(), part.text().into()),
            Kind::Text => _ = message.insert("content".to_owned(), part.text().into()),
            Kind::Function { tool } | Kind::FreeForm { tool } => {
                calls.push(call(context, calls.len(), tool, &part.text()));
            }
        }
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    let reason = finish_reason(speech).unwrap_or("stop");
    json!({
        "id": id(context), "object": "chat.completion", "created": 0, "model": context.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}],
        "usage": usage(context, speech),
    })
}

fn id(context: &Context<'_>) -> String {
    format!("chatcmpl-{}", context.id)
}

/// Why the model stopped; nothing is said in the midst of it.
fn finish_reason(speech: &Speech<'_>) -> Option<&'static str> {
    match speech.end {
        Ending::Completed if speech.calls() > 0 => Some("tool_calls"),
        Ending::Completed => Some("stop"),
        Ending::Incomplete { reason } if reason == "content_filter" => Some("content_filter"),
        Ending::Incomplete { .. } => Some("length"),
        Ending::Failed { .. } | Ending::Cut | Ending::Unfinished | Ending::Malformed | Ending::Stall => None,
    }
}

fn usage(context: &Context<'_>, speech: &Speech<'_>) -> Value {
    let (asked, (said, reasoning)) = (context.asked_tokens(), speech.tokens());
    json!({
        "prompt_tokens": asked,
        "completion_tokens": said,
        "total_tokens": asked + said,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    })
}

fn call(context: &Context<'_>, index: usize, tool: &str, arguments: &str) -> Value {
    let function = json!({"name": tool, "arguments": arguments});
    json!({"id": format!("call_{}_{index}", context.id), "type": "function", "function": function})
}

fn choice(delta: Value, finish_reason: Option<&str>) -> Value {
    json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason})
}

struct Chunks<'a> {
    context: &'a Context<'a>,
    pieces: Vec<Piece>,
}

impl Chunks<'_> {
    fn push(&mut self, pause: Duration, choices: Value, usage: Value) {
        let context = self.context;
        let chunk = json!({
            "id": id(context), "object": "chat.completion.chunk", "created": 0, "model": context.model,
            "choices": choices,
        });
        let chunk = if context.include_usage { with(chunk, "usage", usage) } else { chunk };
        self.pieces.push(Piece { pause, text: format!("data: {chunk}\n\n") });
    }

    fn delta(&mut self, pause: Duration, delta: Value) {
        self.push(pause, json!([choice(delta, None)]), Value::Null);
    }

    /// `index` is the call's, if it is one.
    fn open(&mut self, part: &Part, index: usize) {
        if let Kind::Function { tool } | Kind::FreeForm { tool } = &part.kind {
            let opened = with(call(self.context, index, tool, ""), "index", index);
            self.delta(Duration::ZERO, json!({"tool_calls": [opened]}));
        }
    }

    fn say(&mut self, part: &Part, delta: usize, index: usize) {
        let text = &part.deltas[delta];
        let delta = match part.kind {
            Kind::Reasoning => json!({"reasoning_content": text}),
            Kind::Text => json!({"content": text}),
            Kind::Function { .. } | Kind::FreeForm { .. } => {
                json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
            }
        };
        self.delta(part.pause, delta);
    }
}
