//! Commits on their way in: checked and encoded, before they wait for a writer.

use std::collections::BTreeMap;

use runyard_domain::AppendId;
use runyard_redact::Safe;
use serde_json::Value;

use super::commit::{
    COMMIT_BYTES_MAX, COMMIT_MESSAGES_MAX, COMMIT_ROWS_MAX, ClaimAfter, JournalWrite, KEY_BYTES_MAX,
    MESSAGE_BYTES_MAX, RunWrite, Scope, ThreadCommit, ThreadWrites, ValueWrite,
};
use crate::event::{DEPTH_MAX, is_deeper};
use crate::{AgentRunId, KeyDigest, StorageError, ThreadId};

/// Values that are set, or removed where there is none.
pub type Values = BTreeMap<(Scope, String), Option<Vec<u8>>>;

/// A commit whose rows are encoded: done before it waits for the writer.
#[derive(Debug)]
pub struct PreparedCommit {
    /// The thread.
    pub thread: ThreadId,
    /// The run.
    pub run: AgentRunId,
    /// The commit's id.
    pub append: AppendId,
    pub(super) generation: u64,
    pub(super) expected: u64,
    pub(super) messages: Vec<Vec<u8>>,
    pub(super) values: Values,
    pub(super) journal: Vec<Entry>,
    pub(super) record: Option<Record>,
    pub(super) claim: ClaimAfter,
    bytes: usize,
}

/// An entry of the journal. One without a key is a result.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) call: String,
    pub(super) key: Option<KeyDigest>,
    pub(super) payload: Vec<u8>,
}

/// A run's record, encoded.
#[derive(Debug)]
pub struct Record {
    /// Where the run stands.
    pub status: &'static str,
    /// Whether it is over.
    pub finished: bool,
    /// The bytes to store.
    pub payload: Vec<u8>,
}

impl PreparedCommit {
    /// About how many bytes it writes.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// How much it counts in a group: its messages, at least 1.
    pub fn weight(&self) -> usize {
        self.messages.len().max(1)
    }

    /// The ids of the calls that its journal names, for the store to look up; one may come twice.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.journal.iter().map(|entry| entry.call.as_str())
    }
}

impl ThreadCommit {
    /// Encodes the commit, or says why it can never be made.
    pub fn prepare(self) -> Result<PreparedCommit, StorageError> {
        let ThreadWrites { messages, values, journal, record } = self.writes;
        if messages.len() > COMMIT_MESSAGES_MAX {
            let what = format!("a commit has at most {COMMIT_MESSAGES_MAX} messages");
            return Err(StorageError::invalid(what));
        }
        if values.len() > COMMIT_ROWS_MAX || journal.len() > COMMIT_ROWS_MAX {
            let what = format!("a commit has at most {COMMIT_ROWS_MAX} values or entries of the journal");
            return Err(StorageError::invalid(what));
        }
        let messages = messages.iter().map(|message| encode("a message", message));
        let messages = messages.collect::<Result<Vec<_>, _>>()?;
        let values = encode_values(values)?;
        let journal = journal.into_iter().map(entry).collect::<Result<Vec<_>, _>>()?;
        let record = record.map(|RunWrite { status, finished, payload }| {
            let payload = encode("a run's record", &payload)?;
            check_key("a run's status", status)?;
            Ok::<_, StorageError>(Record { status, finished, payload })
        });
        let record = record.transpose()?;
        let of_values = values.iter().map(|((_, key), value)| key.len() + value.as_ref().map_or(0, Vec::len));
        let bytes = messages.iter().map(Vec::len).sum::<usize>()
            + of_values.sum::<usize>()
            + journal.iter().map(|entry| entry.call.len() + entry.payload.len()).sum::<usize>()
            + record.as_ref().map_or(0, |record| record.payload.len());
        if bytes > COMMIT_BYTES_MAX {
            return Err(StorageError::invalid(format!("a commit has at most {COMMIT_BYTES_MAX} bytes")));
        }
        Ok(PreparedCommit {
            thread: self.thread,
            run: self.run,
            append: self.append,
            generation: self.generation,
            expected: self.expected,
            messages,
            values,
            journal,
            record,
            claim: self.claim,
            bytes: bytes + ROW_BYTES,
        })
    }
}

/// About what the thread's own row takes.
const ROW_BYTES: usize = 256;

/// The last write of each key counts.
fn encode_values(writes: Vec<ValueWrite>) -> Result<Values, StorageError> {
    let mut values = Values::new();
    for write in writes {
        let (scope, key, value) = match write {
            ValueWrite::Set { scope, key, value } => (scope, key, Some(encode("a value", &value)?)),
            ValueWrite::Remove { scope, key } => (scope, key, None),
        };
        check_key("a value's key", &key)?;
        values.insert((scope, key.into_inner()), value);
    }
    Ok(values)
}

fn entry(write: JournalWrite) -> Result<Entry, StorageError> {
    let (call, key, payload) = match write {
        JournalWrite::Intent { call, key, payload } => (call, Some(key), encode("an intent", &payload)?),
        JournalWrite::Result { call, payload } => (call, None, encode("a result", &payload)?),
    };
    check_key("a call's id", &call)?;
    Ok(Entry { call: call.into_inner(), key, payload })
}

fn check_key(what: &str, key: &str) -> Result<(), StorageError> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX || key.contains('\0') {
        let what = format!("{what} has 1 to {KEY_BYTES_MAX} bytes, and no zero among them");
        return Err(StorageError::invalid(what));
    }
    Ok(())
}

/// The bytes to store for a payload, or why it may not be stored.
pub fn encode(what: &str, payload: &Safe<Value>) -> Result<Vec<u8>, StorageError> {
    if is_deeper(payload, DEPTH_MAX) {
        return Err(StorageError::invalid(format!("{what} is nested at most {DEPTH_MAX} deep")));
    }
    // A JSON tree always has a text.
    let bytes = serde_json::to_vec(payload).unwrap_or_default();
    if bytes.len() > MESSAGE_BYTES_MAX {
        let what = format!("{what} has {} bytes; {MESSAGE_BYTES_MAX} are the limit", bytes.len());
        return Err(StorageError::invalid(what));
    }
    Ok(bytes)
}
