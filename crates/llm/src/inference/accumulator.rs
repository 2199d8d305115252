//! What has come of an answer, over all attempts at it.
//!
//! Each event goes in once, and what clients may see of it comes out: what is kept and what is seen cannot differ. It neither
//! waits nor asks, and does not choose how an answer that broke off is saved.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

use super::seam::Seam;
use super::update::Update;
use super::{
    Fault, InferenceExecutionError, InterruptSnapshot, Message, ModelEvent, OpenToolCall, Part, Reasoning,
    Role, StopReason, ToolCall, plain_id,
};

/// How long an answer may be, in bytes of everything.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// In how many events it may come, over all attempts.
pub const EVENTS_MAX: u32 = 4_000_000;

/// How many calls it may hold.
pub const CALLS_MAX: usize = 256;

/// So much of an id is kept where it has to be another one: with what comes behind it, every provider takes it.
const ID_STEM_BYTES_MAX: usize = 60;

/// What has come of an answer.
#[derive(Debug, Default)]
pub(super) struct Accumulator {
    pieces: Vec<Piece>,
    seam: Option<Seam>,
    bytes: usize,
    events: u32,
    /// Whether clients saw anything since the last reset.
    seen: bool,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Thought { thought: Reasoning, whole: bool },
    Open { index: u32, call: OpenToolCall },
    Whole { index: u32, call: ToolCall },
}

impl Accumulator {
    /// Takes an event. What clients may see of it goes to `updates`; what it costs and that it ended is not for here.
    ///
    /// # Errors
    /// [`InferenceExecutionError::Provider`] for what fits no answer: a call that never began, or began twice.
    /// [`Fault::Endless`] for too much.
    pub(super) fn take(&mut self, event: ModelEvent, updates: &mut VecDeque<Update>) -> Result<(), Fault> {
        self.count(&event)?;
        match event {
            ModelEvent::Text(piece) => self.take_text(piece, updates),
            ModelEvent::Reasoning(piece) => self.take_thought(piece, updates),
            ModelEvent::ReasoningEnded { sealed } => self.end_thought(sealed),
            ModelEvent::ToolCallStarted { index, id, name } => {
                self.start_call(index, id, name, updates)?;
            }
            ModelEvent::ToolCallArguments { index, text } => {
                match self.pieces.iter_mut().rev().find(|piece| piece.is_call(index)) {
                    Some(Piece::Open { call, .. }) => call.partial_arguments.push_str(&text),
                    _ => return Err(malformed("arguments of a call that is not open")),
                }
                updates.push_back(Update::ToolCallArguments { index, text });
            }
            ModelEvent::ToolCallEnded { index } => {
                let Some(piece) = self.pieces.iter_mut().rev().find(|piece| piece.is_call(index)) else {
                    return Err(malformed("the end of a call that never began"));
                };
                piece.complete(updates);
            }
            ModelEvent::Usage(_) | ModelEvent::Alive | ModelEvent::Stopped(_) => {}
        }
        Ok(())
    }

    /// The answer is whole. Returns why it ended, in agreement with what it holds.
    pub(super) fn stop(&mut self, stop: StopReason, updates: &mut VecDeque<Update>) -> StopReason {
        self.end_seam(updates);
        if stop == StopReason::MaxTokens {
            self.complete_objects(updates);
            self.cancel_open(updates);
            return stop;
        }
        for piece in &mut self.pieces {
            piece.complete(updates);
        }
        if self.has_whole_calls() { StopReason::ToolUse } else { StopReason::EndTurn }
    }

    /// The attempt broke off. What it was not clear whether it repeats is dropped: nobody saw it, and it will be said again.
    pub(super) fn break_off(&mut self) {
        self.seam = None;
        for piece in &mut self.pieces {
            if let Piece::Thought { whole, .. } = piece {
                *whole = true;
            }
        }
    }

    /// What there is.
    pub(super) fn snapshot(&self) -> InterruptSnapshot {
        let mut snapshot = InterruptSnapshot::default();
        let text = self.text();
        snapshot.text = (!text.is_empty()).then_some(text);
        for piece in &self.pieces {
            match piece {
                Piece::Open { call, .. } => match whole_object(&call.partial_arguments) {
                    Some(arguments) => snapshot.completed_tool_calls.push(ToolCall {
                        id: call.id.clone(),
                        name: call.name.clone(),
                        arguments,
                    }),
                    None => snapshot.in_flight_tools.push(call.clone()),
                },
                Piece::Whole { call, .. } => snapshot.completed_tool_calls.push(call.clone()),
                Piece::Text(_) | Piece::Thought { .. } => {}
            }
        }
        snapshot
    }

