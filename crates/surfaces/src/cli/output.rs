//! Showing an envelope: for people on a terminal, as JSON or as lines of JSON elsewhere.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use runyard_actions::{Envelope, InvocationEvent, LogEntry, LogLevel};
use serde_json::Value;

use super::table;

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
        match flagged {
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
    // A reader that went away is no failure of ours.
    let _ = match mode {
        Mode::Json => serde_json::to_writer_pretty(&mut stdout, envelope)
            .map_err(Into::into)
            .and_then(|()| writeln!(stdout)),
        Mode::Ndjson => {
            let result = InvocationEvent::Result(Box::new(envelope.clone()));
            serde_json::to_writer(&mut stdout, &result).map_err(Into::into).and_then(|()| writeln!(stdout))
        }
        Mode::Text => show_text(&mut stdout, envelope),
    };
    let _ = stdout.flush();
    envelope.exit_code()
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
                writeln!(stdout, "{}", printable(&format!("artifact: {name}{place}")))?;
            }
            Ok(())
        }
        Err(failure) => {
            let mut stderr = std::io::stderr().lock();
            let (red, dim, plain) =
                if styled(&stderr) { ("\x1b[1;31m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
            writeln!(stderr, "{red}error[{}]{plain}: {}", failure.code, printable(&failure.message))?;
            for issue in &failure.issues {
                writeln!(stderr, "  {}", printable(&issue.to_string()))?;
            }
            writeln!(stderr, "  {dim}{}{plain}", failure.code.row().recovery)
        }
    }
}

/// Whether styles belong on a stream: on a terminal, unless `NO_COLOR` is set to anything.
pub(super) fn styled(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Shows an invocation while it runs.
pub(super) struct Follower {
    mode: Mode,
    bar: Option<ProgressBar>,
}

impl Follower {
    pub(super) fn new(mode: Mode) -> Self {
        Follower { mode, bar: None }
    }

    pub(super) fn tell(&mut self, event: &InvocationEvent) {
        match self.mode {
            Mode::Json => {}
            Mode::Ndjson => {
                let mut stdout = std::io::stdout().lock();
                let _ = serde_json::to_writer(&mut stdout, event)
                    .map_err(std::io::Error::from)
                    .and_then(|()| writeln!(stdout));
                let _ = stdout.flush();
            }
            Mode::Text => match event {
                InvocationEvent::Log(log) => self.line(&line_of(log)),
                InvocationEvent::Progress(log) => self.progress(log),
                InvocationEvent::Artifact(_) | InvocationEvent::Result(_) => {}
            },
        }
    }

    fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| write_line(line)),
            None => write_line(line),
        }
    }

    /// A bar on a terminal, drawn from the first report on; a line elsewhere.
    fn progress(&mut self, log: &LogEntry) {
        let message = printable(&log.message);
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
    printable(&format!("{level}: {}{}", log.message, fields.concat()))
}

/// The text without what a terminal would obey: control characters and direction marks are shown, not sent.
pub(super) fn printable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        let direction = matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (character.is_control() && character != '\n' && character != '\t') || direction {
            clean.extend(character.escape_default());
        } else {
            clean.push(character);
        }
    }
    clean
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
