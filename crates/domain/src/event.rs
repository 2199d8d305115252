//! The envelope of an event: what every fact in a run's log looks like to whoever reads it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{EventId, RunId, SessionId, Timestamp};

/// A fact in a run's log. Fields may be added, none removed; absent ones are left out; readers ignore what they do not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its place in the run's log: 1, 2, 3, … without a gap.
    pub sequence: u64,
    /// The SHA-256 of the stored bytes of the event before it, in hexadecimal; the first event has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prev_hash: Option<String>,
    /// Its own id.
    pub id: EventId,
    /// What happened, as in `run.started`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The run.
    pub run_id: RunId,
    /// The session, where the event enters one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_id: Option<SessionId>,
    /// The agent profile.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_id: Option<String>,
    /// When it was recorded.
    pub timestamp: Timestamp,
    /// The version of the payload's shape.
    pub v: u32,
    /// What there is to say about it.
    pub payload: Value,
}
