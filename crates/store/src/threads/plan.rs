//! What a commit does to a thread, decided once for every store: append id, claim, version, run, journal and limits.
//!
//! It reads and writes nothing. A store looks up the thread's row and what [`PreparedCommit`] asks for, calls
//! [`PreparedCommit::plan`], and writes what the plan says, all in one transaction; the rules of claims are here too.

use std::collections::HashMap;

use runyard_domain::{AppendId, Timestamp};

pub use super::claims::{
    Step, check_delete, check_owner, claim, first_generation, new_thread, release, renew,
};
use super::commit::ClaimAfter;
use super::prepared::Entry;
pub use super::prepared::{PreparedCommit, Record, Values, encode};
use crate::{AgentRunId, Committed, KeyDigest, StorageError, ThreadRow};

/// The most messages, the most runs and the most claims of one thread.
pub const THREAD_PARTS_MAX: u64 = (1 << 24) - 1;

/// Where to look for an earlier commit of the same append id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookFor {
    /// The message at this place: its append id and bytes.
    MessageAt(u64),
    /// The append id among the thread's commits without messages.
    Quiet,
    /// Nowhere: it cannot have been made.
    Nothing,
}

/// An earlier commit, as the store found it.
#[derive(Clone, Debug)]
pub enum Earlier {
    /// The message where the last one of this commit wants to go.
    Message {
        /// The append id of its commit.
        append: AppendId,
        /// Its stored bytes.
        body: Vec<u8>,
    },
    /// A commit without messages, of the same append id.
    Quiet {
        /// The thread's version at that commit.
        version: u64,
    },
}

/// What is known of the run that a commit or a claim is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunHead {
    /// Whether it is a run of this thread.
    pub is_of_thread: bool,
    /// Its number in its thread.
    pub number: u64,
    /// Whether it is over.
    pub finished: bool,
}

impl RunHead {
    /// Whether the run may go on, on this thread.
    pub(super) fn check(self, run: &AgentRunId) -> Result<(), StorageError> {
        let what = match self {
            RunHead { is_of_thread: false, .. } => format!("run {run}, of another thread,"),
            RunHead { finished: true, .. } => format!("the end of run {run}"),
            _ => return Ok(()),
        };
        Err(StorageError::exists(what))
    }
}

/// A tool call that is in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallHead {
    /// Its result is not known.
    Open,
    /// Its result is there.
    Answered,
}

/// What the store found beside the thread's row.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Where [`PreparedCommit::look_for`] said.
    pub earlier: Option<Earlier>,
    /// The run of the commit, if it is recorded.
    pub run: Option<RunHead>,
    /// Those of [`PreparedCommit::calls`] that are in the run's journal.
    pub calls: HashMap<String, CallHead>,
}

/// What is to be done.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// Nothing: it was done before.
    Already(Committed),
    /// These rows are to be written.
    Write(Box<Planned<'a>>),
}

/// The rows that a commit writes.
#[derive(Debug)]
pub struct Planned<'a> {
    /// The commit's id, which every message carries.
    pub append: AppendId,
    /// The thread's row as it is from now on.
    pub row: ThreadRow,
    /// The messages, the first of them at the place [`first`](Planned::first).
    pub messages: &'a [Vec<u8>],
    /// The number of the run in the thread.
    pub number: u64,
    /// Whether the run is new; then there is a record.
    pub is_new_run: bool,
    /// The run's record, where it changes.
    pub record: Option<&'a Record>,
    /// Values, each once.
    pub values: &'a Values,
    /// Calls that are new in the journal.
    pub intents: Vec<Intent<'a>>,
    /// Calls of the journal whose results are known now.
    pub results: Vec<(&'a str, &'a [u8])>,
}

/// A new call of the journal.
#[derive(Debug)]
pub struct Intent<'a> {
    /// Its id.
    pub call: &'a str,
    /// What stands for it.
    pub key: KeyDigest,
    /// What is about to be done.
    pub intent: &'a [u8],
    /// What came of it, where that is known in the same commit.
    pub result: Option<&'a [u8]>,
}

type Calls<'a> = (Vec<Intent<'a>>, Vec<(&'a str, &'a [u8])>);

impl Planned<'_> {
    /// The answer, once it is durable.
    pub fn committed(&self) -> Committed {
        Committed { version: self.row.version }
    }

    /// The place of the first message.
    pub fn first(&self) -> u64 {
        self.row.version + 1 - self.messages.len() as u64
    }

    /// Whether the append id must be kept by itself, since no message carries it.
    pub fn is_quiet(&self) -> bool {
        self.messages.is_empty()
    }
}

