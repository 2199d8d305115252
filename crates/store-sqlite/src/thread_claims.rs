//! Writing to threads: claims by the database's clock, and commits.

use std::time::Duration;

use async_trait::async_trait;
use runyard_domain::Timestamp;
use runyard_redact::Safe;
use runyard_store::threads::plan::{self, Step};
use runyard_store::{
    AgentRunId, Claimed, Committed, Lease, StorageError, ThreadCommit, ThreadId, ThreadRunStore,
};

use crate::fault::Trouble;
use crate::ledger::Ledger;
use crate::store::SqliteStore;
use crate::thread_row::{self, StoredThread, find_run};

#[async_trait]
impl ThreadRunStore for SqliteStore {
    async fn claim(
        &self,
        thread: &ThreadId,
        run: &AgentRunId,
        owner: Safe<String>,
        term: Duration,
    ) -> Result<Claimed, StorageError> {
        plan::check_owner(&owner)?;
        let (thread, run) = (thread.clone(), run.clone());
        let work = move |ledger: &mut Ledger| {
            take_step(ledger, &thread, |ledger, stored, now| {
                let head = find_run(&ledger.connection, stored.key, &run)?;
                Ok(plan::claim(&stored.row, (&run, head), &owner, term, now)?)
            })
        };
        self.writer("claiming a thread")?.ask(work).await
    }

    async fn renew_claim(
        &self,
        thread: &ThreadId,
        generation: u64,
        term: Duration,
    ) -> Result<Lease, StorageError> {
        let thread = thread.clone();
        let work = move |ledger: &mut Ledger| {
            take_step(ledger, &thread, |_, stored, now| Ok(plan::renew(&stored.row, generation, term, now)?))
        };
        self.writer("renewing a claim")?.ask(work).await
    }

    async fn release_claim(&self, thread: &ThreadId, generation: u64) -> Result<(), StorageError> {
        let thread = thread.clone();
        let work = move |ledger: &mut Ledger| {
            take_step(ledger, &thread, |_, stored, _| Ok(plan::release(&stored.row, generation)?))
        };
        self.writer("giving up a claim")?.ask(work).await
    }

    async fn commit(&self, commit: ThreadCommit) -> Result<Committed, StorageError> {
        let writer = self.writer("committing to a thread")?;
        writer.commit(commit.prepare()?).await
    }
}

/// Changes a thread's row as the rules of claims say.
fn take_step<T>(
    ledger: &mut Ledger,
    thread: &ThreadId,
    step: impl FnOnce(&Ledger, &StoredThread, Timestamp) -> Result<Step<T>, Trouble>,
) -> Result<T, Trouble> {
    let now = ledger.now();
    let stored = thread_row::find(&ledger.connection, thread)?;
    let stored = stored.ok_or_else(|| StorageError::not_found(format!("thread {thread}")))?;
    let Step { after, answer } = step(ledger, &stored, now)?;
    if let Some(after) = after {
        thread_row::update(&ledger.connection, stored.key, &after)?;
        ledger.keep_time(now);
    }
    Ok(answer)
}
