//! The answer: chunks of a chat completion become the events of a response.
//!
//! The end is told once: when the model said why it stopped, and the stream ended. A stream that ends before that has no last
//! event here either, so that a client takes it for what it is: cut.

use super::{
    Tools,
    calls::Calls,
    prose::{Prose, Voice},
};
use crate::{
    LlmError,
    chat::{self, Chunk, Delta},
    responses::{Event, Failure, Numbered, OutputItem, Reason, Response, Status},
    sse,
    usage::Usage,
};

/// How much text one answer may hold, with its calls.
pub const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What ends a chat completion's stream.
const DONE: &str = "[DONE]";
/// How much of a provider's own words about an error are passed on.
const MESSAGE_CHARS_MAX: usize = 1000;

/// Translates one answer.
#[derive(Debug)]
pub struct Stream {
    /// Unique among all answers; the ids of its items are made of it.
    id: String,
    model: String,
    tools: Tools,
    decoder: sse::Decoder,
    sequence_number: u64,
    has_begun: bool,
    is_over: bool,
    bytes: usize,
    prose: Option<Prose>,
    calls: Calls,
    /// The items that are whole, with their places.
    output: Vec<(usize, OutputItem)>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
}

impl Stream {
    /// A stream at its beginning. `id` has to be unique among all answers, `model` is the one that was asked for.
    #[must_use]
    pub fn new(id: impl Into<String>, model: impl Into<String>, tools: Tools) -> Self {
        Self {
            id: id.into(),
            model: model.into(),
            tools,
            decoder: sse::Decoder::new(),
            sequence_number: 0,
            has_begun: false,
            is_over: false,
            bytes: 0,
            prose: None,
            calls: Calls::default(),
            output: Vec::new(),
            finish_reason: None,
            usage: None,
        }
    }

