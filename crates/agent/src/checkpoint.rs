//! Where the steps of a run become durable: a store of threads, a run's journal, or nowhere.
//!
//! The loop hands over what a step adds, and never reads back what it wrote: what was stored before is given to it once, when
//! a run begins or goes on ([`Opened`]).

mod safe;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use runyard_domain::Code;
use runyard_llm::inference::{Message, ToolCall};
use runyard_store::{
    COMMIT_BYTES_MAX, COMMIT_MESSAGES_MAX, COMMIT_ROWS_MAX, MESSAGE_BYTES_MAX, StorageError,
};
use serde::{Deserialize, Serialize};

pub(crate) use self::safe::bytes_stored;
pub use self::store::{CLAIM_TERM, OpenError, StoreCheckpoint};
use crate::run::RunRecord;
use crate::state::{PersistedState, StateChanges};

/// Where the steps of one run become durable.
#[async_trait]
pub trait Checkpoint: Send + Sync {
    /// The message as it will be stored. The model reads that, and not what was said: so what it goes on from is the same
    /// after a crash.
    fn stored(&self, message: Message) -> Message;

    /// How much goes into one step. What is more comes in several, the state and the end in the last of them.
    fn limits(&self) -> StepLimits;

    /// Makes a step durable, whole, behind those before it, and returns when it is. A failure leaves nothing of it, nor of an
    /// earlier attempt at it, unless its code is [`Code::StorageCommitUnknown`].
    ///
    /// After that, and when the future was dropped, nobody knows whether it is durable: then the next step to come is the same
    /// one again, and must not be there twice.
    async fn commit(&self, step: StepCommit) -> Result<(), CheckpointError>;

    /// Whether what observers hear stands in one order with the steps. Then what a tool says comes before its result, though
    /// whoever hears it may hold that up; where it does not, a result is durable before anybody hears more.
    fn is_one_with_observers(&self) -> bool {
        true
    }

    /// Whether the next run of the thread reads its state from here. Then nobody needs it from the outcome of this one, and it is
    /// not made.
    fn is_read_back(&self) -> bool {
        false
    }

    /// Why the run may not go on, where that was found out beside its steps: another process may be at it. It is cancelled
    /// then, and this is how it failed.
    fn lost(&self) -> Option<CheckpointError>;

    /// The run is over and its end cannot be made durable: whatever it holds goes to whoever comes next.
    async fn give_up(&self);
}

/// How much goes into one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepLimits {
    /// So many messages.
    pub messages_max: usize,
    /// So many notes of calls.
    pub calls_max: usize,
    /// So many bytes of all that is in it, as JSON. What alone has more is a step of its own.
    pub bytes_max: usize,
    /// So many bytes of one message, as JSON. Results of tools are cut to it; words of people and models are not.
    pub message_bytes_max: usize,
}

impl StepLimits {
    /// What a store of threads takes, with room for the record of the run and for what redaction adds.
    pub const STORE: StepLimits = StepLimits {
        messages_max: COMMIT_MESSAGES_MAX,
        calls_max: COMMIT_ROWS_MAX,
        bytes_max: COMMIT_BYTES_MAX / 2,
        message_bytes_max: MESSAGE_BYTES_MAX,
    };
}

/// Keeps nothing: for runs that need not outlive their process.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCheckpoint;

#[async_trait]
impl Checkpoint for NoCheckpoint {
    fn stored(&self, message: Message) -> Message {
        message
    }

    // A conversation is the same with a store and without.
    fn limits(&self) -> StepLimits {
        StepLimits::STORE
    }

    async fn commit(&self, _step: StepCommit) -> Result<(), CheckpointError> {
        Ok(())
    }

    fn is_one_with_observers(&self) -> bool {
        false
    }

    fn lost(&self) -> Option<CheckpointError> {
        None
    }

    async fn give_up(&self) {}
}

/// What one step adds.
#[derive(Debug, Clone, Default)]
pub struct StepCommit {
    /// Messages, behind those that are there.
    pub messages: Vec<Arc<Message>>,
    /// What changed in the state of the thread.
    pub thread_state: StateChanges,
    /// What changed in the state of the run.
    pub run_state: StateChanges,
    /// Calls that are about to be made, or were.
    pub calls: Vec<CallNote>,
    /// Where the run stands with it.
    pub record: RunRecord,
}

/// Names a call within its thread: models give an id twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallPlace {
    /// The place of the message that holds it, from 1.
    pub message: u64,
    /// Which of its calls, from 0.
    pub index: u32,
}

impl fmt::Display for CallPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.message, self.index)
    }
}

impl CallPlace {
    /// The place of this text.
    pub fn parse(text: &str) -> Option<Self> {
        let (message, index) = text.split_once('.')?;
        Some(CallPlace { message: message.parse().ok()?, index: index.parse().ok()? })
    }
}

/// What is noted of a call.
#[derive(Debug, Clone)]
pub enum CallNote {
    /// It is about to be made. It has no effect before this is durable.
    Intent {
        /// Which.
        place: CallPlace,
        /// The call.
        call: ToolCall,
        /// What stands for it where it must not happen twice.
        idempotency_key: String,
        /// Whether making it twice is as good as once.
        idempotent: bool,
    },
    /// It was made, or ended otherwise. Its message is in the same step or in one before.
    Ended {
        /// Which.
        place: CallPlace,
        /// How.
        how: CallEnd,
    },
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallEnd {
    /// Whether it did what it should.
    pub ok: bool,
    /// The code of the error that ended it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// What came of it, in a line.
    pub summary: String,
}

/// What is stored of a thread and its run.
#[derive(Debug, Clone, Default)]
pub struct Opened {
    /// The conversation.
    pub messages: Vec<Arc<Message>>,
    /// The state of the thread.
    pub thread_state: PersistedState,
    /// The state of the run, where it goes on.
    pub run_state: PersistedState,
    /// Calls that were about to be made, and of which nobody knows whether they were.
    pub unknown: BTreeSet<CallPlace>,
    /// What is recorded of the run, where it goes on.
    pub record: Option<RunRecord>,
}

/// Why a step is not durable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CheckpointError {
    /// Its row in the error table.
    pub code: Code,
    /// What happened.
    pub message: String,
}

impl From<StorageError> for CheckpointError {
    fn from(error: StorageError) -> Self {
        CheckpointError { code: error.code(), message: error.to_string() }
    }
}

impl StepCommit {
    /// Whether it adds nothing but where the run stands.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
            && self.calls.is_empty()
            && self.thread_state.is_empty()
            && self.run_state.is_empty()
    }

    /// All that is set or cleared in the state, by key; what is cleared is `None`.
    pub fn state(&self) -> BTreeMap<&str, Option<&serde_json::Value>> {
        let scopes = [&self.thread_state, &self.run_state];
        let cleared =
            scopes.into_iter().flat_map(|scope| scope.cleared.iter().map(|key| (key.as_str(), None)));
        let set = scopes
            .into_iter()
            .flat_map(|scope| scope.set.iter().map(|(key, value)| (key.as_str(), Some(value))));
        cleared.chain(set).collect()
    }
}
