//! A run on a terminal: what the agent says, what it does, where it stands.
//!
//! The progress line is on the terminal only while nothing else uses its line: not in the middle of a message, and not beside
//! a question.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use runyard_surfaces::cli::{one_line, printable, styled};
use serde_json::Value;

use super::form::Form;

/// How often the progress line moves.
const TICK: Duration = Duration::from_millis(120);

/// The terminal, or nothing where events are printed instead.
pub(super) struct Screen {
    on: bool,
    colours: bool,
    /// Whether there is a place for a progress line.
    lively: bool,
    bar: Option<ProgressBar>,
    begun: Instant,
    state: String,
    /// The message whose pieces are being printed.
    streaming: Option<String>,
    /// What the person is being asked.
    question: Option<Question>,
}

struct Question {
    text: String,
    /// Whether it is still the last thing on the terminal.
    last: bool,
}

impl Screen {
    pub(super) fn new(on: bool) -> Self {
        Screen {
            on,
            colours: styled(&std::io::stdout()),
            lively: on && std::io::stderr().is_terminal(),
            bar: None,
            begun: Instant::now(),
            state: String::new(),
            streaming: None,
            question: None,
        }
    }

    /// Shows a run from now on.
    pub(super) fn begin(&mut self, made: &Value) {
        (self.begun, self.state) = (Instant::now(), "created".to_owned());
        let run = &made["run"];
        let text = |value: &Value| one_line(value.as_str().unwrap_or_default());
        let (id, agent, place) = (text(&run["id"]), text(&run["agentId"]), text(&run["workspace"]["label"]));
        self.line(&self.dim(&format!("{id} · {agent} in {place}")));
        if made["redacted"] == true {
            self.line("The task held something secret; it is run as it is stored, without it.");
        }
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Takes the progress line away.
    pub(super) fn quiet(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Shows the progress line again.
    pub(super) fn lively(&mut self) {
        if !self.lively || self.bar.is_some() || self.streaming.is_some() || self.question.is_some() {
            return;
        }
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
        let bar = ProgressBar::new_spinner()
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
            .with_message(self.state.clone())
            .with_elapsed(self.begun.elapsed());
        bar.enable_steady_tick(TICK);
        self.bar = Some(bar);
    }

    /// Prints a line of its own.
    fn line(&mut self, text: &str) {
        if !self.on {
            return;
        }
        self.own_line();
        print(&format!("{text}\n"));
    }

    /// Ends whatever stands on the last line.
    fn own_line(&mut self) {
        self.quiet();
        if self.streaming.take().is_some() {
            print("\n");
        }
        if let Some(question) = self.question.as_mut().filter(|question| question.last) {
            question.last = false;
            let _ = std::io::stderr().write_all(b"\n");
        }
    }

    /// Asks. The question is repeated below whatever is printed meanwhile.
    pub(super) fn ask(&mut self, text: &str) {
        self.own_line();
        let mut stderr = std::io::stderr();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
        self.question = Some(Question { text: text.to_owned(), last: true });
    }

    /// The person answered: their Enter ended the line.
    pub(super) fn answered(&mut self) {
        self.question = None;
    }

    /// The question is none any more.
    pub(super) fn withdrawn(&mut self) {
        self.own_line();
        self.question = None;
    }

    /// A word of ours, on standard error.
    pub(super) fn say(&mut self, text: &str) {
        self.own_line();
        let _ = writeln!(std::io::stderr(), "{}", one_line(text));
    }

    fn state(&mut self, state: &str) {
        state.clone_into(&mut self.state);
        if let Some(bar) = &self.bar {
            bar.set_message(state.to_owned());
        }
    }

    /// Shows an event.
    pub(super) fn event(&mut self, event: &Value) {
        let payload = &event["payload"];
        let text = |name: &str| one_line(payload[name].as_str().unwrap_or_default());
        match event["type"].as_str().unwrap_or_default() {
            "run.planned" => self.state("planned"),
            "run.accepted" => self.state("accepted"),
            "run.preparing" => self.state("preparing"),
            "run.started" => {
                self.state("running");
                self.line(&self.dim(&format!("running on {}", text("backendKind"))));
            }
            "run.message.delta" => self.delta(payload),
            "run.message.completed" => self.message(payload),
            "run.reasoning" => self.line(&self.dim(&text("text"))),
            "run.plan.updated" => self.plan(payload),
            "run.file.read" => self.line(&self.dim(&format!("read {}", text("path")))),
            "run.tool.call" => self.line(&self.paint("1", &format!("$ {}", text("summary")))),
            "run.tool.output" => {
                let output = printable(payload["text"].as_str().unwrap_or_default());
                self.line(&self.dim(output.trim_end_matches('\n')));
            }
            "run.tool.result" => {
                let mark = match payload["outcome"] == "succeeded" {
                    true => self.paint("32", "ok"),
                    false => self.paint("31", &text("outcome")),
                };
                self.line(&format!("{mark} {}", text("summary")));
            }
            "run.gate.judged" if payload["effect"] == "deny" => {
                self.line(&format!("{} {}", self.paint("31", "denied:"), text("reason")));
            }
            "run.approval.requested" => self.approval(payload),
            "run.approval.resolved" => {
                self.state("running");
                let by = one_line(payload["decidedBy"]["id"].as_str().unwrap_or_default());
                let how = match payload["revise"] == true {
                    true => "sent back".to_owned(),
                    false => text("resolution"),
                };
                let part = match payload["selection"].as_array().map(Vec::len) {
                    None => "",
                    Some(1) => ": only what was chosen, in 1 file",
                    Some(files) => &format!(": only what was chosen, in {files} files"),
                };
                self.line(&format!("{} by {by}{part}", self.paint("1", &how)));
            }
            "run.approval.snoozed" => {
                let by = one_line(payload["by"]["id"].as_str().unwrap_or_default());
                self.line(&self.dim(&format!("snoozed by {by} until {}", text("until"))));
            }
            "run.applied" => {
                let commit =
                    payload["commit"].as_str().map(|commit| format!(" as commit {}", one_line(commit)));
                self.line(&format!("{}{}", self.paint("32", "applied"), commit.unwrap_or_default()));
            }
            "run.degraded" => self.line(&format!("{} {}", self.paint("33", "degraded:"), text("reason"))),
            "run.cancel.requested" => {
                let by = one_line(payload["by"]["id"].as_str().unwrap_or_default());
                let what = "what was written is taken back, unless all of it is in place";
                self.line(&format!(
                    "{} by {by}: {}; {what}",
                    self.paint("1;33", "being cancelled"),
                    text("reason")
                ));
            }
            "runtime.error" | "runtime.unavailable" | "runtime.timeout" | "schema.validation_failed" => {
                self.line(&format!("{} {}", self.paint("31", "error:"), text("message")));
            }
            _ => {}
        }
        match self.question.take() {
            Some(question) if !question.last => self.ask(&question.text),
            question => self.question = question,
        }
        self.lively();
    }

    fn delta(&mut self, payload: &Value) {
        if !self.on {
            return;
        }
        let item = payload["item"].as_str().unwrap_or_default();
        if self.streaming.as_deref() != Some(item) {
            self.own_line();
        }
        self.quiet();
        print(&printable(payload["text"].as_str().unwrap_or_default()));
        self.streaming = Some(item.to_owned());
    }

    /// A whole message: its pieces were printed already, if it had some.
    fn message(&mut self, payload: &Value) {
        if self.streaming.is_some() && self.streaming.as_deref() == payload["item"].as_str() {
            self.streaming = None;
            print("\n");
            if payload["brokeOff"] != true {
                return;
            }
        }
        let text = printable(payload["text"].as_str().unwrap_or_default());
        self.line(&if payload["brokeOff"] == true { self.dim(&text) } else { text });
    }

    /// What the agent means to do, a line for each step.
    fn plan(&mut self, payload: &Value) {
        for step in payload["steps"].as_array().into_iter().flatten() {
            let mark = match step["status"].as_str() {
                Some("completed") => "✓",
                Some("in_progress") => "→",
                _ => "·",
            };
            let text = one_line(step["text"].as_str().unwrap_or_default());
            self.line(&self.dim(&format!("{mark} {text}")));
        }
    }

    /// Exactly what is asked, with what was redacted marked in it.
    fn approval(&mut self, payload: &Value) {
        self.state("needs approval");
        let risk = one_line(payload["risk"].as_str().unwrap_or_default());
        let reason = one_line(payload["reason"].as_str().unwrap_or_default());
        self.line(&format!("{} {reason} (risk: {risk})", self.paint("1;33", "approval needed:")));
        for note in payload["notes"].as_array().into_iter().flatten() {
            self.line(&format!("  {}", one_line(note.as_str().unwrap_or_default())));
        }
        // Changes stand above it, file by file.
        let changes = payload["request"]["kind"] == "apply";
        for file in payload["request"]["files"].as_array().into_iter().flatten() {
            if payload["request"]["undo"] == true {
                self.line(&format!("  {}", one_line(file.as_str().unwrap_or_default())));
            }
        }
        for line in asked(payload).into_iter().filter(|_| !changes) {
            self.line(&line);
        }
    }

    /// What the run changed.
    pub(super) fn changes(&mut self, lines: &[String]) {
        for line in lines {
            self.line(line);
        }
    }

    /// The end of the run, and what can be done next.
    pub(super) fn end(&mut self, end: &Value) {
        let payload = &end["payload"];
        let text = |name: &str| one_line(payload[name].as_str().unwrap_or_default());
        let seconds = payload["metrics"]["activeMs"].as_f64().unwrap_or_default() / 1000.0;
        match end["type"].as_str().unwrap_or_default() {
            "run.completed" => self.line(&format!("{} in {seconds:.1} s", self.paint("1;32", "completed"))),
            "run.cancelled" => {
                let by = one_line(payload["by"]["id"].as_str().unwrap_or_default());
                self.line(&format!("{} by {by}: {}", self.paint("1;33", "cancelled"), text("reason")));
            }
            _ => {
                let failed = self.paint("1;31", "failed");
                let code = match text("failureKind") {
                    none if none.is_empty() => text("code"),
                    kind => format!("{}, {kind}", text("code")),
                };
                self.line(&format!("{failed} [{code}] {}", text("message")));
                self.line(&self.dim(&text("recovery")));
            }
        }
        self.quiet();
        self.question = None;
    }
}

/// Exactly what is asked, as lines: each field of the request, or the question and what can be answered.
pub(crate) fn asked(approval: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if approval["redacted"] == true {
        lines.push("  What is secret in it is not shown; the placeholders say where it stood.".to_owned());
    }
    if let Some(form) = Form::of(approval) {
        lines.extend(form.lines());
        return lines;
    }
    for (name, value) in approval["request"].as_object().into_iter().flatten() {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        lines.push(format!("  {}: {}", one_line(name), printable(&shown).replace('\n', "\n      ")));
    }
    lines
}

fn print(text: &str) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
