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
    #[error("{what}")]
    Validation {
        /// What is wrong with it.
        what: String,
    },
    /// There is no such record.
    #[error("there is no {what}")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// A record of that id is there already, with another content.
    #[error("{what} is there already")]
    AlreadyExists {
        /// What is there.
        what: String,
    },
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
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the database or the system said.
        #[source]
        source: Cause,
    },
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
    #[error("whether change {append} was committed is unknown: repeat it with the same id")]
    CommitUnknown {
        /// The change.
        append: AppendId,
    },
    /// A stored record cannot be read.
    #[error("cannot read {record}: {source}")]
    Serialization {
        /// Which one.
        record: String,
        /// What is wrong with it.
        #[source]
        source: Cause,
    },
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
            StorageError::Validation { .. } => Code::StorageValidation,
            StorageError::NotFound { .. } => Code::StorageNotFound,
            StorageError::AlreadyExists { .. } => Code::StorageAlreadyExists,
            StorageError::VersionConflict { .. } => Code::StorageVersionConflict,
            StorageError::StaleGeneration { .. } => Code::StorageStaleGeneration,
            StorageError::Refused { code, .. } => *code,
            StorageError::Io { .. } => Code::StorageIo,
            StorageError::DiskFull { .. } => Code::StorageDiskFull,
            StorageError::ReadOnly { .. } => Code::StorageReadOnly,
            StorageError::Corrupt { .. } => Code::StorageCorrupt,
            StorageError::CommitUnknown { .. } => Code::StorageCommitUnknown,
            StorageError::Serialization { .. } => Code::StorageSerialization,
            StorageError::Locked { .. } => Code::StorageLocked,
            StorageError::NewerSchema { .. } => Code::StorageNewerSchema,
            StorageError::Poisoned => Code::StoragePoisoned,
        }
    }

    /// A [`Validation`](StorageError::Validation) error.
    pub fn invalid(what: impl Into<String>) -> Self {
        StorageError::Validation { what: what.into() }
    }

    /// A [`NotFound`](StorageError::NotFound) error.
    pub fn not_found(what: impl Into<String>) -> Self {
        StorageError::NotFound { what: what.into() }
    }

    /// An [`Io`](StorageError::Io) error.
    pub fn io(doing: &'static str, source: impl Into<Cause>) -> Self {
        StorageError::Io { doing, source: source.into() }
    }
}
