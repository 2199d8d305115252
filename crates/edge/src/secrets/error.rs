//! What can go wrong with secrets. No message holds a value, or a path.

use std::io;

use runyard_domain::Code;
use rustix::io::Errno;

/// Why a secret cannot be read, kept or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretsError {
    /// A name that no profile or key can have.
    #[error(
        "the name of a {what} has 1 to 64 letters, digits, \".\", \"_\" or \"-\", does not begin with \".\" and has no \"..\""
    )]
    Name {
        /// Of a profile or a key.
        what: &'static str,
    },
    /// It is not there.
    #[error("{key} of {profile} is missing")]
    Missing {
        /// The profile.
        profile: String,
        /// The key.
        key: String,
    },
    /// It cannot be opened or read.
    #[error("{key} of {profile} cannot be read: {source}")]
    Unreadable {
        /// The profile.
        profile: String,
        /// The key.
        key: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is a link that leads out of its profile's directory, or in a circle.
    #[error("{key} of {profile} is a link that does not lead to a file in its own directory")]
    LeadsOut {
        /// The profile.
        profile: String,
        /// The key.
        key: String,
    },
    /// It is a directory, a pipe, a socket or a device.
    #[error("{key} of {profile} is no plain file")]
    NotAFile {
        /// The profile.
        profile: String,
        /// The key.
        key: String,
    },
    /// It is too long.
    #[error("{key} of {profile} has more than {} bytes", super::SECRET_BYTES_MAX)]
    TooLarge {
        /// The profile.
        profile: String,
        /// The key.
        key: String,
    },
    /// There is nothing to remove.
    #[error("{}", nothing(profile, key.as_deref()))]
    Nothing {
        /// The profile.
        profile: String,
        /// The key, if one was meant.
        key: Option<String>,
    },
    /// They are not ours to change.
    #[error("the secrets of {profile} are a mounted Secret, which is changed where it comes from")]
    Mounted {
        /// The profile.
        profile: String,
    },
    /// The directory cannot be changed.
    #[error("the secrets of {profile} are on a read-only file system, and are changed where it comes from")]
    ReadOnly {
        /// The profile.
        profile: String,
    },
    /// The directory cannot be used.
    #[error("cannot {doing} the secrets: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl SecretsError {
    /// Its row in the error table.
    pub const fn code(&self) -> Code {
        match self {
            SecretsError::Name { .. } => Code::ValidationError,
            SecretsError::Missing { .. }
            | SecretsError::Unreadable { .. }
            | SecretsError::LeadsOut { .. }
            | SecretsError::NotAFile { .. }
            | SecretsError::TooLarge { .. } => Code::SecretUnavailable,
            SecretsError::Nothing { .. } => Code::NotFound,
            SecretsError::Mounted { .. } | SecretsError::ReadOnly { .. } => Code::StorageReadOnly,
            SecretsError::Io { .. } => Code::StorageIo,
        }
    }

    pub(super) const fn io(doing: &'static str, source: io::Error) -> Self {
        SecretsError::Io { doing, source }
    }

    pub(super) fn unreadable(profile: &str, key: &str, source: io::Error) -> Self {
        SecretsError::Unreadable { profile: profile.to_owned(), key: key.to_owned(), source }
    }

    pub(super) fn opening(profile: &str, key: &str, error: Errno) -> Self {
        let (named, key) = (profile.to_owned(), key.to_owned());
        match error {
            Errno::NOENT => SecretsError::Missing { profile: named, key },
            Errno::XDEV | Errno::LOOP => SecretsError::LeadsOut { profile: named, key },
            Errno::ISDIR | Errno::NXIO => SecretsError::NotAFile { profile: named, key },
            error => SecretsError::Unreadable { profile: named, key, source: error.into() },
        }
    }

    pub(super) fn writing(doing: &'static str, profile: &str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::ReadOnlyFilesystem => SecretsError::ReadOnly { profile: profile.to_owned() },
            _ => SecretsError::Io { doing, source },
        }
    }
}

fn nothing(profile: &str, key: Option<&str>) -> String {
    match key {
        Some(key) => format!("{key} of {profile} is not there"),
        None => format!("{profile} has no secrets"),
    }
}