impl PreparedCommit {
    /// Where an earlier commit of the same append id would be, the thread standing at `row`.
    pub fn look_for(&self, row: Option<&ThreadRow>) -> LookFor {
        let Some(row) = row else { return LookFor::Nothing };
        if self.messages.is_empty() {
            return LookFor::Quiet;
        }
        // The last of its messages: if that is there, all of them are.
        let last = self.expected.saturating_add(self.messages.len() as u64);
        if row.version >= last { LookFor::MessageAt(last) } else { LookFor::Nothing }
    }

    /// What is to be done, the thread standing at `row`.
    pub fn plan(
        &self,
        row: Option<&ThreadRow>,
        found: &Found,
        now: Timestamp,
    ) -> Result<Outcome<'_>, StorageError> {
        let row = row.ok_or_else(|| StorageError::not_found(format!("thread {}", self.thread)))?;
        if let Some(before) = self.made_before(found.earlier.as_ref())? {
            return Ok(Outcome::Already(before));
        }
        self.check_claim(row)?;
        if row.version != self.expected {
            return Err(StorageError::VersionConflict { expected: self.expected, actual: row.version });
        }
        let number = self.run_number(row, found.run)?;
        let (intents, results) = self.calls_after(&found.calls)?;
        let mut next = row.clone();
        next.version += self.messages.len() as u64;
        next.runs = next.runs.max(number);
        if next.version > THREAD_PARTS_MAX || next.runs > THREAD_PARTS_MAX {
            let what = format!("a thread has at most {THREAD_PARTS_MAX} messages and as many runs");
            return Err(StorageError::invalid(what));
        }
        let is_over = self.record.as_ref().is_some_and(|record| record.finished);
        next.unfinished = (!is_over).then(|| self.run.clone());
        if self.claim == ClaimAfter::Released {
            next.holder = None;
        }
        next.updated = now;
        Ok(Outcome::Write(Box::new(Planned {
            append: self.append,
            row: next,
            messages: &self.messages,
            number,
            is_new_run: found.run.is_none(),
            record: self.record.as_ref(),
            values: &self.values,
            intents,
            results,
        })))
    }

    fn made_before(&self, earlier: Option<&Earlier>) -> Result<Option<Committed>, StorageError> {
        let (is_same, version) = match earlier {
            Some(Earlier::Message { append, body }) if *append == self.append => {
                let is_same = self.messages.last() == Some(body);
                (is_same, self.expected + self.messages.len() as u64)
            }
            Some(Earlier::Quiet { version }) => (*version == self.expected, *version),
            _ => return Ok(None),
        };
        if !is_same {
            let what = format!("a commit {} with another content", self.append);
            return Err(StorageError::exists(what));
        }
        Ok(Some(Committed { version }))
    }

    fn check_claim(&self, row: &ThreadRow) -> Result<(), StorageError> {
        match &row.holder {
            Some(holder) if row.generation == self.generation => {
                if holder.run != self.run {
                    let (held, run) = (&holder.run, &self.run);
                    return Err(StorageError::invalid(format!("the claim is for run {held}, not for {run}")));
                }
                Ok(())
            }
            _ => Err(StorageError::StaleGeneration { held: self.generation, current: row.generation }),
        }
    }

    /// The number of the commit's run in its thread.
    fn run_number(&self, row: &ThreadRow, head: Option<RunHead>) -> Result<u64, StorageError> {
        if let Some(head) = head {
            head.check(&self.run)?;
            return Ok(head.number);
        }
        if self.record.is_none() {
            return Err(StorageError::not_found(format!("record of run {}", self.run)));
        }
        if let Some(other) = &row.unfinished {
            let what = format!("run {other} of thread {}, which has not finished,", row.id);
            return Err(StorageError::exists(what));
        }
        Ok(row.runs + 1)
    }

    /// The calls that are new, and the results of others.
    fn calls_after(&self, found: &HashMap<String, CallHead>) -> Result<Calls<'_>, StorageError> {
        let mut intents: Vec<Intent<'_>> = Vec::new();
        let mut results: Vec<(&str, &[u8])> = Vec::new();
        for Entry { call, key, payload } in &self.journal {
            let fresh = intents.iter_mut().find(|intent| intent.call == call);
            let known = found.get(call.as_str());
            match (key, fresh, known) {
                (Some(key), None, None) => {
                    intents.push(Intent { call, key: *key, intent: payload, result: None });
                }
                (Some(_), ..) => {
                    return Err(StorageError::exists(format!("an intent of call {call}")));
                }
                (None, Some(fresh), _) if fresh.result.is_none() => fresh.result = Some(payload),
                (None, None, Some(CallHead::Open)) if results.iter().all(|(known, _)| known != call) => {
                    results.push((call, payload));
                }
                (None, None, None) => {
                    return Err(StorageError::not_found(format!("intent of call {call}")));
                }
                (None, ..) => {
                    return Err(StorageError::exists(format!("a result of call {call}")));
                }
            }
        }
        Ok((intents, results))
    }
}
