//! What becomes of an answer's bytes on their way: passed on as they are or translated, and counted.

use runyard_llm::usage::{self, Told};
use runyard_llm::{sse, translate};
use serde::Deserialize;
use serde_json::Value;

/// An answer that is no stream is kept up to this size, to read what it cost.
const WHOLE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Fields of a piece of an answer whose texts are not said by the model.
const NAMING: [&str; 4] = ["type", "id", "role", "signature"];

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

    /// What the provider says that it cost so far.
    pub(super) fn told(&self) -> Cost {
        let (usage, begun) = match self {
            Course::Free => (None, None),
            Course::Events(meter) => (meter.told.usage(), meter.told.input_tokens()),
            Course::Whole(kept, length) if kept.len() as u64 == *length => (usage::of_body(kept), None),
            Course::Whole(..) => (None, None),
            Course::Chat(stream, meter) => (stream.usage().or(meter.told.usage()), None),
        };
        Cost {
            input_tokens: usage.map(|usage| usage.input_tokens).or(begun),
            output_tokens: usage.map(|usage| usage.output_tokens),
        }
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

/// What a provider tells of a cost, as far as it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
}

/// Looks at the events of an answer that pass by.
#[derive(Default)]
pub(super) struct Meter {
    decoder: sse::Decoder,
    /// Whether an event was too long to be read, and so all that follows.
    is_lost: bool,
    told: Told,
    said_bytes: u64,
}

/// More of what the model says, thinks or calls.
#[derive(Deserialize)]
struct Saying {
    /// In the Responses API a text, elsewhere an object.
    #[serde(default)]
    delta: Value,
    /// In chat completions.
    #[serde(default)]
    choices: Vec<Saying>,
}

impl Saying {
    fn bytes(&self) -> usize {
        said(&self.delta) + self.choices.iter().map(Saying::bytes).sum::<usize>()
    }
}

/// How long all texts in it are, but for those that only name something.
fn said(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(said).sum(),
        Value::Object(fields) => {
            let told = fields.iter().filter(|(name, _)| !NAMING.contains(&name.as_str()));
            told.map(|(_, value)| said(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
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
            self.told.take(&data);
            if data.contains("\"delta\"")
                && let Ok(saying) = serde_json::from_str::<Saying>(&data)
            {
                self.said_bytes = self.said_bytes.saturating_add(saying.bytes() as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(input: u64, output: u64) -> Cost {
        Cost { input_tokens: Some(input), output_tokens: Some(output) }
    }

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
            assert_eq!((course.told(), course.said_bytes()), (Cost::default(), 13), "in pieces of {length}");
            course.push(completed.as_bytes());
            assert_eq!(course.told(), cost(30, 12));
        }
    }

    #[test]
    fn an_answer_that_is_cut_has_cost_what_was_asked_and_what_was_said_on_every_wire() {
        let mut course = Course::Events(Meter::default());
        let begun = r#"{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}"#;
        course.push(format!("data: {begun}\n\n").as_bytes());
        for (kind, name) in
            [("text_delta", "text"), ("thinking_delta", "thinking"), ("input_json_delta", "partial_json")]
        {
            let delta =
                format!(r#"{{"type":"content_block_delta","delta":{{"type":"{kind}","{name}":"four"}}}}"#);
            course.push(format!("data: {delta}\n\n").as_bytes());
        }
        let chat = r#"{"choices":[{"delta":{"content":"two","reasoning_content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"arguments":"{}"}}]}}]}"#;
        let mut other = Course::Events(Meter::default());
        other.push(format!("data: {chat}\n\n").as_bytes());
        assert_eq!((other.told(), other.said_bytes()), (Cost::default(), 5));
        let cut = Cost { input_tokens: Some(9), output_tokens: None };
        assert_eq!((course.told(), course.said_bytes()), (cut, 12));
        course.push(b"data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":5}}\n\n");
        assert_eq!(course.told(), cost(9, 5));
    }

    #[test]
    fn an_answer_that_is_no_stream_tells_its_cost_when_it_is_whole() {
        let mut course = Course::Whole(Vec::new(), 0);
        course.push(b"{\"id\":\"r\",\"usage\":{\"input_tok");
        assert_eq!((course.told(), course.said_bytes()), (Cost::default(), 29));
        course.push(b"ens\":3,\"output_tokens\":4}}");
        assert_eq!(course.told(), cost(3, 4));
    }

    #[test]
    fn an_event_that_is_too_long_is_passed_on_and_counted_by_its_length() {
        let mut course = Course::Events(Meter::default());
        let line = vec![b'x'; sse::EVENT_BYTES_MAX + 1];
        assert_eq!(course.push(&line).unwrap().len(), line.len());
        course.push(STREAM.as_bytes());
        assert_eq!(
            (course.told(), course.said_bytes()),
            (Cost::default(), (line.len() + STREAM.len()) as u64)
        );
    }
}
