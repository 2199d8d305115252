//! How long a signal and a batch may be. What is longer is cut into pieces where it has pieces, else clipped.

use std::io;

use runyard_backend::{BackendError, Signal, Stream};
use runyard_domain::run::FailureKind;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cut::clip;

/// No signal is longer, as JSON, but for the little that stands around its text.
pub(super) const SIGNAL_BYTES_MAX: usize = 48 * 1024;
/// No message is longer, in bytes: what the edge leaves out of a long one it says, and this is well beyond that.
const MESSAGE_BYTES_MAX: usize = 512 * 1024;
/// So much stands around a signal's text at most.
const FRAME_BYTES_MAX: usize = 8 * 1024;
/// A piece of a text, in bytes; as JSON it is at most six times as long.
const PIECE_BYTES_MAX: usize = 8 * 1024;
/// No batch is longer, as JSON.
const BATCH_BYTES_MAX: usize = 512 * 1024;

/// How long it is as JSON.
pub(super) fn length(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // What cannot be written as JSON is not sent either.
    let (Ok(()) | Err(_)) = serde_json::to_writer(&mut count, value);
    count.0
}

/// The pieces of a text.
pub(super) fn pieces(mut text: &str) -> impl Iterator<Item = String> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(PIECE_BYTES_MAX));
        text = rest;
        (!piece.is_empty()).then(|| piece.to_owned())
    })
}

/// What a step prints.
pub(super) fn output(call: &str, text: &str) -> impl Iterator<Item = Signal> {
    pieces(text).map(move |text| Signal::ToolOutput { call: call.to_owned(), stream: Stream::Stdout, text })
}

/// A text that cannot be cut into pieces.
pub(super) fn text(text: String) -> String {
    if length(&text) <= SIGNAL_BYTES_MAX { text } else { clip(&text, PIECE_BYTES_MAX) }
}

/// A message, which is kept as it is as long as it can be.
pub(super) fn message(text: String) -> String {
    if text.len() <= MESSAGE_BYTES_MAX { text } else { clip(&text, MESSAGE_BYTES_MAX) }
}

/// Arguments, or how long they were.
pub(super) fn arguments(arguments: Value) -> Value {
    match length(&arguments) {
        0..=SIGNAL_BYTES_MAX => arguments,
        bytes => json!({ "omittedBytes": bytes }),
    }
}

/// The signals in batches, in order. What is not cut or clipped, a name say, is never long; else codex is out of its mind.
pub(super) fn batches(signals: Vec<Signal>) -> Result<Vec<Vec<Signal>>, BackendError> {
    let mut batches: Vec<Vec<Signal>> = Vec::new();
    let mut bytes = BATCH_BYTES_MAX;
    for signal in signals {
        let more = length(&signal);
        let max = match &signal {
            // A byte is at most six as JSON.
            Signal::Message { item, .. } | Signal::Reasoning { item, .. } if item.len() < FRAME_BYTES_MAX => {
                6 * MESSAGE_BYTES_MAX
            }
            _ => SIGNAL_BYTES_MAX,
        };
        if more > max + FRAME_BYTES_MAX {
            let message = format!("codex says something of {more} bytes that has no pieces");
            return Err(BackendError::new(FailureKind::BackendProtocolError, message));
        }
        bytes += more;
        match batches.last_mut() {
            Some(batch) if bytes <= BATCH_BYTES_MAX => batch.push(signal),
            _ => {
                batches.push(vec![signal]);
                bytes = more;
            }
        }
    }
    Ok(batches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::tests::{SECRET, holds_no_part};

    #[test]
    fn b12_what_is_clipped_ends_with_no_part_of_a_secret() {
        for before in PIECE_BYTES_MAX - SECRET.len() - 8..PIECE_BYTES_MAX {
            let long = format!("{} {SECRET} {}", "-".repeat(before), "and so on".repeat(10_000));
            holds_no_part(&text(long).replace(SECRET, ""));
        }
    }

    #[test]
    fn b09_a_long_output_is_cut_into_pieces_and_nothing_is_lost() {
        let long = "ä\u{1}".repeat(40_000);
        let signals: Vec<Signal> = output("call", &long).collect();
        let whole: String = signals
            .iter()
            .map(|signal| match signal {
                Signal::ToolOutput { text, .. } => text.as_str(),
                _ => "",
            })
            .collect();
        assert_eq!(whole, long);
        let batches = batches([signals.clone(), signals.clone(), signals].concat()).unwrap();
        assert!(batches.len() > 1);
        for batch in &batches {
            assert!(batch.iter().all(|signal| length(signal) <= SIGNAL_BYTES_MAX + 256));
            assert!(batch.iter().map(length).sum::<usize>() <= BATCH_BYTES_MAX);
        }
        assert_eq!(batches.concat().len(), 3 * long.len().div_ceil(PIECE_BYTES_MAX));
    }

    #[test]
    fn b09_a_long_message_is_kept_for_the_edge_to_cut_and_to_say_so() {
        let long = "\u{1}".repeat(300_000);
        assert_eq!(message(long.clone()), long);
        assert!(message("a b ".repeat(400_000)).len() <= MESSAGE_BYTES_MAX);
        let said = vec![Signal::Message { item: "m".to_owned(), text: message(long) }];
        assert_eq!(batches(said).unwrap().len(), 1);
    }

    #[test]
    fn b09_a_name_that_has_no_end_is_a_breach_of_the_protocol() {
        let signal = |item: String| vec![Signal::Message { item, text: "hello".to_owned() }];
        assert!(batches(signal("m".to_owned())).is_ok());
        let error = batches(signal("m".repeat(100_000))).unwrap_err();
        assert_eq!(error.failure_kind, FailureKind::BackendProtocolError);
        assert!(error.message.len() < 200);
    }

    #[test]
    fn b09_what_cannot_be_cut_is_clipped() {
        assert_eq!(text("short".to_owned()), "short");
        assert!(length(&text("\u{1}".repeat(100_000))) <= SIGNAL_BYTES_MAX + 256);
        assert_eq!(arguments(json!({ "a": "b".repeat(100_000) })), json!({ "omittedBytes": 100_008 }));
    }
}
