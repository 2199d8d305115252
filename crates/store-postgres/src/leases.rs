//! Who may drive a run. The clock is the database's, read after the run's lock is held.

use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Object;
use runyard_domain::{RunId, Timestamp};
use runyard_redact::Safe;
use runyard_store::{Acquired, Lease, LeaseRow, Leases, StorageError};
use tokio_postgres::{IsolationLevel, Row};

use crate::connection::{given_back, within};
use crate::fault::Failure;
use crate::run_row::{self, now_ms, run_uuid, signed, time, unsigned};
use crate::store::{Parameter, PostgresStore};

const LOCK: &str =
    "SELECT generation, lease_owner, lease_granted, lease_expires FROM runs WHERE run_id = $1 FOR UPDATE";
const WRITE: &str =
    "UPDATE runs SET generation = $2, lease_owner = $3, lease_granted = $4, lease_expires = $5
    WHERE run_id = $1";

/// The lease of a run, held or not.
struct Held {
    generation: u64,
    lease: Option<LeaseRow>,
}

/// What becomes of a lease, and the answer.
struct Step<T> {
    /// The lease from now on, if it changes.
    after: Option<Held>,
    answer: T,
}

#[async_trait]
impl Leases for PostgresStore {
    async fn acquire(
        &self,
        run: RunId,
        owner: Safe<String>,
        term: Duration,
    ) -> Result<Acquired, StorageError> {
        if owner.contains('\0') {
            return Err(StorageError::invalid("the owner of a lease holds a zero character"));
        }
        let step = |held: Held, now: Timestamp| {
            if let Some(lease) = &held.lease
                && lease.owner != *owner
                && !lease.is_over(now)
            {
                let answer = Acquired::Held { owner: lease.owner.clone(), expires: lease.expires };
                return Ok(Step { after: None, answer });
            }
            let (generation, expires) = (held.generation + 1, later(now, term));
            let lease = LeaseRow { owner: (*owner).clone(), granted: now, expires };
            let answer = Acquired::Granted(Lease { generation, expires });
            Ok(Step { after: Some(Held { generation, lease: Some(lease) }), answer })
        };
        self.take_step("taking a lease", run, step).await
    }

    async fn renew(&self, run: RunId, generation: u64, term: Duration) -> Result<Lease, StorageError> {
        let step = |held: Held, now: Timestamp| match held.lease {
            Some(lease) if held.generation == generation => {
                let expires = later(now, term);
                let lease = LeaseRow { granted: now, expires, ..lease };
                let answer = Lease { generation, expires };
                Ok(Step { after: Some(Held { generation, lease: Some(lease) }), answer })
            }
            _ => Err(StorageError::StaleGeneration { held: generation, current: held.generation }),
        };
        self.take_step("renewing a lease", run, step).await
    }

    async fn release(&self, run: RunId, generation: u64) -> Result<(), StorageError> {
        let step = |held: Held, _: Timestamp| {
            if held.generation != generation {
                return Err(StorageError::StaleGeneration { held: generation, current: held.generation });
            }
            Ok(Step { after: Some(Held { generation, lease: None }), answer: () })
        };
        self.take_step("giving up a lease", run, step).await
    }
}

impl PostgresStore {
    /// Changes a run's lease in one transaction. If the connection is lost in its commit, the step is taken again: taking
    /// a lease twice gives the next generation, and the other steps can be repeated.
    async fn take_step<T: Send>(
        &self,
        doing: &'static str,
        run: RunId,
        step: impl Fn(Held, Timestamp) -> Result<Step<T>, StorageError> + Send + Sync,
    ) -> Result<T, StorageError> {
        let step = &step;
        self.repeated(doing, || async move {
            let mut client = self.client().await?;
            let answer = self.take_step_on(&mut client, run, step).await;
            given_back(client, answer)
        })
        .await
    }

    async fn take_step_on<T: Send>(
        &self,
        client: &mut Object,
        run: RunId,
        step: &(impl Fn(Held, Timestamp) -> Result<Step<T>, StorageError> + Send + Sync),
    ) -> Result<T, Failure> {
        let limit = self.silence();
        let (lock, clock, write) = (
            within(limit, client.prepare_cached(LOCK)).await?,
            within(limit, client.prepare_cached(concat!("SELECT ", now_ms!()))).await?,
            within(limit, client.prepare_cached(WRITE)).await?,
        );
        let begin = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start();
        let transaction = within(limit, begin).await?;
        let id = run_uuid(run);
        let row = within(limit, transaction.query_opt(&lock, &[&id])).await?;
        let row = row.ok_or_else(|| StorageError::not_found(format!("run {run}")))?;
        // Only now: while this waited for the lock, another may have been granted a lease later than its beginning.
        let now = within(limit, transaction.query_one(&clock, &[])).await?;
        let Step { after, answer } = step(held(&row)?, time(now.try_get(0)?))?;
        if let Some(Held { generation, lease }) = after {
            let (owner, granted, expires) = match &lease {
                Some(lease) => {
                    (Some(lease.owner.as_str()), Some(lease.granted.unix_ms()), Some(lease.expires.unix_ms()))
                }
                None => (None, None, None),
            };
            let generation = signed(generation);
            let row: [Parameter<'_>; 5] = [&id, &generation, &owner, &granted, &expires];
            within(limit, transaction.execute(&write, &row)).await?;
        }
        within(limit, transaction.commit()).await?;
        Ok(answer)
    }
}

fn held(row: &Row) -> Result<Held, Failure> {
    Ok(Held { generation: unsigned(row.try_get(0)?)?, lease: run_row::lease(row, 1)? })
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_unix_ms(now.unix_ms().saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
}
