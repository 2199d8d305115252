//! Approvals of tool calls outside a run: an id that stands for one call, and what the person said.
//!
//! The id is a voucher, bound to the actor, the action and the exact input, good for one use. Inside a run there is none of this:
//! there the gate asks.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use runyard_actions::{DEPTH_MAX, SideEffects};
use runyard_domain::Actor;
use serde::Serialize;
use serde_json::{Map, Value};

pub(super) use crate::voucher::Refused;
use crate::voucher::Vouchers;

/// An approval can be answered for so long.
pub const APPROVAL_TIME_MAX: SignedDuration = SignedDuration::from_mins(10);
/// A reason may be so long.
const REASON_LENGTH_MAX: usize = 500;
const PREFIX: &str = "tap_";

/// What a person is asked before a call is made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// Given back with the answer.
    pub approval_id: String,
    /// The call, as the model named it.
    pub tool_call_id: String,
    /// The action.
    pub action: String,
    /// What it is, for people.
    pub title: String,
    /// What it does to the world.
    pub side_effects: SideEffects,
    /// Exactly what it will be called with.
    pub input: Value,
    /// How long it can be answered.
    pub expires_in_ms: u64,
}

/// What the person said. It stands beside a call, never in the model's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalAnswer {
    /// The id of the request.
    pub approval_id: String,
    /// Only `true` approves.
    pub approved: bool,
    /// Why, for the model.
    pub reason: Option<String>,
}

impl ApprovalAnswer {
    /// `{approvalId, approved, reason?}`; nothing where that is not what it is.
    pub(super) fn read(answer: &Value) -> Option<Self> {
        let answer = answer.as_object()?;
        let known = |key: &String| matches!(key.as_str(), "approvalId" | "approved" | "reason");
        let reason = match answer.get("reason") {
            None | Some(Value::Null) => None,
            Some(reason) => Some(reason.as_str()?.chars().take(REASON_LENGTH_MAX).collect()),
        };
        let approval_id = answer.get("approvalId")?.as_str()?.to_owned();
        let approved = answer.get("approved")?.as_bool()?;
        answer.keys().all(known).then_some(ApprovalAnswer { approval_id, approved, reason })
    }
}

/// Why an approval does not count, for whoever asks the model's person.
pub(super) fn reason(refused: Refused) -> &'static str {
    match refused {
        Refused::NotForThis => {
            "The approval is not for this call: its arguments, the action or the caller are others."
        }
        Refused::Expired => "The approval has expired; ask the person again.",
        Refused::Used => "The approval was used already; ask the person again.",
        Refused::Full => "Too many approvals were used lately; try again later.",
    }
}

/// Makes approval ids and takes each of them once.
pub(super) struct Approvals(Vouchers);

/// What an id is good for.
#[derive(Clone, Copy)]
pub(super) struct Bound<'a> {
    pub(super) actor: &'a Actor,
    pub(super) action: &'a str,
    pub(super) input: &'a Value,
}

impl Bound<'_> {
    /// Nothing where the input cannot be bound.
    fn with<T>(&self, then: impl FnOnce(&[&str]) -> T) -> Option<T> {
        let input = sorted(self.input, DEPTH_MAX)?.to_string();
        Some(then(&["tool approval", &self.actor.to_string(), self.action, &input]))
    }
}

impl Approvals {
    pub(super) fn new() -> Self {
        Approvals(Vouchers::new())
    }

    /// An id for this call; nothing where the input cannot be bound.
    pub(super) fn issue(&self, bound: Bound<'_>, now: Timestamp) -> Option<String> {
        let voucher = bound.with(|to| self.0.issue(to, &[], now + APPROVAL_TIME_MAX))?;
        Some(format!("{PREFIX}{voucher}"))
    }

    /// Takes an id, once.
    pub(super) fn spend(&self, id: &str, bound: Bound<'_>, now: Timestamp) -> Result<(), Refused> {
        let voucher = id.strip_prefix(PREFIX).ok_or(Refused::NotForThis)?;
        let voucher = bound.with(|to| self.0.open(to, voucher, now)).ok_or(Refused::NotForThis)??;
        self.0.spend(&voucher, now)
    }
}

/// The value with its keys in order: the order says nothing, so it must not matter.
fn sorted(value: &Value, levels: usize) -> Option<Value> {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => None,
        Value::Array(items) => items.iter().map(|item| sorted(item, levels - 1)).collect(),
        Value::Object(object) => {
            let by_name: BTreeMap<&String, &Value> = object.iter().collect();
            let fields =
                by_name.into_iter().map(|(key, value)| Some((key.clone(), sorted(value, levels - 1)?)));
            fields.collect::<Option<Map<_, _>>>().map(Value::Object)
        }
        other => Some(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use runyard_domain::RunId;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_is_good_once_for_exactly_what_it_was_made_for_and_not_for_ever() {
        let (approvals, now) = (Approvals::new(), Timestamp::now());
        let (ada, eve) = (Actor::owner("ada"), Actor::owner("eve"));
        let service = Actor::service("ada", ["x"]);
        let agent = Actor::agent("ada", RunId::from_parts(1, &[2; 10]), ["x"]);
        let (input, other) = (json!({"a": 1, "b": [1, {}]}), json!({"a": 2, "b": [1, {}]}));
        let bound = Bound { actor: &ada, action: "erase", input: &input };
        let id = approvals.issue(bound, now).unwrap();
        let spend = |bound| approvals.spend(&id, bound, now);
        for actor in [&eve, &service, &agent] {
            assert_eq!(spend(Bound { actor, ..bound }), Err(Refused::NotForThis));
        }
        assert_eq!(spend(Bound { action: "purge", ..bound }), Err(Refused::NotForThis));
        assert_eq!(spend(Bound { input: &other, ..bound }), Err(Refused::NotForThis));
        let reordered = json!({"b": [1, {}], "a": 1});
        assert_eq!(spend(Bound { input: &reordered, ..bound }), Ok(()));
        assert_eq!(spend(bound), Err(Refused::Used));

        let late = approvals.issue(bound, now).unwrap();
        assert_eq!(approvals.spend(&late, bound, now + APPROVAL_TIME_MAX), Err(Refused::Expired));
        let last_moment = now + APPROVAL_TIME_MAX - SignedDuration::from_millis(1);
        assert_eq!(approvals.spend(&late, bound, last_moment), Ok(()));
    }

    #[test]
    fn an_id_that_was_changed_or_comes_from_elsewhere_is_none() {
        let (approvals, elsewhere, now) = (Approvals::new(), Approvals::new(), Timestamp::now());
        let (ada, input) = (Actor::owner("ada"), json!({}));
        let bound = Bound { actor: &ada, action: "erase", input: &input };
        let id = approvals.issue(bound, now).unwrap();
        assert_eq!(elsewhere.spend(&id, bound, now), Err(Refused::NotForThis));
        for none in ["", "tap_", "tap_zz", &id[..id.len() - 2], &id[PREFIX.len()..], &format!("{id}00")] {
            assert_eq!(approvals.spend(none, bound, now), Err(Refused::NotForThis), "{none}");
        }
        assert_eq!(approvals.spend(&id, bound, now), Ok(()));
    }
}
