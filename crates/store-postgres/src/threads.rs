//! Reading threads, their runs and all their parts; making and deleting threads.

use async_trait::async_trait;
use runyard_redact::Safe;
use runyard_store::threads::plan;
use runyard_store::{
    AgentRunId, AgentRunRow, KeyDigest, PAGE_BYTES_MAX, RunStore, StateValue, StorageError, StoredMessage,
    ThreadId, ThreadRow, ThreadStore, ToolCallRow,
};
use serde_json::Value;
use tokio_postgres::Row;

use crate::connection::given_back;
use crate::fault::Failure;
use crate::queries::all;
use crate::run_row::{now_ms, signed, time, unsigned};
use crate::store::{Parameter, PostgresStore, page};
use crate::thread_row::{self, thread_columns};

const MAKING: &str = "making a thread";
const THREADS: &str = "reading threads";
const MESSAGES: &str = "reading messages";
const VALUES: &str = "reading state";
const RUNS: &str = "reading the runs of a thread";
const JOURNAL: &str = "reading a journal";

/// A page that is as large as this ends there.
const PAGE_BYTES: i64 = PAGE_BYTES_MAX as i64;

/// A query whose page ends where it is large enough. The server adds up the sizes, which for long values it knows without
/// reading them. `$order` is by a column of `$columns`.
macro_rules! bounded {
    ($columns:expr, $size:literal, $from:expr, $order:literal, $limit:literal, $bytes:literal) => {
        concat!(
            "SELECT * FROM (SELECT limited.*, sum(",
            $size,
            ") OVER (ORDER BY ",
            $order,
            " ROWS UNBOUNDED PRECEDING) - ",
            $size,
            " AS bytes_before FROM (SELECT ",
            $columns,
            " FROM ",
            $from,
            " ORDER BY ",
            $order,
            " LIMIT ",
            $limit,
            ") AS limited) AS summed WHERE bytes_before < ",
            $bytes,
            " ORDER BY ",
            $order
        )
    };
}

macro_rules! run_columns {
    () => {
        "run_id, thread_id, number, status, finished, payload, agent_runs.created, agent_runs.updated"
    };
}

/// Names hold no zero and the database takes none. What comes behind a text comes behind the text before its first zero.
fn before_zero(text: Option<&str>) -> &str {
    text.unwrap_or_default().split('\0').next().unwrap_or_default()
}

