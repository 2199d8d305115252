//! The agent's tools, which are actions: they work in the run's checkout, beneath its root, and commands run where the edge lets
//! them.
//!
//! Whether a call may be made is the gate's to say; here is only what it does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use runyard_actions::{ActionError, Context, Exposure, Runtime, action, fields};
use runyard_backend::beneath::{self, EntryKind};
use runyard_backend::{Exit, Launch, Processes};
use runyard_domain::Surface;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The names of the tools.
pub const TOOLS: [&str; 6] = ["read", "list", "search", "write", "patch", "shell"];

/// So much of a file is read for the model.
const READ_BYTES_MAX: u64 = 64 * 1024;
/// So much of a file is looked through or edited.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// So many entries of a directory are listed.
const ENTRIES_MAX: usize = 1_000;
/// So many files are looked through.
const FILES_SEARCHED_MAX: usize = 20_000;
/// So deep directories are gone into.
const DEPTH_MAX: usize = 64;
/// So many places are found.
const MATCHES_MAX: usize = 200;
/// The longest line that is shown of a place.
const MATCH_BYTES_MAX: usize = 300;
/// So much of what a command prints is read for the model, of its beginning and of its end.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;
/// So long a command may take unless it says less.
const SHELL_TIMEOUT_MS: u64 = 10 * 60 * 1000;
/// So much of what a command prints is read at a time.
const PIECE_BYTES_MAX: usize = 8 * 1024;
/// Directories that nobody wants searched.
const NOT_SEARCHED: [&str; 3] = [".git", "node_modules", "target"];

