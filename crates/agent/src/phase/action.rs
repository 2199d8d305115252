//! Scheduled actions: work that a command leaves for a phase, kept in the state until its handler did it.

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Fault, Phase, PhaseContext, StateCommand};
use crate::state::{Merge, StateError, StateKey};

/// So many scheduled actions may wait in a run.
pub const ACTIONS_PENDING_MAX: usize = 1024;
/// So many actions that failed are kept, the latest ones.
pub const FAILED_ACTIONS_MAX: usize = 100;

/// A kind of work that can be left for a phase.
pub trait ScheduledAction: Send + Sync + 'static {
    /// Its name, unique in an environment.
    const KEY: &'static str;
    /// The phase in which it is done: the present one, if that is under way, else the next time it comes.
    const PHASE: Phase;
    /// What to do.
    type Payload: Serialize + DeserializeOwned + Send + Sync + 'static;
}

/// Does one kind of scheduled work.
#[async_trait]
pub trait ActionHandler<A: ScheduledAction>: Send + Sync + 'static {
    /// Answers what should be changed, on a fresh revision. The action is gone from the state in the same commit, so that a
    /// checkpoint never holds half of it. A failure puts it among the [`FailedActions`], and the run goes on.
    async fn handle(&self, payload: A::Payload, context: &PhaseContext<'_>) -> Result<StateCommand, Fault>;
}

/// Work that is left for a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scheduled {
    /// Its kind.
    pub key: String,
    /// When it is done.
    pub phase: Phase,
    /// What to do.
    pub payload: Value,
}

/// Work that could not be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedAction {
    /// The work.
    pub action: Scheduled,
    /// Why not.
    pub message: String,
}

impl Scheduled {
    /// Work of this kind.
    pub fn new<A: ScheduledAction>(payload: &A::Payload) -> Result<Self, StateError> {
        let encoded = serde_json::to_value(payload)
            .map_err(|error| StateError::KeyEncode { key: A::KEY.to_owned(), message: error.to_string() })?;
        Ok(Scheduled { key: A::KEY.to_owned(), phase: A::PHASE, payload: encoded })
    }
}

/// The work that waits, by the number under which it came.
pub(crate) struct PendingActions;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Pending {
    next: u64,
    pub(crate) waiting: BTreeMap<u64, Arc<Scheduled>>,
}

pub(crate) enum PendingUpdate {
    Add(Vec<Scheduled>),
    Done(u64),
}

impl StateKey for PendingActions {
    const KEY: &'static str = "runtime.pending_actions";
    const MERGE: Merge = Merge::Commutative;
    type Value = Pending;
    type Update = PendingUpdate;

    fn apply(pending: &mut Pending, update: PendingUpdate) {
        match update {
            PendingUpdate::Add(actions) => {
                for action in actions {
                    pending.waiting.insert(pending.next, Arc::new(action));
                    pending.next += 1;
                }
            }
            PendingUpdate::Done(number) => drop(pending.waiting.remove(&number)),
        }
    }
}

impl Pending {
    /// What waits for a phase, in the order in which it came.
    pub(crate) fn of(&self, phase: Phase) -> Vec<(u64, Arc<Scheduled>)> {
        let waiting = self.waiting.iter().filter(|(_, action)| action.phase == phase);
        waiting.map(|(number, action)| (*number, Arc::clone(action))).collect()
    }
}

/// The actions that failed in this run: the latest [`FAILED_ACTIONS_MAX`] of them.
pub struct FailedActions;

impl StateKey for FailedActions {
    const KEY: &'static str = "runtime.failed_actions";
    const MERGE: Merge = Merge::Commutative;
    type Value = VecDeque<Arc<FailedAction>>;
    type Update = FailedAction;

    fn apply(failed: &mut Self::Value, action: FailedAction) {
        if failed.len() == FAILED_ACTIONS_MAX {
            failed.pop_front();
        }
        failed.push_back(Arc::new(action));
    }
}

/// A handler whose kind of work is not known here.
#[async_trait]
pub(crate) trait AnyActionHandler: Send + Sync {
    async fn handle(&self, payload: &Value, context: &PhaseContext<'_>) -> Result<StateCommand, Fault>;
}

struct Erased<A, H>(H, PhantomData<fn() -> A>);

#[async_trait]
impl<A: ScheduledAction, H: ActionHandler<A>> AnyActionHandler for Erased<A, H> {
    async fn handle(&self, payload: &Value, context: &PhaseContext<'_>) -> Result<StateCommand, Fault> {
        let payload = A::Payload::deserialize(payload)?;
        self.0.handle(payload, context).await
    }
}

pub(crate) fn erase_action<A: ScheduledAction>(handler: impl ActionHandler<A>) -> Arc<dyn AnyActionHandler> {
    Arc::new(Erased::<A, _>(handler, PhantomData))
}
