//! A run's row, out of the table and into it.

use runyard_domain::{RunId, Timestamp};
use runyard_store::{Hash, LeaseRow, RunRow};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::places::{Places, unreadable};

/// A query of runs whose rows [`read`] can take.
macro_rules! select_runs {
    ($rest:literal) => {
        concat!(
            "SELECT key, run_id, sequence, head, generation, lease_owner, lease_granted, lease_expires, ",
            "created, updated, tail, status, state FROM runs ",
            $rest
        )
    };
}
pub(crate) use select_runs;

/// A row of the table.
#[derive(Debug)]
pub(crate) struct StoredRun {
    pub(crate) key: i64,
    pub(crate) row: RunRow,
    /// Where its last events are.
    pub(crate) places: Places,
}

/// Reads a row of the table.
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<StoredRun> {
    let lease = match row.get::<_, Option<String>>(5)? {
        Some(owner) => Some(LeaseRow { owner, granted: time(row, 6)?, expires: time(row, 7)? }),
        None => None,
    };
    let run = RunRow {
        run: RunId::from_bytes(row.get(1)?),
        sequence: number(row, 2)?,
        head: row.get::<_, Option<[u8; 32]>>(3)?.map(Hash::from_bytes),
        generation: number(row, 4)?,
        lease,
        created: time(row, 8)?,
        updated: time(row, 9)?,
        status: row.get(11)?,
        state: row.get(12)?,
    };
    let places = Places::from_bytes(row.get_ref(10)?.as_blob()?).ok_or_else(|| unreadable(10))?;
    Ok(StoredRun { key: row.get(0)?, row: run, places })
}

/// The run of this id.
pub(crate) fn find(connection: &Connection, run: RunId) -> rusqlite::Result<Option<StoredRun>> {
    let mut select = connection.prepare_cached(select_runs!("WHERE run_id = ?1"))?;
    select.query_row([run.as_bytes()], read).optional()
}

/// Writes a new row and gives its key. Where its events are is written later.
pub(crate) fn insert(connection: &Connection, row: &RunRow) -> rusqlite::Result<i64> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO runs (run_id, sequence, head, generation, created, updated, tail, status, state)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, x'', ?7, ?8)",
    )?;
    insert.insert(params![
        row.run.as_bytes(),
        signed(row.sequence),
        row.head.as_ref().map(Hash::as_bytes),
        signed(row.generation),
        row.created.unix_ms(),
        row.updated.unix_ms(),
        row.status,
        row.state,
    ])
}

/// Writes how far the log is.
pub(crate) fn update_head(connection: &Connection, stored: &StoredRun) -> rusqlite::Result<()> {
    let StoredRun { key, row, places } = stored;
    let mut update = connection
        .prepare_cached("UPDATE runs SET sequence = ?2, head = ?3, updated = ?4, tail = ?5 WHERE key = ?1")?;
    update.execute(params![
        key,
        signed(row.sequence),
        row.head.as_ref().map(Hash::as_bytes),
        row.updated.unix_ms(),
        places.to_bytes(),
    ])?;
    Ok(())
}

/// Writes the status.
pub(crate) fn update_status(connection: &Connection, stored: &StoredRun) -> rusqlite::Result<()> {
    let mut update = connection.prepare_cached("UPDATE runs SET status = ?2 WHERE key = ?1")?;
    update.execute(params![stored.key, stored.row.status]).map(drop)
}

/// Writes everything that changes, but the status.
pub(crate) fn update(connection: &Connection, stored: &StoredRun) -> rusqlite::Result<()> {
    let StoredRun { key, row, places } = stored;
    let mut update = connection.prepare_cached(
        "UPDATE runs SET sequence = ?2, head = ?3, updated = ?4, generation = ?5, lease_owner = ?6,
         lease_granted = ?7, lease_expires = ?8, state = ?9, tail = ?10 WHERE key = ?1",
    )?;
    let lease = row.lease.as_ref();
    update.execute(params![
        key,
        signed(row.sequence),
        row.head.as_ref().map(Hash::as_bytes),
        row.updated.unix_ms(),
        signed(row.generation),
        lease.map(|lease| &lease.owner),
        lease.map(|lease| lease.granted.unix_ms()),
        lease.map(|lease| lease.expires.unix_ms()),
        row.state,
        places.to_bytes(),
    ])?;
    Ok(())
}

/// A number of the store's, as SQLite holds it. None ever gets so large.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that is never negative.
pub(crate) fn number(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(index)?;
    u64::try_from(number)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(index, Type::Integer, error.into()))
}

/// A time.
pub(crate) fn time(row: &Row<'_>, index: usize) -> rusqlite::Result<Timestamp> {
    row.get(index).map(Timestamp::from_unix_ms)
}
