//! A script: turns of steps, as a data file says them. A key that nobody knows is an error with its line.

use std::fmt;
use std::path::PathBuf;

use runyard_domain::Code;
use runyard_domain::run::{FailureKind, Usage};
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

/// The largest script, in bytes.
pub const SCRIPT_BYTES_MAX: usize = 256 * 1024;
/// The most steps of a script, repetitions counted.
pub const STEPS_MAX: usize = 10_000;
/// The longest text of a step, in bytes.
pub const TEXT_BYTES_MAX: usize = 32 * 1024;

/// What a scripted agent does, turn by turn. Past the last turn it does the last one again.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Never empty.
    pub(super) turns: Vec<Vec<Step>>,
}

/// One thing that a scripted agent does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// It says a text, piece by piece.
    Say(String),
    /// It says one message of so many pieces.
    Deltas { count: usize, piece: String },
    /// It reads a file.
    Read { path: String, or_first: bool, then_say: Option<String>, on_denied: OnDenied },
    /// It runs a command.
    Shell { command: String, idempotent: bool, on_denied: OnDenied },
    /// It writes a file.
    Write { path: String, content: String, on_denied: OnDenied },
    /// It asks a person.
    Ask { prompt: String, schema: Value, then_say: Option<String>, on_denied: OnDenied },
    /// It says what is known of it.
    Status { model: Option<String>, usage: Option<Usage> },
    /// It says that something failed, and goes on.
    Error { message: String, failure_kind: Option<FailureKind>, retrying: bool },
    /// It says that something cannot be relied on.
    Degraded(String),
    /// It comes to its end.
    Fail { failure_kind: FailureKind, message: String },
    /// It cannot go on.
    Block { code: Code, message: String },
    /// It waits for a word into its turn.
    WaitForCommand,
}

/// What a no means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnDenied {
    /// It goes on with the next step.
    #[default]
    Continue,
    /// It ends the turn.
    Stop,
}

/// Why a script cannot be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// There is no such script.
    #[error("there is no script \"{name}\"; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The file cannot be read.
    #[error("cannot read the script {}: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It is no TOML, or a key or value of it is not known.
    #[error("line {line} of the script: {}", source.message())]
    Syntax {
        /// Where.
        line: usize,
        /// What the reader says of it.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A step makes no sense.
    #[error("line {line} of the script: {problem}")]
    Step {
        /// Where the step begins.
        line: usize,
        /// What is wrong.
        problem: Problem,
    },
    /// It is larger than a script may be.
    #[error("the script has more {what} than {max}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The most.
        max: usize,
    },
    /// It says nothing to do.
    #[error("the script has no turn")]
    Empty,
}

/// What is wrong with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// It says nothing to do, or two things at once.
    NotOneThing,
    /// This key says nothing in a step of this kind.
    Stray(&'static str),
    /// This key is needed in a step of this kind.
    Missing(&'static str),
    /// This key's value is out of range.
    OutOfRange(&'static str),
    /// There is no such error code.
    UnknownCode,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NotOneThing => write!(f, "a step does exactly one of {}", KINDS.join(", ")),
            Problem::Stray(key) => write!(f, "\"{key}\" says nothing in this step"),
            Problem::Missing(key) => write!(f, "this step needs \"{key}\""),
            Problem::OutOfRange(key) => write!(f, "\"{key}\" is out of range"),
            Problem::UnknownCode => f.write_str("there is no such error code"),
        }
    }
}