    /// Ends with the calls that are whole; those that are not are cancelled.
    pub(super) fn use_calls(&mut self, updates: &mut VecDeque<Update>) {
        self.complete_objects(updates);
        self.cancel_open(updates);
    }

    /// Keeps the text, to be continued; the calls are cancelled. Returns what was said and thought.
    pub(super) fn continue_text(&mut self, updates: &mut VecDeque<Update>) -> Message {
        self.cancel_open(updates);
        self.seam = Some(Seam::new(self.text()));
        self.said()
    }

    /// Drops everything.
    pub(super) fn reset(&mut self, updates: &mut VecDeque<Update>) {
        self.cancel_open(updates);
        if std::mem::take(&mut self.seen) {
            updates.push_back(Update::Reset);
        }
        self.pieces.clear();
        self.seam = None;
        self.bytes = 0;
    }

    /// All that is whole, as the model's message; nothing is left.
    pub(super) fn take_message(&mut self) -> Message {
        let parts = self.pieces.drain(..).filter_map(|piece| match piece {
            Piece::Text(text) => Some(Part::Text { text }),
            Piece::Thought { thought, .. } => Some(Part::Reasoning(thought)),
            Piece::Whole { call, .. } => Some(Part::ToolCall(call)),
            Piece::Open { .. } => None,
        });
        Message { role: Role::Assistant, content: parts.collect() }
    }

