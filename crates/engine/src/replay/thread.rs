//! A conversation that is kept in the logs of its runs: its records follow on one another, its messages can be read, and what is
//! answered was called.
//!
//! Of a message only what says so is read here; what a model makes of it is its adapter's.

use std::collections::{BTreeMap, BTreeSet};

use runyard_domain::RunId;
use runyard_domain::run::{RunEvent, ThreadRecorded};
use runyard_store::LoggedEvent;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::compare::Differences;
use super::hexadecimal;

/// A message, as far as it is looked at.
#[derive(Deserialize)]
struct Said {
    #[serde(rename = "role")]
    _role: Role,
    content: Vec<Piece>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// A part of a message.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece {
    Text {
        #[serde(rename = "text")]
        _text: String,
    },
    Image {
        #[serde(rename = "source")]
        _source: serde_json::Map<String, Value>,
    },
    Reasoning {
        #[serde(rename = "text")]
        _text: String,
    },
    ToolCall {
        id: String,
        #[serde(rename = "name")]
        _name: String,
        #[serde(rename = "arguments")]
        _arguments: Value,
    },
    ToolOutput {
        #[serde(rename = "callId")]
        call_id: String,
        #[serde(rename = "content")]
        _content: String,
    },
}

/// What one run recorded of a conversation.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Whose it is, where it is not that of the run that is replayed.
    of: Option<RunId>,
    /// The conversation's name.
    name: Option<String>,
    /// How many messages its first record says that there were before.
    begins: Option<u64>,
    /// How many there are after it.
    ends: u64,
    calls: u64,
    /// Calls of the model that have no result, and how many of each name.
    open: BTreeMap<String, u64>,
    /// Results of calls that were made before it, by the place of their event.
    answers: Vec<(u64, String)>,
    /// The agent's state as far as it was changed; what was taken away is null.
    state: BTreeMap<String, Value>,
    /// Steps of the run that have no result.
    steps: BTreeSet<String>,
    digest: Sha256,
    differences: Differences,
}

impl Part {
    /// Nothing is recorded yet, of another run or of the one that is replayed.
    pub(super) fn of(run: Option<RunId>) -> Self {
        Part {
            of: run,
            name: None,
            begins: None,
            ends: 0,
            calls: 0,
            open: BTreeMap::new(),
            answers: Vec::new(),
            state: BTreeMap::new(),
            steps: BTreeSet::new(),
            digest: Sha256::new(),
            differences: Differences::default(),
        }
    }

    /// Whether the run keeps its conversation in its log.
    pub(super) fn is_recorded(&self) -> bool {
        self.begins.is_some()
    }

    /// How many of its own calls have no result.
    pub(super) fn calls_open(&self) -> u64 {
        self.open.values().sum()
    }

    /// How many of its steps were begun and have no result.
    pub(super) fn steps_open(&self) -> u64 {
        self.steps.len() as u64
    }

    fn add(&mut self, sequence: u64, field: &str, derived: Value, stored: Value) {
        self.differences.add(placed(self.of, sequence, field), derived, stored);
    }

    /// Takes an event of another run. Whether that run's log holds is not looked at here.
    pub(super) fn take_logged(&mut self, event: &LoggedEvent) {
        let read = event.envelope().map_err(|error| error.to_string()).and_then(|envelope| {
            RunEvent::read(&envelope.kind, &envelope.payload).map_err(|error| error.to_string())
        });
        match read {
            Ok(said) => self.take(event.sequence, &said),
            Err(error) => {
                self.differences.add(
                    placed(self.of, event.sequence, ""),
                    "an event of a run".into(),
                    error.into(),
                );
            }
        }
    }

    /// Takes an event.
    pub(super) fn take(&mut self, sequence: u64, said: &RunEvent) {
        match said {
            RunEvent::ThreadRecorded(recorded) => self.record(sequence, recorded),
            RunEvent::ToolCall(call) => drop(self.steps.insert(call.call.clone())),
            RunEvent::ToolResult(result) => {
                let was_open = self.steps.remove(&result.call);
                if !was_open {
                    let expected = "the one result of a call that was begun".into();
                    self.add(sequence, "call", expected, result.call.clone().into());
                }
            }
            _ => {}
        }
    }

