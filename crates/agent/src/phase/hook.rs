//! What hooks into a phase, and what it is shown.

use std::sync::Arc;

use async_trait::async_trait;
use runyard_domain::RunId;
use runyard_llm::inference::Message;
use tokio_util::sync::CancellationToken;

use super::{Fault, Moment, Phase, StateCommand};
use crate::state::Snapshot;

/// Which run it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunIdentity {
    /// The run.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: Arc<str>,
    /// Its agent.
    pub agent_id: Arc<str>,
}

/// One phase of one step of one run.
#[derive(Debug, Clone, Copy)]
pub struct Occasion<'a> {
    /// The run.
    pub run: &'a RunIdentity,
    /// The step, counted from one; nought before the first.
    pub step: u32,
    /// The phase, with what is there to be looked at in it.
    pub moment: Moment<'a>,
    /// The conversation so far.
    pub messages: &'a [Arc<Message>],
    /// Cancelled when the phase is not wanted any more. A run that was cancelled still has its end: the loop gives
    /// [`Phase::RunEnd`] a token of its own.
    pub cancellation: &'a CancellationToken,
}

/// What a hook, a handler or a gate is shown.
#[derive(Debug, Clone)]
pub struct PhaseContext<'a> {
    /// The occasion.
    pub at: Occasion<'a>,
    /// The frozen revision. Hooks of one phase see the same one.
    pub snapshot: Snapshot,
}

impl PhaseContext<'_> {
    /// The phase.
    pub fn phase(&self) -> Phase {
        self.at.moment.phase()
    }
}

/// Looks at a phase and answers what should be changed, done and told.
///
/// A hook is pure: it changes nothing itself, since it may be asked again on a later revision, and its answer may be thrown
/// away. It is dropped where it waits when the phase is cancelled.
#[async_trait]
pub trait PhaseHook: Send + Sync {
    /// Looks, and answers. A failure ends the phase, and nothing of it is committed.
    async fn run(&self, context: &PhaseContext<'_>) -> Result<StateCommand, Fault>;
}
