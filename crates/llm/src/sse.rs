//! Server-sent events: bytes to events, and back.
//!
//! The decoder takes a stream in any pieces and gives the same events for every way of cutting it. It follows the
//! standard: lines end with LF, CR or both, comments and unknown fields are skipped, several `data` lines are one text, an
//! event that no empty line ends is none. It does not reconnect, so `id` and `retry` mean nothing here.

use crate::LlmError;

/// The longest event that is taken: a finished answer comes whole in one.
pub const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The event's name; empty where the stream gives none.
    pub name: String,
    /// What it holds; lines are divided by LF.
    pub data: String,
}

/// Makes events of bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The line so far, without its end.
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    /// The last byte was a CR, so a LF now ends no line of its own.
    after_cr: bool,
    /// The first line was read, so a byte order mark now is text.
    begun: bool,
}

impl Decoder {
    /// A decoder at the beginning of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and gives the events that they end.
    ///
    /// # Errors
    /// [`LlmError::EventTooLong`]; the stream cannot be read on after it.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<Event>, LlmError> {
        let mut events = Vec::new();
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let text = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + self.data.len() + text.len() > EVENT_BYTES_MAX {
                return Err(LlmError::EventTooLong { max: EVENT_BYTES_MAX });
            }
            self.line.extend_from_slice(text);
            let Some(end) = end else { break };
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            events.extend(self.end_line());
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let is_first = !std::mem::replace(&mut self.begun, true);
        let bare = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(&line);
        let event = if bare.is_empty() {
            self.end_event()
        } else {
            self.field(&String::from_utf8_lossy(bare));
            None
        };
        // Kept for its memory, which the next line needs again.
        self.line = line;
        self.line.clear();
        event
    }

    fn field(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            "event" => value.clone_into(&mut self.name),
            _ => {}
        }
    }

    fn end_event(&mut self) -> Option<Event> {
        let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        std::mem::take(&mut self.has_data).then_some(Event { name, data })
    }
}

/// Writes an event behind what is there.
///
/// A line break in the name is left out, since it would begin another field.
pub fn encode(event: &Event, out: &mut Vec<u8>) {
    let name: String = event.name.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    if !name.is_empty() {
        field("event", &name, out);
    }
    for line in event.data.replace("\r\n", "\n").split(['\r', '\n']) {
        field("data", line, out);
    }
    out.push(b'\n');
}

fn field(name: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.push(b'\n');
}
