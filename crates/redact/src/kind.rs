//! The kinds of content, which decide what is looked for.

use std::str::FromStr;

use crate::error::RedactError;

/// What a text is. Guesses by the names of keys apply to all but file content and diffs, which must stay as they are
/// wherever nothing is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Logs, messages, whatever has no form of its own.
    Text,
    /// JSON, one document or several.
    Json,
    /// Diffs and file content: known values, unmistakable forms and private paths only.
    Diff,
    /// Header lines and environments.
    Headers,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Text, Kind::Json, Kind::Diff, Kind::Headers];

    /// Its word on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Json => "json",
            Kind::Diff => "diff",
            Kind::Headers => "headers",
        }
    }
}

impl FromStr for Kind {
    type Err = RedactError;

    fn from_str(word: &str) -> Result<Self, RedactError> {
        Kind::ALL.into_iter().find(|kind| kind.word() == word).ok_or(RedactError::UnknownKind)
    }
}
