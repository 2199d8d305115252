//! What a backend says, as it may leave the edge: without secrets, without private paths, bounded, and with small pieces of text
//! put together.
//!
//! A piece of text is a preview and may wait a moment for more of its kind; everything else is passed on at once, after the
//! text that came before it. What a request is answered is not decided here.

use std::time::Duration;

use runyard_backend::link::Report;
use runyard_backend::{Ending, Redaction, Signal, Stream};
use runyard_domain::gate::{Question, Request};
use runyard_domain::run::{PlanStep, ThreadRecorded};
use runyard_redact::{Kind, Redactor};
use runyard_store::{DELTA_AGE_MAX_MS, Deltas};
use serde_json::{Value, json};
use tokio::time::Instant;

/// The longest message that is kept; the rest is left out, and said to be.
pub(crate) const TEXT_BYTES_MAX: usize = 256 * 1024;
/// The longest line: a summary, a path, an error.
pub(crate) const LINE_BYTES_MAX: usize = 4 * 1024;
/// How much of what a step prints is kept, for each of its two streams.
pub(crate) const OUTPUT_BYTES_MAX: u64 = 128 * 1024;
/// How much of what a step prints beyond that is kept as its log.
pub(crate) const LOG_BYTES_MAX: usize = 512 * 1024;
/// How much all logs that are being written may hold together.
pub(crate) const LOGS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The longest arguments of a step, as JSON.
pub(crate) const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;
/// The longest name that a backend gives to a message, a step or a request.
pub(crate) const NAME_BYTES_MAX: usize = 512;
/// How many files a change names.
pub(crate) const FILES_NAMED_MAX: usize = 1_000;
/// How many steps of a plan are kept.
pub(crate) const PLAN_STEPS_MAX: usize = 64;
/// The most that one record of a conversation holds, as JSON.
pub(crate) const THREAD_BYTES_MAX: usize = 768 * 1024;
/// How many messages and streams of steps are open at a time.
pub(crate) const LANES_MAX: usize = 1_024;

/// What a backend must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Breach {
    #[error("the backend uses a name of more than {NAME_BYTES_MAX} bytes")]
    NameTooLong,
    #[error("the backend has more than {LANES_MAX} messages and steps open")]
    TooManyOpen,
    #[error("the backend records more than {THREAD_BYTES_MAX} bytes of its conversation at once")]
    ThreadTooLong,
    #[error("the backend used the key of a request twice")]
    KeyTwice,
    #[error("the decision is about another content than what the backend asks for")]
    Drifted,
    #[error("the backend does not take the answers to its requests")]
    Deaf,
}

/// Writes down what one backend says.
pub(crate) struct Scribe {
    redactor: Redactor,
    began: Instant,
    /// In the order in which they began.
    lanes: Vec<Lane>,
}

/// A text in pieces.
struct Lane {
    of: Of,
    /// None once it is full.
    text: Option<Deltas>,
    offset: u64,
    /// What was left out and not yet said to be.
    omitted: u64,
    /// What a step printed beyond the limit, as far as it is kept.
    log: String,
    /// How much the log may hold.
    log_max: usize,
    /// How many bytes its events have no room for.
    beyond: u64,
}

#[derive(Clone, PartialEq, Eq)]
enum Of {
    Message(String),
    Output(String, Stream),
}

