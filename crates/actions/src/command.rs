//! Command actions: any program that reads JSON and writes JSON, declared in TOML, so that every language can provide
//! actions.
//!
//! ```toml
//! [actions.word_count]
//! description = "Counts the words of a text."
//! command = ["python3", "count.py"]
//! input = { type = "object", properties = { text = { type = "string" } }, required = ["text"] }
//! ```
//!
//! The program gets the validated input on its standard input and writes its output, or `{"error": {code, message}}`
//! with a status that is not 0. What it writes to its standard error becomes logs, progress and artifacts. There is no
//! shell, and no sandbox; when the action ends, nothing that the program started is left running.

mod declaration;
mod error;
mod reports;
mod running;

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use self::declaration::Declaration;
pub use self::error::CommandActionsError;
use crate::Action;

/// The actions that the `[actions]` table of a document declares.
///
/// `base` is the folder of the document; relative paths in it start there. Other tables are not looked at.
pub fn command_actions(toml: &str, base: &Path) -> Result<Vec<Action>, CommandActionsError> {
    let mut document: Map<String, Value> =
        toml::from_str(toml).map_err(|error| CommandActionsError::syntax(toml, &error))?;
    let actions = match document.remove("actions") {
        None => return Ok(Vec::new()),
        Some(Value::Object(actions)) => actions,
        Some(_) => return Err(CommandActionsError::NoTable { key: "actions".to_owned() }),
    };
    let base = absolute(base)?;
    actions.into_iter().map(|(name, declared)| define(name, declared, &base)).collect()
}

/// Once the program has its own working folder, relative paths would mean something else.
fn absolute(base: &Path) -> Result<std::path::PathBuf, CommandActionsError> {
    let base = if base.as_os_str().is_empty() { Path::new(".") } else { base };
    std::path::absolute(base).map_err(|source| CommandActionsError::Base { source })
}

fn define(name: String, declared: Value, base: &Path) -> Result<Action, CommandActionsError> {
    let declaration = Declaration::read(&name, declared)?;
    let command = Arc::new(declaration.command_line(&name, base)?);
    let action = declaration.builder(&name, base)?.handler(move |input, context| {
        let command = Arc::clone(&command);
        async move { running::run(&command, &input, &context).await }
    });
    action.map_err(|error| CommandActionsError::Definition { action: name, error })
}
