//! A speech as events of Anthropic Messages, or as the message that they add up to.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Context, failure, waiting, with};
use crate::{
    reply::Piece,
    scenario::{Ending, Refusal},
    speech::{Beat, Kind, Part, Speech},
};

/// What a thought is signed with.
const SIGNATURE: &str = "signed-by-the-demo-provider";

/// The events in order, the last of which says that the message ended, if it did.
pub(super) fn stream(context: &Context<'_>, speech: &Speech<'_>) -> Vec<Piece> {
    let mut events = Events { pieces: Vec::new() };
    let begun = with(message(context, &[], None), "usage", usage(context, 0));
    events.push(json!({"type": "message_start", "message": begun}));
    events.push(json!({"type": "ping"}));
    for beat in speech.beats() {
        match beat {
            Beat::Open(at) => {
                let mut opened = block(context, speech, at, "");
                if let Some(signature) = opened.get_mut("signature") {
                    *signature = "".into();
                }
                events.push(json!({"type": "content_block_start", "index": at, "content_block": opened}));
            }
            Beat::Delta(at, delta) => events.delta(&speech.parts[at], at, delta),
            Beat::Close(at) => {
                if matches!(speech.parts[at].kind, Kind::Reasoning) {
                    let delta = json!({"type": "signature_delta", "signature": SIGNATURE});
                    events.push(json!({"type": "content_block_delta", "index": at, "delta": delta}));
                }
                events.push(json!({"type": "content_block_stop", "index": at}));
            }
        }
    }
    if let Ending::Failed { code, message, status, retry_after_s } = speech.end {
        let mut error = error(&failure(code, message, *status));
        if let Some(status) = status {
            error["error"]["status"] = (*status).into();
        }
        error["error"] = waiting(error["error"].take(), *retry_after_s);
        events.push(error);
    }
    let Some(reason) = stop_reason(speech) else { return events.pieces };
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    events.push(
        json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": speech.tokens().0}}),
    );
    events.push(json!({"type": "message_stop"}));
    events.pieces
}

/// The message. One that never ends is told as if it did: only half of it is sent.
pub(super) fn whole(context: &Context<'_>, speech: &Speech<'_>) -> Value {
    let places = 0..speech.parts.len();
    let content: Vec<Value> = places.map(|at| block(context, speech, at, &speech.parts[at].text())).collect();
    let reason = stop_reason(speech).unwrap_or("end_turn");
    with(message(context, &content, Some(reason)), "usage", usage(context, speech.tokens().0))
}

/// The body of an HTTP error, or the event that says the same.
pub(super) fn error(refusal: &Refusal) -> Value {
    // This API has fewer words than others, and says the rest in its messages.
    let (kind, message) = match (refusal.code.as_deref(), refusal.status) {
        (Some("context_length_exceeded"), _) => {
            ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
        }
        (Some("content_filter"), _) => {
            ("invalid_request_error", "Output blocked by content filtering policy")
        }
        (Some("server_shutdown"), _) => ("server_shutdown", refusal.message.as_str()),
        (_, status) => (kind(status), refusal.message.as_str()),
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        503 | 529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

fn message(context: &Context<'_>, content: &[Value], stop_reason: Option<&str>) -> Value {
    json!({
        "id": format!("msg_{}", context.id), "type": "message", "role": "assistant", "model": context.model,
        "content": content, "stop_reason": stop_reason, "stop_sequence": null,
    })
}

/// Why the model stopped; nothing is said in the midst of it.
fn stop_reason(speech: &Speech<'_>) -> Option<&'static str> {
    match speech.end {
        Ending::Completed if speech.calls() > 0 => Some("tool_use"),
        Ending::Completed => Some("end_turn"),
        Ending::Incomplete { reason } if reason == "content_filter" => Some("refusal"),
        Ending::Incomplete { .. } => Some("max_tokens"),
        Ending::Failed { .. } | Ending::Cut | Ending::Unfinished | Ending::Malformed | Ending::Stall => None,
    }
}

fn usage(context: &Context<'_>, said: usize) -> Value {
    json!({
        "input_tokens": context.asked_tokens(), "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": said,
    })
}

/// A part as a block of content. Arguments that are no object cannot be said here but in pieces.
fn block(context: &Context<'_>, speech: &Speech<'_>, at: usize, said: &str) -> Value {
    match &speech.parts[at].kind {
        Kind::Reasoning => json!({"type": "thinking", "thinking": said, "signature": SIGNATURE}),
        Kind::Text => json!({"type": "text", "text": said}),
        Kind::Function { tool } | Kind::FreeForm { tool } => {
            let input: Value = serde_json::from_str(said).unwrap_or_else(|_| json!({}));
            let id = format!("toolu_{}_{}", context.id, speech.call_number(at));
            json!({"type": "tool_use", "id": id, "name": tool, "input": input})
        }
    }
}

struct Events {
    pieces: Vec<Piece>,
}

impl Events {
    fn push(&mut self, event: Value) {
        self.push_after(Duration::ZERO, &event);
    }

    fn push_after(&mut self, pause: Duration, event: &Value) {
        let kind = event["type"].as_str().unwrap_or_default();
        self.pieces.push(Piece { pause, text: format!("event: {kind}\ndata: {event}\n\n") });
    }

    fn delta(&mut self, part: &Part, at: usize, delta: usize) {
        let text = &part.deltas[delta];
        let delta = match part.kind {
            Kind::Reasoning => json!({"type": "thinking_delta", "thinking": text}),
            Kind::Text => json!({"type": "text_delta", "text": text}),
            Kind::Function { .. } | Kind::FreeForm { .. } => {
                json!({"type": "input_json_delta", "partial_json": text})
            }
        };
        self.push_after(part.pause, &json!({"type": "content_block_delta", "index": at, "delta": delta}));
    }
}