impl Scribe {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Scribe { redactor, began: Instant::now(), lanes: Vec::new() }
    }

    /// What a backend is given to take out itself what may not be recorded.
    pub(crate) fn redaction(&self) -> impl Redaction + 'static {
        Overseen(self.redactor.clone())
    }

    /// When text that waits is due.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        let due_ms = self.lanes.iter().filter_map(|lane| lane.text.as_ref()?.due_at_ms()).min()?;
        Some(self.began + Duration::from_millis(due_ms))
    }

    /// The text that waits, as far as it is settled.
    pub(crate) fn waiting(&mut self) -> Vec<Report> {
        let now_ms = self.now_ms() + DELTA_AGE_MAX_MS;
        self.lanes.iter_mut().flat_map(|lane| lane.due(now_ms)).collect()
    }

    /// What a signal is reported as, after the text that came before it. Not for requests.
    pub(crate) fn write(&mut self, signal: Signal) -> Result<Vec<Report>, Breach> {
        let signal = match signal {
            Signal::Delta { item, text } => {
                let of = Of::Message(self.name(&item)?);
                return self.piece(of, &text);
            }
            Signal::ToolOutput { call, stream, text } => {
                let of = Of::Output(self.name(&call)?, stream);
                return self.piece(of, &text);
            }
            signal => signal,
        };
        let signal = self.whole(signal)?;
        let mut reports = self.ended_by(&signal);
        reports.push(Report::Signal(signal));
        Ok(reports)
    }

    fn piece(&mut self, of: Of, text: &str) -> Result<Vec<Report>, Breach> {
        let now_ms = self.now_ms();
        // Text of another kind came before it and stays before it.
        let others = self.lanes.iter_mut().filter(|lane| lane.of != of);
        let mut reports: Vec<Report> = others.flat_map(|lane| lane.due(now_ms + DELTA_AGE_MAX_MS)).collect();
        let at = match self.lanes.iter().position(|lane| lane.of == of) {
            Some(at) => at,
            None if self.lanes.len() >= LANES_MAX => return Err(Breach::TooManyOpen),
            None => {
                let log_max = self.log_room(&of);
                let text = Some(Deltas::new(&self.redactor));
                self.lanes.push(Lane {
                    of,
                    text,
                    offset: 0,
                    omitted: 0,
                    log: String::new(),
                    log_max,
                    beyond: 0,
                });
                self.lanes.len() - 1
            }
        };
        reports.extend(self.lanes[at].push(text, now_ms));
        Ok(reports)
    }

    /// How much the log of another text may hold: what the others may not.
    fn log_room(&self, of: &Of) -> usize {
        let promised: usize = self.lanes.iter().map(|lane| lane.log_max).sum();
        match of {
            Of::Message(_) => 0,
            Of::Output(..) => LOG_BYTES_MAX.min(LOGS_BYTES_MAX.saturating_sub(promised)),
        }
    }

    /// The text that came before a signal, and all that is left of the texts that it ends.
    fn ended_by(&mut self, signal: &Signal) -> Vec<Report> {
        let ends = |of: &Of| match (signal, of) {
            (Signal::Message { item, .. } | Signal::BrokeOff { item, .. }, Of::Message(name)) => item == name,
            (Signal::ToolResult { call, .. }, Of::Output(name, _)) => call == name,
            (Signal::TurnEnded { .. } | Signal::Ended { .. }, _) => true,
            _ => false,
        };
        let now_ms = self.now_ms() + DELTA_AGE_MAX_MS;
        let mut reports = Vec::new();
        for mut lane in std::mem::take(&mut self.lanes) {
            if ends(&lane.of) {
                reports.extend(lane.finish());
            } else {
                reports.extend(lane.due(now_ms));
                self.lanes.push(lane);
            }
        }
        reports
    }

    fn whole(&self, signal: Signal) -> Result<Signal, Breach> {
        Ok(match signal {
            Signal::Status { phase, model, version, thread, usage } => Signal::Status {
                phase: self.line(&phase),
                model: model.map(|model| self.line(&model)),
                version: version.map(|version| self.line(&version)),
                // It is only good as it is.
                thread: thread.filter(|thread| self.line(thread) == *thread),
                usage,
            },
            Signal::Message { item, text } => {
                Signal::Message { item: self.name(&item)?, text: self.text(&text) }
            }
            Signal::BrokeOff { item, text } => {
                Signal::BrokeOff { item: self.name(&item)?, text: self.line(&text) }
            }
            Signal::Reasoning { item, text } => {
                Signal::Reasoning { item: self.name(&item)?, text: self.text(&text) }
            }
            Signal::Plan { steps } => {
                let steps = steps.into_iter().take(PLAN_STEPS_MAX);
                let step = |step: PlanStep| PlanStep { text: self.line(&step.text), ..step };
                Signal::Plan { steps: steps.map(step).collect() }
            }
            Signal::Thread(recorded) => Signal::Thread(self.thread(recorded)?),
            Signal::ToolCall { call, tool, summary, arguments, idempotent } => Signal::ToolCall {
                call: self.name(&call)?,
                tool: self.line(&tool),
                summary: self.line(&summary),
                arguments: bounded(self.redactor.json(arguments).into_inner()),
                idempotent,
            },
            Signal::ToolResult { call, outcome, code, summary } => {
                Signal::ToolResult { call: self.name(&call)?, outcome, code, summary: self.line(&summary) }
            }
            Signal::FileRead { path } => Signal::FileRead { path: self.line(&path) },
            Signal::Patch { files, summary } => {
                let more = files.len().saturating_sub(FILES_NAMED_MAX);
                let files = files.iter().take(FILES_NAMED_MAX).map(|file| self.line(file)).collect();
                let summary = self.line(&summary);
                let summary = if more > 0 { format!("{summary} ({more} more files)") } else { summary };
                Signal::Patch { files, summary }
            }
            Signal::Withdraw { key } => Signal::Withdraw { key: self.name(&key)? },
            Signal::Degraded { reason } => Signal::Degraded { reason: self.line(&reason) },
            Signal::Error { failure_kind, message, retrying } => {
                Signal::Error { failure_kind, message: self.line(&message), retrying }
            }
            Signal::Ended { ending } => Signal::Ended { ending: self.ending(ending) },
            plain => plain,
        })
    }

    /// A conversation as the backend has it already, if it kept to what it was told; else without what it overlooked.
    fn thread(&self, recorded: ThreadRecorded) -> Result<ThreadRecorded, Breach> {
        let content = |text: &str| self.redactor.content(text).into_inner();
        let bytes = serde_json::to_vec(&recorded).map_or(usize::MAX, |bytes| bytes.len());
        if bytes > THREAD_BYTES_MAX {
            return Err(Breach::ThreadTooLong);
        }
        Ok(ThreadRecorded {
            thread: self.name(&recorded.thread)?,
            after: recorded.after,
            messages: recorded.messages.into_iter().map(|message| texts(message, &content)).collect(),
            state: recorded.state.into_iter().map(|(key, value)| (key, texts(value, &content))).collect(),
        })
    }

    fn ending(&self, ending: Ending) -> Ending {
        match ending {
            Ending::Failed { failure_kind, message, cause } => {
                Ending::Failed { failure_kind, message: self.line(&message), cause }
            }
            Ending::Blocked { code, message, step } => {
                let step = step.map(|step| self.line(&step));
                Ending::Blocked { code, message: self.line(&message), step }
            }
            Ending::Died { message } => Ending::Died { message: self.line(&message) },
            Ending::Cancelled => Ending::Cancelled,
        }
    }

    /// A request as it is shown and recorded.
    pub(crate) fn request(&self, request: &Request) -> Request {
        use Request as R;
        let line = |text: &str| self.redactor.text(Kind::Text, text).into_inner();
        let content = |text: &str| self.redactor.content(text).into_inner();
        let json = |value: &Value| self.redactor.json(value.clone()).into_inner();
        match request {
            R::Read { path } => R::Read { path: line(path) },
            R::Write { path, content: text } => {
                R::Write { path: line(path), content: text.as_deref().map(content) }
            }
            R::Patch { files, patch } => {
                R::Patch { files: files.iter().map(|file| line(file)).collect(), patch: content(patch) }
            }
            R::Shell { command, cwd } => R::Shell { command: line(command), cwd: line(cwd) },
            R::Network { host, port } => R::Network { host: line(host), port: *port },
            R::GitCommit { message } => R::GitCommit { message: line(message) },
            R::GitPush { remote, branch } => R::GitPush { remote: line(remote), branch: line(branch) },
            R::Publish { target } => R::Publish { target: line(target) },
            R::Deploy { target } => R::Deploy { target: line(target) },
            R::Secret { name } => R::Secret { name: line(name) },
            R::Action { action, side_effects, input } => {
                R::Action { action: line(action), side_effects: *side_effects, input: json(input) }
            }
            R::Question(question) => R::Question(Question {
                prompt: line(&question.prompt),
                answer_schema: json(&question.answer_schema),
            }),
            R::Repeat { step } => R::Repeat { step: line(step) },
            R::Apply { base, target, stats, files, to, undo } => R::Apply {
                base: line(base),
                target: line(target),
                stats: *stats,
                files: files.iter().map(|file| line(file)).collect(),
                to: to.clone(),
                undo: *undo,
            },
        }
    }

    /// A name, which stays the same name wherever it comes again.
    pub(crate) fn name(&self, name: &str) -> Result<String, Breach> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Breach::NameTooLong);
        }
        Ok(self.redactor.text(Kind::Text, name).into_inner())
    }

    /// A short text.
    pub(crate) fn line(&self, text: &str) -> String {
        cut(self.redactor.text(Kind::Text, text).into_inner(), LINE_BYTES_MAX)
    }

    fn text(&self, text: &str) -> String {
        cut(self.redactor.text(Kind::Text, text).into_inner(), TEXT_BYTES_MAX)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX / 2)
    }
}