impl Script {
    /// Reads a script.
    pub fn read(text: &str) -> Result<Script, ScriptError> {
        if text.len() > SCRIPT_BYTES_MAX {
            return Err(ScriptError::TooLarge { what: "bytes", max: SCRIPT_BYTES_MAX });
        }
        let file: File = toml::from_str(text).map_err(|source| {
            let line = line_of(text, source.span().map_or(0, |span| span.start));
            ScriptError::Syntax { line, source: Box::new(source) }
        })?;
        let mut turns = Vec::new();
        let mut steps_total = 0;
        for turn in file.turn {
            let mut steps = Vec::new();
            for step in turn.step {
                let line = line_of(text, step.span().start);
                let (step, times) =
                    step.into_inner().read().map_err(|problem| ScriptError::Step { line, problem })?;
                steps_total += times;
                if steps_total > STEPS_MAX {
                    return Err(ScriptError::TooLarge { what: "steps", max: STEPS_MAX });
                }
                steps.extend(std::iter::repeat_n(step, times));
            }
            turns.push(steps);
        }
        if turns.is_empty() { Err(ScriptError::Empty) } else { Ok(Script { turns }) }
    }

    /// The steps of a turn, counted from 1; past the last one it is the last one again.
    pub(super) fn turn(&self, number: usize) -> &[Step] {
        self.turns.get(number.saturating_sub(1)).or(self.turns.last()).map_or(&[], Vec::as_slice)
    }

