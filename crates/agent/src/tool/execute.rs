//! Calling a tool: nothing that it does gets out of the call.

use std::time::Duration;

use serde_json::Value;

use super::{Refusal, Tool, ToolContext, ToolError, ToolOutput};
use crate::caught::{caught, caught_now};

/// Checks arguments: against the schema, then by the tool itself, as it gets them. A panic of it is an error like any other.
pub fn check(tool: &dyn Tool, args: &Value) -> Result<(), Refusal> {
    tool.descriptor().check(args)?;
    let filled = tool.descriptor().filled(args.clone());
    let checked = caught_now(|| tool.validate_args(&filled)).map_err(ToolError::Internal)?;
    Ok(checked?)
}

/// Runs a tool on checked arguments, with the defaults of what is missing. It ends at its deadline or when it is cancelled, as
/// [`ToolError::Cancelled`]; a panic is [`ToolError::Internal`]. A result that is there is not thrown away: the tool did what it
/// did.
pub async fn execute(tool: &dyn Tool, args: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
    let cancelled = || Err(ToolError::Cancelled("the run was cancelled".to_owned()));
    if context.cancellation.is_cancelled() {
        return cancelled();
    }
    let args = tool.descriptor().filled(args);
    let running = caught(async { tool.execute(args, context).await });
    let deadline = tool.descriptor().deadline;
    let outcome = tokio::select! {
        biased;
        outcome = running => outcome,
        () = context.cancellation.cancelled() => return cancelled(),
        () = passed(deadline) => {
            let ms = deadline.unwrap_or_default().as_millis();
            return Err(ToolError::Cancelled(format!("not done within {ms} ms")));
        }
    };
    outcome.unwrap_or_else(|panicked| Err(ToolError::Internal(panicked)))
}

async fn passed(deadline: Option<Duration>) {
    match deadline {
        Some(deadline) => tokio::time::sleep(deadline).await,
        None => std::future::pending().await,
    }
}
