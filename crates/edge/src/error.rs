//! What can go wrong at an edge apart from a run: a run's own failures are reported in the run.

use std::io;

use runyard_backend::link::frames::FrameError;
use runyard_domain::Code;

/// Why an edge cannot work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EdgeError {
    /// A file or directory of the edge cannot be used.
    #[error("cannot use {what}: {source}")]
    Io {
        /// Which.
        what: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file of the digest key does not hold a key.
    #[error("the digest key of the edge does not have {expected} bytes")]
    Key {
        /// How long a key is.
        expected: usize,
    },
    /// The link to the hub failed.
    #[error("the link to the hub failed: {0}")]
    Link(#[from] FrameError),
}

impl EdgeError {
    /// Its row in the error table.
    pub const fn code(&self) -> Code {
        match self {
            EdgeError::Io { .. } => Code::StorageIo,
            EdgeError::Key { .. } => Code::StorageCorrupt,
            EdgeError::Link(_) => Code::TargetOffline,
        }
    }
}