    /// How many turns and steps it has.
    pub fn size(&self) -> (usize, usize) {
        (self.turns.len(), self.turns.iter().map(Vec::len).sum())
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    turn: Vec<Turn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    #[serde(default)]
    step: Vec<Spanned<Entry>>,
}

/// The keys of which a step has exactly one.
const KINDS: [&str; 12] = [
    "say",
    "deltas",
    "read",
    "shell",
    "write",
    "ask",
    "status",
    "error",
    "degraded",
    "fail",
    "block",
    "wait_for_command",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    say: Option<String>,
    deltas: Option<usize>,
    read: Option<String>,
    shell: Option<String>,
    write: Option<String>,
    ask: Option<String>,
    status: Option<StatusEntry>,
    error: Option<String>,
    degraded: Option<String>,
    fail: Option<FailureKind>,
    block: Option<String>,
    wait_for_command: Option<bool>,
    repeat: Option<usize>,
    piece: Option<String>,
    or_first: Option<bool>,
    then_say: Option<String>,
    idempotent: Option<bool>,
    on_denied: Option<OnDenied>,
    content: Option<String>,
    schema: Option<Value>,
    failure_kind: Option<FailureKind>,
    retrying: Option<bool>,
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusEntry {
    model: Option<String>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cost_usd: Option<f64>,
}

impl StatusEntry {
    fn read(self) -> Step {
        let (input_tokens, output_tokens, cost_usd) = (self.input_tokens, self.output_tokens, self.cost_usd);
        let known = input_tokens.is_some() || output_tokens.is_some() || cost_usd.is_some();
        Step::Status {
            model: self.model,
            usage: known.then_some(Usage { input_tokens, output_tokens, cost_usd }),
        }
    }
}

impl Entry {
    /// The step, and how often it is done.
    fn read(mut self) -> Result<(Step, usize), Problem> {
        let times = self.repeat.take().unwrap_or(1);
        if !(1..=STEPS_MAX).contains(&times) {
            return Err(Problem::OutOfRange("repeat"));
        }
        if self.kinds() != 1 {
            return Err(Problem::NotOneThing);
        }
        let step = self.take_step()?;
        match self.stray() {
            Some(key) => Err(Problem::Stray(key)),
            None => Ok((step, times)),
        }
    }

    fn kinds(&self) -> usize {
        [
            self.say.is_some(),
            self.deltas.is_some(),
            self.read.is_some(),
            self.shell.is_some(),
            self.write.is_some(),
            self.ask.is_some(),
            self.status.is_some(),
            self.error.is_some(),
            self.degraded.is_some(),
            self.fail.is_some(),
            self.block.is_some(),
            self.wait_for_command == Some(true),
        ]
        .into_iter()
        .filter(|there| *there)
        .count()
    }

    /// Takes what its kind needs; whatever is left is stray.
    fn take_step(&mut self) -> Result<Step, Problem> {
        if let Some(text) = self.say.take() {
            return Ok(Step::Say(within("say", text)?));
        }
        if let Some(count) = self.deltas.take() {
            let piece = within("piece", self.piece.take().unwrap_or_else(|| "word ".to_owned()))?;
            // More than one message holds is said with `repeat`.
            let fits = count > 0 && count.saturating_mul(piece.len().max(1)) <= TEXT_BYTES_MAX;
            return if fits { Ok(Step::Deltas { count, piece }) } else { Err(Problem::OutOfRange("deltas")) };
        }
        if let Some(path) = self.read.take() {
            let or_first = self.or_first.take().unwrap_or_default();
            let (path, then_say) = (normal("read", path)?, self.take_then_say()?);
            return Ok(Step::Read { path, or_first, then_say, on_denied: self.no_means() });
        }
        if let Some(command) = self.shell.take() {
            let idempotent = self.idempotent.take().unwrap_or_default();
            let command = within("shell", command)?;
            return Ok(Step::Shell { command, idempotent, on_denied: self.no_means() });
        }
        if let Some(path) = self.write.take() {
            let content = within("content", self.content.take().ok_or(Problem::Missing("content"))?)?;
            let path = normal("write", path)?;
            return Ok(Step::Write { path, content, on_denied: self.no_means() });
        }
        if let Some(prompt) = self.ask.take() {
            let schema = self.schema.take().ok_or(Problem::Missing("schema"))?;
            let (prompt, then_say) = (within("ask", prompt)?, self.take_then_say()?);
            return Ok(Step::Ask { prompt, schema, then_say, on_denied: self.no_means() });
        }
        self.take_word()
    }

    /// The kinds that only say something about the backend.
    fn take_word(&mut self) -> Result<Step, Problem> {
        if let Some(status) = self.status.take() {
            return Ok(status.read());
        }
        if let Some(message) = self.error.take() {
            let (failure_kind, retrying) = (self.failure_kind.take(), self.retrying.take());
            let message = within("error", message)?;
            return Ok(Step::Error { message, failure_kind, retrying: retrying.unwrap_or_default() });
        }
        if let Some(reason) = self.degraded.take() {
            return Ok(Step::Degraded(within("degraded", reason)?));
        }
        if let Some(failure_kind) = self.fail.take() {
            return Ok(Step::Fail { failure_kind, message: self.take_message()? });
        }
        if let Some(code) = self.block.take() {
            let code = Code::parse(&code).ok_or(Problem::UnknownCode)?;
            return Ok(Step::Block { code, message: self.take_message()? });
        }
        self.wait_for_command = None;
        Ok(Step::WaitForCommand)
    }

    fn take_message(&mut self) -> Result<String, Problem> {
        within("message", self.message.take().ok_or(Problem::Missing("message"))?)
    }

    fn take_then_say(&mut self) -> Result<Option<String>, Problem> {
        self.then_say.take().map(|text| within("then_say", text)).transpose()
    }

    fn no_means(&mut self) -> OnDenied {
        self.on_denied.take().unwrap_or_default()
    }

    fn stray(&self) -> Option<&'static str> {
        let left = [
            ("piece", self.piece.is_some()),
            ("or_first", self.or_first.is_some()),
            ("then_say", self.then_say.is_some()),
            ("idempotent", self.idempotent.is_some()),
            ("on_denied", self.on_denied.is_some()),
            ("content", self.content.is_some()),
            ("schema", self.schema.is_some()),
            ("failure_kind", self.failure_kind.is_some()),
            ("retrying", self.retrying.is_some()),
            ("message", self.message.is_some()),
            ("wait_for_command", self.wait_for_command.is_some()),
        ];
        left.into_iter().find(|(_, there)| *there).map(|(key, _)| key)
    }
}

fn within(key: &'static str, text: String) -> Result<String, Problem> {
    if text.len() <= TEXT_BYTES_MAX { Ok(text) } else { Err(Problem::OutOfRange(key)) }
}

/// A path as requests name it: without `..`.
fn normal(key: &'static str, path: String) -> Result<String, Problem> {
    if path.split('/').any(|part| part == "..") { Err(Problem::OutOfRange(key)) } else { within(key, path) }
}
