//! Holding the stored approvals of a run against the events that asked for them and answered them.

use runyard_domain::run::ApprovalRequested;
use runyard_domain::{ApprovalId, RunId};
use runyard_store::PAGE_MAX;
use serde_json::Value;

use super::compare::Differences;
use super::walk::{Told, Walk};
use crate::{Engine, EngineError};

impl Engine {
    /// Every approval of the log is stored as it was asked and answered, and none is open that the log knows nothing of.
    pub(super) async fn compare_approvals(
        &self,
        walk: &Walk,
        differences: &mut Differences,
    ) -> Result<(), EngineError> {
        for (id, told) in &walk.approvals {
            self.compare_approval(walk.run, *id, *told, differences).await?;
        }
        let mut after = None;
        loop {
            let open = self.recorder().store.open_approvals(Some(walk.run), after, PAGE_MAX).await?;
            for approval in open.iter().filter(|open| !walk.approvals.contains_key(&open.id)) {
                differences.add(format!("approvals.{}", approval.id), Value::Null, "open".into());
            }
            match open.last() {
                Some(last) => after = Some(last.id),
                None => return Ok(()),
            }
        }
    }

    async fn compare_approval(
        &self,
        run: RunId,
        id: ApprovalId,
        told: Told,
        differences: &mut Differences,
    ) -> Result<(), EngineError> {
        let name = format!("approvals.{id}");
        let state = if told.answered.is_some() { "resolved" } else { "open" };
        let Some(stored) = self.recorder().store.approval(id).await? else {
            differences.add(name, state.into(), Value::Null);
            return Ok(());
        };
        differences.compare(
            &format!("{name}.runId"),
            &run.to_string().into(),
            &stored.run.to_string().into(),
        );
        let request = self.payload(run, told.asked).await?;
        if let Ok(asked) = serde_json::from_value::<ApprovalRequested>(request.clone()) {
            let expires = (asked.expires_at.to_string(), stored.expires.to_string());
            differences.compare(&format!("{name}.expiresAt"), &expires.0.into(), &expires.1.into());
        }
        differences.compare(&format!("{name}.request"), &request, &read(&stored.request));
        let decision = match told.answered {
            Some(answered) => self.payload(run, answered).await?,
            None => Value::Null,
        };
        let stored = stored.decision.as_deref().map_or(Value::Null, read);
        differences.compare(&format!("{name}.decision"), &decision, &stored);
        Ok(())
    }

    /// What the event at this place says; it was read before.
    async fn payload(&self, run: RunId, sequence: u64) -> Result<Value, EngineError> {
        let events = self.recorder().store.read(run, sequence - 1, 1).await?;
        Ok(events
            .first()
            .map(|event| event.envelope())
            .transpose()?
            .map_or(Value::Null, |event| event.payload))
    }
}

/// What a row holds; its text where that is no JSON.
fn read(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into_owned().into())
}
