//! Reading threads, their runs and all their parts; making and deleting threads.

use async_trait::async_trait;
use runyard_redact::Safe;
use runyard_store::threads::plan;
use runyard_store::{
    AgentRunId, AgentRunRow, KeyDigest, PAGE_BYTES_MAX, RunStore, StateValue, StorageError, StoredMessage,
    ThreadId, ThreadRow, ThreadStore, ToolCallRow,
};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use serde_json::Value;

use crate::ledger::Ledger;
use crate::log::page;
use crate::run_row::{number, signed, time};
use crate::store::SqliteStore;
use crate::thread_row::{self, ThreadKey, find_key, select_threads};

const THREADS: &str = "reading threads";
const RUNS: &str = "reading the runs of a thread";
const VALUES: &str = "reading state";

/// The rows of a page, which ends when it is large enough.
fn rows<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    bytes: impl Fn(&T) -> usize,
) -> rusqlite::Result<Vec<T>> {
    let mut select = connection.prepare_cached(sql)?;
    let mut found = select.query(parameters)?;
    let (mut rows, mut taken) = (Vec::new(), 0);
    while taken < PAGE_BYTES_MAX
        && let Some(row) = found.next()?
    {
        let row = read(row)?;
        taken += bytes(&row);
        rows.push(row);
    }
    Ok(rows)
}

fn asked(limit: u32) -> i64 {
    page(limit) as i64
}

