//! What the errors of SQLite and of the system mean to a caller.

use std::error::Error;
use std::sync::Arc;
use std::{fmt, io};

use runyard_store::StorageError;
use rusqlite::ffi;

/// Why a job of the writer failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The job may not be done. The rest of its group is not touched.
    Refused(StorageError),
    /// The database failed, and with it the group.
    Database(rusqlite::Error),
}

impl From<StorageError> for Trouble {
    fn from(error: StorageError) -> Self {
        Trouble::Refused(error)
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Trouble::Database(error)
    }
}

/// What kind of failure SQLite reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is no space left.
    Full,
    /// What was written may not be on the disk, and asking again would not tell.
    Unsynced,
    /// Reading or writing failed.
    Io,
    /// The file is damaged, or no database.
    Corrupt,
    /// The file or its folder may not be written.
    ReadOnly,
    /// Another process is in the way.
    Busy,
    /// Anything else.
    Other,
}

impl Kind {
    pub(crate) fn of(error: &rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::SqliteFailure(failure, _) => Kind::of_code(failure.extended_code),
            // A row that does not have the shape in which it was written.
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..) => Kind::Corrupt,
            _ => Kind::Other,
        }
    }

    fn of_code(extended: i32) -> Self {
        match extended {
            ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC => return Kind::Unsynced,
            // It says that a row of the same key is there, which only a damaged table or index can bring about here.
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY => return Kind::Corrupt,
            _ => {}
        }
        match extended & 0xff {
            ffi::SQLITE_FULL => Kind::Full,
            ffi::SQLITE_IOERR => Kind::Io,
            ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => Kind::Corrupt,
            ffi::SQLITE_READONLY | ffi::SQLITE_CANTOPEN | ffi::SQLITE_PERM | ffi::SQLITE_AUTH => {
                Kind::ReadOnly
            }
            ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED | ffi::SQLITE_PROTOCOL => Kind::Busy,
            _ => Kind::Other,
        }
    }
}

/// SQLite's error, which a whole group of callers is told of.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<rusqlite::Error>);

impl Shared {
    pub(crate) fn new(error: rusqlite::Error) -> Self {
        Shared(Arc::new(error))
    }

    pub(crate) fn kind(&self) -> Kind {
        Kind::of(&self.0)
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for Shared {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// SQLite's error, for a caller. `file` is the database's name.
pub(crate) fn translate(doing: &'static str, file: &str, error: rusqlite::Error) -> StorageError {
    translate_shared(doing, file, &Shared::new(error))
}

/// The same, for one of several callers.
pub(crate) fn translate_shared(doing: &'static str, file: &str, error: &Shared) -> StorageError {
    match error.kind() {
        Kind::Full => StorageError::DiskFull { doing },
        Kind::Corrupt => StorageError::Corrupt { doing, detail: format!("{file}: {error}") },
        Kind::ReadOnly => StorageError::ReadOnly { doing, what: format!("{file} or its folder") },
        Kind::Busy => StorageError::Locked { owner: format!("another program that writes to {file}") },
        Kind::Unsynced => StorageError::Poisoned,
        Kind::Io | Kind::Other => StorageError::io(doing, error.clone()),
    }
}

/// The system's error, for a caller. `file` is the name of what was being used.
pub(crate) fn translate_io(doing: &'static str, file: &str, error: io::Error) -> StorageError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StorageError::DiskFull { doing },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            StorageError::ReadOnly { doing, what: file.to_owned() }
        }
        _ => StorageError::io(doing, error),
    }
}
