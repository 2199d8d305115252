//! What an invocation tells, as bounded signals.

use runyard_actions::{Action, Envelope, InvocationEvent, LogEntry, LogLevel};
use runyard_backend::{Signal, Stream};
use serde_json::{Value, json};

use crate::cut;

/// How much of the data is said, in bytes.
const DATA_BYTES_MAX: usize = 32 * 1024;
/// The longest piece of output, in bytes.
const PIECE_BYTES_MAX: usize = 8 * 1024;
/// How much of the input stands in the call, in bytes; all of it stands in the request.
const ARGUMENTS_BYTES_MAX: usize = 16 * 1024;
/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 1024;

pub(super) fn call(call: &str, action: &Action, input: &Value, idempotent: bool) -> Signal {
    let bytes = input.to_string().len();
    Signal::ToolCall {
        call: call.to_owned(),
        tool: action.name().to_owned(),
        summary: line(&action.spec().description),
        arguments: if bytes <= ARGUMENTS_BYTES_MAX { input.clone() } else { json!({ "bytes": bytes }) },
        idempotent,
    }
}

/// What an action reports on its way, as lines.
pub(super) fn output(call: &str, event: &InvocationEvent) -> Vec<Signal> {
    let (stream, text) = match event {
        InvocationEvent::Log(log) | InvocationEvent::Progress(log) => (stream_of(log), log_line(log)),
        InvocationEvent::Artifact(artifact) => {
            (Stream::Stdout, format!("artifact {} ({})\n", artifact.id, artifact.kind))
        }
        InvocationEvent::Result(_) => return Vec::new(),
    };
    let mut rest = text.as_str();
    let mut signals = Vec::new();
    while !rest.is_empty() {
        let (piece, left) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
        signals.push(Signal::ToolOutput { call: call.to_owned(), stream, text: piece.to_owned() });
        rest = left;
    }
    signals
}

fn stream_of(log: &LogEntry) -> Stream {
    if log.level >= LogLevel::Warn { Stream::Stderr } else { Stream::Stdout }
}

fn log_line(log: &LogEntry) -> String {
    match serde_json::to_string(&log.fields) {
        Ok(fields) if fields != "{}" => format!("{} {fields}\n", log.message),
        _ => format!("{}\n", log.message),
    }
}

/// The data for people: a text as it is, anything else as JSON.
pub(super) fn data(data: &Value) -> String {
    let text = match data {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_else(|_| other.to_string()),
    };
    let end = cut::head(&text, DATA_BYTES_MAX).len();
    match text.len() - end {
        0 => text,
        left => format!("{}… ({left} bytes are left out)", &text[..end]),
    }
}

pub(super) fn took(envelope: &Envelope) -> String {
    match envelope.meta.idempotent {
        Some(_) => "done before; that result was kept".to_owned(),
        None => format!("done in {} ms", envelope.meta.duration_ms),
    }
}

/// The text as one bounded line.
pub(super) fn line(text: &str) -> String {
    cut::head(text, LINE_BYTES_MAX).replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::tests::{SECRET, holds_no_part};

    #[test]
    fn b12_what_is_cut_ends_with_no_part_of_a_secret() {
        for (bytes_max, cut) in
            [(DATA_BYTES_MAX, (|text| data(&json!(text))) as fn(&str) -> String), (LINE_BYTES_MAX, line)]
        {
            for before in bytes_max - SECRET.len() - 8..bytes_max {
                let long = format!("{} {SECRET} {}", "-".repeat(before), "and so on".repeat(1000));
                holds_no_part(&cut(&long).replace(SECRET, ""));
            }
        }
    }

    #[test]
    fn b09_data_beyond_its_limit_is_cut_and_says_so() {
        assert_eq!(data(&json!("as it is")), "as it is");
        assert_eq!(data(&json!({ "a": 1 })), "{\n  \"a\": 1\n}");
        let long = data(&json!("ü".repeat(DATA_BYTES_MAX)));
        assert!(long.len() < DATA_BYTES_MAX + 64);
        assert!(long.ends_with("… (33280 bytes are left out)"), "{}", &long[long.len() - 40..]);
    }
}
