//! A thread's row, out of the table and into it, and the keys of a thread's parts.

use runyard_domain::Timestamp;
use runyard_store::threads::plan::{RunHead, THREAD_PARTS_MAX, new_thread};
use runyard_store::{AgentRunId, LeaseRow, ThreadHolder, ThreadId, ThreadRow};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::run_row::{number, signed, time};

/// How many parts a thread has room for in the tables, counted from 0. Part of the schema.
const PARTS: i64 = THREAD_PARTS_MAX as i64 + 1;

/// A query of threads whose rows [`read`] can take.
macro_rules! select_threads {
    ($rest:literal) => {
        concat!(
            "SELECT key, thread_id, version, runs, generation, held_for, held_by, held_since, held_until, ",
            "unfinished, created, updated, metadata FROM threads ",
            $rest
        )
    };
}
pub(crate) use select_threads;

/// A row of the table.
#[derive(Debug)]
pub(crate) struct StoredThread {
    pub(crate) key: ThreadKey,
    pub(crate) row: ThreadRow,
}

/// The key of a thread, which those of its parts begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadKey(pub(crate) i64);

impl ThreadKey {
    /// The key of the part of this number: a message's place, a run's number, or 0 for the thread itself.
    pub(crate) fn part(self, number: u64) -> i64 {
        self.0.saturating_mul(PARTS).saturating_add(signed(number.min(THREAD_PARTS_MAX)))
    }

    /// The highest key of a part.
    pub(crate) fn last(self) -> i64 {
        self.part(THREAD_PARTS_MAX)
    }

    /// The thread that a part belongs to, and the part's number.
    pub(crate) fn of_part(part: i64) -> (Self, u64) {
        (ThreadKey(part.div_euclid(PARTS)), part.rem_euclid(PARTS).unsigned_abs())
    }
}

/// Reads a row of the table.
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<StoredThread> {
    let holder = match (row.get(5)?, row.get(6)?) {
        (Some(run), Some(owner)) => {
            let lease = LeaseRow { owner, granted: time(row, 7)?, expires: time(row, 8)? };
            Some(ThreadHolder { run: AgentRunId::from_stored(run), lease })
        }
        _ => None,
    };
    let thread = ThreadRow {
        id: ThreadId::from_stored(row.get(1)?),
        version: number(row, 2)?,
        runs: number(row, 3)?,
        generation: number(row, 4)?,
        holder,
        unfinished: row.get::<_, Option<String>>(9)?.map(AgentRunId::from_stored),
        created: time(row, 10)?,
        updated: time(row, 11)?,
        metadata: row.get(12)?,
    };
    Ok(StoredThread { key: ThreadKey(row.get(0)?), row: thread })
}

/// The thread of this id.
pub(crate) fn find(connection: &Connection, thread: &ThreadId) -> rusqlite::Result<Option<StoredThread>> {
    let mut select = connection.prepare_cached(select_threads!("WHERE thread_id = ?1"))?;
    select.query_row([thread.as_str()], read).optional()
}

/// The key of the thread of this id.
pub(crate) fn find_key(connection: &Connection, thread: &ThreadId) -> rusqlite::Result<Option<ThreadKey>> {
    let mut select = connection.prepare_cached("SELECT key FROM threads WHERE thread_id = ?1")?;
    select.query_row([thread.as_str()], |row| row.get(0).map(ThreadKey)).optional()
}

/// Writes a new thread, unless there is one of this id.
pub(crate) fn insert(
    connection: &Connection,
    thread: &ThreadId,
    metadata: &[u8],
    now: Timestamp,
) -> rusqlite::Result<bool> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO threads (thread_id, version, runs, generation, created, updated, metadata)
         VALUES (?1, 0, 0, 0, ?2, ?2, ?3) ON CONFLICT (thread_id) DO NOTHING",
    )?;
    if insert.execute(params![thread.as_str(), now.unix_ms(), metadata])? == 0 {
        return Ok(false);
    }
    // Only now is its key known, which its generations begin with.
    let key = connection.last_insert_rowid();
    let row = new_thread(thread, key.unsigned_abs(), Vec::new(), now);
    update(connection, ThreadKey(key), &row)?;
    Ok(true)
}

/// Writes everything that changes.
pub(crate) fn update(connection: &Connection, key: ThreadKey, row: &ThreadRow) -> rusqlite::Result<()> {
    let mut update = connection.prepare_cached(
        "UPDATE threads SET version = ?2, runs = ?3, generation = ?4, held_for = ?5, held_by = ?6,
         held_since = ?7, held_until = ?8, unfinished = ?9, updated = ?10 WHERE key = ?1",
    )?;
    let holder = row.holder.as_ref();
    update.execute(params![
        key.0,
        signed(row.version),
        signed(row.runs),
        signed(row.generation),
        holder.map(|holder| holder.run.as_str()),
        holder.map(|holder| &holder.lease.owner),
        holder.map(|holder| holder.lease.granted.unix_ms()),
        holder.map(|holder| holder.lease.expires.unix_ms()),
        row.unfinished.as_ref().map(AgentRunId::as_str),
        row.updated.unix_ms(),
    ])?;
    Ok(())
}

/// What is known of a run, as a run of this thread.
pub(crate) fn find_run(
    connection: &Connection,
    thread: ThreadKey,
    run: &AgentRunId,
) -> rusqlite::Result<Option<RunHead>> {
    let mut select = connection.prepare_cached("SELECT key, finished FROM agent_runs WHERE run_id = ?1")?;
    select
        .query_row([run.as_str()], |row| {
            let (of, number) = ThreadKey::of_part(row.get(0)?);
            Ok(RunHead { is_of_thread: of == thread, number, finished: row.get(1)? })
        })
        .optional()
}

/// Takes a thread away, with all its parts.
pub(crate) fn delete(connection: &Connection, key: ThreadKey) -> rusqlite::Result<()> {
    for parts in [
        "DELETE FROM thread_messages WHERE key BETWEEN ?1 AND ?2",
        "DELETE FROM thread_values WHERE scope BETWEEN ?1 AND ?2",
        "DELETE FROM tool_calls WHERE run BETWEEN ?1 AND ?2",
        "DELETE FROM agent_runs WHERE key BETWEEN ?1 AND ?2",
    ] {
        connection.prepare_cached(parts)?.execute([key.part(0), key.last()])?;
    }
    connection.prepare_cached("DELETE FROM thread_commits WHERE thread = ?1")?.execute([key.0])?;
    connection.prepare_cached("DELETE FROM threads WHERE key = ?1")?.execute([key.0])?;
    Ok(())
}

// Databases have keys of this size; a change of the limit is not enough to change it.
const _: () = assert!(PARTS == 1 << 24);

#[cfg(test)]
mod tests {
    use runyard_store::threads::plan::first_generation;

    use super::*;

    #[test]
    fn the_parts_of_a_thread_lie_between_it_and_the_next() {
        let (first, second) = (ThreadKey(1), ThreadKey(2));
        assert!(first.part(0) < first.part(1) && first.last() < second.part(0));
        assert_eq!(ThreadKey::of_part(first.part(7)), (first, 7));
        assert_eq!(ThreadKey::of_part(first.last()), (first, THREAD_PARTS_MAX));
        assert_eq!(first.part(u64::MAX), first.last());
        assert_eq!(first_generation(1), first.part(0).unsigned_abs());
    }
}
