//! Claims on threads by the database's clock, which is read after the thread's lock is held; commits; and deleting.

use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::{Object, Transaction};
use runyard_domain::Timestamp;
use runyard_redact::Safe;
use runyard_store::threads::plan::{self, RunHead, Step};
use runyard_store::{
    AgentRunId, Claimed, Committed, Lease, StorageError, ThreadCommit, ThreadId, ThreadRow, ThreadRunStore,
};
use tokio_postgres::IsolationLevel;

use crate::connection::{given_back, within};
use crate::fault::Failure;
use crate::run_row::{now_ms, signed, time};
use crate::store::{Parameter, PostgresStore};
use crate::thread_row::{self, head_columns, thread_columns};

const LOCK: &str = concat!("SELECT ", thread_columns!(), " FROM threads WHERE thread_id = $1 FOR UPDATE");
const HEAD: &str = concat!("SELECT ", head_columns!(), " FROM agent_runs WHERE run_id = $1");
const CLOCK: &str = concat!("SELECT ", now_ms!());
const HOLD: &str =
    "UPDATE threads SET generation = $2, held_for = $3, held_by = $4, held_since = $5, held_until = $6
    WHERE key = $1";
const DELETE: [&str; 6] = [
    "DELETE FROM thread_messages WHERE thread = $1",
    "DELETE FROM thread_commits WHERE thread = $1",
    "DELETE FROM thread_values WHERE thread = $1",
    "DELETE FROM tool_calls WHERE thread = $1",
    "DELETE FROM agent_runs WHERE thread = $1",
    "DELETE FROM threads WHERE key = $1",
];

/// What is decided about a thread, once it is locked: its row, what is known of the run, and the time.
type Decision<'a, T> =
    dyn Fn(&ThreadRow, Option<RunHead>, Timestamp) -> Result<Step<T>, StorageError> + Send + Sync + 'a;

#[async_trait]
impl ThreadRunStore for PostgresStore {
    async fn claim(
        &self,
        thread: &ThreadId,
        run: &AgentRunId,
        owner: Safe<String>,
        term: Duration,
    ) -> Result<Claimed, StorageError> {
        plan::check_owner(&owner)?;
        let decide = |row: &ThreadRow, head: Option<RunHead>, now: Timestamp| {
            plan::claim(row, (run, head), &owner, term, now)
        };
        self.hold("claiming a thread", thread, Some(run), &decide).await
    }

    async fn renew_claim(
        &self,
        thread: &ThreadId,
        generation: u64,
        term: Duration,
    ) -> Result<Lease, StorageError> {
        let decide =
            |row: &ThreadRow, _: Option<RunHead>, now: Timestamp| plan::renew(row, generation, term, now);
        self.hold("renewing a claim", thread, None, &decide).await
    }

    async fn release_claim(&self, thread: &ThreadId, generation: u64) -> Result<(), StorageError> {
        let decide = |row: &ThreadRow, _: Option<RunHead>, _: Timestamp| plan::release(row, generation);
        self.hold("giving up a claim", thread, None, &decide).await
    }

    async fn commit(&self, commit: ThreadCommit) -> Result<Committed, StorageError> {
        let lanes = self.thread_lanes()?;
        lanes.commit(commit.prepare()?).await
    }
}

impl PostgresStore {
    /// Changes who holds a thread in one transaction. If the connection is lost in its commit, it is done again: claiming
    /// twice gives the next generation, and the rest can be repeated.
    async fn hold<T: Send>(
        &self,
        doing: &'static str,
        thread: &ThreadId,
        run: Option<&AgentRunId>,
        decide: &Decision<'_, T>,
    ) -> Result<T, StorageError> {
        self.repeated(doing, || async move {
            let mut client = self.client().await?;
            let answer = self.hold_on(&mut client, thread, run, decide).await;
            given_back(client, answer)
        })
        .await
    }

    async fn hold_on<T: Send>(
        &self,
        client: &mut Object,
        thread: &ThreadId,
        run: Option<&AgentRunId>,
        decide: &Decision<'_, T>,
    ) -> Result<T, Failure> {
        let limit = self.silence();
        let transaction = begun(client, limit).await?;
        let id = thread.as_str();
        let locked = within(limit, async {
            transaction.query_opt(&transaction.prepare_cached(LOCK).await?, &[&id]).await
        });
        let row = locked.await?.ok_or_else(|| StorageError::not_found(format!("thread {thread}")))?;
        let stored = thread_row::read(&row)?;
        let head = match run {
            Some(run) => {
                let id = run.as_str();
                let found =
                    async { transaction.query_opt(&transaction.prepare_cached(HEAD).await?, &[&id]).await };
                within(limit, found).await?.map(|row| thread_row::head(&row)).transpose()?
            }
            None => None,
        };
        let now = now(&transaction, limit).await?;
        let Step { after, answer } = decide(&stored.row, head.map(|head| head.of(stored.key)), now)?;
        if let Some(after) = after {
            let holder = after.holder.as_ref();
            let generation = signed(after.generation);
            let (run, owner) = (holder.map(|h| h.run.as_str()), holder.map(|h| h.lease.owner.as_str()));
            let (since, until) =
                (holder.map(|h| h.lease.granted.unix_ms()), holder.map(|h| h.lease.expires.unix_ms()));
            let row: [Parameter<'_>; 6] = [&stored.key, &generation, &run, &owner, &since, &until];
            let held = async { transaction.execute(&transaction.prepare_cached(HOLD).await?, &row).await };
            within(limit, held).await?;
        }
        within(limit, transaction.commit()).await?;
        Ok(answer)
    }

    /// Takes a thread away, if nobody holds it.
    pub(crate) async fn delete_on(&self, client: &mut Object, thread: &ThreadId) -> Result<(), Failure> {
        let limit = self.silence();
        let transaction = begun(client, limit).await?;
        let Some(row) = within(limit, transaction.query_opt(LOCK, &[&thread.as_str()])).await? else {
            return Ok(());
        };
        let stored = thread_row::read(&row)?;
        plan::check_delete(&stored.row, now(&transaction, limit).await?)?;
        for parts in DELETE {
            within(limit, transaction.execute(parts, &[&stored.key])).await?;
        }
        within(limit, transaction.commit()).await
    }
}

async fn begun(client: &mut Object, limit: Duration) -> Result<Transaction<'_>, Failure> {
    let begin = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start();
    within(limit, begin).await
}

/// The time, read only when the lock is held: while this waited for it, another may have been granted a claim later than
/// its beginning.
async fn now(transaction: &Transaction<'_>, limit: Duration) -> Result<Timestamp, Failure> {
    let asked = async { transaction.query_one(&transaction.prepare_cached(CLOCK).await?, &[]).await };
    Ok(time(within(limit, asked).await?.try_get(0)?))
}
