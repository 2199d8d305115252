//! A run: its states and how it gets from one to the next, its events, and what all of them together say about it.
//!
//! State is only ever folded from events ([`Run::fold`]); nothing else makes a [`RunState`]. What is said in an event is decided
//! elsewhere; here is only what is legal and what it means.

mod budget;
mod changes;
mod command;
mod event;
mod facts;
mod failure;
mod fold;
mod review;
mod runtime;
mod state;
mod telling;
mod thread;

pub use budget::{Budget, Dollars, Exceeded, InvalidDollars, Metered, Usage};
pub use changes::{Applied, Applying, Carries, DiffReady};
pub use command::{CancelRequested, CommandHeard, CommandKind, CommandReceived};
pub use event::{RunEvent, UnreadableEvent};
pub use facts::*;
pub use failure::{Failure, FailureKind};
pub use fold::{
    Grant, Metrics, OPEN_STEPS_MAX, OpenStep, QUEUED_TURNS_MAX, QueuedTurn, Run, Stopping, UNHEARD_MAX,
    Unheard,
};
pub use review::{ApplyStatus, Review, Work};
pub use runtime::{Capability, Resumes, RuntimeDied, RuntimeError, RuntimeStatus};
pub use state::{Asked, Illegal, RunState};
pub use telling::{PlanStatus, PlanStep, PlanUpdated, ProjectedHow, Reasoning, SecretsProjected};
pub use thread::ThreadRecorded;
