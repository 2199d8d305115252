//! Calls that wait for an answer, and the answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checkpoint::CallPlace;
use crate::state::{Snapshot, StateKey};
use crate::tool::{ResumeMode, SuspendTicket};

/// The answer to a call that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The ticket that it answers.
    pub ticket: String,
    /// Yes or no.
    pub kind: DecisionKind,
    /// The answer, where it is more than that.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub value: Value,
    /// What was said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether a call that may have been made had come to a question of its own tool, and no further: then it was not. The gate
/// may ask once more behind that, and behind the question whether it is to be made again, which says nothing of the kind.
pub(super) fn waits_for_its_tool(now: &Snapshot, place: CallPlace) -> bool {
    let key = place.to_string();
    let Some(waiting) = now.get::<SuspendedCalls>().and_then(|all| all.get(&key)) else { return false };
    let answers = now.get::<AnsweredQuestions>().and_then(|all| all.get(&key));
    let mut askers = answers.into_iter().flatten().map(|answer| &answer.asker).chain([&waiting.asker]);
    askers.rfind(|asker| !matches!(asker, Asker::Gate(_))) == Some(&Asker::Tool)
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// The call goes on.
    Resume,
    /// It is called off.
    Cancel,
}

/// Who asks about a call. An answer is for the one who asked, and for nobody else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asker {
    /// The tool itself.
    #[default]
    Tool,
    /// The gate of this name.
    Gate(String),
    /// The runtime: nobody knows whether the call was made.
    Runtime,
}

/// A call that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suspended {
    /// For whom.
    #[serde(default)]
    pub asker: Asker,
    /// For what.
    #[serde(flatten)]
    pub ticket: SuspendTicket,
}

/// The calls of a run that wait. It is all that is left of a run while it does.
pub struct SuspendedCalls;

/// A change of the calls that wait.
#[derive(Debug)]
pub enum SuspendedUpdate {
    /// One waits.
    Wait(CallPlace, Box<Suspended>),
    /// One waits no more.
    Done(CallPlace),
}

impl StateKey for SuspendedCalls {
    const KEY: &'static str = "runtime.suspended_calls";
    type Value = BTreeMap<String, Suspended>;
    type Update = SuspendedUpdate;

    fn apply(waiting: &mut Self::Value, update: SuspendedUpdate) {
        match update {
            SuspendedUpdate::Wait(place, call) => drop(waiting.insert(place.to_string(), *call)),
            SuspendedUpdate::Done(place) => drop(waiting.remove(&place.to_string())),
        }
    }
}

/// A question about a call that was answered with yes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(super) asker: Asker,
    pub(super) ticket: String,
    pub(super) resume: ResumeMode,
    pub(super) value: Value,
}

impl Answered {
    /// Whether somebody agreed to the call, and did not only tell the tool what it wanted to know.
    pub(super) fn approves(&self) -> bool {
        self.asker != Asker::Tool || self.resume == ResumeMode::ReplayToolCall
    }
}

/// What was answered about calls that are not over: the next question about one does not undo the answers before it.
pub(crate) struct AnsweredQuestions;

/// A change of what was answered.
#[derive(Debug)]
pub(crate) enum AnsweredUpdate {
    /// A question about a call was answered.
    Answer(CallPlace, Box<Answered>),
    /// The call is over.
    Over(CallPlace),
}

impl StateKey for AnsweredQuestions {
    const KEY: &'static str = "runtime.answered_questions";
    type Value = BTreeMap<String, Vec<Answered>>;
    type Update = AnsweredUpdate;

    fn apply(answered: &mut Self::Value, update: AnsweredUpdate) {
        match update {
            AnsweredUpdate::Answer(place, answer) => {
                let all = answered.entry(place.to_string()).or_default();
                all.retain(|other| other.asker != answer.asker || other.ticket != answer.ticket);
                all.push(*answer);
            }
            AnsweredUpdate::Over(place) => drop(answered.remove(&place.to_string())),
        }
    }
}

impl Decision {
    /// Lets the call go on.
    pub fn resume(ticket: impl Into<String>) -> Self {
        Decision { ticket: ticket.into(), kind: DecisionKind::Resume, value: Value::Null, reason: None }
    }

    /// Lets the call go on, with this answer.
    pub fn answer(ticket: impl Into<String>, value: impl Into<Value>) -> Self {
        Decision { value: value.into(), ..Decision::resume(ticket) }
    }

    /// Calls it off.
    pub fn cancel(ticket: impl Into<String>, reason: impl Into<String>) -> Self {
        Decision { kind: DecisionKind::Cancel, reason: Some(reason.into()), ..Decision::resume(ticket) }
    }
}
