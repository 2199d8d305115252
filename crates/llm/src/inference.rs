//! Asking a model: what is said to it, what it says back, and what can go wrong on the way.
//!
//! A [`Model`] answers one [`InferenceRequest`] with a stream of [`ModelEvent`]s, or fails with an
//! [`InferenceExecutionError`]. [`Inference`] asks a [`Pool`] of them until there is an [`Answer`]: it tries again, goes on to
//! the next model, and saves an answer that broke off. It deliberately knows no agent, no tool that runs and no store.

mod accumulator;
mod breaker;
mod clock;
mod error;
mod event;
mod executor;
mod message;
mod model;
mod permit;
mod pool;
mod recovery;
mod request;
mod retry;
mod scripted;
mod seam;
mod turn;
mod update;

pub use accumulator::{ANSWER_BYTES_MAX, CALLS_MAX, EVENTS_MAX};
pub use breaker::{Breaker, BreakerPolicy, Health, Refused, Standing, Ticket};
pub use clock::{Clock, FixedJitter, Jitter, ManualClock, SeededJitter, SystemClock};
pub use error::{InferenceExecutionError, InterruptCause, InterruptSnapshot, OpenToolCall};
pub use event::{ModelEvent, StopReason};
pub use executor::Inference;
pub use message::{Image, ImageSource, Message, Part, Reasoning, Role, ToolCall, ToolOutput};
pub use model::{Fault, Model, ModelStream, Refusal};
pub use permit::{Breakers, Permit, SharedBreaker};
pub use pool::{Member, Pool};
pub use recovery::{CONTINUE, Recovery};
pub(crate) use request::plain_id;
pub use request::{AnswerFormat, Effort, InferenceRequest, Messages, ToolChoice, ToolSpec};
pub use retry::{Backoff, Others, RETRIES_MAX, RetryPolicy, Verdict, WAIT_MAX};
pub use scripted::{
    AtEnd, Opens, REQUESTS_KEPT_MAX, Script, ScriptedAnswer, ScriptedCall, ScriptedError, ScriptedFault,
    ScriptedModel, ScriptedUsage, Step, When,
};
pub use seam::{OVERLAP_MAX, Seam};
pub use turn::Turn;
pub use update::{Answer, Partial, Update};
