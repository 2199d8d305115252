//! Owning a run: its lease, and what its owner writes.

use std::time::Duration;

use runyard_domain::run::{Failure, Run};
use runyard_domain::{AppendId, RunId};
use runyard_redact::Safe;
use runyard_store::Acquired;

use crate::approvals::waits;
use crate::fresh::fresh;
use crate::record::{Fact, Standing};
use crate::translate::{failed, withdrawn};
use crate::{Engine, EngineError};

/// How often a lease is looked for while another hub holds it.
const LEASE_WAIT: Duration = Duration::from_secs(1);

impl Engine {
    /// Takes the run's lease; waits while another hub holds it, as long as there is something to drive.
    pub(crate) async fn lease(&self, run: RunId) -> Result<Option<u64>, EngineError> {
        let term = Duration::from_millis(self.limits().lease_ms);
        loop {
            let owner: Safe<String> = self.owner();
            match self.recorder().store.acquire(run, owner, term).await? {
                Acquired::Granted(lease) => return Ok(Some(lease.generation)),
                Acquired::Held { .. } => tokio::time::sleep(LEASE_WAIT).await,
            }
            let standing = self.run(run).await?;
            if self.is_stopping() || standing.run.state.is_terminal() || waits(&standing.run) {
                return Ok(None);
            }
        }
    }

    /// Records as the owner of a live run.
    pub(crate) async fn record_at(
        &self,
        standing: Standing,
        generation: u64,
        decide: impl FnMut(&Run, runyard_domain::Timestamp) -> Result<Vec<Fact>, EngineError>,
    ) -> Result<Standing, EngineError> {
        let append = fresh!(AppendId, self.now());
        self.recorder().at(standing, generation, append, decide).await
    }

    /// Ends a run as failed, unless it has ended meanwhile.
    pub(crate) async fn fail(
        &self,
        standing: Standing,
        generation: u64,
        failure: Failure,
    ) -> Result<Standing, EngineError> {
        let decide = |run: &Run, now| {
            if run.state.is_terminal() {
                return Ok(Vec::new());
            }
            let mut facts = withdrawn(run);
            facts.push(failed(run, failure.clone(), "failed", None, now));
            Ok(facts)
        };
        self.record_at(standing, generation, decide).await
    }
}
