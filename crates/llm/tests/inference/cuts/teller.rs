//! A model that tells a recorded answer, is cut where it is told to be, and goes on where it is asked to.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_core::Stream;
use runyard_llm::inference::{
    CONTINUE, Fault, InferenceExecutionError, InferenceRequest, InterruptCause, Model, ModelEvent,
    ModelStream, Refusal, StopReason, ToolCall,
};

/// A part of a recorded answer.
#[derive(Debug, Clone)]
pub(super) enum Block {
    Text(String),
    Thought(String),
    Call { id: String, arguments: String },
}

/// A recorded answer, in pieces.
#[derive(Debug, Clone)]
pub(super) struct Recording {
    pub events: Vec<ModelEvent>,
}

/// How a telling ends before its end.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    /// After how many events.
    pub at: usize,
    pub ending: Ending,
    /// How many words of what was there are said again, when it is asked to go on.
    pub repeats: usize,
}

#[derive(Debug, Clone)]
pub(super) enum Ending {
    Interrupted(InterruptCause),
    Failed,
    Silence,
    End,
    Refused,
}

/// What there is to be had, of all that was told.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// How much of the text.
    pub reached: usize,
    /// The calls that were whole in the last telling.
    pub calls: Vec<ToolCall>,
}

/// Words that share no end and no beginning by accident: three syllables, never the same twice.
pub(super) fn word(number: usize) -> String {
    let consonants = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r"];
    let vowels = ["a", "é", "i", "o", "u"];
    let syllable = |n: usize| format!("{}{}", consonants[n % 10], vowels[(n / 10) % 5]);
    format!("{}{}{}", syllable(number), syllable(number / 50 + 7), syllable(number * 3 + 13))
}

impl Recording {
    /// The blocks in pieces of `piece` characters. Mixed, calls that follow each other are told at the same time.
    pub(super) fn new(blocks: &[Block], piece: usize, mixed: bool) -> Self {
        let mut lanes: Vec<Vec<ModelEvent>> = Vec::new();
        let mut index = 0;
        let mut before_is_call = false;
        let mut events = Vec::new();
        for block in blocks {
            let is_call = matches!(block, Block::Call { .. });
            if !(mixed && is_call && before_is_call) {
                events.extend(mix(&mut lanes));
            }
            lanes.push(pieces(block, index, piece));
            index += u32::from(is_call);
            before_is_call = is_call;
        }
        events.extend(mix(&mut lanes));
        events.push(ModelEvent::Stopped(if index > 0 { StopReason::ToolUse } else { StopReason::EndTurn }));
        Recording { events }
    }

    pub(super) fn text(&self) -> String {
        text_of(&self.events)
    }

    /// What is left when `said` is there already, but for the last `repeats` words of it. Calls are made all the same.
    fn rest(&self, said: &str, repeats: usize) -> Vec<ModelEvent> {
        assert!(self.text().starts_with(said), "asked to go on after what it never said: {said:?}");
        let repeated = repetition(said, repeats);
        let mut skip = said.len();
        let mut rest: Vec<ModelEvent> =
            if repeated.is_empty() { Vec::new() } else { vec![ModelEvent::Text(repeated.to_owned())] };
        for event in &self.events {
            match event {
                ModelEvent::Text(piece) if skip >= piece.len() => skip -= piece.len(),
                ModelEvent::Text(piece) => {
                    rest.push(ModelEvent::Text(piece[skip..].to_owned()));
                    skip = 0;
                }
                // A model that repeats itself does so before it does anything else.
                event => rest.push(event.clone()),
            }
        }
        rest
    }
}

/// The last words of `said`, if that is a repetition that can be told from an accident.
fn repetition(said: &str, words: usize) -> &str {
    let starts = said.char_indices().filter(|(at, char)| {
        char.is_alphanumeric() && !said[..*at].chars().next_back().is_some_and(char::is_alphanumeric)
    });
    let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    let Some(at) = words.checked_sub(1).and_then(|back| starts.len().checked_sub(back + 2)) else {
        return "";
    };
    let repeated = &said[starts[at]..];
    if repeated.chars().filter(|char| char.is_alphanumeric()).count() >= 12 { repeated } else { "" }
}

fn text_of(events: &[ModelEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        ModelEvent::Text(piece) => Some(piece.as_str()),
        _ => None,
    });
    texts.collect()
}

