//! What an invocation gathers while it runs: logs, progress and artifacts, in order, bounded, frozen at the end.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use jiff::Timestamp;
use runyard_domain::ArtifactId;
use runyard_redact::process;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::fresh::id_parts;
use crate::safe_json::{check_limits, to_safe_value};
use crate::{Artifact, LogEntry, LogLevel, UnsafeJson};

/// Log entries and artifacts beyond this number are dropped and counted.
pub(crate) const ENTRIES_MAX: usize = 10_000;
/// So many bytes of entries are kept.
pub(crate) const RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// So many entries that no longer fit the envelope wait for a follower.
const BACKLOG_MAX: usize = 1024;
/// What an entry takes beside its own texts.
const ENTRY_BYTES: usize = 96;
/// One message or one set of fields may be so large.
pub(crate) const ENTRY_BYTES_MAX: usize = 64 * 1024;

/// Structured fields of a log entry: always safe JSON, credentials taken out by key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// No fields.
    pub fn new() -> Self {
        Fields::default()
    }

    /// Adds a field. A value that is not safe JSON is replaced by a marker that says why.
    pub fn insert<T: Serialize + ?Sized>(&mut self, key: impl Into<String>, value: &T) {
        self.0.insert(key.into(), safe_or_marker(value));
    }

    /// The same fields and one more.
    #[must_use]
    pub fn with<T: Serialize + ?Sized>(mut self, key: impl Into<String>, value: &T) -> Self {
        self.insert(key, value);
        self
    }

    /// The value of a field.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    pub(crate) fn from_map(map: Map<String, Value>) -> Self {
        Fields(map)
    }
}

/// Structured fields for a log entry: `fields! { title: task.title, count: 3 }`.
#[macro_export]
macro_rules! fields {
    ($($key:ident: $value:expr),* $(,)?) => {
        $crate::Fields::new()$(.with(stringify!($key), &$value))*
    };
}

fn safe_or_marker<T: Serialize + ?Sized>(value: &T) -> Value {
    let safe = to_safe_value(value).and_then(|value| check_limits(&value, ENTRY_BYTES_MAX).map(|_| value));
    safe.unwrap_or_else(|reason| marker(&reason))
}

/// A progress report: `Progress::percent(40.0).message("copying")`.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    percent: Option<f64>,
    message: Option<String>,
    fields: Fields,
}

impl Progress {
    /// How far it is, from 0 to 100; what lies outside is brought inside, and what is no number is left out.
    pub fn percent(percent: f64) -> Self {
        let percent = percent.is_finite().then(|| percent.clamp(0.0, 100.0));
        Progress { percent, ..Progress::default() }
    }

    /// A step without a known percentage.
    pub fn step(message: impl Into<String>) -> Self {
        Progress::default().message(message)
    }

    /// What is going on.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// More about it. `type` and `percent` are the report's own and cannot be overwritten.
    #[must_use]
    pub fn field<T: Serialize + ?Sized>(mut self, key: impl Into<String>, value: &T) -> Self {
        self.fields.insert(key, value);
        self
    }

    fn into_parts(self) -> (String, Fields) {
        let mut map = self.fields.0;
        map.remove("percent");
        map.insert("type".to_owned(), json!("progress"));
        if let Some(percent) = self.percent {
            // 40 and not 40.0, as every other surface would write it.
            let whole = percent.fract() == 0.0;
            map.insert("percent".to_owned(), if whole { json!(percent as u64) } else { json!(percent) });
        }
        (self.message.unwrap_or_else(|| "Progress update.".to_owned()), Fields(map))
    }
}

impl Artifact {
    /// An artifact of type `file` with a name and a generated id.
    pub fn named(name: impl Into<String>) -> Self {
        Artifact {
            id: String::new(),
            kind: String::new(),
            name: Some(name.into()),
            mime_type: None,
            uri: None,
            size_bytes: None,
            metadata: Map::new(),
        }
    }

