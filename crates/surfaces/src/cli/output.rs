//! Showing an envelope: for people on a terminal, as JSON or as lines of JSON elsewhere.

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use runyard_actions::{Envelope, InvocationEvent, LogEntry, LogLevel};
use serde_json::Value;

use super::table;
use super::terminal_text::{json_for_stdout, one_line, printable};

/// How a result is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// For people.
    Text,
    /// The envelope.
    Json,
    /// One event a line, the result last.
    Ndjson,
}

impl Mode {
    /// What `--output` says, also where the rest of the command line does not parse; else by what standard output is.
    pub(super) fn asked_for(arguments: &[OsString]) -> Mode {
        let texts: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
        let flagged =
            texts.iter().enumerate().rev().find_map(|(at, text)| match text.strip_prefix("--output") {
                Some("") => texts.get(at + 1).copied(),
                Some(rest) => rest.strip_prefix('='),
                None => None,
            });
        Mode::named(flagged)
    }

    /// The mode of this name; else by what standard output is.
    pub(super) fn named(name: Option<&str>) -> Mode {
        match name {
            Some("text") => Mode::Text,
            Some("json") => Mode::Json,
            Some("ndjson") => Mode::Ndjson,
            _ if std::io::stdout().is_terminal() => Mode::Text,
            _ => Mode::Json,
        }
    }
}

/// Shows an envelope and gives its exit code.
pub(super) fn show(mode: Mode, envelope: &Envelope) -> u8 {
    let mut stdout = std::io::stdout().lock();
    let written = match mode {
        Mode::Json => write_json(&mut stdout, serde_json::to_string_pretty(envelope)),
        Mode::Ndjson => {
            let result = InvocationEvent::Result(Box::new(envelope.clone()));
            write_json(&mut stdout, serde_json::to_string(&result))
        }
        Mode::Text => show_text(&mut stdout, envelope),
    };
    exit_after(written.and_then(|()| stdout.flush()), envelope.exit_code())
}

/// The exit code after writing a result: a full disk must not pass for success. A reader that went away is no failure.
pub(super) fn exit_after(written: std::io::Result<()>, exit: u8) -> u8 {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = writeln!(std::io::stderr(), "cannot write the result: {error}");
            exit.max(1)
        }
        _ => exit,
    }
}

fn write_json(stdout: &mut impl Write, json: serde_json::Result<String>) -> std::io::Result<()> {
    stdout.write_all((json_for_stdout(json?) + "\n").as_bytes())
}

