//! How much room things take in a step, in bytes of JSON.

use std::io::{self, Write};

use runyard_llm::inference::{Message, Part};
use serde::Serialize;

use crate::checkpoint::CallNote;
use crate::state::StateChanges;

/// What a message takes beside its own JSON, and each part of it: a store may name what is left out here.
const OVERHEAD_BYTES: usize = 64;

/// So many bytes of JSON a character of a text is at most.
pub(super) const CHARACTER_BYTES_MAX: usize = 6;

/// Counts what is written.
struct Counted(usize);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn json(value: &impl Serialize) -> usize {
    let mut counted = Counted(0);
    // What has no JSON is not stored, and whoever stores it says so.
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

pub(super) fn message(message: &Message) -> usize {
    json(message) + OVERHEAD_BYTES * (1 + message.content.len())
}

pub(super) fn messages(messages: &[Message]) -> usize {
    messages.iter().map(message).sum()
}

pub(super) fn part(part: &Part) -> usize {
    json(part) + 1 + OVERHEAD_BYTES
}

/// So many bytes of a text have at most so many as JSON.
pub(super) fn fits(text: &str, mut room: usize) -> usize {
    if text.len() <= room / CHARACTER_BYTES_MAX {
        return text.len();
    }
    for (at, character) in text.char_indices() {
        let bytes = match character {
            '"' | '\\' => 2,
            '\0'..'\u{20}' => CHARACTER_BYTES_MAX,
            character => character.len_utf8(),
        };
        let Some(left) = room.checked_sub(bytes) else { return at };
        room = left;
    }
    text.len()
}

pub(super) fn note(note: &CallNote) -> usize {
    OVERHEAD_BYTES
        + match note {
            CallNote::Intent { call, idempotency_key, .. } => json(call) + idempotency_key.len(),
            CallNote::Ended { how, .. } => json(how),
        }
}

pub(super) fn state(changes: &StateChanges) -> usize {
    let cleared = changes.cleared.iter().map(|key| key.len() + OVERHEAD_BYTES);
    let set = changes.set.iter().map(|(key, value)| key.len() + OVERHEAD_BYTES + json(value));
    cleared.chain(set).sum()
}