    fn record(&mut self, sequence: u64, recorded: &ThreadRecorded) {
        let name = self.name.get_or_insert_with(|| recorded.thread.clone());
        if *name != recorded.thread {
            let name = name.clone().into();
            self.add(sequence, "thread", name, recorded.thread.clone().into());
        }
        match self.begins {
            None => self.begins = Some(recorded.after),
            Some(_) if self.ends != recorded.after => {
                self.add(sequence, "after", self.ends.into(), recorded.after.into());
            }
            Some(_) => {}
        }
        self.ends = recorded.after.saturating_add(recorded.messages.len() as u64);
        for (at, message) in recorded.messages.iter().enumerate() {
            let text = message.to_string();
            self.digest.update((text.len() as u64).to_le_bytes());
            self.digest.update(text);
            match Said::deserialize(message) {
                Ok(said) => said.content.into_iter().for_each(|piece| self.say(sequence, piece)),
                Err(error) => {
                    self.add(
                        sequence,
                        &format!("messages.{at}"),
                        "a message".into(),
                        error.to_string().into(),
                    );
                }
            }
        }
        for (key, value) in &recorded.state {
            self.state.insert(key.clone(), value.clone());
        }
    }

    fn say(&mut self, sequence: u64, piece: Piece) {
        match piece {
            Piece::ToolCall { id, .. } => {
                self.calls += 1;
                *self.open.entry(id).or_default() += 1;
            }
            Piece::ToolOutput { call_id, .. } => {
                if !answer(&mut self.open, &call_id) {
                    self.answers.push((sequence, call_id));
                }
            }
            Piece::Text { .. } | Piece::Image { .. } | Piece::Reasoning { .. } => {}
        }
    }
}

/// Takes one call of this name off what is open, if one is.
fn answer(open: &mut BTreeMap<String, u64>, call: &str) -> bool {
    match open.get_mut(call) {
        Some(1) => open.remove(call).is_some(),
        Some(count) => {
            *count -= 1;
            true
        }
        None => false,
    }
}

/// What a field of an event is called.
fn placed(of: Option<RunId>, sequence: u64, field: &str) -> String {
    let run = of.map(|run| format!("runs.{run}.")).unwrap_or_default();
    let field = if field.is_empty() { String::new() } else { format!(".{field}") };
    format!("{run}events.{sequence}{field}")
}

/// A conversation over its runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversation {
    messages: u64,
    parts: u64,
    calls: u64,
    open: BTreeMap<String, u64>,
    state: BTreeMap<String, Value>,
    digest: Sha256,
    differences: Differences,
}

impl Conversation {
    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    /// How many runs had part in it.
    pub(super) fn parts(&self) -> u64 {
        self.parts
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// Something of it cannot be read.
    pub(super) fn unreadable(&mut self, field: &str, found: &str) {
        self.differences.add(field, "the runs that had part in the conversation before".into(), found.into());
    }

    /// Goes on with what the next run recorded of it.
    pub(super) fn join(&mut self, part: Part) {
        self.differences.extend(part.differences);
        let Some(begins) = part.begins else { return };
        if begins != self.messages {
            let run = part.of.map(|run| format!("runs.{run}.")).unwrap_or_default();
            self.differences.add(format!("{run}thread.after"), self.messages.into(), begins.into());
        }
        self.messages = part.ends;
        (self.parts, self.calls) = (self.parts + 1, self.calls + part.calls);
        for (sequence, call) in part.answers {
            if !answer(&mut self.open, &call) {
                let field = placed(part.of, sequence, "callId");
                self.differences.add(field, "a call that has no result yet".into(), call.into());
            }
        }
        for (call, count) in part.open {
            *self.open.entry(call).or_default() += count;
        }
        for (key, value) in part.state {
            match value {
                Value::Null => drop(self.state.remove(&key)),
                value => drop(self.state.insert(key, value)),
            }
        }
        self.digest.update(part.digest.finalize());
    }

    /// The digest of all of it, and what is wrong with it.
    pub(super) fn end(self) -> (String, Differences) {
        let state = serde_json::to_value(self.state).unwrap_or_default().to_string();
        (hexadecimal(self.digest.chain_update(state)), self.differences)
    }
}
