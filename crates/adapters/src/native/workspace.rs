//! The agent's tools, which are actions: they work in the run's checkout, beneath its root, and commands run where the edge lets
//! them.
//!
//! Whether a call may be made is the gate's to say; here is only what it does.

mod search;
mod shell;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use runyard_actions::{ActionError, Context, Exposure, Runtime, action};
use runyard_backend::beneath::{self, EntryKind};
use runyard_backend::{Processes, Sight};
use runyard_domain::Surface;
use serde::Deserialize;

use self::search::search;
use self::shell::shell;

/// So much of a file is read for the model.
const READ_BYTES_MAX: u64 = 64 * 1024;
/// So much of a file is looked through. A larger one cannot be edited.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// So many entries of a directory are listed.
const ENTRIES_MAX: usize = 1_000;

/// Where the tools work.
pub(super) struct Workspace {
    pub(super) root: PathBuf,
    pub(super) sight: Arc<dyn Sight>,
    pub(super) processes: Arc<dyn Processes>,
    pub(super) environment: BTreeMap<String, String>,
}

impl Workspace {
    /// The beginning of a file, and whether it is all of it.
    fn beginning(&self, path: &str) -> io::Result<(Vec<u8>, bool)> {
        let mut bytes = beneath::read(&self.root, path, FILE_BYTES_MAX + 1)?;
        let max = usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX);
        let whole = bytes.len() <= max;
        bytes.truncate(max);
        Ok((bytes, whole))
    }
}

/// The tools as a runtime of actions.
pub(super) fn runtime(workspace: Workspace) -> Result<Runtime, String> {
    let actions = [read(), list(), search(), write(), patch(), shell()];
    // The agent's own model is who calls it, and the gate decides on every call.
    let exposure = Exposure::new().destructive("shell", [Surface::AiSdk]);
    let runtime = Runtime::builder().service(workspace).actions(actions).exposure(exposure).build();
    runtime.map_err(|error| error.to_string())
}

#[derive(Deserialize, schemars::JsonSchema)]
struct ReadInput {
    /// The file, from the root of the workspace on.
    path: String,
    /// The first line that is wanted, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    from_line: usize,
    /// How many lines are wanted.
    #[serde(default = "many")]
    #[schemars(range(min = 1, max = 5000))]
    lines: usize,
}

fn first() -> usize {
    1
}

fn many() -> usize {
    2_000
}

/// Reads a text file of the workspace.
#[action(crate = "runyard_actions")]
async fn read(input: ReadInput, ctx: &Context) -> Result<String, ActionError> {
    let workspace = ctx.service::<Workspace>()?;
    let path = input.path.clone();
    let (bytes, whole) = ctx
        .blocking(move || workspace.beginning(&path))
        .await?
        .map_err(|error| failed(format!("cannot read {}: {error}", input.path)))?;
    let text = String::from_utf8_lossy(&bytes);
    let wanted: Vec<&str> = text.lines().skip(input.from_line - 1).take(input.lines).collect();
    let all = text.lines().count();
    let mut shown = wanted.join("\n");
    let max = usize::try_from(READ_BYTES_MAX).unwrap_or(usize::MAX);
    if shown.len() > max {
        shown.truncate(shown.floor_char_boundary(max));
    }
    let last = input.from_line - 1 + shown.lines().count();
    if !whole {
        let from = input.from_line;
        shown.push_str(&format!(
            "\n[lines {from} to {last}; only the first {FILE_BYTES_MAX} bytes of it can be read]"
        ));
    } else if last < all {
        shown.push_str(&format!("\n[lines {} to {last} of {all}]", input.from_line));
    }
    Ok(shown)
}

#[derive(Deserialize, schemars::JsonSchema)]
struct ListInput {
    /// The directory, from the root of the workspace on.
    #[serde(default = "here")]
    path: String,
}

fn here() -> String {
    ".".to_owned()
}

/// Lists a directory of the workspace. Names of directories end with a slash.
#[action(crate = "runyard_actions")]
async fn list(input: ListInput, ctx: &Context) -> Result<Vec<String>, ActionError> {
    let workspace = ctx.service::<Workspace>()?;
    let path = input.path.clone();
    let entries = ctx
        .blocking(move || beneath::entries(&workspace.root, &path, ENTRIES_MAX))
        .await?
        .map_err(|error| failed(format!("cannot list {}: {error}", input.path)))?;
    let name = |entry: beneath::Entry| match entry.kind {
        EntryKind::Directory => format!("{}/", entry.name),
        EntryKind::File | EntryKind::Other => entry.name,
    };
    Ok(entries.into_iter().map(name).collect())
}

