//! An answer's bytes to the events of a model, however the bytes are cut.
//!
//! Pure. The last thing it gives is [`ModelEvent::Stopped`] or a [`Fault`]; what comes after that is not looked at.

use super::failure::{Said, Wording};
use super::sealed::Maker;
use super::{Wire, anthropic, chat, responses};
use crate::inference::{Fault, InferenceExecutionError, InterruptCause, ModelEvent};
use crate::sse;

/// An answer may be so long, with all that a provider writes around it.
pub const ANSWER_BYTES_MAX: usize = 512 * 1024 * 1024;
/// How many calls one answer may hold.
pub const CALLS_MAX: usize = 128;
/// How many parts of other sorts one answer may hold.
pub const BLOCKS_MAX: usize = 10_000;

/// So much of a provider's word for why a model stopped is logged.
const REASON_CHARS_MAX: usize = 64;

/// Makes the events of a model of an answer's bytes.
pub struct Decoder {
    sse: sse::Decoder,
    reader: Reader,
    wording: Wording,
    bytes: usize,
    is_over: bool,
}

enum Reader {
    Responses(responses::Reader),
    Chat(chat::Reader),
    Anthropic(anthropic::Reader),
}

/// What a piece of an answer comes to, and why it may not go on.
pub(super) type Read = Result<(), Broken>;

/// Why an answer does not go on.
#[derive(Debug, PartialEq)]
pub(super) enum Broken {
    /// The provider says so.
    Said(Box<Said>),
    /// The answer is not one of this wire.
    Wrong(&'static str),
    /// The answer is over a limit.
    Endless(&'static str),
    /// The provider's filter withheld it.
    Filtered(&'static str),
}

impl Decoder {
    pub(super) fn new(wire: &Wire, maker: &Maker) -> Self {
        let reader = match wire {
            Wire::Responses(_) => Reader::Responses(responses::Reader::new(maker.clone())),
            Wire::Chat(_) => Reader::Chat(chat::Reader::new(maker.clone())),
            Wire::Anthropic(_) => Reader::Anthropic(anthropic::Reader::new(maker.clone())),
        };
        let (sse, wording) = (sse::Decoder::new(), Wording::default());
        Decoder { sse, reader, wording, bytes: 0, is_over: false }
    }

    /// The same, for whoever has a key that is not to be repeated.
    pub(super) fn worded(self, wording: Wording) -> Self {
        Decoder { wording, ..self }
    }

    /// Whether the last event was given.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether the model said why it stopped, though more may come, such as what the answer cost.
    pub(super) fn has_said_its_end(&self) -> bool {
        match &self.reader {
            Reader::Responses(_) => false,
            Reader::Chat(reader) => reader.has_said_its_end(),
            Reader::Anthropic(reader) => reader.has_said_its_end(),
        }
    }

    /// Takes the next bytes and gives the events that they end.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Result<ModelEvent, Fault>> {
        let mut given = Vec::new();
        if self.is_over {
            return given;
        }
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > ANSWER_BYTES_MAX {
            self.give(
                Vec::new(),
                Err(Broken::Endless("its answer is longer than any should be")),
                &mut given,
            );
            return given;
        }
        let (events, read) = match self.sse.push(bytes) {
            Ok(events) => (events, Ok(())),
            Err(_) => {
                (Vec::new(), Err(Broken::Endless("an event of its answer is longer than any should be")))
            }
        };
        // Some send an empty one as a sign of life.
        for event in events.into_iter().filter(|event| !event.data.trim().is_empty()) {
            let mut out = Vec::new();
            let read = match &mut self.reader {
                Reader::Responses(reader) => reader.take(&event, &mut out),
                Reader::Chat(reader) => reader.take(&event, &mut out),
                Reader::Anthropic(reader) => reader.take(&event, &mut out),
            };
            self.give(out, read, &mut given);
            if self.is_over {
                return given;
            }
        }
        self.give(Vec::new(), read, &mut given);
        given
    }

    /// The bytes ended, or no more came, for this cause. An answer of which the end was said is whole for all that.
    pub fn end(&mut self, cause: InterruptCause) -> Vec<Result<ModelEvent, Fault>> {
        let mut given = Vec::new();
        if self.is_over {
            return given;
        }
        let mut out = Vec::new();
        let read = match &mut self.reader {
            Reader::Responses(_) => Ok(()),
            Reader::Chat(reader) => reader.end(&mut out),
            Reader::Anthropic(reader) => reader.end(&mut out),
        };
        self.give(out, read, &mut given);
        if !self.is_over {
            self.is_over = true;
            given.push(Err(Fault::Interrupted(cause)));
        }
        given
    }

    fn give(&mut self, out: Vec<ModelEvent>, read: Read, given: &mut Vec<Result<ModelEvent, Fault>>) {
        self.is_over |= matches!(out.last(), Some(ModelEvent::Stopped(_)));
        given.extend(out.into_iter().map(Ok));
        let Err(broken) = read else { return };
        self.is_over = true;
        given.push(Err(match broken {
            Broken::Said(said) => said.faulted(&self.wording),
            Broken::Endless(why) => Fault::Endless(why),
            Broken::Wrong(why) => Fault::Failed(InferenceExecutionError::Provider(why.to_owned())),
            Broken::Filtered(why) => Fault::Failed(InferenceExecutionError::ContentFiltered(why.to_owned())),
        }));
    }
}

/// The next number of a call, where there may be one more.
pub(super) fn next_call(calls: usize) -> Result<u32, Broken> {
    let number = u32::try_from(calls).ok().filter(|_| calls < CALLS_MAX);
    number.ok_or(Broken::Endless("its answer holds too many tool calls"))
}

/// Tells of a reason to stop that is not known here. It is an end for all that: what the model said would not get better by asking again.
pub(super) fn warn_of(reason: &str) {
    let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
    tracing::warn!(?reason, "a model stopped for a reason that is not known; its answer is taken for whole");
}

/// Adds a text, where there is one.
pub(super) fn say(text: Option<String>, event: impl FnOnce(String) -> ModelEvent, out: &mut Vec<ModelEvent>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        out.push(event(text));
    }
}
