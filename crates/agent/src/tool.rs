//! What a model can call: its description, its arguments, its run and its result.
//!
//! A [`Tool`] says what it is, checks its arguments and runs. [`check`] and [`execute`] are how the loop calls one: against
//! its schema, with its deadline, stopped when the run is cancelled, its panics caught. [`TypedTool`] reads the arguments
//! into a type, [`ActionTool`] makes a tool of an action.
//!
//! Whether a call may be made is not decided here: see [`ToolGate`](crate::phase::ToolGate).

mod action;
mod context;
mod descriptor;
mod error;
mod execute;
mod result;
mod suspend;
mod typed;

pub use action::{ActionTool, error_of};
pub(crate) use context::Line;
pub use context::{Report, Reporter, ToolContext};
pub use descriptor::ToolDescriptor;
pub use error::{Refusal, ToolError};
pub use execute::{check, execute};
pub use result::{ToolOutput, ToolResult};
pub use suspend::{ResumeMode, SuspendTicket};
pub use typed::{TypedTool, typed};

use async_trait::async_trait;
use serde_json::Value;

/// Something that a model can call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What it is. The same for as long as it lives.
    fn descriptor(&self) -> &ToolDescriptor;

    /// Looks at arguments that satisfy the schema, with its defaults for what is missing, for what a schema cannot say. Changes
    /// nothing.
    fn validate_args(&self, _args: &Value) -> Result<(), ToolError> {
        Ok(())
    }

    /// Runs, with those arguments. An error ends this call, not the run; the model is told. A call that ran and has an error to tell gives
    /// [`ToolResult::error`].
    ///
    /// The future is dropped when the run is cancelled or the deadline passes.
    async fn execute(&self, args: Value, context: &ToolContext) -> Result<ToolOutput, ToolError>;
}