    /// Sets the kind; `file` by default.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = kind.into();
        self
    }

    /// Sets the media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Sets where its bytes are.
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// Sets how many bytes there are.
    #[must_use]
    pub fn size_bytes(mut self, size_bytes: u64) -> Self {
        self.size_bytes = Some(size_bytes);
        self
    }

    /// Sets the metadata; what is no object becomes `{"value": …}`.
    #[must_use]
    pub fn metadata<T: Serialize + ?Sized>(mut self, metadata: &T) -> Self {
        self.metadata = object_of(safe_or_marker(metadata));
        self
    }

    /// Reads what a program in another language describes.
    pub(crate) fn from_json(mut object: Map<String, Value>) -> Self {
        let mut text = |key: &str| match object.remove(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (id, kind) = (text("id").unwrap_or_default(), text("type").unwrap_or_default());
        let (name, mime_type, uri) = (text("name"), text("mimeType"), text("uri"));
        let size_bytes = object.get("sizeBytes").and_then(Value::as_u64);
        let metadata = object_of(object.remove("metadata").unwrap_or(Value::Null));
        Artifact { id, kind, name, mime_type, uri, size_bytes, metadata }
    }

    fn normalised(mut self) -> Self {
        if self.id.is_empty() {
            let (unix_ms, random) = id_parts();
            self.id = ArtifactId::from_parts(unix_ms, &random).to_string();
        }
        if self.kind.is_empty() {
            self.kind = "file".to_owned();
        }
        for text in [&mut self.name, &mut self.uri].into_iter().flatten() {
            *text = process::text(text);
        }
        let mut metadata = Value::Object(std::mem::take(&mut self.metadata));
        process::value(&mut metadata);
        self.metadata = object_of(metadata);
        for value in self.metadata.values_mut() {
            if let Err(reason) = check_limits(value, ENTRY_BYTES_MAX) {
                *value = marker(&reason);
            }
        }
        self
    }

    fn bytes(&self) -> usize {
        let texts = [
            Some(&self.id),
            Some(&self.kind),
            self.name.as_ref(),
            self.mime_type.as_ref(),
            self.uri.as_ref(),
        ];
        ENTRY_BYTES + texts.into_iter().flatten().map(String::len).sum::<usize>() + bytes_of(&self.metadata)
    }
}

/// What stands where a value is not safe JSON.
fn marker(reason: &UnsafeJson) -> Value {
    Value::String(format!("[not safe JSON: {reason}]"))
}

/// Measured value by value, since each may be nested as deep as a value may. More than fits when one is not safe.
fn bytes_of(map: &Map<String, Value>) -> usize {
    let sizes = map.iter().map(|(key, value)| Ok(key.len() + 3 + check_limits(value, RECORD_BYTES_MAX)?));
    sizes.sum::<Result<usize, UnsafeJson>>().unwrap_or(RECORD_BYTES_MAX)
}

/// To the millisecond, as it is written, so that an envelope reads back equal.
fn now() -> Timestamp {
    Timestamp::from_millisecond(Timestamp::now().as_millisecond()).unwrap_or_default()
}

fn object_of(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        Value::Null => Map::new(),
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}

/// One thing that was gathered, in the order it came.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Log(LogEntry),
    Artifact(Artifact),
}

/// The gathering place of one invocation.
#[derive(Debug, Default)]
pub(crate) struct Record(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    entries: Vec<Entry>,
    bytes: usize,
    dropped: u64,
    /// Set when the envelope is made: what comes later is dropped, so the envelope never changes.
    sealed: bool,
    follower: Option<Box<Follower>>,
    attempt: Option<CancellationToken>,
}

#[derive(Debug, Default)]
struct Follower {
    seen: usize,
    waker: Option<Waker>,
    /// What comes after the entries of the record: first what no longer fitted it, and once it is sealed all that was left.
    rest: VecDeque<Entry>,
}

