//! What PostgreSQL and the way to it say when something fails, and what a caller is told.

use std::error::Error as _;

use runyard_store::StorageError;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// What went wrong between the store and the server, with what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// Nobody answers there.
    #[error(
        "no PostgreSQL server answers at {place} ({detail}): check host and port in the URL, and that it runs"
    )]
    Unreachable {
        /// Where.
        place: String,
        /// What the system said.
        detail: String,
    },
    /// The server does not let the user in.
    #[error("the server at {place} refuses the user ({detail}): check user and password in the URL")]
    Unauthorised {
        /// Where.
        place: String,
        /// What the server said.
        detail: String,
    },
    /// The server has no such database.
    #[error(
        "the server at {place} has no such database ({detail}): make it with createdb, or correct the URL"
    )]
    NoDatabase {
        /// Where.
        place: String,
        /// What the server said.
        detail: String,
    },
    /// The user may not do what the store needs.
    #[error(
        "{detail}: the user needs the right to create a schema in the database, or to use the schema runyard"
    )]
    NotAllowed {
        /// What the server said.
        detail: String,
    },
    /// The connection cannot be encrypted as asked.
    #[error(
        "no encrypted connection to {place} ({detail}): its certificate must name the host, and its authority must be \
         the system's or the one in sslrootcert=FILE of the URL"
    )]
    Tls {
        /// Where.
        place: String,
        /// What TLS said.
        detail: String,
    },
    /// The server is too old.
    #[error(
        "the server at {place} is PostgreSQL {found}: {MAJOR_VERSION_MIN} is the oldest that is supported"
    )]
    TooOld {
        /// Where.
        place: String,
        /// Its version.
        found: String,
    },
    /// The server does not answer in time.
    #[error("the server at {place} does not answer in time")]
    Silent {
        /// Where.
        place: String,
    },
    /// The connection broke, and the server could not be reached again.
    #[error("the connection to the server at {place} is lost ({detail})")]
    Lost {
        /// Where.
        place: String,
        /// What the system said.
        detail: String,
    },
    /// Every connection for reading is in use.
    #[error("all connections to the server at {place} are in use")]
    Busy {
        /// Where.
        place: String,
    },
    /// Others wrote the same rows again and again.
    #[error("others go on writing the same rows")]
    Outrun,
    /// The server refused a statement.
    #[error("{detail} ({code})")]
    Server {
        /// What the server said.
        detail: String,
        /// Its code.
        code: String,
    },
    /// Its answer is not what was agreed.
    #[error("an answer of the server cannot be read ({detail})")]
    Unreadable {
        /// What is wrong with it.
        detail: String,
    },
}

/// The oldest version that is supported.
pub(crate) const MAJOR_VERSION_MIN: u32 = 14;

/// Why something failed, before it is known what to do about it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// PostgreSQL's client says so.
    Postgres(tokio_postgres::Error),
    /// No answer came in time.
    Silent,
    /// No connection of the pool became free in time.
    Busy,
    /// Another transaction wrote what this one was about to write.
    Outrun,
    /// The store itself says so.
    Store(StorageError),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Failure::Postgres(error)
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Failure::Store(error)
    }
}

/// What may be done about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Another connection, and once more.
    Reconnect,
    /// Once more: it lost a race that the other side has won by now.
    Repeat,
    /// Nothing.
    None,
}

impl Failure {
    pub(crate) fn remedy(&self) -> Remedy {
        let error = match self {
            Failure::Silent => return Remedy::Reconnect,
            Failure::Outrun => return Remedy::Repeat,
            Failure::Busy | Failure::Store(_) => return Remedy::None,
            Failure::Postgres(error) => error,
        };
        match error.as_db_error() {
            Some(said) if ends_the_connection(said) => Remedy::Reconnect,
            Some(said) if is_a_lost_race(said.code()) => Remedy::Repeat,
            Some(_) => Remedy::None,
            None if is_broken(error) => Remedy::Reconnect,
            None => Remedy::None,
        }
    }

    /// The error that the caller gets.
    pub(crate) fn into_storage(self, doing: &'static str, place: &str) -> StorageError {
        match self {
            Failure::Store(error) => error,
            _ => self.storage(doing, place),
        }
    }

