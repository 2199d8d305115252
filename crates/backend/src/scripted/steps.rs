//! The steps of a script that do something: say, read, run, write, ask.

use std::io;
use std::path::Path;

use runyard_domain::gate::{Question, Request};
use runyard_domain::run::ToolOutcome;
use serde_json::{Value, json};

use super::files;
use super::output::Output;
use super::player::{Broken, Done, Player, clip};
use super::script::OnDenied;
use crate::{Custody, Exit, Heard, Launch, Process, ProcessError, Signal, Stop, Stream};

/// How long a piece of a message is, in bytes, about.
const PIECE_BYTES: usize = 24;
/// How many pieces become durable together.
const PIECES_PER_BATCH: usize = 32;
/// How much of a command stands in a summary.
const SUMMARY_CHARS_MAX: usize = 120;

impl Player {
    pub(super) async fn say(&mut self, text: &str) -> Result<Done, Broken> {
        let text = self.fill(text, &[]);
        if text.len() > PIECE_BYTES {
            let pieces: Vec<String> = pieces(&text).map(str::to_owned).collect();
            self.stream(pieces.into_iter()).await?;
        }
        Ok(Done::with(vec![self.message(text)]))
    }

    pub(super) async fn deltas(&mut self, count: usize, piece: &str) -> Result<Done, Broken> {
        self.stream(std::iter::repeat_n(piece.to_owned(), count)).await?;
        Ok(Done::with(vec![self.message(piece.repeat(count))]))
    }

    async fn stream(&mut self, mut pieces: impl Iterator<Item = String>) -> Result<(), Stop> {
        let item = self.position.name("message");
        loop {
            let batch: Vec<Signal> = (&mut pieces)
                .take(PIECES_PER_BATCH)
                .map(|text| Signal::Delta { item: item.clone(), text })
                .collect();
            if batch.is_empty() {
                return Ok(());
            }
            self.hearing.check()?;
            self.record(batch).await?;
        }
    }

    pub(super) async fn read(
        &mut self,
        path: &str,
        or_first: bool,
        then_say: Option<&str>,
        on_denied: OnDenied,
    ) -> Result<Done, Broken> {
        let wanted = path.to_owned();
        let found = self.beneath(move |root| files::choose(root, &wanted, or_first)).await;
        let path = match found {
            Ok(Some(path)) => path,
            Ok(None) => return Ok(Done::with(vec![self.message("There was no file to read.".to_owned())])),
            Err(error) => return Ok(failed(format!("cannot look for {path}: {error}"))),
        };
        let request = Request::Read { path: path.clone() };
        if let Err(denied) = self.ask(request, &format!("read {path}"), on_denied).await? {
            return Ok(denied);
        }
        let wanted = path.clone();
        match self.beneath(move |root| files::count_lines(root, &wanted)).await {
            Ok(lines) => {
                let values = [("{path}", path.as_str()), ("{lines}", &lines.to_string())];
                let message = then_say.map(|text| self.message(self.fill(text, &values)));
                let read = Signal::FileRead { path: path.clone() };
                Ok(Done::with(std::iter::once(read).chain(message).collect()))
            }
            Err(error) => Ok(failed(format!("cannot read {path}: {error}"))),
        }
    }

    pub(super) async fn write(
        &mut self,
        path: &str,
        content: &str,
        on_denied: OnDenied,
    ) -> Result<Done, Broken> {
        let content = self.fill(content, &[]);
        let request = Request::Write { path: path.to_owned(), content: Some(content.clone()) };
        if let Err(denied) = self.ask(request, &format!("write {path}"), on_denied).await? {
            return Ok(denied);
        }
        self.hearing.check()?;
        let call = self.begin("write", format!("write {path}"), json!({ "path": path }), true).await?;
        let (target, bytes) = (path.to_owned(), content.len());
        let result = match self.beneath(move |root| files::write(root, &target, &content)).await {
            Ok(()) => vec![
                Signal::Patch { files: vec![path.to_owned()], summary: format!("wrote {path}") },
                result(call, ToolOutcome::Succeeded, format!("{bytes} bytes")),
            ],
            Err(error) => vec![result(call, ToolOutcome::Failed, format!("cannot write {path}: {error}"))],
        };
        Ok(Done::with(result))
    }

    pub(super) async fn question(
        &mut self,
        prompt: &str,
        schema: &Value,
        then_say: Option<&str>,
        on_denied: OnDenied,
    ) -> Result<Done, Broken> {
        let prompt = self.fill(prompt, &[]);
        let request = Request::Question(Question { prompt, answer_schema: schema.clone() });
        let answer = match self.ask(request, "go on without an answer", on_denied).await? {
            Ok(answer) => answer.answer.unwrap_or(Value::Null),
            Err(denied) => return Ok(denied),
        };
        let answer = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        let message = then_say.map(|text| self.message(self.fill(text, &[("{answer}", &answer)])));
        Ok(Done::with(message.into_iter().collect()))
    }

