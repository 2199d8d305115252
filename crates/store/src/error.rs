//! What can go wrong in a store.

use std::error::Error;

use runyard_domain::{AppendId, Code};

/// A cause that another library reported.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Why a store did not do what it was asked to. Unless it says otherwise, nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// What was to be written is not allowed to be.
    #[error("{0}")]
    Validation(String),
    /// There is no such record.
    #[error("there is no {0}")]
    NotFound(String),
    /// A record of that id is there already, with another content.
    #[error("{0} is there already")]
    AlreadyExists(String),
    /// The run or the thread went on meanwhile.
    #[error("it is at place {actual}, not at {expected}")]
    VersionConflict {
        /// Where the writer took it to be.
        expected: u64,
        /// Where it is.
        actual: u64,
    },
    /// A newer owner holds the lease, or it was given up: this one must stop.
    #[error("generation {held} of the lease is over; the last is {current}")]
    StaleGeneration {
        /// The writer's generation.
        held: u64,
        /// The one that counts.
        current: u64,
    },
    /// The function that was handed in refused, having seen where the run stands.
    #[error("refused: {source}")]
    Refused {
        /// Its code.
        code: Code,
        /// Its reason.
        #[source]
        source: Cause,
    },
    /// The database cannot be reached, or its disk fails.
    #[error("{0}")]
    Io(String),
    /// There is no space left.
    #[error("{doing}: the disk is full")]
    DiskFull {
        /// What was being done.
        doing: &'static str,
    },
    /// The database may not be written.
    #[error("{doing}: {what} is read-only")]
    ReadOnly {
        /// What was being done.
        doing: &'static str,
        /// What may not be written.
        what: String,
    },
    /// The database is damaged.
    #[error("{doing}: the database is damaged: {detail}")]
    Corrupt {
        /// What was being done.
        doing: &'static str,
        /// Where the damage is.
        detail: String,
    },
    /// The commit may be durable or not. Repeating it with the same append id is safe and finds out.
    #[error("whether change {0} was committed is unknown: repeat it with the same id")]
    CommitUnknown(String),
    /// A stored record cannot be read.
    #[error("cannot read {0}")]
    Serialization(String),
    /// Another process owns the database.
    #[error("the database is in use by {owner}")]
    Locked {
        /// Who.
        owner: String,
    },
    /// A newer version of this program wrote the database.
    #[error("the database has schema {found}; this version knows up to {known}")]
    NewerSchema {
        /// The database's.
        found: u32,
        /// The newest that this program knows.
        known: u32,
    },
    /// A write failed in such a way that nothing can be promised any more until the process starts anew.
    #[error("the store is poisoned: an earlier write to the disk failed")]
    Poisoned,
}

impl StorageError {
    /// Its row in the error table.
    pub const fn code(&self) -> Code {
        match self {
            StorageError::Validation(..) => Code::StorageValidation,
            StorageError::NotFound(..) => Code::StorageNotFound,
            StorageError::AlreadyExists(..) => Code::StorageAlreadyExists,
            StorageError::VersionConflict { .. } => Code::StorageVersionConflict,
            StorageError::StaleGeneration { .. } => Code::StorageStaleGeneration,
            StorageError::Refused { code, .. } => *code,
            StorageError::Io(..) => Code::StorageIo,
            StorageError::DiskFull { .. } => Code::StorageDiskFull,
            StorageError::ReadOnly { .. } => Code::StorageReadOnly,
            StorageError::Corrupt { .. } => Code::StorageCorrupt,
            StorageError::CommitUnknown(..) => Code::StorageCommitUnknown,
            StorageError::Serialization(..) => Code::StorageSerialization,
            StorageError::Locked { .. } => Code::StorageLocked,
            StorageError::NewerSchema { .. } => Code::StorageNewerSchema,
            StorageError::Poisoned => Code::StoragePoisoned,
        }
    }

    /// A [`Validation`](StorageError::Validation) error.
    pub fn invalid(what: impl Into<String>) -> Self {
        StorageError::Validation(what.into())
    }

    /// A [`NotFound`](StorageError::NotFound) error.
    pub fn not_found(what: impl Into<String>) -> Self {
        StorageError::NotFound(what.into())
    }

    /// An [`AlreadyExists`](StorageError::AlreadyExists) error.
    pub fn exists(what: impl Into<String>) -> Self {
        StorageError::AlreadyExists(what.into())
    }

    /// An [`Io`](StorageError::Io) error: what was being done, and what the database or the system said.
    pub fn io(doing: &'static str, source: impl Into<Cause>) -> Self {
        StorageError::Io(format!("{doing}: {}", source.into()))
    }

    /// A [`CommitUnknown`](StorageError::CommitUnknown) error of this change.
    pub fn unknown(append: AppendId) -> Self {
        StorageError::CommitUnknown(append.to_string())
    }

    /// A [`Serialization`](StorageError::Serialization) error: which record, and what is wrong with it.
    pub fn unreadable(record: impl std::fmt::Display, source: impl std::fmt::Display) -> Self {
        StorageError::Serialization(format!("{record}: {source}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shape of each variant of the contract, as whoever matches on it finds it.
    #[test]
    fn d11_each_variant_has_the_fields_of_the_contract() {
        let said = |error: &StorageError| -> Option<String> {
            match error {
                StorageError::Validation(what)
                | StorageError::NotFound(what)
                | StorageError::AlreadyExists(what)
                | StorageError::Io(what)
                | StorageError::CommitUnknown(what)
                | StorageError::Serialization(what) => Some(what.clone()),
                _ => None,
            }
        };
        let append = AppendId::from_bytes([7; 16]);
        for (error, what, text, code) in [
            (StorageError::invalid("too long"), "too long", "too long", Code::StorageValidation),
            (StorageError::not_found("run 1"), "run 1", "there is no run 1", Code::StorageNotFound),
            (StorageError::exists("run 1"), "run 1", "run 1 is there already", Code::StorageAlreadyExists),
            (StorageError::io("reading", "no disk"), "reading: no disk", "reading: no disk", Code::StorageIo),
            (
                StorageError::unreadable("event 2", "no JSON"),
                "event 2: no JSON",
                "cannot read event 2: no JSON",
                Code::StorageSerialization,
            ),
            (
                StorageError::unknown(append),
                &append.to_string(),
                &format!("whether change {append} was committed is unknown: repeat it with the same id"),
                Code::StorageCommitUnknown,
            ),
        ] {
            assert_eq!((said(&error).as_deref(), error.code()), (Some(what), code));
            assert_eq!(error.to_string(), text);
        }
        let conflict = StorageError::VersionConflict { expected: 1, actual: 2 };
        assert_eq!((said(&conflict), conflict.code()), (None, Code::StorageVersionConflict));
    }
}