    /// The error that each of several callers gets.
    pub(crate) fn storage(&self, doing: &'static str, place: &str) -> StorageError {
        let place = place.to_owned();
        let error = match self {
            Failure::Silent => return StorageError::io(doing, PostgresError::Silent { place }),
            Failure::Busy => return StorageError::io(doing, PostgresError::Busy { place }),
            Failure::Outrun => return StorageError::io(doing, PostgresError::Outrun),
            Failure::Store(StorageError::NewerSchema { found, known }) => {
                return StorageError::NewerSchema { found: *found, known: *known };
            }
            Failure::Store(StorageError::ReadOnly { what, .. }) => {
                return StorageError::ReadOnly { doing, what: what.clone() };
            }
            Failure::Store(StorageError::Corrupt { detail, .. }) => {
                return StorageError::Corrupt { doing, detail: detail.clone() };
            }
            Failure::Store(error) => return StorageError::io(doing, error.to_string()),
            Failure::Postgres(error) => error,
        };
        let detail = detail(error);
        let Some(said) = error.as_db_error() else {
            let error = if is_broken(error) {
                PostgresError::Lost { place, detail }
            } else {
                PostgresError::Unreadable { detail }
            };
            return StorageError::io(doing, error);
        };
        let code = said.code();
        if *code == SqlState::DISK_FULL {
            return StorageError::DiskFull { doing };
        }
        if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
            return StorageError::ReadOnly { doing, what: format!("the database at {place}") };
        }
        if *code == SqlState::DATA_CORRUPTED || *code == SqlState::INDEX_CORRUPTED {
            return StorageError::Corrupt { doing, detail };
        }
        if *code == SqlState::INSUFFICIENT_PRIVILEGE {
            return StorageError::io(doing, PostgresError::NotAllowed { detail });
        }
        if ends_the_connection(said) {
            return StorageError::io(doing, PostgresError::Lost { place, detail });
        }
        StorageError::io(doing, PostgresError::Server { detail, code: code.code().to_owned() })
    }

    /// The error of whoever wanted to connect.
    pub(crate) fn into_refusal(self, doing: &'static str, place: &str) -> StorageError {
        let Failure::Postgres(error) = &self else { return self.into_storage(doing, place) };
        let (place, detail) = (place.to_owned(), detail(error));
        let refusal = match error.code() {
            Some(code) if *code == SqlState::INVALID_PASSWORD || code.code().starts_with("28") => {
                PostgresError::Unauthorised { place, detail }
            }
            Some(code) if *code == SqlState::INVALID_CATALOG_NAME => {
                PostgresError::NoDatabase { place, detail }
            }
            Some(_) => return self.into_storage(doing, &place),
            None if is_about_the_password(error) => PostgresError::Unauthorised { place, detail },
            None if is_about_tls(error) => PostgresError::Tls { place, detail },
            None => PostgresError::Unreachable { place, detail },
        };
        StorageError::io(doing, refusal)
    }
}

/// Whether the server refused a commit, which then certainly did not happen. Whatever else is said in answer to a commit
/// leaves its outcome open: also that the server was told to stop, since it may have been told in the middle of it.
pub(crate) fn was_not_committed(error: &tokio_postgres::Error) -> bool {
    let Some(said) = error.as_db_error() else { return false };
    let is_an_error = matches!(said.parsed_severity(), Some(Severity::Error));
    is_an_error && ["08", "57", "58", "XX"].iter().all(|class| !said.code().code().starts_with(class))
}

/// The server says it and closes the connection, or cannot take one yet.
fn ends_the_connection(said: &DbError) -> bool {
    let is_fatal = matches!(said.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    let code = said.code();
    let is_refused_for_good = code.code().starts_with("28") || *code == SqlState::INVALID_CATALOG_NAME;
    (is_fatal && !is_refused_for_good) || code.code().starts_with("08")
}

/// Another transaction was there first; by the next time it has ended.
fn is_a_lost_race(code: &SqlState) -> bool {
    let races = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::UNIQUE_VIOLATION,
        SqlState::FOREIGN_KEY_VIOLATION,
    ];
    races.contains(code)
}

fn is_broken(error: &tokio_postgres::Error) -> bool {
    let by_the_system = error.source().is_some_and(|source| source.is::<std::io::Error>());
    error.is_closed() || by_the_system || error.to_string().contains("timeout")
}

fn is_about_tls(error: &tokio_postgres::Error) -> bool {
    let inside = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    let by_rustls = inside.and_then(std::io::Error::get_ref).is_some_and(|inner| inner.is::<rustls::Error>());
    by_rustls || error.to_string().contains("TLS")
}

/// What our side says of it; what the server says has a code.
fn is_about_the_password(error: &tokio_postgres::Error) -> bool {
    error.to_string().contains("authentication") || detail(error).contains("password")
}

/// The server's or the system's words.
fn detail(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.message().to_owned();
    }
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
