//! What is asked is judged again when the answer comes: a rule that denies wins, also over a question that is already open.
//!
//! Only a request that the gate judged is judged again. What Runyard itself asks, and questions, are for people alone.

use runyard_domain::gate::{Effect, Place, Request, Subject, judge};

use crate::approvals::ApprovalRecord;
use crate::{Engine, EngineError};

impl Engine {
    /// Why what is asked may not be approved any more, if so: it names the rule.
    pub fn denied_by_now(&self, record: &ApprovalRecord) -> Option<String> {
        let asked = &record.asked;
        if record.resolved.is_some()
            || matches!(asked.request, Request::Question(_) | Request::Repeat { .. } | Request::Apply { .. })
        {
            return None;
        }
        let subject = Subject {
            agent: &asked.actor.id,
            workspace: &asked.workspace.label,
            run: Some(record.run),
            session: Some(record.session),
            place: Place::Checkout,
            people_may_be_asked: true,
            // What is denied is denied either way.
            network_is_allowed: false,
            now: self.now(),
        };
        let judgement = judge(&self.policy(), &subject, &asked.request);
        (judgement.effect == Effect::Deny).then(|| judgement.because.to_string())
    }

    /// Refuses to approve what a rule denies by now.
    pub(crate) fn check_not_denied(&self, record: &ApprovalRecord) -> Result<(), EngineError> {
        match self.denied_by_now(record) {
            Some(why) => {
                let reason = format!("It is denied by now: {why}. Reject it, or change the rule first.");
                Err(EngineError::Denied { reason })
            }
            None => Ok(()),
        }
    }
}
