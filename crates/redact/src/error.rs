//! What can be wrong with what a redactor is given. No text here holds a value.

use runyard_domain::Code;

/// Why a redactor could not be built, or a value not be redacted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedactError {
    /// There are too many known values.
    #[error("there are {count} known values; at most {max} can be looked for")]
    TooManyKnown {
        /// How many there are.
        count: usize,
        /// How many there can be.
        max: usize,
    },
    /// A known value is too long.
    #[error("known value number {number} has {length} bytes; at most {max} can be looked for")]
    KnownTooLong {
        /// Which one, from 1.
        number: usize,
        /// Its length.
        length: usize,
        /// The greatest length.
        max: usize,
    },
    /// All known values together are too long.
    #[error("the known values have {length} bytes together; at most {max} can be looked for")]
    KnownTooLarge {
        /// Their length.
        length: usize,
        /// The greatest length.
        max: usize,
    },
    /// A private path is not absolute, or only the root.
    #[error("a private path must be absolute and name a directory")]
    PathNotAbsolute,
    /// The kind of content is unknown.
    #[error("the kind must be one of text, json, diff and headers")]
    UnknownKind,
    /// A value cannot be written as JSON.
    #[error("the value cannot be written as JSON")]
    NotJson(#[source] serde_json::Error),
}

impl RedactError {
    /// Its code in the error table.
    pub const fn code(&self) -> Code {
        match self {
            RedactError::NotJson(_) => Code::InternalError,
            _ => Code::ValidationError,
        }
    }
}
