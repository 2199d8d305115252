//! Owning a run: its lease, and what its owner writes.

use std::time::Duration;

use runyard_backend::failpoint;
use runyard_domain::run::{Failure, Run};
use runyard_domain::{AppendId, RunId};
use runyard_redact::Safe;
use runyard_store::{Acquired, StorageError};

use crate::approvals::waits;
use crate::endings::{failed, withdrawn};
use crate::fresh::fresh;
use crate::record::{Fact, Standing};
use crate::{Engine, EngineError};

/// How often a lease is looked for while another hub holds it.
const LEASE_WAIT: Duration = Duration::from_secs(1);

/// What became of a lease that was to be held on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is held for another term.
    Held,
    /// Somebody else has it.
    Lost,
}

impl Engine {
    /// Takes the run's lease; waits while another hub holds it, as long as there is something to drive.
    pub(crate) async fn lease(&self, run: RunId) -> Result<Option<u64>, EngineError> {
        let term = Duration::from_millis(self.limits().lease_ms);
        loop {
            let owner: Safe<String> = self.owner();
            failpoint::reach("lease.acquire");
            let acquired = self.recorder().store.acquire(run, owner, term).await?;
            failpoint::reach("lease.acquired");
            match acquired {
                Acquired::Granted(lease) => return Ok(Some(lease.generation)),
                Acquired::Held { .. } => tokio::time::sleep(LEASE_WAIT).await,
            }
            let standing = self.run(run).await?;
            if self.is_stopping() || standing.run.state.is_terminal() || waits(&standing.run) {
                return Ok(None);
            }
        }
    }

    /// Holds the run's lease for another term.
    pub(crate) async fn keep(&self, run: RunId, generation: u64) -> Result<Kept, EngineError> {
        let term = Duration::from_millis(self.limits().lease_ms);
        failpoint::reach("lease.renew");
        let renewed = self.recorder().store.renew(run, generation, term).await;
        failpoint::reach("lease.renewed");
        match renewed {
            Ok(_) => Ok(Kept::Held),
            Err(StorageError::StaleGeneration { .. }) => Ok(Kept::Lost),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the run's lease up, unless somebody else holds it by now.
    pub(crate) async fn release(&self, run: RunId, generation: u64) -> Result<(), EngineError> {
        failpoint::reach("lease.release");
        let released = self.recorder().store.release(run, generation).await;
        failpoint::reach("lease.released");
        match released {
            Err(StorageError::StaleGeneration { .. }) => Ok(()),
            released => Ok(released?),
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
