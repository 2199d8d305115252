//! Calls that wait for an answer, and the answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checkpoint::CallPlace;
use crate::state::StateKey;
use crate::tool::SuspendTicket;

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

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// The call goes on.
    Resume,
    /// It is called off.
    Cancel,
}

/// The calls of a run that wait. It is all that is left of a run while it does.
pub struct SuspendedCalls;

/// A change of the calls that wait.
#[derive(Debug)]
pub enum SuspendedUpdate {
    /// One waits.
    Wait(CallPlace, Box<SuspendTicket>),
    /// One waits no more.
    Done(CallPlace),
}

impl StateKey for SuspendedCalls {
    const KEY: &'static str = "runtime.suspended_calls";
    type Value = BTreeMap<String, SuspendTicket>;
    type Update = SuspendedUpdate;

    fn apply(waiting: &mut Self::Value, update: SuspendedUpdate) {
        match update {
            SuspendedUpdate::Wait(place, ticket) => drop(waiting.insert(place.to_string(), *ticket)),
            SuspendedUpdate::Done(place) => drop(waiting.remove(&place.to_string())),
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