    /// What was said and thought, without calls.
    pub(super) fn said(&self) -> Message {
        let parts = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(Part::Text { text: text.clone() }),
            Piece::Thought { thought, .. } => Some(Part::Reasoning(thought.clone())),
            Piece::Whole { .. } | Piece::Open { .. } => None,
        });
        Message { role: Role::Assistant, content: parts.collect() }
    }

    fn text(&self) -> String {
        let texts = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    fn has_whole_calls(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Whole { .. }))
    }

    fn count(&mut self, event: &ModelEvent) -> Result<(), Fault> {
        self.events = self.events.saturating_add(1);
        self.bytes = self.bytes.saturating_add(match event {
            ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.len(),
            ModelEvent::ToolCallArguments { text, .. } => text.len(),
            ModelEvent::ToolCallStarted { id, name, .. } => id.len() + name.len(),
            ModelEvent::ReasoningEnded { sealed } => sealed.as_ref().map_or(0, bytes_of),
            ModelEvent::ToolCallEnded { .. }
            | ModelEvent::Usage(_)
            | ModelEvent::Alive
            | ModelEvent::Stopped(_) => 0,
        });
        if self.events > EVENTS_MAX || self.bytes > ANSWER_BYTES_MAX {
            return Err(Fault::Endless("it sent an answer without end"));
        }
        Ok(())
    }

    fn take_text(&mut self, piece: String, updates: &mut VecDeque<Update>) {
        if piece.is_empty() {
            return;
        }
        let Some(seam) = &mut self.seam else {
            return self.add_text(piece, updates);
        };
        if let Some(new) = seam.push(&piece) {
            self.seam = None;
            self.join_text(new, updates);
        }
    }

    fn end_seam(&mut self, updates: &mut VecDeque<Update>) {
        if let Some(new) = self.seam.take().and_then(|mut seam| seam.end()) {
            self.join_text(new, updates);
        }
    }

    /// Adds to the text that was continued, which comes to stand after what was thought since.
    fn join_text(&mut self, new: String, updates: &mut VecDeque<Update>) {
        if let Some(at) = self.pieces.iter().rposition(|piece| matches!(piece, Piece::Text(_))) {
            self.pieces[at..].rotate_left(1);
        }
        self.add_text(new, updates);
    }

    fn add_text(&mut self, new: String, updates: &mut VecDeque<Update>) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push_str(&new),
            _ => self.pieces.push(Piece::Text(new.clone())),
        }
        self.seen = true;
        updates.push_back(Update::Text(new));
    }

    fn take_thought(&mut self, piece: String, updates: &mut VecDeque<Update>) {
        if piece.is_empty() {
            return;
        }
        match self.open_thought() {
            Some(thought) => thought.text.push_str(&piece),
            None => {
                let thought = Reasoning { text: piece.clone(), sealed: None };
                self.pieces.push(Piece::Thought { thought, whole: false });
            }
        }
        self.seen = true;
        updates.push_back(Update::Reasoning(piece));
    }

    fn end_thought(&mut self, sealed: Option<Value>) {
        let open = self.pieces.iter_mut().rev().find_map(|piece| match piece {
            Piece::Thought { thought, whole } if !*whole => Some((thought, whole)),
            _ => None,
        });
        match open {
            Some((thought, whole)) => {
                thought.sealed = sealed;
                *whole = true;
            }
            None if sealed.is_some() => {
                let thought = Reasoning { text: String::new(), sealed };
                self.pieces.push(Piece::Thought { thought, whole: true });
            }
            None => {}
        }
    }

    fn open_thought(&mut self) -> Option<&mut Reasoning> {
        self.pieces.iter_mut().rev().find_map(|piece| match piece {
            Piece::Thought { thought, whole: false } => Some(thought),
            _ => None,
        })
    }

    fn start_call(
        &mut self,
        index: u32,
        id: String,
        name: String,
        updates: &mut VecDeque<Update>,
    ) -> Result<(), Fault> {
        if self.pieces.iter().any(|piece| piece.is_call(index)) {
            return Err(malformed("two calls that go by the same"));
        }
        if self.pieces.iter().filter(|piece| piece.call_id().is_some()).count() >= CALLS_MAX {
            return Err(Fault::Endless("it sent calls without end"));
        }
        self.end_seam(updates);
        let id = self.own_id(id);
        let call = OpenToolCall { id: id.clone(), name: name.clone(), partial_arguments: String::new() };
        self.pieces.push(Piece::Open { index, call });
        self.seen = true;
        updates.push_back(Update::ToolCallStarted { index, id, name });
        Ok(())
    }

    /// The id, or another one where a call of the answer has it: some models give one to several calls, and whoever makes those
    /// finds their results by it.
    fn own_id(&self, id: String) -> String {
        let taken: HashSet<String> = self.pieces.iter().filter_map(Piece::call_id).map(plain_id).collect();
        if !taken.contains(&plain_id(&id)) {
            return id;
        }
        let plain = plain_id(&id);
        let stem = &plain[..plain.len().min(ID_STEM_BYTES_MAX)];
        let others = (2..=CALLS_MAX + 1).map(|number| format!("{stem}-{number}"));
        // One of so many is free.
        others.into_iter().find(|other| !taken.contains(other)).unwrap_or(id)
    }

    /// Completes the open calls whose arguments are a closed object: nothing could follow.
    fn complete_objects(&mut self, updates: &mut VecDeque<Update>) {
        for piece in &mut self.pieces {
            if matches!(piece, Piece::Open { call, .. } if whole_object(&call.partial_arguments).is_some()) {
                piece.complete(updates);
            }
        }
    }

    fn cancel_open(&mut self, updates: &mut VecDeque<Update>) {
        self.pieces.retain_mut(|piece| {
            let Piece::Open { call, .. } = piece else { return true };
            let (id, name) = (std::mem::take(&mut call.id), std::mem::take(&mut call.name));
            updates.push_back(Update::ToolCallCancelled { id, name });
            false
        });
    }
}

impl Piece {
    fn is_call(&self, wanted: u32) -> bool {
        matches!(self, Piece::Open { index, .. } | Piece::Whole { index, .. } if *index == wanted)
    }

    fn call_id(&self) -> Option<&str> {
        match self {
            Piece::Open { call, .. } => Some(&call.id),
            Piece::Whole { call, .. } => Some(&call.id),
            Piece::Text(_) | Piece::Thought { .. } => None,
        }
    }

    /// A call that is open becomes whole; all else stays as it is.
    fn complete(&mut self, updates: &mut VecDeque<Update>) {
        let Piece::Open { index, call } = self else { return };
        let arguments = ToolCall::arguments_of(&call.partial_arguments);
        let (id, name) = (std::mem::take(&mut call.id), std::mem::take(&mut call.name));
        let call = ToolCall { id, name, arguments };
        updates.push_back(Update::ToolCallReady(call.clone()));
        *self = Piece::Whole { index: *index, call };
    }
}

/// How much there is of what a provider wants back.
fn bytes_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(bytes_of).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + bytes_of(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

fn whole_object(arguments: &str) -> Option<Value> {
    // Most pieces of an object do not end as one, and need not be parsed for that.
    let ends = arguments.trim_end().ends_with('}');
    ends.then(|| serde_json::from_str(arguments).ok()).flatten().filter(Value::is_object)
}

fn malformed(what: &str) -> Fault {
    Fault::Failed(InferenceExecutionError::Provider(format!("it sent {what}")))
}