    pub(super) async fn shell(
        &mut self,
        command: &str,
        idempotent: bool,
        on_denied: OnDenied,
    ) -> Result<Done, Broken> {
        let summary: String = command.chars().take(SUMMARY_CHARS_MAX).collect();
        let request = Request::Shell { command: command.to_owned(), cwd: ".".to_owned() };
        if let Err(denied) = self.ask(request, &format!("run `{summary}`"), on_denied).await? {
            return Ok(denied);
        }
        self.hearing.check()?;
        let call = self.begin("shell", summary, json!({ "command": command }), idempotent).await?;
        let launch = Launch {
            program: "sh".into(),
            arguments: vec!["-c".to_owned(), command.to_owned()],
            directory: self.directory.clone(),
            environment: self.environment.clone(),
        };
        let process = match self.processes.start(launch).await {
            Ok(process) => process,
            Err(error) => {
                return Ok(Done::with(vec![result(call, ToolOutcome::Failed, error.to_string())]));
            }
        };
        let (outcome, summary) = match self.attend(&call, process).await {
            Ok(Ok(Exit::Code(0))) => (ToolOutcome::Succeeded, "exit code 0".to_owned()),
            Ok(Ok(Exit::Code(code))) => (ToolOutcome::Failed, format!("exit code {code}")),
            Ok(Ok(Exit::Signal(signal))) => (ToolOutcome::Failed, format!("ended by signal {signal}")),
            Ok(Err(error)) => (ToolOutcome::Failed, error.to_string()),
            Err(stop) => {
                self.last_words.push(result(call, ToolOutcome::Cancelled, "stopped".to_owned()));
                return Err(stop.into());
            }
        };
        Ok(Done::with(vec![result(call, outcome, summary)]))
    }

    /// Attends a process to its end. When this returns, however, nothing of it is left.
    async fn attend(&mut self, call: &str, process: Process) -> Result<Result<Exit, ProcessError>, Stop> {
        let Process { stdin, stdout, stderr, mut custody } = process;
        drop(stdin);
        let mut output = Output::new(stdout, stderr);
        let ended = self.follow(call, &mut output, &mut *custody).await;
        // Also after its own end: what it left running would hold its output open.
        let stopped = custody.stop().await;
        let exit = ended?;
        if stopped.is_ok() {
            while let Some((stream, text)) = output.next().await {
                self.printed(call, stream, text).await?;
            }
        }
        Ok(exit)
    }

    async fn follow(
        &mut self,
        call: &str,
        output: &mut Output,
        custody: &mut dyn Custody,
    ) -> Result<Result<Exit, ProcessError>, Stop> {
        let mut exit = custody.wait();
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                heard = self.hearing.heard() => if let Heard::Steer(steer) = heard? {
                    self.acknowledge(steer).await?;
                },
                piece = output.next(), if open => match piece {
                    Some((stream, text)) => self.printed(call, stream, text).await?,
                    None => open = false,
                },
                exit = &mut exit => return Ok(exit),
            }
        }
    }

    async fn printed(&mut self, call: &str, stream: Stream, text: String) -> Result<(), Stop> {
        self.record(vec![Signal::ToolOutput { call: call.to_owned(), stream, text }]).await
    }

    /// Makes durable that a step begins, and gives its name.
    async fn begin(
        &mut self,
        tool: &str,
        summary: String,
        arguments: Value,
        idempotent: bool,
    ) -> Result<String, Stop> {
        let (call, tool) = (self.position.name("call"), tool.to_owned());
        let begun = Signal::ToolCall { call: call.clone(), tool, summary, arguments, idempotent };
        self.record(vec![begun]).await?;
        Ok(call)
    }

    /// Works on the run's directory, away from the threads that must not wait for a disk.
    async fn beneath<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let directory = self.directory.clone();
        tokio::task::spawn_blocking(move || work(&directory)).await.map_err(io::Error::other)?
    }
}

fn result(call: String, outcome: ToolOutcome, summary: String) -> Signal {
    Signal::ToolResult { call, outcome, code: None, summary }
}

fn failed(message: String) -> Done {
    Done::with(vec![Signal::Error { failure_kind: None, message: clip(message), retrying: false }])
}

/// The text in pieces that end between words where they can.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let most = rest.floor_char_boundary(PIECE_BYTES);
        let end = if most == rest.len() { most } else { rest[..most].rfind(' ').map_or(most, |at| at + 1) };
        let (piece, left) = rest.split_at(end);
        rest = left;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_a_text_are_the_text() {
        for text in ["short", "a longer text of many words, which end where they should", &"ü".repeat(99)] {
            let cut: Vec<&str> = pieces(text).collect();
            assert_eq!(cut.concat(), text);
            assert!(cut.iter().all(|piece| !piece.is_empty() && piece.len() <= PIECE_BYTES), "{cut:?}");
        }
    }
}
