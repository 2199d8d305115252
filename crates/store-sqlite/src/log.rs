//! The event log.

use async_trait::async_trait;
use runyard_domain::RunId;
use runyard_store::{
    Appended, Change, EventLog, FeedCursor, FeedEntry, FeedPage, Live, LoggedEvent, PAGE_MAX, StorageError,
};
use rusqlite::{Connection, OptionalExtension};

use crate::fault::Trouble;
use crate::places::{Enough, Places, unreadable, walk};
use crate::run_row::number;
use crate::store::SqliteStore;

/// A page that is as large as this ends there, whatever its limit is. It has at least one event.
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

#[async_trait]
impl EventLog for SqliteStore {
    async fn append(&self, change: Change) -> Result<Appended, StorageError> {
        let writer = self.writer("appending to a run")?;
        writer.append(change.prepare()?).await
    }

    async fn head(&self, run: RunId) -> Result<Option<u64>, StorageError> {
        let read = move |connection: &Connection| {
            let mut select = connection.prepare_cached("SELECT sequence FROM runs WHERE run_id = ?1")?;
            Ok(select.query_row([run.as_bytes()], |row| number(row, 0)).optional()?)
        };
        self.readers.read("reading a run", read).await
    }

    async fn read(&self, run: RunId, after: u64, limit: u32) -> Result<Vec<LoggedEvent>, StorageError> {
        let read = move |connection: &Connection| Ok(events(connection, run, after, page(limit))?);
        self.readers.read("reading events", read).await
    }

    async fn feed(&self, after: &FeedCursor, limit: u32) -> Result<FeedPage, StorageError> {
        let after = after.clone();
        self.readers.read("reading the feed", move |connection| feed(connection, after, page(limit))).await
    }

    fn live(&self) -> &Live {
        &self.live
    }
}

/// A limit within what a page holds.
pub(crate) fn page(limit: u32) -> usize {
    limit.min(PAGE_MAX) as usize
}

fn events(
    connection: &Connection,
    run: RunId,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<LoggedEvent>> {
    // The run's row, its places and its events must be of the same moment.
    let moment = connection.unchecked_transaction()?;
    let found = connection
        .prepare_cached("SELECT key, sequence, tail FROM runs WHERE run_id = ?1")?
        .query_row([run.as_bytes()], |row| {
            let places = Places::from_bytes(row.get_ref(2)?.as_blob()?).ok_or_else(|| unreadable(2))?;
            Ok((row.get::<_, i64>(0)?, number(row, 1)?, places))
        })
        .optional()?;
    let Some((key, head, tail)) = found.filter(|_| limit > 0) else { return Ok(Vec::new()) };
    let mut select = connection.prepare_cached(
        "SELECT pos, run, sequence, body FROM events WHERE pos BETWEEN ?1 AND ?2 ORDER BY pos",
    )?;
    let mut events = Vec::with_capacity(limit.min(512));
    let mut bytes = 0;
    walk(connection, key, after, head, &tail, |stretch| {
        let mut rows = select.query([stretch.first, stretch.last])?;
        while let Some(row) = rows.next()? {
            let sequence = stretch.sequence + row.get::<_, i64>(0)?.abs_diff(stretch.first);
            // What does not belong here is not shown, and so it is missing.
            if (row.get::<_, i64>(1)?, number(row, 2)?) != (key, sequence) {
                continue;
            }
            let body = row.get_ref(3)?.as_blob()?;
            bytes += body.len();
            events.push(LoggedEvent { sequence, body: body.into() });
            if events.len() == limit || bytes >= PAGE_BYTES_MAX {
                return Ok(Enough::Yes);
            }
        }
        Ok(Enough::No)
    })?;
    moment.finish()?;
    Ok(events)
}

fn feed(connection: &Connection, after: FeedCursor, limit: usize) -> Result<FeedPage, Trouble> {
    let position: i64 = after
        .as_str()
        .parse()
        .ok()
        .filter(|position| *position >= 0)
        .ok_or_else(|| StorageError::invalid("not a cursor of this feed"))?;
    let mut select = connection.prepare_cached(
        "SELECT events.pos, runs.run_id, events.sequence, events.body
         FROM events JOIN runs ON runs.key = events.run WHERE events.pos > ?1 ORDER BY events.pos",
    )?;
    // The second query must not see more than the first.
    let transaction = connection.unchecked_transaction()?;
    let mut rows = select.query([position])?;
    let mut entries = Vec::with_capacity(limit.min(512));
    let mut bytes = 0;
    while entries.len() < limit && bytes < PAGE_BYTES_MAX {
        let Some(row) = rows.next()? else { break };
        let body = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
        bytes += body.len();
        entries.push(FeedEntry {
            cursor: FeedCursor::from_text(row.get::<_, i64>(0)?.to_string()),
            run: RunId::from_bytes(row.get(1)?),
            event: LoggedEvent { sequence: number(row, 2)?, body: body.into() },
        });
    }
    drop(rows);
    if entries.is_empty() {
        let last: i64 =
            connection.query_row("SELECT coalesce(max(pos), 0) FROM events", [], |row| row.get(0))?;
        if position > last {
            return Err(StorageError::invalid("the cursor is ahead of the feed").into());
        }
    }
    transaction.finish()?;
    let next = entries.last().map_or(after, |entry| entry.cursor.clone());
    Ok(FeedPage { entries, next })
}