impl Lane {
    fn push(&mut self, text: &str, now_ms: u64) -> Vec<Report> {
        match &mut self.text {
            Some(deltas) => {
                let due = deltas.push(text.as_bytes(), now_ms);
                self.reports(due.into_iter().map(|piece| piece.into_inner()))
            }
            None => {
                self.omitted += text.len() as u64;
                self.beyond += text.len() as u64;
                Vec::new()
            }
        }
    }

    fn due(&mut self, now_ms: u64) -> Vec<Report> {
        let due = self.text.as_mut().map(|deltas| deltas.due(now_ms)).unwrap_or_default();
        self.reports(due.into_iter().map(|piece| piece.into_inner()))
    }

    fn finish(mut self) -> Vec<Report> {
        let rest = self.text.take().map(Deltas::finish).unwrap_or_default();
        let mut reports = self.reports(rest.into_iter().map(|piece| piece.into_inner()));
        let Of::Output(call, stream) = self.of else { return reports };
        let (text, offset, omitted) = (self.log, self.offset, self.omitted);
        if !text.is_empty() {
            let lost = self.beyond.saturating_sub(text.len() as u64);
            reports.push(Report::Log { call, stream, text, offset, omitted, lost });
        } else if omitted > 0 {
            reports.push(Report::Output { call, stream, text, offset, omitted });
        }
        reports
    }

