//! What goes wrong with checkouts.

use std::io;

use runyard_domain::Code;

use crate::{BadPath, RelPath};

/// What goes wrong with checkouts. Paths in it are relative to the workspace.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// The workspace holds too much.
    #[error("the workspace holds more than {0} files, which is the limit of a checkout")]
    TooManyFiles(u64),
    /// The workspace is too large.
    #[error("the workspace holds more than {0} bytes, which is the limit of a checkout")]
    TooLarge(u64),
    /// Directories are nested too deeply.
    #[error("{path} lies more than {max} directories deep, which is the limit of a checkout")]
    TooDeep {
        /// Where.
        path: String,
        /// The limit.
        max: usize,
    },
    /// A link stands where only a file or a directory of the root's own may be.
    #[error("{path} leads through a symbolic link")]
    Escapes {
        /// What was asked for.
        path: String,
    },
    /// Nothing is written into a repository's own directory.
    #[error("{path} lies in a repository's own directory, which is never written to")]
    InsideGit {
        /// What was asked for.
        path: String,
    },
    /// It is there, and is no file.
    #[error("{path} is no file")]
    NotAFile {
        /// What was asked for.
        path: String,
    },
    /// A single file is larger than who asked for it takes.
    #[error("{path} holds more than {max} bytes")]
    FileTooLarge {
        /// What was asked for.
        path: String,
        /// The limit.
        max: u64,
    },
    /// Somebody no longer wants it.
    #[error("it was stopped")]
    Stopped,
    /// There is no `git` to be run.
    #[error("git is not installed")]
    NoGit,
    /// What git says cannot be used.
    #[error("git {doing}: {said}")]
    Git {
        /// What it was to do.
        doing: &'static str,
        /// What it said, in a line.
        said: String,
    },
    /// What happened to a path cannot be in a patch.
    #[error("what happened to {path} cannot be in a patch")]
    NotInPatch {
        /// Where.
        path: String,
    },
    /// What was kept of a checkout cannot be read as such.
    #[error("what was kept of the checkout is damaged: {0}")]
    Damaged(&'static str),
    /// A path is none.
    #[error(transparent)]
    Path(#[from] BadPath),
    /// The system says no.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// What was to be done.
        doing: &'static str,
        /// To what.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl CheckoutError {
    pub(crate) fn io(doing: &'static str, path: &RelPath, source: io::Error) -> Self {
        CheckoutError::Io { doing, path: path.to_string(), source }
    }

    pub(crate) fn root(doing: &'static str, source: io::Error) -> Self {
        CheckoutError::Io { doing, path: "the root".to_owned(), source }
    }

    /// Whether what was asked for is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, CheckoutError::Io { source, .. }
            if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
    }

    /// Whether it is there and may not be looked at.
    pub fn is_denied(&self) -> bool {
        matches!(self, CheckoutError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Its row in the error table.
    pub fn code(&self) -> Code {
        match self {
            CheckoutError::TooManyFiles(_)
            | CheckoutError::TooLarge(_)
            | CheckoutError::TooDeep { .. }
            | CheckoutError::NotAFile { .. }
            | CheckoutError::FileTooLarge { .. } => Code::ValidationError,
            CheckoutError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Code::StorageDiskFull
            }
            CheckoutError::NotInPatch { .. } => Code::Conflict,
            CheckoutError::Path(_) | CheckoutError::Escapes { .. } | CheckoutError::InsideGit { .. } => {
                Code::WorkspaceOutsideAllowlist
            }
            CheckoutError::Stopped
            | CheckoutError::NoGit
            | CheckoutError::Git { .. }
            | CheckoutError::Damaged(_)
            | CheckoutError::Io { .. } => Code::StorageIo,
        }
    }
}
