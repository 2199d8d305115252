//! One call of an action: what, with which input, from where, by whom, and how.

use std::sync::Arc;

use runyard_domain::{Actor, Surface};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::action::WAIT_MS_MAX;
use crate::idempotency::KEY_LENGTH_MAX;
use crate::{Action, Caller, Issue, Programs, RetryPolicy};

/// Which action is meant.
#[derive(Clone, Debug)]
pub enum ActionRef {
    /// The registered one of this name.
    Name(Arc<str>),
    /// This one, registered or not.
    Action(Action),
}

impl From<&str> for ActionRef {
    fn from(name: &str) -> Self {
        ActionRef::Name(name.into())
    }
}

impl From<String> for ActionRef {
    fn from(name: String) -> Self {
        ActionRef::Name(name.into())
    }
}

impl From<&Action> for ActionRef {
    fn from(action: &Action) -> Self {
        ActionRef::Action(action.clone())
    }
}

/// What a caller may say beside the input.
#[derive(Clone, Debug, Default)]
pub struct InvocationOptions {
    /// The caller says that it means it.
    pub confirm: bool,
    /// Replays the first result for the same key and input.
    pub idempotency_key: Option<String>,
    /// How long one attempt may take; wins over the action's. `Some(0)` is no limit.
    pub timeout_ms: Option<u64>,
    /// How long the whole invocation may take, waits included; the shorter of this and the action's counts.
    pub deadline_ms: Option<u64>,
    /// Wins whole over the action's.
    pub retry: Option<RetryPolicy>,
    /// What could not be read; it is reported with the input's own issues.
    pub unreadable: Vec<Issue>,
}

impl InvocationOptions {
    /// Reads `confirm`, `idempotencyKey`, `timeoutMs`, `deadlineMs` and `retry` out of a payload, leaving the rest.
    ///
    /// Only the boolean `true` confirms; anything else in `confirm` simply does not.
    /// What cannot be read becomes an issue of the invocation.
    pub fn take_from(payload: &mut Map<String, Value>) -> Self {
        let mut issues = Vec::new();
        let confirm = payload.shift_remove("confirm") == Some(Value::Bool(true));
        let idempotency_key = match payload.shift_remove("idempotencyKey") {
            None | Some(Value::Null) => None,
            Some(Value::String(key)) => Some(key),
            Some(_) => {
                issues.push(Issue::at("idempotencyKey", "Expected string."));
                None
            }
        };
        let mut wait = |field: &str| match payload.shift_remove(field) {
            None | Some(Value::Null) => None,
            Some(value) => whole_number(&value).or_else(|| {
                issues.push(Issue::at(field, "Expected a whole number of milliseconds."));
                None
            }),
        };
        let (timeout_ms, deadline_ms) = (wait("timeoutMs"), wait("deadlineMs"));
        let retry = match payload.shift_remove("retry").map(|value| RetryPolicy::from_json(&value)) {
            None => None,
            Some(Ok(policy)) => Some(policy),
            Some(Err(reason)) => {
                issues.push(Issue::at("retry", reason));
                None
            }
        };
        InvocationOptions { confirm, idempotency_key, timeout_ms, deadline_ms, retry, unreadable: issues }
    }

    /// Adds something that the entry point could not accept; it is reported with the input's own issues.
    pub fn refuse(&mut self, issue: Issue) {
        self.unreadable.push(issue);
    }

    /// What could not be read or is out of range.
    pub(crate) fn issues(&self) -> Vec<Issue> {
        let mut issues = self.unreadable.clone();
        for (field, wait) in [("timeoutMs", self.timeout_ms), ("deadlineMs", self.deadline_ms)] {
            if wait.is_some_and(|wait| wait > WAIT_MS_MAX) {
                issues.push(Issue::at(field, format!("Expected value <= {WAIT_MS_MAX}.")));
            }
        }
        if let Some(Err(reason)) = self.retry.map(RetryPolicy::check) {
            issues.push(Issue::at("retry", reason));
        }
        // What an HTTP header can carry, so that a key means the same on every surface.
        let visible = |key: &String| key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let usable = |key: &String| {
            !key.is_empty() && key.len() <= KEY_LENGTH_MAX && visible(key) && key.trim() == key
        };
        if !self.idempotency_key.as_ref().is_none_or(usable) {
            let message = format!("Expected 1 to {KEY_LENGTH_MAX} visible ASCII characters.");
            issues.push(Issue::at("idempotencyKey", message));
        }
        issues
    }
}

/// A whole number that is not negative, also where it is written `100.0`, as JSON allows.
fn whole_number(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .or_else(|| value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..1e15).contains(n)).map(|n| n as u64))
}

/// One call of an action.
#[derive(Clone)]
pub struct Invocation {
    /// Which action.
    pub action: ActionRef,
    /// Its input, not yet validated.
    pub input: Value,
    /// Where the call comes from. The entry point sets it, not the caller.
    pub surface: Surface,
    /// Who calls.
    pub actor: Arc<Actor>,
    /// What the caller says beside the input.
    pub options: InvocationOptions,
    /// Cancelling it ends the invocation with `CANCELLED`.
    pub cancel: Option<CancellationToken>,
    /// How long the entry point lets it take at most, whatever the caller and the action say.
    pub within_ms: Option<u64>,
    /// Whether the gate approved exactly this call, which is its confirmation. The entry point says so, never the caller.
    pub approved: bool,
    /// The way back to whoever calls, where there is one.
    pub caller: Option<Arc<dyn Caller>>,
    /// Who starts the programs of declared actions; this process does without.
    pub programs: Option<Arc<dyn Programs>>,
}

impl Invocation {
    /// A call with default options.
    pub fn new(action: impl Into<ActionRef>, input: Value, surface: Surface, actor: Arc<Actor>) -> Self {
        Invocation {
            action: action.into(),
            input,
            surface,
            actor,
            options: InvocationOptions::default(),
            cancel: None,
            within_ms: None,
            approved: false,
            caller: None,
            programs: None,
        }
    }

    /// With these options.
    #[must_use]
    pub fn options(mut self, options: InvocationOptions) -> Self {
        self.options = options;
        self
    }

    /// Ended with `TIMEOUT` after this time at the latest.
    #[must_use]
    pub fn within_ms(mut self, within_ms: u64) -> Self {
        self.within_ms = Some(within_ms);
        self
    }

    /// Confirmed by the gate: inside a run its answer counts, whoever calls.
    #[must_use]
    pub fn approved(mut self) -> Self {
        self.approved = true;
        self
    }

    /// Programs of declared actions are started there.
    #[must_use]
    pub fn starting(mut self, programs: Arc<dyn Programs>) -> Self {
        self.programs = Some(programs);
        self
    }

    /// What the action asks goes there.
    #[must_use]
    pub fn asking(mut self, caller: Arc<dyn Caller>) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Ended when this token is cancelled.
    #[must_use]
    pub fn cancel_with(mut self, cancel: CancellationToken) -> Self {
        self.cancel = Some(cancel);
        self
    }
}

impl std::fmt::Debug for Invocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Invocation { action, surface, actor, .. } = self;
        write!(f, "Invocation({action:?} on {surface} by {actor})")
    }
}
