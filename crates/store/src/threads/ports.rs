//! The ports of a store of threads. Every implementation passes [`conformance`](crate::conformance).

use std::time::Duration;

use async_trait::async_trait;
use runyard_redact::Safe;
use serde_json::Value;

use crate::{
    AgentRunId, AgentRunRow, Claimed, Committed, Lease, StateValue, StorageError, StoredMessage,
    ThreadCommit, ThreadId, ThreadRow, ToolCallRow,
};

/// Threads, their messages and their values.
#[async_trait]
pub trait ThreadStore: Send + Sync {
    /// Makes a thread without messages, and returns when it is durable. [`StorageError::AlreadyExists`] when there is one:
    /// it may also be one's own, where the answer to an earlier attempt was lost.
    async fn create_thread(&self, thread: &ThreadId, metadata: Safe<Value>) -> Result<(), StorageError>;

    /// One thread.
    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadRow>, StorageError>;

    /// At most `limit` threads after this one, in the order of the bytes of their ids.
    async fn threads(&self, after: Option<&ThreadId>, limit: u32) -> Result<Vec<ThreadRow>, StorageError>;

    /// At most `limit` messages after the place `after`, oldest first: exactly the bytes that were stored. A page ends
    /// early where it gets too large. None when there is no such thread.
    async fn messages(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredMessage>, StorageError>;

    /// At most `limit` values of the thread after this key, in the order of the keys' bytes; paged as messages are.
    async fn thread_values(
        &self,
        thread: &ThreadId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StateValue>, StorageError>;

    /// Takes the thread away with all that belongs to it: messages, values, runs and journals. It is no error when there is
    /// none. While somebody holds it, it is refused with the code of a thread that is running.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StorageError>;
}

/// The records of runs on threads, their values and their journals of tool calls.
#[async_trait]
pub trait RunStore: Send + Sync {
    /// One run.
    async fn agent_run(&self, run: &AgentRunId) -> Result<Option<AgentRunRow>, StorageError>;

    /// At most `limit` runs of a thread, newest first, from the one before the number `before`, or from the newest.
    async fn agent_runs(
        &self,
        thread: &ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<AgentRunRow>, StorageError>;

    /// The run of a thread that has not finished: it is running, it waits, or its owner went away.
    async fn unfinished_run(&self, thread: &ThreadId) -> Result<Option<AgentRunRow>, StorageError>;

    /// At most `limit` values of the run after this key, in the order of the keys' bytes; paged as messages are.
    async fn run_values(
        &self,
        run: &AgentRunId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StateValue>, StorageError>;

    /// At most `limit` tool calls of the run after the place `after`, in the order of their intents; paged as messages are.
    async fn tool_calls(
        &self,
        run: &AgentRunId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ToolCallRow>, StorageError>;
}

/// The one way to write to a thread. All times are the database's.
#[async_trait]
pub trait ThreadRunStore: ThreadStore + RunStore {
    /// Takes the right to write to a thread for a run, if nobody has it, it ran out, or `owner` has it for this run already.
    /// Each grant is a new generation, higher than any that a thread of this name ever had, and from then on commits of an
    /// older one are refused.
    ///
    /// The run need not be recorded yet. One that has finished, or is of another thread, is
    /// [`StorageError::AlreadyExists`].
    async fn claim(
        &self,
        thread: &ThreadId,
        run: &AgentRunId,
        owner: Safe<String>,
        term: Duration,
    ) -> Result<Claimed, StorageError>;

    /// Prolongs the claim. It may have run out, as long as nobody took it; else the error is
    /// [`StorageError::StaleGeneration`].
    async fn renew_claim(
        &self,
        thread: &ThreadId,
        generation: u64,
        term: Duration,
    ) -> Result<Lease, StorageError>;

    /// Gives it up. It is no error when it was given up before.
    async fn release_claim(&self, thread: &ThreadId, generation: u64) -> Result<(), StorageError>;

    /// Makes the commit in one transaction, and returns when it is durable.
    ///
    /// It is made at the version that it expects or not at all, and only under the thread's claim, which may have run out
    /// as long as nobody took it. A commit that was made before under the same append id is not made again: the answer is
    /// the first one, whatever else has happened since. On any error but [`StorageError::CommitUnknown`] nothing of it was
    /// written, now or later. A caller that goes away does not undo its commit. Its cost is that of what it writes: how long
    /// the thread is, and how many there are, does not matter.
    async fn commit(&self, commit: ThreadCommit) -> Result<Committed, StorageError>;
}
