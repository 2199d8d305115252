//! The nine phases of a run, what hooks into them, and the engine that brings each of them to rest.
//!
//! All hooks of a phase see one frozen revision and run side by side. What they answer is merged into one commit; a hook
//! whose answer meets another's at an exclusive key is asked again, alone, on what is there then. Scheduled actions are
//! handled until none is left, and effects go out after the commit that they belong to.
//!
//! It deliberately does not know when a phase comes: the run's loop says so, with a [`Moment`].

mod action;
mod command;
mod effect;
mod engine;
mod error;
mod gate;
mod hook;
mod inference;
mod join;
mod moment;

pub use action::{
    ACTIONS_PENDING_MAX, ActionHandler, FAILED_ACTIONS_MAX, FailedAction, FailedActions, Scheduled,
    ScheduledAction,
};
pub(crate) use action::{AnyActionHandler, PendingActions, PendingUpdate, erase_action};
pub use command::StateCommand;
pub(crate) use effect::{AnyEffectHandler, erase_effect};
pub use effect::{
    EFFECT_TIME_MAX, EFFECTS_CANCELLED_MAX, EffectFailure, EffectHandler, EffectReport, Emitted, StateEffect,
};
pub use engine::{ActionFailure, PHASE_ROUNDS_MAX, PhaseReport};
pub use error::{Fault, PhaseError};
pub(crate) use gate::strongest;
pub use gate::{GateDecision, ToolGate};
pub use hook::{Occasion, PhaseContext, PhaseHook, RunIdentity};
pub use inference::{
    AddContextMessage, CONTEXT_MESSAGES_MAX, ContextMessage, ExcludeTool, IncludeOnlyTools,
    InferenceAdjustments, InferenceOverride, Lifetime, Place, SetInferenceOverride, TOOL_NAMES_MAX,
};
pub(crate) use inference::{BuiltIn, ContextMessages, LastOffer, NextInference, Offer};
pub(crate) use join::SideBySide;
pub use moment::{Moment, Phase, TerminationReason};
