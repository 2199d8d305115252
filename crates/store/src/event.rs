//! Events on their way into the log and out of it: the bytes that are stored, hashed and served.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use runyard_domain::{BlobId, Event, EventId, RunId, SessionId, Timestamp};
use runyard_redact::Safe;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::StorageError;

/// The largest payload of an event, as JSON. What may be larger goes to a blob (see [`bounded_text`](crate::bounded_text)).
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// The longest type of an event.
const KIND_BYTES_MAX: usize = 64;
/// The longest name of an agent profile.
const AGENT_BYTES_MAX: usize = 1024;
/// The most blobs that one event refers to.
const BLOBS_MAX: usize = 64;
/// How deep a payload is nested. Readers of JSON stop at 128, and the envelope is a level too.
pub(crate) const DEPTH_MAX: usize = 120;

/// The SHA-256 of an event's stored bytes. They hold the hash of the event before it, so it stands for all before it too.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The hash of stored bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Hash(Sha256::digest(bytes).into())
    }

    /// The hash that a store kept.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Hash(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn write_hex(&self, into: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        for byte in self.0 {
            into.push(DIGITS[usize::from(byte >> 4)]);
            into.push(DIGITS[usize::from(byte & 15)]);
        }
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An event that is to be appended. It has its id and time from the beginning, so that a repeated append is the same.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Its id.
    pub id: EventId,
    /// When it happened.
    pub at: Timestamp,
    /// What happened, as in `run.started`: one of the program's own words.
    pub kind: &'static str,
    /// The session that it enters, if it does.
    pub session: Option<SessionId>,
    /// The agent profile.
    pub agent: Option<Safe<String>>,
    /// The version of the payload's shape.
    pub v: u32,
    /// What there is to say.
    pub payload: Safe<Value>,
    /// The blobs that the payload refers to. They must be there, and are kept as long as the run.
    pub blobs: Vec<BlobId>,
}

impl NewEvent {
    /// An event with nothing but what every event has.
    pub fn new(id: EventId, at: Timestamp, kind: &'static str, payload: Safe<Value>) -> Self {
        NewEvent { id, at, kind, session: None, agent: None, v: 1, payload, blobs: Vec::new() }
    }
}

/// What of an event is known before its place is: everything but sequence and hash. Made outside the writer, which has
/// only to put the place in front.
#[derive(Clone, Debug)]
pub(crate) struct EncodedEvent {
    /// The stored bytes from `"id":` on.
    rest: Vec<u8>,
    /// The blobs it refers to.
    pub(crate) blobs: Vec<BlobId>,
}

impl EncodedEvent {
    /// Encodes an event of `run`, or says why it may not be stored.
    pub(crate) fn new(run: RunId, event: NewEvent) -> Result<Self, StorageError> {
        if event.kind.is_empty() || event.kind.len() > KIND_BYTES_MAX {
            return Err(StorageError::invalid(format!("an event's type has 1 to {KIND_BYTES_MAX} bytes")));
        }
        if event.agent.as_ref().is_some_and(|agent| agent.len() > AGENT_BYTES_MAX) {
            return Err(StorageError::invalid(format!(
                "an agent's name has at most {AGENT_BYTES_MAX} bytes"
            )));
        }
        if event.blobs.len() > BLOBS_MAX {
            return Err(StorageError::invalid(format!("an event refers to at most {BLOBS_MAX} blobs")));
        }
        if is_deeper(&event.payload, DEPTH_MAX) {
            return Err(StorageError::invalid(format!("a payload is nested at most {DEPTH_MAX} deep")));
        }
        let mut rest = Vec::with_capacity(512);
        // Writing into memory cannot fail; a payload is a JSON tree already.
        let encode = |rest: &mut Vec<u8>| -> serde_json::Result<()> {
            let _ = write!(rest, "\"id\":\"{}\",\"type\":", event.id);
            serde_json::to_writer(&mut *rest, event.kind)?;
            let _ = write!(rest, ",\"runId\":\"{run}\"");
            if let Some(session) = event.session {
                let _ = write!(rest, ",\"sessionId\":\"{session}\"");
            }
            if let Some(agent) = &event.agent {
                rest.extend_from_slice(b",\"agentId\":");
                serde_json::to_writer(&mut *rest, agent)?;
            }
            let _ = write!(rest, ",\"timestamp\":\"{}\",\"v\":{},\"payload\":", event.at, event.v);
            Ok(())
        };
        encode(&mut rest).map_err(|error| unwritable(event.id, error))?;
        let envelope_bytes = rest.len();
        serde_json::to_writer(&mut rest, &event.payload).map_err(|error| unwritable(event.id, error))?;
        let payload_bytes = rest.len() - envelope_bytes;
        if payload_bytes > PAYLOAD_BYTES_MAX {
            return Err(StorageError::invalid(format!(
                "the payload of a {} event has {payload_bytes} bytes; {PAYLOAD_BYTES_MAX} are the limit",
                event.kind
            )));
        }
        rest.push(b'}');
        Ok(EncodedEvent { rest, blobs: event.blobs })
    }

    /// About how many bytes it takes in the log.
    pub(crate) fn size(&self) -> usize {
        self.rest.len() + PLACE_BYTES_MAX
    }

    /// The bytes that are stored, at this place.
    pub(crate) fn body(&self, sequence: u64, previous: Option<Hash>) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.size());
        let _ = write!(body, "{{\"sequence\":{sequence},");
        if let Some(previous) = previous {
            body.extend_from_slice(b"\"prevHash\":\"");
            previous.write_hex(&mut body);
            body.extend_from_slice(b"\",");
        }
        body.extend_from_slice(&self.rest);
        body
    }

    /// Whether stored bytes are this event's, wherever it stands.
    pub(crate) fn is_stored_as(&self, body: &[u8]) -> bool {
        body.ends_with(&self.rest)
    }
}

/// `{"sequence":18446744073709551615,"prevHash":"…64…",`
const PLACE_BYTES_MAX: usize = 112;

/// Whether a value is nested deeper than so many levels.
pub(crate) fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(fields) => levels == 0 || fields.values().any(|field| is_deeper(field, levels - 1)),
        _ => false,
    }
}

fn unwritable(id: EventId, error: serde_json::Error) -> StorageError {
    StorageError::unreadable(id, error)
}

/// An event of the log, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its place in the run's log.
    pub sequence: u64,
    /// The stored bytes: its envelope as JSON. Whoever serves an event serves these.
    pub body: Arc<[u8]>,
}

impl LoggedEvent {
    /// Its envelope.
    pub fn envelope(&self) -> Result<Event, StorageError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| StorageError::unreadable(format!("event {} of the run", self.sequence), error))
    }

    /// Its hash: what the next event carries.
    pub fn hash(&self) -> Hash {
        Hash::of(&self.body)
    }
}
