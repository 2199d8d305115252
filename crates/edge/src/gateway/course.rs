//! What becomes of an answer's bytes on their way: passed on as they are or translated, and counted.

use std::borrow::Cow;

use runyard_llm::usage::{self, Usage};
use runyard_llm::{sse, translate};
use serde::Deserialize;

/// An answer that is no stream is kept up to this size, to read what it cost.
const WHOLE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The course that one answer takes.
pub(super) enum Course {
    /// As it is, and not counted: a refusal, or a list of models.
    Free,
    /// As it is: a stream of events.
    Events(Meter),
    /// As it is: one text, whose cost is known when it is whole.
    Whole(Vec<u8>, u64),
    /// Chunks of a chat completion, which become the events of a response.
    Chat(Box<translate::Stream>, Meter),
}

impl Course {
    /// Takes the next bytes, and gives what goes on; none where this is no answer at all.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            Course::Free => {}
            Course::Events(meter) => meter.push(bytes),
            Course::Whole(kept, length) => {
                *length = length.saturating_add(bytes.len() as u64);
                let room = WHOLE_BYTES_MAX - kept.len();
                kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Course::Chat(stream, meter) => {
                let out = stream.push(bytes).ok()?;
                meter.push(&out);
                return Some(out);
            }
        }
        Some(bytes.to_vec())
    }

    /// The provider's answer ended; gives what is still to be said.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        match self {
            Course::Free | Course::Events(_) | Course::Whole(..) => Vec::new(),
            Course::Chat(stream, meter) => {
                let out = stream.finish();
                meter.push(&out);
                out
            }
        }
    }

    /// Whether the agent has heard the end, so that nothing more is to be waited for.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Course::Chat(stream, _) if stream.is_over())
    }

    /// What the provider says that it cost, in tokens of input and output.
    pub(super) fn told(&self) -> Option<(u64, u64)> {
        let usage = match self {
            Course::Free => None,
            Course::Events(meter) => meter.usage,
            Course::Whole(kept, length) if kept.len() as u64 == *length => usage::of_body(kept),
            Course::Whole(..) => None,
            Course::Chat(stream, meter) => stream.usage().or(meter.usage),
        };
        usage.map(|usage| (usage.input_tokens, usage.output_tokens))
    }

    /// How much the model has said so far, in bytes.
    pub(super) fn said_bytes(&self) -> u64 {
        match self {
            Course::Free => 0,
            Course::Events(meter) | Course::Chat(_, meter) => meter.said_bytes,
            Course::Whole(_, length) => *length,
        }
    }
}

/// Looks at the events of a response that pass by.
#[derive(Default)]
pub(super) struct Meter {
    decoder: sse::Decoder,
    /// Whether an event was too long to be read, and so all that follows.
    is_lost: bool,
    usage: Option<Usage>,
    said_bytes: u64,
}

/// More of what the model says, thinks or calls.
#[derive(Deserialize)]
struct Saying<'a> {
    #[serde(borrow, default)]
    delta: Cow<'a, str>,
}

impl Meter {
    fn push(&mut self, bytes: &[u8]) {
        let events = if self.is_lost { None } else { self.decoder.push(bytes).ok() };
        let Some(events) = events else {
            self.is_lost = true;
            self.said_bytes = self.said_bytes.saturating_add(bytes.len() as u64);
            return;
        };
        for sse::Event { data, .. } in events {
            // Most events tell only one of these, and need not be parsed for the other.
            if data.contains("\"usage\"") {
                self.usage = usage::of_body(data.as_bytes()).or(self.usage);
            }
            if data.contains("\"delta\"")
                && let Ok(saying) = serde_json::from_str::<Saying<'_>>(&data)
            {
                self.said_bytes = self.said_bytes.saturating_add(saying.delta.len() as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "data: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n\
        data: {\"type\":\"response.output_text.delta\",\"delta\":\"four\"}\n\n\
        data: {\"type\":\"response.output_text.delta\",\"delta\":\"a \\\"b\\\"\"}\n\n\
        data: {\"type\":\"response.custom.delta\",\"delta\":{\"no\":\"text\"}}\n\n\
        data: not JSON, though it says \"delta\" and \"usage\"\n\n";

    #[test]
    fn what_was_said_is_counted_however_it_is_cut_until_the_provider_tells_the_cost() {
        let completed = "data: {\"response\":{\"usage\":{\"input_tokens\":30,\"output_tokens\":12}}}\n\n";
        for length in [1, 7, 1000] {
            let mut course = Course::Events(Meter::default());
            for piece in STREAM.as_bytes().chunks(length) {
                assert_eq!(course.push(piece).unwrap(), piece);
            }
            assert_eq!((course.told(), course.said_bytes()), (None, 9), "in pieces of {length}");
            course.push(completed.as_bytes());
            assert_eq!(course.told(), Some((30, 12)));
        }
    }

    #[test]
    fn an_answer_that_is_no_stream_tells_its_cost_when_it_is_whole() {
        let mut course = Course::Whole(Vec::new(), 0);
        course.push(b"{\"id\":\"r\",\"usage\":{\"input_tok");
        assert_eq!((course.told(), course.said_bytes()), (None, 29));
        course.push(b"ens\":3,\"output_tokens\":4}}");
        assert_eq!(course.told(), Some((3, 4)));
    }

    #[test]
    fn an_event_that_is_too_long_is_passed_on_and_counted_by_its_length() {
        let mut course = Course::Events(Meter::default());
        let line = vec![b'x'; sse::EVENT_BYTES_MAX + 1];
        assert_eq!(course.push(&line).unwrap().len(), line.len());
        course.push(STREAM.as_bytes());
        assert_eq!((course.told(), course.said_bytes()), (None, (line.len() + STREAM.len()) as u64));
    }
}