#[derive(Deserialize, schemars::JsonSchema)]
struct WriteInput {
    /// The file, from the root of the workspace on.
    path: String,
    /// All that it holds from now on.
    content: String,
}

/// Writes a file of the workspace whole, with the directories on the way to it.
#[action(crate = "runyard_actions", side_effects = "write", idempotency = "idempotent")]
async fn write(input: WriteInput, ctx: &Context) -> Result<String, ActionError> {
    let workspace = ctx.service::<Workspace>()?;
    let WriteInput { path, content } = input;
    let (target, bytes) = (path.clone(), content.len());
    ctx.blocking(move || beneath::write(&workspace.root, &target, content.as_bytes()))
        .await?
        .map_err(|error| failed(format!("cannot write {path}: {error}")))?;
    Ok(format!("wrote {bytes} bytes to {path}"))
}

/// Exact replacements.
pub(super) type Edits = Vec<Edit>;

/// An exact replacement.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
pub(super) struct Edit {
    /// What stands there, exactly, and once.
    #[schemars(length(min = 1))]
    old: String,
    /// What stands there afterwards.
    new: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct PatchInput {
    /// The file, from the root of the workspace on.
    path: String,
    /// What is replaced, in this order.
    #[schemars(length(min = 1, max = 100))]
    edits: Edits,
}

/// Changes parts of a text file: each old text must stand there exactly once, and all are replaced or none.
#[action(crate = "runyard_actions", side_effects = "write")]
async fn patch(input: PatchInput, ctx: &Context) -> Result<String, ActionError> {
    let workspace = ctx.service::<Workspace>()?;
    let PatchInput { path, edits } = input;
    let target = path.clone();
    ctx.blocking(move || {
        let (bytes, whole) =
            workspace.beginning(&target).map_err(|error| format!("cannot read {target}: {error}"))?;
        if !whole {
            return Err(format!("{target} is larger than {FILE_BYTES_MAX} bytes; nothing was changed"));
        }
        let text = String::from_utf8(bytes).map_err(|_| format!("{target} is no text"))?;
        let text = edited(text, &edits)?;
        beneath::write(&workspace.root, &target, text.as_bytes())
            .map_err(|error| format!("cannot write {target}: {error}"))?;
        Ok(format!("replaced {} parts of {target}", edits.len()))
    })
    .await?
    .map_err(failed::<String>)
}

fn edited(mut text: String, edits: &[Edit]) -> Result<String, String> {
    for (edit, number) in edits.iter().zip(1..) {
        match text.matches(&edit.old).count() {
            1 => text = text.replacen(&edit.old, &edit.new, 1),
            0 => {
                return Err(format!(
                    "the old text of edit {number} does not stand there; nothing was changed"
                ));
            }
            times => {
                return Err(format!(
                    "the old text of edit {number} stands there {times} times; nothing was changed"
                ));
            }
        }
    }
    Ok(text)
}

/// Replacements as people read them.
pub(super) fn patch_text(path: &str, edits: &[Edit]) -> String {
    let mut text = format!("{path}\n");
    for Edit { old, new } in edits {
        old.lines().for_each(|line| text.push_str(&format!("-{line}\n")));
        new.lines().for_each(|line| text.push_str(&format!("+{line}\n")));
    }
    text
}

fn failed<T: Into<String>>(message: T) -> ActionError {
    ActionError::application("TOOL_FAILED", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_that_is_not_clear_changes_nothing() {
        let edit = |old: &str, new: &str| Edit { old: old.into(), new: new.into() };
        assert_eq!(edited("a b c".into(), &[edit("b", "x"), edit("x c", "y")]).unwrap(), "a y");
        assert!(edited("a b b".into(), &[edit("b", "x")]).unwrap_err().contains("2 times"));
        assert!(edited("a".into(), &[edit("a", "b"), edit("a", "c")]).unwrap_err().contains("edit 2"));
    }
}
