//! Leases: who may drive a run, by the database's clock.

use std::time::Duration;

use async_trait::async_trait;
use runyard_domain::{RunId, Timestamp};
use runyard_redact::Safe;
use runyard_store::{Acquired, Lease, LeaseRow, Leases, RunRow, StorageError};

use crate::fault::Trouble;
use crate::ledger::Ledger;
use crate::run_cache::Unwritten;
use crate::store::SqliteStore;

#[async_trait]
impl Leases for SqliteStore {
    async fn acquire(
        &self,
        run: RunId,
        owner: Safe<String>,
        term: Duration,
    ) -> Result<Acquired, StorageError> {
        let work = move |ledger: &mut Ledger| {
            let (mut row, now) = start(ledger, run)?;
            if let Some(lease) = &row.lease
                && lease.owner != *owner
                && !lease.is_over(now)
            {
                return Ok(Acquired::Held { owner: lease.owner.clone(), expires: lease.expires });
            }
            row.generation += 1;
            let lease = Lease { generation: row.generation, expires: later(now, term) };
            row.lease = Some(LeaseRow { owner: owner.to_string(), granted: now, expires: lease.expires });
            finish(ledger, row, now);
            Ok(Acquired::Granted(lease))
        };
        self.writer("taking a lease")?.ask(work).await
    }

    async fn renew(&self, run: RunId, generation: u64, term: Duration) -> Result<Lease, StorageError> {
        let work = move |ledger: &mut Ledger| {
            let (mut row, now) = start(ledger, run)?;
            let current = row.generation;
            match &mut row.lease {
                Some(lease) if current == generation => {
                    (lease.granted, lease.expires) = (now, later(now, term));
                    let lease = Lease { generation, expires: lease.expires };
                    finish(ledger, row, now);
                    Ok(lease)
                }
                _ => Err(StorageError::StaleGeneration { held: generation, current }.into()),
            }
        };
        self.writer("renewing a lease")?.ask(work).await
    }

    async fn release(&self, run: RunId, generation: u64) -> Result<(), StorageError> {
        let work = move |ledger: &mut Ledger| {
            let (mut row, now) = start(ledger, run)?;
            if row.generation != generation {
                return Err(
                    StorageError::StaleGeneration { held: generation, current: row.generation }.into()
                );
            }
            row.lease = None;
            finish(ledger, row, now);
            Ok(())
        };
        self.writer("giving up a lease")?.ask(work).await
    }
}

fn start(ledger: &mut Ledger, run: RunId) -> Result<(RunRow, Timestamp), Trouble> {
    let now = ledger.now();
    Ok((ledger.existing_run(run)?.clone(), now))
}

fn finish(ledger: &mut Ledger, row: RunRow, now: Timestamp) {
    ledger.keep_time(now);
    ledger.runs.change(row, None, Unwritten::Row);
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_unix_ms(now.unix_ms().saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
}
