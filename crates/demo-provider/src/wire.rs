//! The three wires: how the same speech looks on each, as a stream and whole.
//!
//! Pure: it makes the bytes; `reply` sends them.

mod anthropic;
mod chat;
mod responses;

use serde_json::{Value, json};

use crate::{
    conversation::Place,
    reply::{Close, Piece, Reply},
    scenario::{Ending, Refusal},
    speech::{Speech, tokens},
};

/// Events that are none.
const MALFORMED: &str = "data: this is not JSON\n\ndata: {\"type\": \"response.completed\", \n\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Responses,
    Chat,
    Anthropic,
}

/// What one response has beside its speech.
pub(crate) struct Context<'a> {
    /// Unique among all responses, also those of another provider.
    pub(crate) id: &'a str,
    pub(crate) model: &'a str,
    /// The length of what was asked.
    pub(crate) asked_chars: usize,
    /// Whether a response's thoughts are wanted sealed.
    pub(crate) include_sealed: bool,
    /// Whether a stream of chat completions is to end with its usage.
    pub(crate) include_usage: bool,
}

impl Context<'_> {
    fn asked_tokens(&self) -> usize {
        tokens(self.asked_chars)
    }
}

impl Wire {
    /// Where a request's conversation stands.
    pub(crate) fn place(self, asked: &Value) -> Place {
        match self {
            Wire::Responses => Place::of_input(&asked["input"]),
            Wire::Chat => Place::of_messages(&asked["messages"]),
            Wire::Anthropic => Place::of_turns(&asked["messages"]),
        }
    }

    /// An HTTP error in the shape of the wire.
    pub(crate) fn refusal(self, refusal: &Refusal) -> Reply {
        let Refusal { kind, code, message, .. } = refusal;
        let body = match self {
            Wire::Responses | Wire::Chat => {
                json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
            }
            Wire::Anthropic => anthropic::error(refusal),
        };
        Reply::refusal(refusal, &body)
    }

    /// The speech as server-sent events.
    pub(crate) fn stream(self, context: &Context<'_>, speech: &Speech<'_>) -> Reply {
        let mut pieces = match self {
            Wire::Responses => responses::stream(context, speech),
            Wire::Chat => chat::stream(context, speech),
            Wire::Anthropic => anthropic::stream(context, speech),
        };
        if *speech.end == Ending::Malformed {
            pieces.push(Piece::now(MALFORMED));
        }
        let content_type = "text/event-stream";
        Reply { status: 200, content_type, retry_after: Vec::new(), pieces, close: close(speech.end) }
    }

    /// The speech as one JSON body.
    pub(crate) fn whole(self, context: &Context<'_>, speech: &Speech<'_>) -> Reply {
        let value = match (self, speech.end) {
            (Wire::Responses, _) => responses::whole(context, speech),
            // These wires have no form for it but an HTTP error.
            (Wire::Chat | Wire::Anthropic, Ending::Failed { code, message, status, .. }) => {
                return self.refusal(&failure(code, message, *status));
            }
            (Wire::Chat, _) => chat::whole(context, speech),
            (Wire::Anthropic, _) => anthropic::whole(context, speech),
        };
        let text = value.to_string();
        let text = match speech.end {
            Ending::Completed | Ending::Incomplete { .. } | Ending::Failed { .. } => text,
            Ending::Malformed => "this is not JSON".to_owned(),
            Ending::Cut | Ending::Unfinished | Ending::Stall => {
                text.chars().take(text.chars().count() / 2).collect()
            }
        };
        let pieces = vec![Piece { pause: speech.duration(), text }];
        Reply { pieces, close: close(speech.end), ..Reply::json(&Value::Null) }
    }
}

fn close(end: &Ending) -> Close {
    match end {
        Ending::Cut => Close::Cut,
        Ending::Stall => Close::Stall,
        _ => Close::Proper,
    }
}

/// The HTTP error that says the same as a failure within a stream.
fn failure(code: &str, message: &str, exact: Option<u16>) -> Refusal {
    let (status, kind) = match code {
        "rate_limit_exceeded" => (429, "rate_limit_error"),
        "insufficient_quota" => (429, "insufficient_quota"),
        "context_length_exceeded" => (400, "invalid_request_error"),
        "server_is_overloaded" => (503, "server_error"),
        _ => (500, "server_error"),
    };
    Refusal {
        status: exact.unwrap_or(status),
        kind: kind.to_owned(),
        code: Some(code.to_owned()),
        message: message.to_owned(),
        retry_after_s: None,
        retry_after_ms: None,
        retry_after: None,
    }
}

/// An error that says when to come back, if it does.
fn waiting(error: Value, retry_after_s: Option<u32>) -> Value {
    match retry_after_s {
        Some(seconds) => with(error, "retry_after", seconds),
        None => error,
    }
}

fn with(mut object: Value, name: &str, value: impl Into<Value>) -> Value {
    object[name] = value.into();
    object
}
