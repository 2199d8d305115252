//! A commit to a thread: everything that one transaction writes.

use runyard_domain::AppendId;
use runyard_redact::Safe;
use serde_json::Value;

use crate::append::until_known;
use crate::{AgentRunId, Committed, KeyDigest, PAYLOAD_BYTES_MAX, StorageError, ThreadId, ThreadRunStore};

/// The largest message, value, intent, result or record, as JSON.
pub const MESSAGE_BYTES_MAX: usize = PAYLOAD_BYTES_MAX;
/// The most messages of one commit.
pub const COMMIT_MESSAGES_MAX: usize = 256;
/// The most values, and the most entries of the journal, of one commit.
pub const COMMIT_ROWS_MAX: usize = 256;
/// The most bytes of one commit.
pub const COMMIT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The longest key of a value, id of a tool call, or name of an owner.
pub const KEY_BYTES_MAX: usize = 1024;

/// One step of a run on a thread: one transaction.
#[derive(Clone, Debug)]
pub struct ThreadCommit {
    /// The thread.
    pub thread: ThreadId,
    /// The run that makes it. It is recorded by this commit, or was by an earlier one.
    pub run: AgentRunId,
    /// The same for every repetition of this commit, and for no other.
    pub append: AppendId,
    /// The generation of the claim under which it is made.
    pub generation: u64,
    /// How many messages the thread has before it.
    pub expected: u64,
    /// What it writes.
    pub writes: ThreadWrites,
    /// What becomes of the claim.
    pub claim: ClaimAfter,
}

/// What becomes of the claim under which a commit is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimAfter {
    /// The run goes on.
    Kept,
    /// It is given up with the commit: the run has finished, or it waits.
    Released,
}

/// What a commit writes.
#[derive(Clone, Debug, Default)]
pub struct ThreadWrites {
    /// Messages, put behind those that are there.
    pub messages: Vec<Safe<Value>>,
    /// Values that are set or removed, in this order.
    pub values: Vec<ValueWrite>,
    /// Tool calls that are about to be made or were answered, in this order.
    pub journal: Vec<JournalWrite>,
    /// The run's record from now on, where it changes.
    pub record: Option<RunWrite>,
}

/// Whose state a value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The thread's.
    Thread,
    /// The run's that makes the commit.
    Run,
}

/// A change of a value.
#[derive(Clone, Debug)]
pub enum ValueWrite {
    /// It is this from now on.
    Set {
        /// Whose it is.
        scope: Scope,
        /// Its key.
        key: Safe<String>,
        /// The value.
        value: Safe<Value>,
    },
    /// It is gone. It is no error when there is none.
    Remove {
        /// Whose it is.
        scope: Scope,
        /// Its key.
        key: Safe<String>,
    },
}

/// A change of the journal of tool calls. The id of a call is its own within the run: a model that gives one twice has to
/// be told apart by whoever writes the journal.
#[derive(Clone, Debug)]
pub enum JournalWrite {
    /// The call is about to be made: once.
    Intent {
        /// Its id.
        call: Safe<String>,
        /// What stands for it where it must not happen twice.
        key: KeyDigest,
        /// What is about to be done.
        payload: Safe<Value>,
    },
    /// The call was made, and this came of it: once, and after its intent.
    Result {
        /// Its id.
        call: Safe<String>,
        /// What came of it.
        payload: Safe<Value>,
    },
}

/// A run's record.
#[derive(Clone, Debug)]
pub struct RunWrite {
    /// Where it stands, in one of the program's own words.
    pub status: &'static str,
    /// Whether it is over with this commit.
    pub finished: bool,
    /// What else is recorded.
    pub payload: Safe<Value>,
}

/// Commits, and when the outcome is unknown repeats the same commit until it is known: made once, or not at all.
pub async fn commit_until_known<S: ThreadRunStore + ?Sized>(
    store: &S,
    commit: &ThreadCommit,
) -> Result<Committed, StorageError> {
    until_known(|| store.commit(commit.clone())).await
}