    /// The pieces as reports, as far as there is room for them; of what a step prints beyond that, as much as its log holds.
    fn reports(&mut self, pieces: impl Iterator<Item = String>) -> Vec<Report> {
        let mut reports = Vec::new();
        for mut text in pieces {
            let max = match self.of {
                Of::Message(_) => TEXT_BYTES_MAX as u64,
                Of::Output(..) => OUTPUT_BYTES_MAX,
            };
            let room = usize::try_from(max.saturating_sub(self.offset)).unwrap_or(usize::MAX);
            let kept = text.floor_char_boundary(room);
            let omitted = (text.len() - kept) as u64;
            self.log(&text[kept..]);
            self.beyond += omitted;
            text.truncate(kept);
            if omitted > 0
                && self.log.len() >= self.log_max
                && let Some(deltas) = self.text.take()
            {
                let rest = deltas.finish().iter().map(|piece| piece.len() as u64).sum::<u64>();
                self.omitted += rest;
                self.beyond += rest;
            }
            if text.is_empty() {
                self.omitted += omitted;
                continue;
            }
            let offset = self.offset;
            self.offset += text.len() as u64 + omitted;
            reports.push(match &self.of {
                Of::Message(item) => Report::Delta { item: item.clone(), text, offset },
                Of::Output(call, stream) => {
                    Report::Output { call: call.clone(), stream: *stream, text, offset, omitted }
                }
            });
        }
        reports
    }

    /// Keeps what its events have no room for.
    fn log(&mut self, text: &str) {
        let room = self.log_max - self.log.len();
        let kept = text.floor_char_boundary(room);
        self.log.push_str(&text[..kept]);
        if kept < text.len() {
            // Whole: what comes later would leave a gap.
            self.log_max = self.log.len();
        }
    }
}

/// The beginning of a text that is too long, with a word about the rest.
fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let kept = text.floor_char_boundary(bytes_max);
        let omitted = text.len() - kept;
        text.truncate(kept);
        text.push_str(&format!("\n… {omitted} bytes left out"));
    }
    text
}

/// The value with each of its texts as `change` gives it.
fn texts(value: Value, change: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(&text)),
        Value::Array(values) => values.into_iter().map(|value| texts(value, change)).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, texts(value, change))).collect(),
        plain => plain,
    }
}

/// What an adapter may ask: the same redaction as what it says goes through.
struct Overseen(Redactor);

impl Redaction for Overseen {
    fn content(&self, text: &str) -> String {
        self.0.content(text).into_inner()
    }

    fn arguments(&self, arguments: Value) -> Value {
        self.0.json(arguments).into_inner()
    }
}

/// Arguments that are too long are only said to have been there.
fn bounded(arguments: Value) -> Value {
    match arguments.to_string().len() {
        bytes if bytes > ARGUMENTS_BYTES_MAX => json!({ "omittedBytes": bytes }),
        _ => arguments,
    }
}

/// A request that is too long for the record, without what makes it so.
pub(crate) fn shortened(request: Request) -> Request {
    use Request as R;
    let line = |text: String| cut(text, LINE_BYTES_MAX);
    match request {
        R::Read { path } => R::Read { path: line(path) },
        R::Write { path, .. } => R::Write { path: line(path), content: None },
        R::Patch { files, patch } => {
            let files = files.into_iter().take(FILES_NAMED_MAX).map(line).collect();
            R::Patch { files, patch: line(patch) }
        }
        R::Shell { command, cwd } => R::Shell { command: line(command), cwd: line(cwd) },
        R::Network { host, port } => R::Network { host: line(host), port },
        R::GitCommit { message } => R::GitCommit { message: line(message) },
        R::GitPush { remote, branch } => R::GitPush { remote: line(remote), branch: line(branch) },
        R::Publish { target } => R::Publish { target: line(target) },
        R::Deploy { target } => R::Deploy { target: line(target) },
        R::Secret { name } => R::Secret { name: line(name) },
        R::Action { action, side_effects, input } => {
            R::Action { action: line(action), side_effects, input: bounded(input) }
        }
        R::Question(Question { prompt, .. }) => {
            R::Question(Question { prompt: line(prompt), answer_schema: Value::Null })
        }
        R::Apply { base, target, stats, files, to, undo } => {
            let files = files.into_iter().map(line).collect();
            R::Apply { base: line(base), target: line(target), stats, files, to, undo }
        }
        R::Repeat { step } => R::Repeat { step: line(step) },
    }
}