    /// What the answer cost, as far as it was told.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Whether the last event was given; what still comes is not looked at.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes bytes of the provider's stream and gives the bytes to send on.
    ///
    /// # Errors
    /// Where this is no stream of chunks; it is then to be cut, without a last event.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, LlmError> {
        let mut out = Vec::new();
        // What cannot be read has no last event either, whatever was said before.
        let decoded = self.decoder.push(bytes).inspect_err(|_| self.is_over = true)?;
        for event in decoded {
            let events = self.chunk(&event.data)?;
            self.write(events, &mut out);
        }
        Ok(out)
    }

    /// The provider's stream ended; gives the bytes to send before ending as well.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut events = Vec::new();
        self.end(&mut events);
        let mut out = Vec::new();
        self.write(events, &mut out);
        out
    }

    /// Takes the data of one of the provider's events and gives the events to send on.
    ///
    /// # Errors
    /// [`LlmError::NotAChunk`] or [`LlmError::AnswerTooLong`]; the stream is then to be cut, without a last event.
    pub fn chunk(&mut self, data: &str) -> Result<Vec<Event>, LlmError> {
        let mut events = Vec::new();
        if self.is_over {
            return Ok(events);
        }
        if data.trim() == DONE {
            self.end(&mut events);
            return Ok(events);
        }
        self.take(data, &mut events).inspect_err(|_| self.is_over = true)?;
        Ok(events)
    }

    fn take(&mut self, data: &str, events: &mut Vec<Event>) -> Result<(), LlmError> {
        let chunk: Chunk = serde_json::from_str(data).map_err(|_| LlmError::NotAChunk)?;
        self.begin(events);
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage.into());
        }
        if let Some(error) = chunk.error {
            self.fail(failure_of(&chat::Failure::of(&error)), events);
            return Ok(());
        }
        for choice in chunk.choices.unwrap_or_default() {
            if choice.index != 0 {
                return Err(LlmError::NotAChunk);
            }
            let delta = choice.delta.unwrap_or_default();
            self.bytes += bytes_of(&delta);
            if self.bytes > ANSWER_BYTES_MAX {
                return Err(LlmError::AnswerTooLong { max: ANSWER_BYTES_MAX });
            }
            let added = self.delta(delta, events);
            let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
            self.finish_reason = reason.or(self.finish_reason.take());
            if let Err(failure) = added {
                self.fail(failure, events);
                return Ok(());
            }
        }
        Ok(())
    }

    fn begin(&mut self, events: &mut Vec<Event>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            events.push(Event::Created { response: self.response(Status::InProgress) });
        }
    }

    fn delta(&mut self, delta: Delta, events: &mut Vec<Event>) -> Result<(), Failure> {
        let said = [
            (Voice::Thought, delta.reasoning_content.or(delta.reasoning)),
            (Voice::Speech, delta.content),
            // It is all that the model says then.
            (Voice::Speech, delta.refusal),
        ];
        for (voice, text) in said {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                self.speak(voice, text, events);
            }
        }
        for call in delta.tool_calls.unwrap_or_default() {
            self.end_prose(events);
            let next = self.next_index();
            self.calls.add(call, next, &self.id, &self.tools, events)?;
        }
        Ok(())
    }

    fn speak(&mut self, voice: Voice, text: String, events: &mut Vec<Event>) {
        if self.prose.as_ref().is_some_and(|prose| prose.voice != voice) {
            self.end_prose(events);
        }
        let next = self.next_index();
        let prose = self.prose.get_or_insert_with(|| Prose::begin(voice, &self.id, next, events));
        events.push(prose.add(text));
    }

    fn end_prose(&mut self, events: &mut Vec<Event>) {
        if let Some(prose) = self.prose.take() {
            self.output.push(prose.end(events));
        }
    }

    /// The place of the item that begins next, while none of text is open.
    fn next_index(&self) -> usize {
        self.output.len() + self.calls.shown()
    }

    /// The stream ended. It is the answer's end if the model said why it stopped.
    fn end(&mut self, events: &mut Vec<Event>) {
        if self.is_over {
            return;
        }
        let Some(reason) = self.finish_reason.take() else { return };
        self.end_prose(events);
        match reason.as_str() {
            "stop" | "tool_calls" | "function_call" => {
                let next = self.next_index();
                match std::mem::take(&mut self.calls).end(next, &self.id, &self.tools, events) {
                    Ok(whole) => self.complete(whole, events),
                    Err(failure) => self.fail(failure, events),
                }
            }
            "length" => self.cut_short("max_output_tokens", events),
            "content_filter" => self.cut_short("content_filter", events),
            // DeepSeek's word for it.
            "insufficient_system_resource" => {
                let message = "the provider ran out of resources while it answered".to_owned();
                self.fail(Failure { code: "server_is_overloaded".to_owned(), message }, events);
            }
            other => {
                let message = format!("the model stopped for a reason that is not known: {}", short(other));
                self.fail(Failure { code: "unknown_finish_reason".to_owned(), message }, events);
            }
        }
    }

    fn complete(&mut self, calls: Vec<(usize, OutputItem)>, events: &mut Vec<Event>) {
        self.output.extend(calls);
        self.output.sort_by_key(|(index, _)| *index);
        self.is_over = true;
        events.push(Event::Completed { response: self.response(Status::Completed) });
    }

    /// The calls are left as they are: one of them may be cut in the middle, and none is to be carried out.
    fn cut_short(&mut self, reason: &'static str, events: &mut Vec<Event>) {
        self.is_over = true;
        let response = self.response(Status::Incomplete);
        let incomplete_details = Some(Reason { reason });
        events.push(Event::Incomplete { response: Response { incomplete_details, ..response } });
    }

    fn fail(&mut self, failure: Failure, events: &mut Vec<Event>) {
        self.is_over = true;
        let response = Response { error: Some(failure), ..self.response(Status::Failed) };
        events.push(Event::Failed { response });
    }

    fn response(&self, status: Status) -> Response {
        let is_whole = status != Status::InProgress;
        Response {
            id: self.id.clone(),
            object: "response",
            status,
            model: self.model.clone(),
            output: self.output.iter().map(|(_, item)| item.clone()).collect(),
            usage: self.usage.filter(|_| is_whole).map(Into::into),
            error: None,
            incomplete_details: None,
        }
    }

    fn write(&mut self, events: Vec<Event>, out: &mut Vec<u8>) {
        for event in events {
            let name = event.name().to_owned();
            let numbered = Numbered { event, sequence_number: self.sequence_number };
            self.sequence_number += 1;
            // Its keys are texts and its numbers whole, so there is nothing that JSON could not say.
            if let Ok(data) = serde_json::to_string(&numbered) {
                sse::encode(&sse::Event { name, data }, out);
            }
        }
    }
}

fn bytes_of(delta: &Delta) -> usize {
    let said = [&delta.content, &delta.refusal, &delta.reasoning_content, &delta.reasoning];
    let called = delta.tool_calls.iter().flatten().filter_map(|call| call.function.as_ref());
    let called = called.map(|function| &function.arguments);
    said.into_iter().chain(called).flatten().map(String::len).sum()
}

fn failure_of(error: &chat::Failure) -> Failure {
    Failure {
        code: short(error.word().unwrap_or("server_error")),
        message: short(error.message.as_deref().unwrap_or("the provider gave up")),
    }
}

fn short(text: &str) -> String {
    text.chars().take(MESSAGE_CHARS_MAX).collect()
}