impl Record {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn log(&self, level: LogLevel, message: String, fields: Fields) {
        let mut fields = Value::Object(fields.0);
        process::value(&mut fields);
        let mut message = message;
        if message.len() > ENTRY_BYTES_MAX {
            let cut = (0..=ENTRY_BYTES_MAX).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
            message.truncate(cut);
            message.push('…');
        }
        let message = process::text(&message);
        let fields = object_of(fields);
        let bytes = ENTRY_BYTES + message.len() + bytes_of(&fields);
        self.push(Entry::Log(LogEntry { level, message, time: now(), fields: Fields(fields) }), bytes);
    }

    pub(crate) fn progress(&self, progress: Progress) {
        let (message, fields) = progress.into_parts();
        self.log(LogLevel::Info, message, fields);
    }

    pub(crate) fn artifact(&self, artifact: Artifact) -> Artifact {
        let artifact = artifact.normalised();
        self.push(Entry::Artifact(artifact.clone()), artifact.bytes());
        artifact
    }

    fn push(&self, entry: Entry, bytes: usize) {
        let mut state = self.state();
        if state.sealed {
            return;
        }
        let fits = state.entries.len() < ENTRIES_MAX && state.bytes + bytes <= RECORD_BYTES_MAX;
        if fits {
            state.bytes += bytes;
            state.entries.push(entry);
        } else {
            state.dropped += 1;
            // The envelope is full, but whoever follows still sees it.
            if let Some(follower) =
                state.follower.as_mut().filter(|follower| follower.rest.len() < BACKLOG_MAX)
            {
                follower.rest.push_back(entry);
            }
        }
        if let Some(waker) = state.follower.as_mut().and_then(|follower| follower.waker.take()) {
            drop(state);
            waker.wake();
        }
    }

    /// Ends the gathering and hands out what there is. Only the first call gets it.
    pub(crate) fn seal(&self) -> (Vec<LogEntry>, Vec<Artifact>) {
        let mut state = self.state();
        state.sealed = true;
        if let Some(token) = state.attempt.take() {
            token.cancel();
        }
        let mut entries = std::mem::take(&mut state.entries);
        let notice = (state.dropped > 0).then(|| {
            let message = "Some log entries and artifacts were dropped: the limit was reached.".to_owned();
            let fields = Fields::new().with("dropped", &state.dropped);
            Entry::Log(LogEntry { level: LogLevel::Warn, message, time: now(), fields })
        });
        state.dropped = 0;
        if let Some(follower) = &mut state.follower {
            let unseen = entries.iter().skip(follower.seen).cloned();
            follower.rest = unseen.chain(std::mem::take(&mut follower.rest)).chain(notice.clone()).collect();
        }
        entries.extend(notice);
        drop(state);
        if entries.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let (mut logs, mut artifacts) = (Vec::with_capacity(entries.len()), Vec::new());
        for entry in entries {
            match entry {
                Entry::Log(log) => logs.push(log),
                Entry::Artifact(artifact) => artifacts.push(artifact),
            }
        }
        (logs, artifacts)
    }

    /// Says that somebody will call [`next`](Self::next).
    pub(crate) fn follow(&self) {
        self.state().follower = Some(Box::default());
    }

    /// The next entry that the follower has not seen, or its waker is kept for when there is one.
    pub(crate) fn next(&self, waker: &Waker) -> Poll<Entry> {
        let mut state = self.state();
        let State { entries, follower, .. } = &mut *state;
        let Some(follower) = follower else { return Poll::Pending };
        if let Some(entry) = entries.get(follower.seen) {
            follower.seen += 1;
            return Poll::Ready(entry.clone());
        }
        if let Some(entry) = follower.rest.pop_front() {
            return Poll::Ready(entry);
        }
        follower.waker = Some(waker.clone());
        Poll::Pending
    }

    /// The token of the attempt that runs now; made when somebody asks for it.
    pub(crate) fn attempt_token(&self) -> CancellationToken {
        let mut state = self.state();
        let sealed = state.sealed;
        let token = state.attempt.get_or_insert_default().clone();
        if sealed {
            token.cancel();
        }
        token
    }

    /// Tells whatever the attempt left running that the attempt is over.
    pub(crate) fn end_attempt(&self) {
        if let Some(token) = self.state().attempt.take() {
            token.cancel();
        }
    }
}
