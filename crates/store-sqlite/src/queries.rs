//! Reading runs, approvals and timers.

use async_trait::async_trait;
use runyard_domain::{ApprovalId, RunId, Timestamp};
use runyard_store::{Approval, Approvals, RunPage, RunRow, Runs, RunsQuery, StorageError, Timer, Timers};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::log::page;
use crate::run_row::{self, select_runs, time};
use crate::store::SqliteStore;

#[async_trait]
impl Runs for SqliteStore {
    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StorageError> {
        let read =
            move |connection: &Connection| Ok(run_row::find(connection, run)?.map(|stored| stored.row));
        self.readers.read("reading a run", read).await
    }

    async fn runs(&self, query: RunsQuery) -> Result<RunPage, StorageError> {
        self.readers.read("listing runs", move |connection| Ok(runs(connection, &query)?)).await
    }
}

fn runs(connection: &Connection, query: &RunsQuery) -> rusqlite::Result<RunPage> {
    let limit = page(query.limit);
    // Beyond every id there is.
    let before = query.before.as_ref().map_or([0xff; 16].as_slice(), |run| run.as_bytes().as_slice());
    let asked = limit as i64 + 1;
    let mut runs: Vec<RunRow> = match &query.status {
        None => connection
            .prepare_cached(select_runs!("WHERE run_id < ?1 ORDER BY run_id DESC LIMIT ?2"))?
            .query_map(params![before, asked], row_only)?
            .collect::<rusqlite::Result<_>>()?,
        Some(status) => connection
            .prepare_cached(select_runs!("WHERE status = ?3 AND run_id < ?1 ORDER BY run_id DESC LIMIT ?2"))?
            .query_map(params![before, asked, status], row_only)?
            .collect::<rusqlite::Result<_>>()?,
    };
    let more = runs.len() > limit;
    runs.truncate(limit);
    Ok(RunPage { runs, more })
}

fn row_only(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    run_row::read(row).map(|stored| stored.row)
}

#[async_trait]
impl Approvals for SqliteStore {
    async fn approval(&self, id: ApprovalId) -> Result<Option<Approval>, StorageError> {
        let read = move |connection: &Connection| {
            let mut select = connection.prepare_cached(select_approvals!("WHERE approvals.id = ?1"))?;
            Ok(select.query_row([id.as_bytes()], approval).optional()?)
        };
        self.readers.read("reading an approval", read).await
    }

    async fn open_approvals(
        &self,
        run: Option<RunId>,
        after: Option<ApprovalId>,
        limit: u32,
    ) -> Result<Vec<Approval>, StorageError> {
        let read = move |connection: &Connection| Ok(open(connection, run, after, page(limit) as i64)?);
        self.readers.read("listing approvals", read).await
    }
}

macro_rules! select_approvals {
    ($rest:literal) => {
        concat!(
            "SELECT approvals.id, runs.run_id, approvals.expires, approvals.request, approvals.decision ",
            "FROM approvals JOIN runs ON runs.key = approvals.run ",
            $rest
        )
    };
}
use select_approvals;

fn open(
    connection: &Connection,
    run: Option<RunId>,
    after: Option<ApprovalId>,
    limit: i64,
) -> rusqlite::Result<Vec<Approval>> {
    let after = after.map_or([0; 16], |after| *after.as_bytes());
    // An id is never all zeros; the first page begins there.
    match run {
        None => connection
            .prepare_cached(select_approvals!(
                "WHERE approvals.decision IS NULL AND approvals.id > ?1 ORDER BY approvals.id LIMIT ?2"
            ))?
            .query_map(params![after, limit], approval)?
            .collect(),
        Some(run) => connection
            .prepare_cached(select_approvals!(
                "WHERE approvals.decision IS NULL AND approvals.id > ?1
                 AND approvals.run = (SELECT key FROM runs WHERE run_id = ?3) ORDER BY approvals.id LIMIT ?2"
            ))?
            .query_map(params![after, limit, run.as_bytes()], approval)?
            .collect(),
    }
}

fn approval(row: &Row<'_>) -> rusqlite::Result<Approval> {
    Ok(Approval {
        id: ApprovalId::from_bytes(row.get(0)?),
        run: RunId::from_bytes(row.get(1)?),
        expires: time(row, 2)?,
        request: row.get(3)?,
        decision: row.get(4)?,
    })
}

#[async_trait]
impl Timers for SqliteStore {
    async fn due_timers(&self, limit: u32) -> Result<Vec<Timer>, StorageError> {
        let now = self.clock.now();
        let read = move |connection: &Connection| {
            let mut select = connection.prepare_cached(
                "SELECT runs.run_id, timers.name, timers.due, timers.payload
                 FROM timers JOIN runs ON runs.key = timers.run
                 WHERE timers.due <= ?1 ORDER BY timers.due LIMIT ?2",
            )?;
            let due = select.query_map([now.unix_ms(), page(limit) as i64], timer)?;
            Ok(due.collect::<rusqlite::Result<Vec<_>>>()?)
        };
        self.readers.read("looking for due timers", read).await
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>, StorageError> {
        let read = |connection: &Connection| {
            let next: Option<i64> =
                connection.prepare_cached("SELECT min(due) FROM timers")?.query_row([], |row| row.get(0))?;
            Ok(next.map(Timestamp::from_unix_ms))
        };
        self.readers.read("looking for the next timer", read).await
    }

    async fn now(&self) -> Result<Timestamp, StorageError> {
        Ok(self.clock.now())
    }
}

fn timer(row: &Row<'_>) -> rusqlite::Result<Timer> {
    Ok(Timer {
        run: RunId::from_bytes(row.get(0)?),
        name: row.get(1)?,
        due: time(row, 2)?,
        payload: row.get(3)?,
    })
}
