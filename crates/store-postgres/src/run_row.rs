//! A run's row: its columns, and the numbers in them.

use runyard_domain::{RunId, Timestamp};
use runyard_store::{Hash, LeaseRow, RunRow, StorageError};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::fault::Failure;

/// The columns that [`read`] reads, in that order.
macro_rules! columns {
    () => {
        "run_id, sequence, head, status, state, generation, lease_owner, lease_granted, lease_expires, created, \
         updated"
    };
}
/// Now, by the database's clock, in milliseconds since 1970.
macro_rules! now_ms {
    () => {
        "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}
pub(crate) use {columns, now_ms};

/// How many [`columns`] there are: what else a query selects comes behind them.
pub(crate) const COLUMNS: usize = 11;

/// Reads a run's row from the first columns.
pub(crate) fn read(row: &Row) -> Result<RunRow, Failure> {
    let run = RunId::from_bytes(row.try_get::<_, Uuid>(0)?.into_bytes());
    Ok(RunRow {
        run,
        sequence: unsigned(row.try_get(1)?)?,
        head: row.try_get::<_, Option<&[u8]>>(2)?.map(|head| hash(run, head)).transpose()?,
        status: row.try_get(3)?,
        state: row.try_get(4)?,
        generation: unsigned(row.try_get(5)?)?,
        lease: lease(row, 6)?,
        created: time(row.try_get(9)?),
        updated: time(row.try_get(10)?),
    })
}

/// The lease in three columns from `first` on.
pub(crate) fn lease(row: &Row, first: usize) -> Result<Option<LeaseRow>, Failure> {
    let Some(owner) = row.try_get::<_, Option<String>>(first)? else { return Ok(None) };
    let (granted, expires) = (time(row.try_get(first + 1)?), time(row.try_get(first + 2)?));
    Ok(Some(LeaseRow { owner, granted, expires }))
}

fn hash(run: RunId, bytes: &[u8]) -> Result<Hash, StorageError> {
    let bytes = bytes.try_into().map_err(|_| StorageError::Corrupt {
        doing: "reading a run",
        detail: format!("the last hash of {run} has {} bytes", bytes.len()),
    })?;
    Ok(Hash::from_bytes(bytes))
}

pub(crate) fn time(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(ms)
}

/// A place in a log, a generation, an id of the outbox: never negative.
pub(crate) fn unsigned(number: i64) -> Result<u64, StorageError> {
    u64::try_from(number).map_err(|_| StorageError::Corrupt {
        doing: "reading a row",
        detail: format!("it holds {number} where nothing is below 0"),
    })
}

/// A number as the database holds it. Beyond what it can hold there is nothing.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn run_uuid(run: RunId) -> Uuid {
    Uuid::from_bytes(*run.as_bytes())
}
