//! Tells the audit what runs recorded: the outbox of a change becomes an entry, once.

use std::time::Duration;

use runyard_backend::failpoint;
use runyard_domain::run::{Applied, ApprovalResolved, SecretsProjected, Who};
use runyard_domain::{AppendId, Class, EventId};
use runyard_store::OutboxItem;
use serde::Deserialize;

use crate::installation::{AuditFact, ChangesApplied, DecisionMade, SecretProjected};
use crate::{Engine, EngineError};

/// How many messages are taken at a time.
const AT_ONCE: u32 = 200;
/// How many times as much as that is delivered before a hub ends; what is beyond is left to the next one.
const ROUNDS_MAX: usize = 100;
/// How long between two looks when there was nothing.
const PAUSE: Duration = Duration::from_millis(200);

/// What a change of a run leaves in the outbox.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    event_id: EventId,
    #[serde(flatten)]
    what: What,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum What {
    Decision(ApprovalResolved),
    Applied(Applied),
    Projected(SecretsProjected),
}

impl Engine {
    /// Brings into the audit what changed in the list of workspaces, once, also where an earlier process died before it could.
    pub async fn audit_workspaces(&self) -> Result<(), EngineError> {
        let changes = self.workspaces().unsaid().await?;
        for change in &changes {
            let fact = AuditFact::Workspace(change.what.clone());
            self.installation().record_once(change.id, &change.by, fact).await?;
        }
        if !changes.is_empty() {
            self.workspaces().said(changes.iter().map(|change| change.id).collect()).await?;
        }
        Ok(())
    }

    /// Delivers what waits in the outbox, for ever.
    pub(crate) async fn deliver_audit(&self) {
        loop {
            match self.deliver_once().await {
                Ok(0) => tokio::time::sleep(PAUSE).await,
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%error, "the audit cannot be written; it is tried again");
                    tokio::time::sleep(PAUSE * 5).await;
                }
            }
        }
    }

    /// Delivers what waits in the outbox now: for a hub that is there for one call, or is about to end. Another may do so at the
    /// same time.
    pub async fn deliver_waiting(&self) -> Result<(), EngineError> {
        for _ in 0..ROUNDS_MAX {
            if self.deliver_once().await? == 0 {
                break;
            }
        }
        Ok(())
    }

    async fn deliver_once(&self) -> Result<usize, EngineError> {
        let items = self.recorder().store.undelivered(0, AT_ONCE).await?;
        for item in &items {
            self.deliver_item(item).await?;
            failpoint::reach("audit.delivered");
        }
        if items.is_empty() {
            return Ok(0);
        }
        let ids: Vec<u64> = items.iter().map(|item| item.id).collect();
        failpoint::reach("outbox.deliver");
        self.recorder().store.delivered(&ids).await?;
        failpoint::reach("outbox.delivered");
        Ok(items.len())
    }

    async fn deliver_item(&self, item: &OutboxItem) -> Result<(), EngineError> {
        let Message { event_id, what } = serde_json::from_slice(&item.payload)?;
        let (by, fact) = match what {
            What::Decision(decision) => {
                let record = self.approval(decision.approval_id).await?;
                match self.keep_lasting_rule(&record).await {
                    Err(error) if error.code().row().class == Class::Transient => return Err(error),
                    // Whoever decided was told, and the record of it must not wait for ever.
                    Err(error) => tracing::error!(%error, "a decision has no rule"),
                    Ok(()) => {}
                }
                let made = DecisionMade {
                    approval_id: decision.approval_id,
                    run_id: item.run,
                    resolution: decision.resolution,
                    digest: record.asked.digest,
                    reason: decision.reason,
                };
                (decision.decided_by, AuditFact::Decision(made))
            }
            What::Applied(Applied { approval_id, digest, commit }) => {
                let decided = self.approval(approval_id).await?.resolved;
                let by = decided.map_or_else(Who::runyard, |decided| decided.decided_by);
                (by, AuditFact::Applied(ChangesApplied { run_id: item.run, approval_id, digest, commit }))
            }
            What::Projected(SecretsProjected { profile, keys, how }) => {
                let projected = SecretProjected { run_id: item.run, profile, keys, how: Some(how) };
                (Who::runyard(), AuditFact::Secret(projected))
            }
        };
        // The event's own id, so that delivering it twice records it once.
        let append = AppendId::from_bytes(*event_id.as_bytes());
        self.installation().record_once(append, &by, fact).await?;
        Ok(())
    }
}
