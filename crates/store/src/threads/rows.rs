//! What a store of threads gives back.

use std::sync::Arc;

use runyard_domain::Timestamp;
use serde_json::Value;

use crate::{AgentRunId, KeyDigest, LeaseRow, StorageError, ThreadId};

/// A page that is as large as this ends there, whatever its limit is. It has at least one row.
pub const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A thread, as its row shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    /// The thread.
    pub id: ThreadId,
    /// How many messages it has.
    pub version: u64,
    /// How many runs it has had.
    pub runs: u64,
    /// The run that has not finished, if there is one. There is never more than one.
    pub unfinished: Option<AgentRunId>,
    /// The number of the last claim; what every commit must carry.
    pub generation: u64,
    /// Who writes to it, if somebody does; the claim may have run out.
    pub holder: Option<ThreadHolder>,
    /// When it was made.
    pub created: Timestamp,
    /// When something was last committed to it.
    pub updated: Timestamp,
    /// What it was made with, as JSON.
    pub metadata: Vec<u8>,
}

/// Who writes to a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadHolder {
    /// For which run.
    pub run: AgentRunId,
    /// Who, and until when.
    pub lease: LeaseRow,
}

/// A message, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its place in the thread, from 1.
    pub position: u64,
    /// The stored bytes, as JSON.
    pub body: Arc<[u8]>,
}

impl StoredMessage {
    /// What it says.
    pub fn payload(&self) -> Result<Value, StorageError> {
        stored_json(format_args!("message {} of the thread", self.position), &self.body)
    }
}

/// A value of a thread's or a run's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateValue {
    /// Its key.
    pub key: String,
    /// The value, as JSON.
    pub value: Vec<u8>,
}

/// A run's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRunRow {
    /// The run.
    pub id: AgentRunId,
    /// Its thread.
    pub thread: ThreadId,
    /// Its place among the thread's runs, from 1.
    pub number: u64,
    /// Where it stands, in a word.
    pub status: String,
    /// Whether it is over. Then nothing is written to it any more.
    pub finished: bool,
    /// What else is recorded, as JSON.
    pub payload: Vec<u8>,
    /// When it was first recorded.
    pub created: Timestamp,
    /// When its record last changed.
    pub updated: Timestamp,
}

/// A tool call in a run's journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCallRow {
    /// Its place in the journal. Later calls have higher ones; they need not go up by one.
    pub place: u64,
    /// The call's id within the run.
    pub call: String,
    /// What stands for the call where it must not happen twice.
    pub key: KeyDigest,
    /// What was about to be done, as JSON.
    pub intent: Vec<u8>,
    /// What came of it, as JSON, if that is known.
    pub result: Option<Vec<u8>>,
}

/// The answer to who wants to write to a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// It is theirs.
    Granted(Claim),
    /// Another run, or another owner of the same one, has it.
    Held {
        /// Which run.
        run: AgentRunId,
        /// Whose.
        owner: String,
        /// Until when, unless renewed.
        expires: Timestamp,
    },
}

/// A claim that was granted, and where the thread stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What every commit under it must carry.
    pub generation: u64,
    /// When it runs out, by the database's clock.
    pub expires: Timestamp,
    /// How many messages there are: what the first commit expects.
    pub version: u64,
    /// The run that has not finished, if there is one. Until it has, no other run of the thread can be recorded.
    pub unfinished: Option<AgentRunId>,
}

/// A commit that is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// How many messages there are with it.
    pub version: u64,
}

/// What stored bytes say; `record` names them where they cannot be read.
pub fn stored_json(record: impl std::fmt::Display, bytes: &[u8]) -> Result<Value, StorageError> {
    serde_json::from_slice(bytes).map_err(|error| StorageError::unreadable(record, error))
}
