//! What can be wrong with declared command actions.

use std::io;
use std::path::PathBuf;

use super::declaration::KEYS;
use crate::{DefinitionError, closest};

/// The key that was probably meant, else all that there are, as a part of a sentence.
fn meant(key: &str) -> String {
    match closest(key, KEYS.iter().copied()) {
        Some(meant) => format!("; did you mean \"{meant}\"?"),
        None => format!("; the keys are {}", KEYS.join(", ")),
    }
}

/// Why the actions of a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CommandActionsError {
    /// The document is not TOML.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// `actions`, or an action in it, is not a table.
    #[error("\"{key}\" is not a table")]
    NoTable {
        /// Where.
        key: String,
    },
    /// An action has a key that means nothing.
    #[error("action \"{action}\" has an unknown key \"{key}\"{}", meant(key))]
    UnknownKey {
        /// The action.
        action: String,
        /// The key.
        key: String,
    },
    /// A value is not what its key takes.
    #[error("action \"{action}\": \"{key}\" cannot be read: {reason}")]
    WrongValue {
        /// The action.
        action: String,
        /// The key, with the path below it.
        key: String,
        /// What was expected.
        reason: serde_json::Error,
    },
    /// There is no program to run.
    #[error(
        "action \"{action}\" has no command: write the program and its arguments, as in [\"python3\", \"count.py\"]"
    )]
    NoCommand {
        /// The action.
        action: String,
    },
    /// An argument or a variable that no process can be given.
    #[error(
        "action \"{action}\": \"{key}\" has a NUL character, or a variable without a name or with \"=\" in it"
    )]
    NotForProcess {
        /// The action.
        action: String,
        /// `command` or `env`.
        key: &'static str,
    },
    /// A variable that the runtime sets.
    #[error("action \"{action}\" sets {variable}, which the runtime sets itself")]
    ReservedVariable {
        /// The action.
        action: String,
        /// The variable.
        variable: String,
    },
    /// A schema's file cannot be read.
    #[error("action \"{action}\": the {key} schema {} cannot be read: {error}", path.display())]
    SchemaFile {
        /// The action.
        action: String,
        /// `input` or `output`.
        key: &'static str,
        /// The path as declared.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A schema's file is not JSON.
    #[error("action \"{action}\": the {key} schema {} is not JSON: {error}", path.display())]
    SchemaFileNotJson {
        /// The action.
        action: String,
        /// `input` or `output`.
        key: &'static str,
        /// The path as declared.
        path: PathBuf,
        /// Where.
        error: serde_json::Error,
    },
    /// The definition itself is wrong.
    #[error("action \"{action}\" is not well defined: {error}")]
    Definition {
        /// The action.
        action: String,
        /// What is wrong.
        error: DefinitionError,
    },
    /// The folder of the document cannot be told.
    #[error("the folder of the document cannot be told")]
    Base {
        /// Why.
        source: io::Error,
    },
}

impl CommandActionsError {
    pub(super) fn syntax(document: &str, error: &toml::de::Error) -> Self {
        let before = error.span().and_then(|span| document.get(..span.start)).unwrap_or_default();
        let (line, column) = match before.rsplit_once('\n') {
            None => (1, before.chars().count() + 1),
            Some((lines, rest)) => (lines.matches('\n').count() + 2, rest.chars().count() + 1),
        };
        CommandActionsError::Syntax { line, column, message: error.message().to_owned() }
    }
}