/// Where the tools work.
pub(super) struct Workspace {
    pub(super) root: PathBuf,
    pub(super) processes: Arc<dyn Processes>,
    pub(super) environment: BTreeMap<String, String>,
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
    let bytes = ctx
        .blocking(move || beneath::read(&workspace.root, &path, FILE_BYTES_MAX))
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
    if last < all {
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
struct SearchInput {
    /// A regular expression.
    #[schemars(length(min = 1, max = 1000))]
    pattern: String,
    /// The directory, from the root of the workspace on.
    #[serde(default = "here")]
    path: String,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Found {
    /// Each as `path:line: text`.
    matches: Vec<String>,
    /// Whether there may be more.
    more: bool,
}

/// Searches the text files of the workspace for a regular expression.
#[action(crate = "runyard_actions")]
async fn search(input: SearchInput, ctx: &Context) -> Result<Found, ActionError> {
    let workspace = ctx.service::<Workspace>()?;
    let pattern = regex::bytes::Regex::new(&input.pattern)
        .map_err(|error| failed(format!("the pattern is no regular expression: {error}")))?;
    let found = ctx.blocking(move || look(&workspace, &input.path, &pattern)).await?;
    found.map_err(|error| failed(format!("cannot search: {error}")))
}

fn look(workspace: &Workspace, path: &str, pattern: &regex::bytes::Regex) -> std::io::Result<Found> {
    let mut found = Found { matches: Vec::new(), more: false };
    let mut left = vec![(path.trim_matches('/').to_owned(), 0)];
    let mut files = 0;
    while let Some((folder, depth)) = left.pop() {
        for entry in beneath::entries(&workspace.root, &folder, FILES_SEARCHED_MAX)?.into_iter().rev() {
            let inner = match folder.as_str() {
                "." | "" => entry.name.clone(),
                folder => format!("{folder}/{}", entry.name),
            };
            match entry.kind {
                EntryKind::Directory if depth < DEPTH_MAX && !NOT_SEARCHED.contains(&entry.name.as_str()) => {
                    left.push((inner, depth + 1));
                }
                EntryKind::File => {
                    files += 1;
                    if files > FILES_SEARCHED_MAX || found.matches.len() >= MATCHES_MAX {
                        found.more = true;
                        return Ok(found);
                    }
                    // One that went meanwhile, or may not be read, holds nothing to be found.
                    let bytes = beneath::read(&workspace.root, &inner, FILE_BYTES_MAX).unwrap_or_default();
                    if !bytes.contains(&0) {
                        places(&inner, &bytes, pattern, &mut found);
                    }
                }
                EntryKind::Directory | EntryKind::Other => {}
            }
        }
    }
    found.matches.sort();
    Ok(found)
}

fn places(path: &str, bytes: &[u8], pattern: &regex::bytes::Regex, found: &mut Found) {
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
        if !pattern.is_match(line) {
            continue;
        }
        if found.matches.len() >= MATCHES_MAX {
            found.more = true;
            return;
        }
        let mut text = String::from_utf8_lossy(line).into_owned();
        text.truncate(text.floor_char_boundary(MATCH_BYTES_MAX));
        found.matches.push(format!("{path}:{number}: {text}"));
    }
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
        let bytes = beneath::read(&workspace.root, &target, FILE_BYTES_MAX)
            .map_err(|error| format!("cannot read {target}: {error}"))?;
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

#[derive(Deserialize, schemars::JsonSchema)]
struct ShellInput {
    /// The command, as bash reads it. It runs in the root of the workspace.
    #[schemars(length(min = 1, max = 20_000))]
    command: String,
    /// How long it may take.
    #[serde(default = "shell_timeout")]
    #[schemars(range(min = 1, max = 3_600_000))]
    timeout_ms: u64,
}

fn shell_timeout() -> u64 {
    SHELL_TIMEOUT_MS
}

#[derive(Serialize, schemars::JsonSchema)]
struct Ran {
    /// Its exit code, or 128 and the signal that ended it.
    exit_code: i32,
    /// What it printed, both streams in the order in which it came; the middle of a long one is left out.
    output: String,
}

/// Runs a command in the workspace.
#[action(crate = "runyard_actions", side_effects = "destructive", requires_confirmation = false)]
async fn shell(input: ShellInput, ctx: &Context) -> Result<Ran, ActionError> {
    let workspace = ctx.service::<Workspace>()?;
    let launch = Launch {
        program: PathBuf::from("bash"),
        arguments: vec!["-c".to_owned(), input.command],
        directory: workspace.root.clone(),
        environment: workspace.environment.clone(),
    };
    let mut process = workspace.processes.start(launch).await.map_err(|error| failed(error.to_string()))?;
    drop(process.stdin.take());
    let mut printed = Printed::default();
    let running = async {
        let (mut out, mut err) = (process.stdout.take(), process.stderr.take());
        while out.is_some() || err.is_some() {
            tokio::select! {
                piece = piece(&mut out), if out.is_some() => {
                    if let Some(text) = piece {
                        printed.push(&text);
                        ctx.logger().info(text, fields! {});
                    }
                }
                piece = piece(&mut err), if err.is_some() => {
                    if let Some(text) = piece {
                        printed.push(&text);
                        ctx.logger().warn(text, fields! {});
                    }
                }
            }
        }
        process.custody.wait().await
    };
    let exit = match tokio::time::timeout(Duration::from_millis(input.timeout_ms), running).await {
        Ok(exit) => exit.map_err(|error| failed(error.to_string()))?,
        Err(_) => {
            // What it started goes too, before anybody is told.
            let _ = process.custody.stop().await;
            let output = printed.shown();
            return Err(failed(format!("not done within {} ms, and stopped.\n{output}", input.timeout_ms)));
        }
    };
    let exit_code = match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
    };
    Ok(Ran { exit_code, output: printed.shown() })
}

type Pipe = std::pin::Pin<Box<dyn AsyncRead + Send>>;

/// The next piece; at its end the pipe is taken away.
async fn piece(pipe: &mut Option<Pipe>) -> Option<String> {
    let mut buffer = vec![0; PIECE_BYTES_MAX];
    let read = match pipe {
        Some(open) => open.read(&mut buffer).await.unwrap_or(0),
        None => 0,
    };
    if read == 0 {
        *pipe = None;
        return None;
    }
    Some(String::from_utf8_lossy(&buffer[..read]).into_owned())
}

/// What a command printed, as far as the model reads it.
#[derive(Default)]
struct Printed {
    head: String,
    tail: String,
    omitted: usize,
}

impl Printed {
    fn push(&mut self, mut text: &str) {
        if self.head.len() < OUTPUT_BYTES_MAX {
            let end = text.floor_char_boundary(OUTPUT_BYTES_MAX - self.head.len());
            self.head.push_str(&text[..end]);
            text = &text[end..];
        }
        self.tail.push_str(text);
        if self.tail.len() > OUTPUT_BYTES_MAX {
            let from = self.tail.ceil_char_boundary(self.tail.len() - OUTPUT_BYTES_MAX);
            self.omitted += from;
            self.tail.drain(..from);
        }
    }

    fn shown(&self) -> String {
        match self.omitted {
            0 => format!("{}{}", self.head, self.tail),
            omitted => format!("{}\n[{omitted} bytes are left out]\n{}", self.head, self.tail),
        }
    }
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

    #[test]
    fn b09_of_much_output_the_beginning_and_the_end_are_read() {
        let mut printed = Printed::default();
        for n in 0..10_000 {
            printed.push(&format!("line {n} ü\n"));
        }
        let shown = printed.shown();
        assert!(shown.starts_with("line 0 ü\n") && shown.ends_with("line 9999 ü\n"));
        assert!(shown.contains("bytes are left out]") && shown.len() < 2 * OUTPUT_BYTES_MAX + 64);
        let mut little = Printed::default();
        little.push("a\n");
        little.push("b\n");
        assert_eq!(little.shown(), "a\nb\n");
    }
}
