//! The tables, as numbered steps from one schema to the next.
//!
//! A step that was released is never changed. The number of the last one is the database's `user_version`.

use runyard_store::StorageError;
use rusqlite::{Connection, TransactionBehavior};

use crate::fault::translate;

const DOING: &str = "opening the database";
/// Says that a database is Runyard's: "RYRD".
const APPLICATION_ID: i32 = 0x5259_5244;

/// The steps, the first one from nothing.
const MIGRATIONS: [&str; 2] = [include_str!("schema/0001.sql"), include_str!("schema/0002.sql")];

/// The schema that this program reads and writes.
pub(crate) const SCHEMA: u32 = MIGRATIONS.len() as u32;

/// What a file turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing is in it yet.
    Empty,
    /// A database of ours, at this schema.
    Ours(u32),
}

/// Says what a file is, and refuses what is not ours or too new. Writes nothing.
pub(crate) fn inspect(connection: &Connection, name: &str) -> Result<Found, StorageError> {
    let fault = |error| translate(DOING, name, error);
    let pragma =
        |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0)).map_err(fault);
    let (application, version) = (pragma("application_id")?, pragma("user_version")?);
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(fault)?;
    if (application, version, tables) == (0, 0, 0) {
        return Ok(Found::Empty);
    }
    if application != APPLICATION_ID {
        return Err(StorageError::invalid(format!(
            "{name} is a database of another program, not of Runyard"
        )));
    }
    match u32::try_from(version) {
        Ok(version) if version <= SCHEMA => Ok(Found::Ours(version)),
        found => Err(StorageError::NewerSchema { found: found.unwrap_or(u32::MAX), known: SCHEMA }),
    }
}

/// Brings a database to the newest schema, one step and one transaction at a time.
pub(crate) fn migrate(connection: &mut Connection, from: u32, name: &str) -> Result<(), StorageError> {
    let fault = |error| translate("bringing the database to the newest schema", name, error);
    for (step, version) in MIGRATIONS.iter().zip(1..).skip(from as usize) {
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
        transaction.execute_batch(step).map_err(fault)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(fault)?;
        transaction.pragma_update(None, "user_version", version).map_err(fault)?;
        transaction.commit().map_err(fault)?;
    }
    Ok(())
}