#[async_trait]
impl ThreadStore for SqliteStore {
    async fn create_thread(&self, thread: &ThreadId, metadata: Safe<Value>) -> Result<(), StorageError> {
        let metadata = plan::encode("a thread's metadata", &metadata)?;
        let thread = thread.clone();
        let work = move |ledger: &mut Ledger| {
            let now = ledger.now();
            if !thread_row::insert(&ledger.connection, &thread, &metadata, now)? {
                return Err(StorageError::exists(format!("thread {thread}")).into());
            }
            ledger.note_time(now);
            Ok(())
        };
        self.writer("making a thread")?.ask(work).await
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadRow>, StorageError> {
        let thread = thread.clone();
        let read =
            move |connection: &Connection| Ok(thread_row::find(connection, &thread)?.map(|found| found.row));
        self.readers.read(THREADS, read).await
    }

    async fn threads(&self, after: Option<&ThreadId>, limit: u32) -> Result<Vec<ThreadRow>, StorageError> {
        const SQL: &str = select_threads!("WHERE thread_id > ?1 ORDER BY thread_id LIMIT ?2");
        // Before every id there is.
        let after = after.map_or_else(String::new, ToString::to_string);
        let read = move |connection: &Connection| {
            let read = |row: &Row<'_>| thread_row::read(row).map(|stored| stored.row);
            Ok(rows(connection, SQL, params![after, asked(limit)], read, |row| row.metadata.len())?)
        };
        self.readers.read(THREADS, read).await
    }

    async fn messages(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredMessage>, StorageError> {
        const SQL: &str =
            "SELECT key, body FROM thread_messages WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT ?3";
        let thread = thread.clone();
        let read = move |connection: &Connection| {
            let Some(key) = find_key(connection, &thread)? else { return Ok(Vec::new()) };
            let read = |row: &Row<'_>| {
                let (_, position) = ThreadKey::of_part(row.get(0)?);
                Ok(StoredMessage { position, body: row.get_ref(1)?.as_blob()?.into() })
            };
            let parameters = params![key.part(after), key.last(), asked(limit)];
            Ok(rows(connection, SQL, parameters, read, |message| message.body.len())?)
        };
        self.readers.read("reading messages", read).await
    }

    async fn thread_values(
        &self,
        thread: &ThreadId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StateValue>, StorageError> {
        let (thread, after) = (thread.clone(), after.unwrap_or_default().to_owned());
        let read = move |connection: &Connection| {
            let Some(key) = find_key(connection, &thread)? else { return Ok(Vec::new()) };
            Ok(values(connection, key.part(0), &after, limit)?)
        };
        self.readers.read(VALUES, read).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StorageError> {
        let thread = thread.clone();
        let work = move |ledger: &mut Ledger| {
            if let Some(stored) = thread_row::find(&ledger.connection, &thread)? {
                plan::check_delete(&stored.row, ledger.now())?;
                thread_row::delete(&ledger.connection, stored.key)?;
            }
            Ok(())
        };
        self.writer("deleting a thread")?.ask(work).await
    }
}

/// The values of a thread or a run after this key.
fn values(connection: &Connection, scope: i64, after: &str, limit: u32) -> rusqlite::Result<Vec<StateValue>> {
    const SQL: &str =
        "SELECT name, value FROM thread_values WHERE scope = ?1 AND name > ?2 ORDER BY name LIMIT ?3";
    let read = |row: &Row<'_>| Ok(StateValue { key: row.get(0)?, value: row.get(1)? });
    rows(connection, SQL, params![scope, after, asked(limit)], read, |row| row.key.len() + row.value.len())
}

/// A query of runs whose rows [`run`] can take.
macro_rules! select_agent_runs {
    ($rest:literal) => {
        concat!(
            "SELECT agent_runs.key, agent_runs.run_id, threads.thread_id, agent_runs.status, ",
            "agent_runs.finished, agent_runs.payload, agent_runs.created, agent_runs.updated ",
            "FROM agent_runs JOIN threads ON threads.key = agent_runs.key >> 24 ",
            $rest
        )
    };
}

fn run(row: &Row<'_>) -> rusqlite::Result<AgentRunRow> {
    Ok(AgentRunRow {
        id: AgentRunId::from_stored(row.get(1)?),
        thread: ThreadId::from_stored(row.get(2)?),
        number: ThreadKey::of_part(row.get(0)?).1,
        status: row.get(3)?,
        finished: row.get(4)?,
        payload: row.get(5)?,
        created: time(row, 6)?,
        updated: time(row, 7)?,
    })
}

/// The key of the run of this id.
fn run_key(connection: &Connection, run: &AgentRunId) -> rusqlite::Result<Option<i64>> {
    let mut select = connection.prepare_cached("SELECT key FROM agent_runs WHERE run_id = ?1")?;
    select.query_row([run.as_str()], |row| row.get(0)).optional()
}

#[async_trait]
impl RunStore for SqliteStore {
    async fn agent_run(&self, id: &AgentRunId) -> Result<Option<AgentRunRow>, StorageError> {
        let id = id.clone();
        let read = move |connection: &Connection| {
            let mut select = connection.prepare_cached(select_agent_runs!("WHERE agent_runs.run_id = ?1"))?;
            Ok(select.query_row([id.as_str()], run).optional()?)
        };
        self.readers.read(RUNS, read).await
    }

    async fn agent_runs(
        &self,
        thread: &ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<AgentRunRow>, StorageError> {
        const SQL: &str = select_agent_runs!(
            "WHERE agent_runs.key > ?1 AND agent_runs.key < ?2 ORDER BY agent_runs.key DESC LIMIT ?3"
        );
        let thread = thread.clone();
        let read = move |connection: &Connection| {
            let Some(key) = find_key(connection, &thread)? else { return Ok(Vec::new()) };
            let before = before.map_or(key.last() + 1, |before| key.part(before));
            let parameters = params![key.part(0), before, asked(limit)];
            Ok(rows(connection, SQL, parameters, run, |row| row.payload.len())?)
        };
        self.readers.read(RUNS, read).await
    }

    async fn unfinished_run(&self, thread: &ThreadId) -> Result<Option<AgentRunRow>, StorageError> {
        let thread = thread.clone();
        let read = move |connection: &Connection| {
            let mut select = connection.prepare_cached(select_agent_runs!(
                "WHERE agent_runs.run_id = (SELECT unfinished FROM threads WHERE thread_id = ?1)"
            ))?;
            Ok(select.query_row([thread.as_str()], run).optional()?)
        };
        self.readers.read(RUNS, read).await
    }

    async fn run_values(
        &self,
        run: &AgentRunId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StateValue>, StorageError> {
        let (run, after) = (run.clone(), after.unwrap_or_default().to_owned());
        let read = move |connection: &Connection| {
            let Some(key) = run_key(connection, &run)? else { return Ok(Vec::new()) };
            Ok(values(connection, key, &after, limit)?)
        };
        self.readers.read(VALUES, read).await
    }

    async fn tool_calls(
        &self,
        run: &AgentRunId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ToolCallRow>, StorageError> {
        const SQL: &str = "SELECT place, call, key, intent, result FROM tool_calls
            WHERE run = ?1 AND +place > ?2 ORDER BY place LIMIT ?3";
        let run = run.clone();
        let read = move |connection: &Connection| {
            let Some(key) = run_key(connection, &run)? else { return Ok(Vec::new()) };
            let read = |row: &Row<'_>| {
                Ok(ToolCallRow {
                    place: number(row, 0)?,
                    call: row.get(1)?,
                    key: KeyDigest::from_bytes(row.get(2)?),
                    intent: row.get(3)?,
                    result: row.get(4)?,
                })
            };
            let bytes = |row: &ToolCallRow| row.intent.len() + row.result.as_ref().map_or(0, Vec::len);
            Ok(rows(connection, SQL, params![key, signed(after), asked(limit)], read, bytes)?)
        };
        self.readers.read("reading a journal", read).await
    }
}
