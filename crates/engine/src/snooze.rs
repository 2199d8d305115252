//! Deciding later: an approval that is snoozed stays open, is left out of the inbox for a while, and expires later by as much.

use runyard_domain::run::{ApprovalSnoozed, Run, RunEvent, Who};
use runyard_domain::{Actor, ApprovalId, Timestamp};

use crate::approvals::{ApprovalRecord, expired};
use crate::record::{Decided, Fact};
use crate::said::reason_given;
use crate::{Engine, EngineError};

/// The longest that an approval is snoozed at a time.
pub const SNOOZE_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1000;

impl Engine {
    /// Leaves an approval for later. Nothing is decided by it.
    pub async fn snooze(
        &self,
        id: ApprovalId,
        for_ms: u64,
        reason: Option<String>,
        actor: &Actor,
    ) -> Result<ApprovalRecord, EngineError> {
        if actor.is_agent() {
            return Err(EngineError::ForPeopleOnly);
        }
        if for_ms == 0 || for_ms > SNOOZE_MS_MAX {
            let message = format!("Expected 1 to {SNOOZE_MS_MAX} milliseconds.");
            return Err(EngineError::Invalid { path: "forMs", message });
        }
        let (record, by, reason) = (self.approval(id).await?, Who::from(actor), reason_given(reason));
        if let Some(resolved) = &record.resolved {
            let (resolution, by) = (resolved.resolution.as_str(), resolved.decided_by.id.clone());
            return Err(EngineError::Decided { approval: id, resolution, by });
        }
        let decide = move |run: &Run, now| {
            if let Some(facts) = expired(run, id, now) {
                return Ok(Decided { facts, result: None });
            }
            let snoozed = snoozed(run, id, now, for_ms);
            let (until, expires_at) = snoozed.ok_or_else(|| EngineError::Conflict {
                run: run.id,
                state: run.state.name(),
                what: "the approval is not open any more",
            })?;
            let (by, reason) = (by.clone(), reason.clone());
            let event = ApprovalSnoozed { approval_id: id, until, expires_at, by, reason };
            Ok(Decided { facts: vec![Fact::from(RunEvent::ApprovalSnoozed(event))], result: None })
        };
        let standing = self.recorder().head(record.run, decide).await?;
        self.changed(&standing);
        let record = self.approval(id).await?;
        match &record.resolved {
            // Its time was over before.
            Some(resolved) => {
                let (resolution, by) = (resolved.resolution.as_str(), resolved.decided_by.id.clone());
                Err(EngineError::Decided { approval: id, resolution, by })
            }
            None => Ok(record),
        }
    }
}

/// Until when, and when it then expires: the time that it sleeps does not count, none of it counts twice, and who wakes it earlier takes
/// back what it has not slept.
fn snoozed(run: &Run, id: ApprovalId, now: Timestamp, for_ms: u64) -> Option<(Timestamp, Timestamp)> {
    let (_, asked) = run.state.open().find(|(open, _)| *open == id)?;
    let until = now.plus_ms(for_ms);
    let slept_from = asked.snoozed_until.unwrap_or(now).max(now);
    let expires_ms = asked.expires_at.unix_ms() + until.unix_ms() - slept_from.unix_ms();
    Some((until, Timestamp::from_unix_ms(expires_ms)))
}
