//! Running a command in the workspace, where the edge lets it.

use std::path::PathBuf;
use std::time::Duration;

use runyard_actions::{ActionError, Context, action, fields};
use runyard_backend::{Exit, Launch};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::{Workspace, failed};

/// So much of what a command prints is read for the model, of its beginning and of its end.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;
/// So long a command may take unless it says less.
const SHELL_TIMEOUT_MS: u64 = 10 * 60 * 1000;
/// So much of what a command prints is read at a time.
const PIECE_BYTES_MAX: usize = 8 * 1024;

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
pub(super) async fn shell(input: ShellInput, ctx: &Context) -> Result<Ran, ActionError> {
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
        let (mut out, mut err) = (Pipe::of(process.stdout.take()), Pipe::of(process.stderr.take()));
        while out.is_open() || err.is_open() {
            tokio::select! {
                text = out.piece(), if out.is_open() => {
                    printed.push(&text);
                    ctx.logger().info(text, fields! {});
                }
                text = err.piece(), if err.is_open() => {
                    printed.push(&text);
                    ctx.logger().warn(text, fields! {});
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

/// What a command prints on one of its streams.
struct Pipe {
    /// None at its end.
    open: Option<std::pin::Pin<Box<dyn AsyncRead + Send>>>,
    /// The beginning of a letter whose end has not come yet.
    rest: Vec<u8>,
}

impl Pipe {
    fn of(open: Option<std::pin::Pin<Box<dyn AsyncRead + Send>>>) -> Self {
        Pipe { open, rest: Vec::new() }
    }

    fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The next piece as a text; the last one where the pipe is at its end.
    async fn piece(&mut self) -> String {
        let mut buffer = vec![0; PIECE_BYTES_MAX];
        let read = match &mut self.open {
            Some(open) => open.read(&mut buffer).await.unwrap_or(0),
            None => 0,
        };
        if read == 0 {
            self.open = None;
            return String::from_utf8_lossy(&std::mem::take(&mut self.rest)).into_owned();
        }
        text(&mut self.rest, &buffer[..read])
    }
}

/// Bytes as a text, behind what was left over of those before. A letter that is cut is left over for the next.
fn text(rest: &mut Vec<u8>, bytes: &[u8]) -> String {
    let mut all = std::mem::take(rest);
    all.extend_from_slice(bytes);
    let mut text = String::new();
    let mut chunks = all.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.push_str(chunk.valid());
        let broken = chunk.invalid();
        let is_cut = std::str::from_utf8(broken).is_err_and(|error| error.error_len().is_none());
        if chunks.peek().is_none() && is_cut {
            *rest = broken.to_vec();
        } else if !broken.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_letter_that_comes_in_two_pieces_is_whole() {
        let printed = "ü€😀 \u{0}x".as_bytes();
        for at in 0..=printed.len() {
            let mut rest = Vec::new();
            let read = text(&mut rest, &printed[..at]) + &text(&mut rest, &printed[at..]);
            assert_eq!((read.as_bytes(), rest.as_slice()), (printed, &[][..]), "cut at {at}");
        }
        let mut rest = Vec::new();
        assert_eq!(text(&mut rest, b"a\xffb\xe2"), "a\u{fffd}b");
        assert_eq!((text(&mut rest, b"c").as_str(), rest.len()), ("\u{fffd}c", 0));
    }
}
