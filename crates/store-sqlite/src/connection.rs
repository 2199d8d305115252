//! Connections to the database, each set up for its part.

use std::time::Duration;

use runyard_store::StorageError;
use rusqlite::{Connection, OpenFlags};

use crate::fault::translate;
use crate::paths::{Paths, make_file, make_folder, sync_folder};
use crate::schema::{self, Found};
use crate::{fault, schema::SCHEMA};

const DOING: &str = "opening the database";
/// The oldest SQLite without the race that could damage a database when its log starts anew (fixed in 3.51.3).
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// The size of a page of a new database.
const PAGE_BYTES: u32 = 4_096;
/// How long a connection waits for another one before it gives up.
pub(crate) const BUSY_WAIT: Duration = Duration::from_secs(5);
/// How many prepared statements a connection keeps.
const STATEMENTS_MAX: usize = 64;
/// After a reader held the log up, its file goes back to this size.
const WAL_KEPT_BYTES: i64 = 64 * 1024 * 1024;

/// The writing connection, to a database at the newest schema.
pub(crate) fn open_for_writing(paths: &Paths) -> Result<Connection, StorageError> {
    assert_version()?;
    let fault = |error| translate(DOING, &paths.name, error);
    make_file(&paths.database).map_err(|error| fault::translate_io(DOING, &paths.name, error))?;
    let mut connection = open(paths, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fault)?;
    let found = schema::inspect(&connection, &paths.name)?;
    // Where it may not write, SQLite opens for reading and says nothing.
    if connection.is_readonly("main").map_err(fault)? {
        return Err(StorageError::ReadOnly { doing: DOING, what: paths.name.clone() });
    }
    let from = match found {
        Found::Empty => {
            connection.pragma_update(None, "page_size", PAGE_BYTES).map_err(fault)?;
            0
        }
        Found::Ours(version) => version,
    };
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(fault)?;
    if mode != "wal" {
        return Err(StorageError::ReadOnly {
            doing: DOING,
            what: format!("{} (no WAL possible)", paths.name),
        });
    }
    let set_up = || -> rusqlite::Result<()> {
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.pragma_update(None, "journal_size_limit", WAL_KEPT_BYTES)?;
        // What a savepoint may have to take back stays in memory instead of a temporary file.
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.pragma_update(None, "cache_size", -65_536)
    };
    set_up().map_err(fault)?;
    schema::migrate(&mut connection, from, &paths.name)?;
    sync_folder(paths.folder()).map_err(|error| fault::translate_io(DOING, &paths.name, error))?;
    Ok(connection)
}

/// A connection that only reads, to a database at the newest schema.
pub(crate) fn open_for_reading(paths: &Paths) -> Result<Connection, StorageError> {
    assert_version()?;
    let fault = |error| translate("opening the database for reading", &paths.name, error);
    if !paths.database.try_exists().unwrap_or(true) {
        return Err(StorageError::not_found(format!("database {}", paths.name)));
    }
    let connection = open(paths, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(fault)?;
    match schema::inspect(&connection, &paths.name)? {
        Found::Ours(SCHEMA) => {}
        Found::Ours(_) | Found::Empty => {
            return Err(StorageError::invalid(format!(
                "{} has an older schema: open it once for writing, which brings it to the newest",
                paths.name
            )));
        }
    }
    connection.pragma_update(None, "query_only", true).map_err(fault)?;
    Ok(connection)
}

/// The connection that checkpoints. It never takes part in a transaction.
pub(crate) fn open_for_checkpoints(paths: &Paths) -> Result<Connection, StorageError> {
    let fault = |error| translate(DOING, &paths.name, error);
    let connection = open(paths, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fault)?;
    let set_up = || -> rusqlite::Result<()> {
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)
    };
    set_up().map_err(fault)?;
    Ok(connection)
}

/// The folder of a database, made if need be.
pub(crate) fn prepare_folder(paths: &Paths) -> Result<(), StorageError> {
    let what = format!("the folder of {}", paths.name);
    make_folder(paths.folder()).map_err(|error| fault::translate_io(DOING, &what, error))
}

fn open(paths: &Paths, access: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(&paths.database, flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    // The tables have none; the writer is the only one who could break them.
    connection.pragma_update(None, "foreign_keys", false)?;
    Ok(connection)
}

fn assert_version() -> Result<(), StorageError> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        return Err(StorageError::invalid(format!(
            "SQLite {} can damage a database when its log starts anew; 3.51.3 or newer is needed",
            rusqlite::version()
        )));
    }
    Ok(())
}