fn show_text(stdout: &mut impl Write, envelope: &Envelope) -> std::io::Result<()> {
    match &envelope.outcome {
        Ok(data) => {
            let text = match data {
                Value::Null => String::new(),
                Value::String(text) => format!("{}\n", printable(text)),
                other => table::render(other),
            };
            stdout.write_all(text.as_bytes())?;
            for artifact in &envelope.artifacts {
                let name = artifact.name.as_deref().unwrap_or(&artifact.id);
                let place = artifact.uri.as_deref().map(|uri| format!(" at {uri}")).unwrap_or_default();
                writeln!(stdout, "{}", one_line(&format!("artifact: {name}{place}")))?;
            }
            Ok(())
        }
        Err(failure) => {
            let mut stderr = std::io::stderr().lock();
            let (red, dim, plain) =
                if styled(&stderr) { ("\x1b[1;31m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
            let (code, message) = (one_line(failure.code.as_str()), one_line(&failure.message));
            writeln!(stderr, "{red}error[{code}]{plain}: {message}")?;
            for issue in &failure.issues {
                writeln!(stderr, "  {}", one_line(&issue.to_string()))?;
            }
            writeln!(stderr, "  {dim}{}{plain}", failure.code.row().recovery)
        }
    }
}

/// Whether styles belong on a stream: on a terminal, unless `NO_COLOR` is set to anything.
pub fn styled(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Shows an invocation while it runs.
pub(super) struct Follower<W> {
    mode: Mode,
    stdout: W,
    bar: Option<ProgressBar>,
}

impl<W: Write> Follower<W> {
    pub(super) fn new(mode: Mode, stdout: W) -> Self {
        Follower { mode, stdout, bar: None }
    }

    /// Shows an event. An error means that whoever reads the events is gone.
    pub(super) fn tell(&mut self, event: &InvocationEvent) -> std::io::Result<()> {
        match self.mode {
            Mode::Json => {}
            Mode::Ndjson => {
                write_json(&mut self.stdout, serde_json::to_string(event))?;
                self.stdout.flush()?;
            }
            Mode::Text => match event {
                InvocationEvent::Log(log) => self.line(&line_of(log)),
                InvocationEvent::Progress(log) => self.progress(log),
                InvocationEvent::Artifact(_) | InvocationEvent::Result(_) => {}
            },
        }
        Ok(())
    }

    fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| write_line(line)),
            None => write_line(line),
        }
    }

    /// A bar on a terminal, drawn from the first report on; a line elsewhere.
    fn progress(&mut self, log: &LogEntry) {
        let message = one_line(&log.message);
        let percent = log.fields.get("percent").and_then(Value::as_f64);
        if !std::io::stderr().is_terminal() {
            return write_line(
                &percent.map_or_else(|| message.clone(), |percent| format!("{percent:.0}% {message}")),
            );
        }
        let bar = self.bar.get_or_insert_with(ProgressBar::no_length);
        let template = if percent.is_some() { "{wide_bar} {pos:>3}% {msg}" } else { "{spinner} {msg}" };
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.enable_steady_tick(Duration::from_millis(120));
        if let Some(percent) = percent {
            bar.set_length(100);
            bar.set_position(percent as u64);
        }
        bar.set_message(message);
    }

    pub(super) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn write_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn line_of(log: &LogEntry) -> String {
    let level = match log.level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    };
    let fields = serde_json::to_value(&log.fields).unwrap_or_default();
    let fields: Vec<String> = fields
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| {
            format!(" {key}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        })
        .collect();
    one_line(&format!("{level}: {}{}", log.message, fields.concat()))
}

/// The text without ANSI styles.
pub(super) fn without_styles(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("\x1b[") {
        plain.push_str(&rest[..start]);
        let after = &rest[start + 2..];
        let end = after.find(|c: char| c.is_ascii_alphabetic()).map_or(after.len(), |at| at + 1);
        rest = &after[end..];
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "test code")]

    use runyard_domain::Surface;
    use serde_json::json;

    use super::*;

    const FORGED: &str = "x\nerror[FORGED]: y\t\u{9b}";
    const SHOWN: &str = "x\\nerror[FORGED]: y\\t\\u{9b}";

    #[test]
    fn a_log_entry_is_one_line() {
        let log = json!({"level": "info", "message": FORGED, "time": "2026-01-01T00:00:00Z", "fields": {FORGED: FORGED}});
        let log: LogEntry = serde_json::from_value(log).unwrap();
        assert_eq!(line_of(&log), format!("info: {SHOWN} {SHOWN}={SHOWN}"));
    }

    #[test]
    fn an_artifact_is_one_line_and_a_text_keeps_its_lines() {
        let mut envelope = Envelope::of_data(Surface::Cli, json!("one\ntwo\u{9b}"));
        let artifact = json!({"id": "a", "type": "file", "name": FORGED, "uri": FORGED, "metadata": {}});
        envelope.artifacts.push(serde_json::from_value(artifact).unwrap());
        let mut shown = Vec::new();
        show_text(&mut shown, &envelope).unwrap();
        let expected = format!("one\ntwo\\u{{9b}}\nartifact: {SHOWN} at {SHOWN}\n");
        assert_eq!(String::from_utf8(shown).unwrap(), expected);
    }
}