fn pieces(block: &Block, index: u32, piece: usize) -> Vec<ModelEvent> {
    let cut = |text: &str| -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(piece).map(|chunk| chunk.iter().collect()).collect()
    };
    match block {
        Block::Text(text) => cut(text).into_iter().map(ModelEvent::Text).collect(),
        Block::Thought(text) => {
            let ended = ModelEvent::ReasoningEnded { sealed: None };
            cut(text).into_iter().map(ModelEvent::Reasoning).chain([ended]).collect()
        }
        Block::Call { id, arguments } => {
            let name = format!("tool-{id}");
            let mut events = vec![ModelEvent::ToolCallStarted { index, id: id.clone(), name }];
            events
                .extend(cut(arguments).into_iter().map(|text| ModelEvent::ToolCallArguments { index, text }));
            events.push(ModelEvent::ToolCallEnded { index });
            events
        }
    }
}

fn mix(lanes: &mut Vec<Vec<ModelEvent>>) -> Vec<ModelEvent> {
    let mut lanes: Vec<VecDeque<ModelEvent>> = std::mem::take(lanes).into_iter().map(Into::into).collect();
    let mut mixed = Vec::new();
    while lanes.iter().any(|lane| !lane.is_empty()) {
        mixed.extend(lanes.iter_mut().filter_map(VecDeque::pop_front));
    }
    mixed
}

/// Tells a recording.
pub(super) struct Teller {
    recording: Recording,
    cuts: Mutex<VecDeque<Cut>>,
    told: Mutex<Told>,
}

impl Teller {
    pub(super) fn new(recording: Recording, cuts: Vec<Cut>) -> Self {
        Teller { recording, cuts: Mutex::new(cuts.into()), told: Mutex::default() }
    }

    pub(super) fn told(&self) -> Told {
        self.told.lock().unwrap().clone()
    }
}

/// The calls that are whole in what was told, in the order in which they began. Without an end to the message a call is whole
/// by its own end, or when its arguments are a closed object.
fn whole_calls(events: &[ModelEvent]) -> Vec<ToolCall> {
    let ended = |wanted: u32| {
        events.iter().any(|event| matches!(event, ModelEvent::ToolCallEnded { index } if *index == wanted))
    };
    let mut calls = Vec::new();
    for event in events {
        let ModelEvent::ToolCallStarted { index: of, id, name } = event else { continue };
        let arguments = events.iter().filter_map(|event| match event {
            ModelEvent::ToolCallArguments { index, text } if index == of => Some(text.as_str()),
            _ => None,
        });
        let arguments: String = arguments.collect();
        let parsed: Option<serde_json::Value> = serde_json::from_str(&arguments).ok();
        if ended(*of) || parsed.is_some_and(|value| value.is_object()) {
            let arguments = ToolCall::arguments_of(&arguments);
            calls.push(ToolCall { id: id.clone(), name: name.clone(), arguments });
        }
    }
    calls
}

#[async_trait]
impl Model for Teller {
    fn name(&self) -> &str {
        "teller"
    }

    async fn open(&self, request: &InferenceRequest) -> Result<ModelStream, Refusal> {
        let cut = self.cuts.lock().unwrap().pop_front();
        let repeats = cut.as_ref().map_or(1, |cut| cut.repeats);
        if matches!(cut, Some(Cut { ending: Ending::Refused, .. })) {
            return Err(InferenceExecutionError::overloaded("busy").into());
        }
        let said = match request.messages.as_slice() {
            [.., said, go_on] if go_on.said() == CONTINUE => Some(said.said()),
            _ => None,
        };
        let mut events = match &said {
            Some(said) => self.recording.rest(said, repeats),
            None => self.recording.events.clone(),
        };
        let cut = cut.filter(|cut| cut.at < events.len());
        if let Some(cut) = &cut {
            events.truncate(cut.at);
        }
        let repeated = said.as_ref().map_or("", |said| repetition(said, repeats)).len();
        let before = said.as_ref().map_or(0, String::len);
        let reached = before + text_of(&events).len().saturating_sub(repeated);
        *self.told.lock().unwrap() = Told { reached, calls: whole_calls(&events) };
        let ending = cut.map_or(Ending::End, |cut| cut.ending);
        Ok(Box::pin(Telling { events: events.into(), ending: Some(ending) }))
    }
}

struct Telling {
    events: VecDeque<ModelEvent>,
    ending: Option<Ending>,
}

impl Stream for Telling {
    type Item = Result<ModelEvent, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(event) = self.events.pop_front() {
            return Poll::Ready(Some(Ok(event)));
        }
        match self.ending.take() {
            Some(Ending::Interrupted(cause)) => Poll::Ready(Some(Err(Fault::Interrupted(cause)))),
            Some(Ending::Failed) => {
                let error = InferenceExecutionError::Provider("failed".to_owned());
                Poll::Ready(Some(Err(Fault::Failed(error))))
            }
            Some(Ending::Silence) => {
                self.ending = Some(Ending::Silence);
                Poll::Pending
            }
            Some(Ending::End | Ending::Refused) | None => Poll::Ready(None),
        }
    }
}