#[async_trait]
impl ThreadStore for PostgresStore {
    async fn create_thread(&self, thread: &ThreadId, metadata: Safe<Value>) -> Result<(), StorageError> {
        const SQL: &str = concat!(
            "WITH new AS MATERIALIZED
                (SELECT nextval(pg_get_serial_sequence('threads', 'key')) AS key, ",
            now_ms!(),
            " AS now)
             INSERT INTO threads (key, thread_id, version, runs, generation, created, updated, metadata)
             SELECT key, $1, 0, 0, key << 24, now, now, $2 FROM new
             ON CONFLICT (thread_id) DO NOTHING RETURNING 1"
        );
        // That a key begins the generations is a part of the schema.
        const _: () = assert!(plan::THREAD_PARTS_MAX + 1 == 1 << 24);
        let metadata = plan::encode("a thread's metadata", &metadata)?;
        let rows = self.rows(MAKING, SQL, &[&thread.as_str(), &metadata]).await?;
        if rows.is_empty() {
            return Err(StorageError::exists(format!("thread {thread}")));
        }
        Ok(())
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadRow>, StorageError> {
        const SQL: &str = concat!("SELECT ", thread_columns!(), " FROM threads WHERE thread_id = $1");
        let rows = self.rows(THREADS, SQL, &[&thread.as_str()]).await?;
        Ok(all(THREADS, &rows, thread_row::read)?.pop().map(|stored| stored.row))
    }

    async fn threads(&self, after: Option<&ThreadId>, limit: u32) -> Result<Vec<ThreadRow>, StorageError> {
        const SQL: &str = bounded!(
            thread_columns!(),
            "octet_length(metadata)",
            "threads WHERE thread_id > $1",
            "thread_id",
            "$2",
            "$3"
        );
        let after = after.map_or("", ThreadId::as_str);
        let rows = self.rows(THREADS, SQL, &[&after, &page(limit), &PAGE_BYTES]).await?;
        all(THREADS, &rows, |row| thread_row::read(row).map(|stored| stored.row))
    }

    async fn messages(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredMessage>, StorageError> {
        const SQL: &str = bounded!(
            "position, body",
            "octet_length(body)",
            "thread_messages WHERE thread = (SELECT key FROM threads WHERE thread_id = $1) AND position > $2",
            "position",
            "$3",
            "$4"
        );
        let parameters: [Parameter<'_>; 4] = [&thread.as_str(), &signed(after), &page(limit), &PAGE_BYTES];
        let rows = self.rows(MESSAGES, SQL, &parameters).await?;
        all(MESSAGES, &rows, |row| {
            let position = unsigned(row.try_get(0)?)?;
            Ok(StoredMessage { position, body: row.try_get::<_, &[u8]>(1)?.into() })
        })
    }

    async fn thread_values(
        &self,
        thread: &ThreadId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StateValue>, StorageError> {
        const SQL: &str = bounded!(
            "name, value",
            "octet_length(value)",
            "thread_values WHERE thread = (SELECT key FROM threads WHERE thread_id = $1) AND run = 0 AND name > $2",
            "name",
            "$3",
            "$4"
        );
        self.values(SQL, thread.as_str(), after, limit).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StorageError> {
        self.repeated("deleting a thread", || async move {
            let mut client = self.client().await?;
            let deleted = self.delete_on(&mut client, thread).await;
            given_back(client, deleted)
        })
        .await
    }
}

impl PostgresStore {
    async fn values(
        &self,
        sql: &'static str,
        of: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StateValue>, StorageError> {
        let rows = self.rows(VALUES, sql, &[&of, &before_zero(after), &page(limit), &PAGE_BYTES]).await?;
        all(VALUES, &rows, |row| Ok(StateValue { key: row.try_get(0)?, value: row.try_get(1)? }))
    }
}

fn run(row: &Row) -> Result<AgentRunRow, Failure> {
    Ok(AgentRunRow {
        id: AgentRunId::from_stored(row.try_get(0)?),
        thread: ThreadId::from_stored(row.try_get(1)?),
        number: unsigned(row.try_get(2)?)?,
        status: row.try_get(3)?,
        finished: row.try_get(4)?,
        payload: row.try_get(5)?,
        created: time(row.try_get(6)?),
        updated: time(row.try_get(7)?),
    })
}

fn call(row: &Row) -> Result<ToolCallRow, Failure> {
    let key = row.try_get::<_, &[u8]>(2)?.try_into().map_err(|_| StorageError::Corrupt {
        doing: JOURNAL,
        detail: "the key of a call has another length".to_owned(),
    })?;
    Ok(ToolCallRow {
        place: unsigned(row.try_get(0)?)?,
        call: row.try_get(1)?,
        key: KeyDigest::from_bytes(key),
        intent: row.try_get(3)?,
        result: row.try_get(4)?,
    })
}

#[async_trait]
impl RunStore for PostgresStore {
    async fn agent_run(&self, id: &AgentRunId) -> Result<Option<AgentRunRow>, StorageError> {
        const SQL: &str = concat!(
            "SELECT ",
            run_columns!(),
            " FROM agent_runs JOIN threads ON threads.key = agent_runs.thread WHERE run_id = $1"
        );
        let rows = self.rows(RUNS, SQL, &[&id.as_str()]).await?;
        Ok(all(RUNS, &rows, run)?.pop())
    }

    async fn agent_runs(
        &self,
        thread: &ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<AgentRunRow>, StorageError> {
        const SQL: &str = bounded!(
            run_columns!(),
            "octet_length(payload)",
            "agent_runs JOIN threads ON threads.key = agent_runs.thread WHERE thread_id = $1 AND number < $2",
            "number DESC",
            "$3",
            "$4"
        );
        let before = signed(before.unwrap_or(u64::MAX));
        let rows = self.rows(RUNS, SQL, &[&thread.as_str(), &before, &page(limit), &PAGE_BYTES]).await?;
        all(RUNS, &rows, run)
    }

    async fn unfinished_run(&self, thread: &ThreadId) -> Result<Option<AgentRunRow>, StorageError> {
        const SQL: &str = concat!(
            "SELECT ",
            run_columns!(),
            " FROM threads JOIN agent_runs ON agent_runs.run_id = threads.unfinished WHERE thread_id = $1"
        );
        let rows = self.rows(RUNS, SQL, &[&thread.as_str()]).await?;
        Ok(all(RUNS, &rows, run)?.pop())
    }

    async fn run_values(
        &self,
        run: &AgentRunId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StateValue>, StorageError> {
        const SQL: &str =
            bounded!(
            "name, value", "octet_length(value)",
            "thread_values WHERE (thread, run) = (SELECT thread, number FROM agent_runs WHERE run_id = $1)
                AND name > $2",
            "name", "$3", "$4"
        );
        self.values(SQL, run.as_str(), after, limit).await
    }

    async fn tool_calls(
        &self,
        run: &AgentRunId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ToolCallRow>, StorageError> {
        const SQL: &str = bounded!(
            "place, call, key, intent, result",
            "(octet_length(intent) + coalesce(octet_length(result), 0))",
            "tool_calls WHERE (thread, run) = (SELECT thread, number FROM agent_runs WHERE run_id = $1)
                AND place > $2",
            "place",
            "$3",
            "$4"
        );
        let parameters: [Parameter<'_>; 4] = [&run.as_str(), &signed(after), &page(limit), &PAGE_BYTES];
        let rows = self.rows(JOURNAL, SQL, &parameters).await?;
        all(JOURNAL, &rows, call)
    }
}
