//! The envelope: what every invocation returns, whatever happened.

use std::sync::Arc;

use jiff::Timestamp;
use runyard_domain::run::FailureKind;
use runyard_domain::{ErrorCode, InvocationId, Surface};
use serde::de::Error as _;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Fields, Issue};

/// The result of one invocation. Once returned it does not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// The data, or what went wrong.
    pub outcome: Result<Value, Failure>,
    /// What the action produced to look at, also when it failed later.
    pub artifacts: Vec<Artifact>,
    /// What the action logged, also when it failed later.
    pub logs: Vec<LogEntry>,
    /// Which invocation this was.
    pub meta: Meta,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// A code of the error table, or the application's own.
    pub code: ErrorCode,
    /// A message that is safe to show.
    pub message: String,
    /// Where the input or output was wrong.
    pub issues: Vec<Issue>,
    /// Whether repeating the same call may succeed.
    pub retryable: bool,
    /// How long to wait before repeating, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The kind of a backend's failure, where the code is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_kind: Option<FailureKind>,
}

/// Which invocation an envelope belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// The action's name as asked; absent only where a payload named none.
    pub action: Option<Arc<str>>,
    /// This invocation.
    pub invocation_id: InvocationId,
    /// Where it was called from.
    #[serde(deserialize_with = "any_surface")]
    pub surface: Surface,
    /// How long it took, waits included.
    pub duration_ms: u64,
    /// Present when an idempotency key gave an earlier result again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<Replayed>,
}

/// Marks an envelope that repeats an earlier invocation's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replayed {
    /// The handler did not run again.
    Replayed,
}

/// How important a log entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For those who look for a fault.
    Debug,
    /// What goes on.
    Info,
    /// Something to look at.
    Warn,
    /// Something failed.
    Error,
}

/// One structured log entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// How important it is.
    pub level: LogLevel,
    /// What happened.
    pub message: String,
    /// When.
    #[serde(serialize_with = "milliseconds")]
    pub time: Timestamp,
    /// More about it; always safe JSON.
    pub fields: Fields,
}

/// Something an action produced to look at: its description, not its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Unique among the invocation's artifacts.
    pub id: String,
    /// What kind of thing it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Where its bytes are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// How many bytes there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// More about it; always an object.
    pub metadata: Map<String, Value>,
}

impl Envelope {
    /// Whether the invocation succeeded.
    pub fn is_ok(&self) -> bool {
        self.outcome.is_ok()
    }

    /// The data of a success.
    pub fn data(&self) -> Option<&Value> {
        self.outcome.as_ref().ok()
    }

    /// What went wrong, of a failure.
    pub fn error(&self) -> Option<&Failure> {
        self.outcome.as_ref().err()
    }

    /// The process exit code that a command line gives for this envelope.
    pub fn exit_code(&self) -> u8 {
        self.error().map_or(0, |failure| failure.code.row().exit)
    }

    /// The HTTP status for this envelope.
    pub fn http_status(&self) -> u16 {
        self.error().map_or(200, |failure| failure.code.row().http)
    }
}

impl Serialize for Envelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Envelope", 5)?;
        object.serialize_field("ok", &self.is_ok())?;
        match &self.outcome {
            Ok(data) => object.serialize_field("data", data)?,
            Err(failure) => object.serialize_field("error", failure)?,
        }
        object.serialize_field("artifacts", &self.artifacts)?;
        object.serialize_field("logs", &self.logs)?;
        object.serialize_field("meta", &self.meta)?;
        object.end()
    }
}

impl<'de> Deserialize<'de> for Envelope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            ok: bool,
            data: Option<Value>,
            error: Option<Failure>,
            artifacts: Vec<Artifact>,
            logs: Vec<LogEntry>,
            meta: Meta,
        }
        let wire = Wire::deserialize(deserializer)?;
        let outcome = match (wire.ok, wire.error) {
            (true, None) => Ok(wire.data.unwrap_or(Value::Null)),
            (false, Some(failure)) if wire.data.is_none() => Err(failure),
            _ => return Err(D::Error::custom("an envelope has data when ok, and an error when not")),
        };
        Ok(Envelope { outcome, artifacts: wire.artifacts, logs: wire.logs, meta: wire.meta })
    }
}

/// Reads a surface back, also the one that cannot come in from outside.
fn any_surface<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Surface, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name == Surface::Code.as_str() { Ok(Surface::Code) } else { name.parse().map_err(D::Error::custom) }
}

/// RFC 3339 in UTC with milliseconds.
fn milliseconds<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{time:.3}"))
}
