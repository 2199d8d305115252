//! The action runtime: define a capability once, call it from anywhere, always get an envelope.
//!
//! [`Runtime::invoke`] takes the ten steps of an invocation in one place (`runtime.rs`); [`Action`] is a definition,
//! [`Context`] what a handler may use, [`Envelope`] what every call returns. The crate knows no surface, no store and no
//! run: those are built on it.

mod action;
mod ask;
mod attempt;
mod call_gate;
mod caught;
mod closest;
mod command;
mod concurrency;
mod context;
mod envelope;
mod error;
mod fresh;
mod handler;
mod hook;
mod idempotency;
mod invocation;
mod middleware;
mod panics;
mod permission;
mod process_tree;
mod programs;
mod record;
mod registry;
mod runtime;
mod safe_json;
mod schema;
mod stream;
pub mod testing;

pub use action::{
    Action, ActionBuilder, ActionSpec, Concurrency, DefinitionError, Deprecation, HttpRoute, Idempotency,
    ResourceUri, RetryPolicy, SideEffects, TaskUse, Visibility,
};
pub use ask::{Answer, Caller, QUESTIONS_MAX, Question, QuestionKind};
pub use call_gate::CallGate;
pub use closest::closest;
pub use command::{CommandActionsError, command_actions};
pub use context::{Artifacts, Context, Logger, ProgressReporter};
pub use envelope::{Artifact, Envelope, Failure, LogEntry, LogLevel, Meta, Replayed};
pub use error::{ActionError, Issue, PathSegment};
pub use handler::{ActionInput, ActionOutput};
pub use hook::Hook;
pub use idempotency::{
    Begin, Claim, IdempotencyScope, IdempotencyStore, MemoryIdempotency, Waiting, is_kept,
};
pub use invocation::{ActionRef, Invocation, InvocationOptions};
pub use middleware::{Middleware, MiddlewareCall, Next};
pub use panics::log_panics;
pub use permission::{Permission, PermissionChecker, PermissionRequest};
pub use programs::{Hold, Program, Programs, Started};
pub use record::{Fields, Progress};
pub use registry::Exposure;
pub use runtime::{BuildError, IntoAction, Runtime, RuntimeBuilder};
pub use runyard_actions_macros::action;
pub use safe_json::{DEPTH_MAX, INPUT_BYTES_MAX, OUTPUT_BYTES_MAX, UnsafeJson, to_safe_value};
pub use schema::Schema;
pub use stream::{InvocationEvent, InvocationStream};
