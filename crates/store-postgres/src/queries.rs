//! Reading rows: runs, approvals, timers, and the outbox.

use async_trait::async_trait;
use runyard_domain::{ApprovalId, RunId, Timestamp};
use runyard_store::{
    Approval, Approvals, Outbox, OutboxItem, RunPage, RunRow, Runs, RunsQuery, StorageError, Timer, Timers,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::fault::Failure;
use crate::run_row::{self, columns, now_ms, run_uuid, signed, time, unsigned};
use crate::store::{PostgresStore, page};

const LISTING: &str = "listing runs";
const APPROVALS: &str = "reading approvals";
const TIMERS: &str = "reading timers";
const OUTBOX: &str = "reading the outbox";

pub(crate) fn all<T>(
    doing: &'static str,
    rows: &[Row],
    read: impl Fn(&Row) -> Result<T, Failure>,
) -> Result<Vec<T>, StorageError> {
    let read = rows.iter().map(read).collect::<Result<Vec<_>, _>>();
    read.map_err(|failure| failure.into_storage(doing, ""))
}

fn run(row: &Row, column: usize) -> Result<RunId, Failure> {
    Ok(RunId::from_bytes(row.try_get::<_, Uuid>(column)?.into_bytes()))
}

#[async_trait]
impl Runs for PostgresStore {
    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StorageError> {
        const SQL: &str = concat!("SELECT ", columns!(), " FROM runs WHERE run_id = $1");
        let rows = self.rows("reading a run", SQL, &[&run_uuid(run)]).await?;
        Ok(all("reading a run", &rows, run_row::read)?.pop())
    }

    async fn runs(&self, query: RunsQuery) -> Result<RunPage, StorageError> {
        const ALL: &str =
            concat!("SELECT ", columns!(), " FROM runs WHERE run_id < $1 ORDER BY run_id DESC LIMIT $2");
        const OF_STATUS: &str = concat!(
            "SELECT ",
            columns!(),
            " FROM runs WHERE status = $3 AND run_id < $1 ORDER BY run_id DESC LIMIT $2"
        );
        let before = query.before.map_or(Uuid::max(), run_uuid);
        let limit = page(query.limit);
        // One more than asked for tells whether there are more.
        let rows = match &query.status {
            None => self.rows(LISTING, ALL, &[&before, &(limit + 1)]).await?,
            // No status holds a zero, and the database takes none.
            Some(status) if status.contains('\0') => Vec::new(),
            Some(status) => self.rows(LISTING, OF_STATUS, &[&before, &(limit + 1), status]).await?,
        };
        let mut runs = all(LISTING, &rows, run_row::read)?;
        let shown = usize::try_from(limit).unwrap_or_default();
        let more = runs.len() > shown;
        runs.truncate(shown);
        Ok(RunPage { runs, more })
    }
}

fn approval(row: &Row) -> Result<Approval, Failure> {
    Ok(Approval {
        id: ApprovalId::from_bytes(row.try_get::<_, Uuid>(0)?.into_bytes()),
        run: run(row, 1)?,
        expires: time(row.try_get(2)?),
        request: row.try_get(3)?,
        decision: row.try_get(4)?,
    })
}

#[async_trait]
impl Approvals for PostgresStore {
    async fn approval(&self, id: ApprovalId) -> Result<Option<Approval>, StorageError> {
        const SQL: &str = "SELECT id, run_id, expires, request, decision FROM approvals WHERE id = $1";
        let rows = self.rows(APPROVALS, SQL, &[&Uuid::from_bytes(*id.as_bytes())]).await?;
        Ok(all(APPROVALS, &rows, approval)?.pop())
    }

    async fn open_approvals(
        &self,
        run: Option<RunId>,
        after: Option<ApprovalId>,
        limit: u32,
    ) -> Result<Vec<Approval>, StorageError> {
        const ALL: &str = "SELECT id, run_id, expires, request, decision FROM approvals
            WHERE decision IS NULL AND id > $1 ORDER BY id LIMIT $2";
        const OF_RUN: &str = "SELECT id, run_id, expires, request, decision FROM approvals
            WHERE decision IS NULL AND run_id = $3 AND id > $1 ORDER BY id LIMIT $2";
        let after = after.map_or(Uuid::nil(), |after| Uuid::from_bytes(*after.as_bytes()));
        let rows = match run {
            None => self.rows(APPROVALS, ALL, &[&after, &page(limit)]).await?,
            Some(run) => self.rows(APPROVALS, OF_RUN, &[&after, &page(limit), &run_uuid(run)]).await?,
        };
        all(APPROVALS, &rows, approval)
    }
}

#[async_trait]
impl Timers for PostgresStore {
    async fn due_timers(&self, limit: u32) -> Result<Vec<Timer>, StorageError> {
        const SQL: &str = concat!(
            "SELECT run_id, name, due, payload FROM timers WHERE due <= ",
            now_ms!(),
            " ORDER BY due, run_id, name LIMIT $1"
        );
        let rows = self.rows(TIMERS, SQL, &[&page(limit)]).await?;
        all(TIMERS, &rows, |row| {
            let (name, due) = (row.try_get(1)?, time(row.try_get(2)?));
            Ok(Timer { run: run(row, 0)?, name, due, payload: row.try_get(3)? })
        })
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>, StorageError> {
        let rows = self.rows(TIMERS, "SELECT due FROM timers ORDER BY due LIMIT 1", &[]).await?;
        Ok(all(TIMERS, &rows, |row| Ok(time(row.try_get(0)?)))?.pop())
    }

    async fn now(&self) -> Result<Timestamp, StorageError> {
        let rows = self.rows("reading the clock", concat!("SELECT ", now_ms!()), &[]).await?;
        let now = all("reading the clock", &rows, |row| Ok(time(row.try_get(0)?)))?.pop();
        now.ok_or_else(|| StorageError::not_found("time"))
    }
}

#[async_trait]
impl Outbox for PostgresStore {
    async fn undelivered(&self, after: u64, limit: u32) -> Result<Vec<OutboxItem>, StorageError> {
        const SQL: &str = "SELECT id, run_id, payload FROM outbox WHERE id > $1 ORDER BY id LIMIT $2";
        let rows = self.rows(OUTBOX, SQL, &[&signed(after), &page(limit)]).await?;
        all(OUTBOX, &rows, |row| {
            let id = unsigned(row.try_get(0)?)?;
            Ok(OutboxItem { id, run: run(row, 1)?, payload: row.try_get(2)? })
        })
    }

    async fn delivered(&self, ids: &[u64]) -> Result<(), StorageError> {
        let ids: Vec<i64> = ids.iter().map(|id| signed(*id)).collect();
        self.rows("emptying the outbox", "DELETE FROM outbox WHERE id = ANY($1)", &[&ids]).await?;
        Ok(())
    }
}
