//! Actions that take time: timeouts, deadlines, retries, and calls that are cancelled.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use runyard::{Action, ActionError, Artifact, Context, DefinitionError, action, fields};
use schemars::JsonSchema;
use serde::Deserialize;

/// A wait before a marker is touched: whoever cancels must be listening by then.
const BEFORE_MARKER: Duration = Duration::from_millis(50);

/// How often the handler of each invocation was started.
#[derive(Default)]
pub(super) struct Attempts(Mutex<HashMap<String, u32>>);

impl Attempts {
    /// Counts one more and says which it is.
    fn next(ctx: &Context) -> Result<u32, ActionError> {
        let attempts = ctx.service::<Attempts>()?;
        let mut counts = attempts.0.lock().unwrap();
        let count = counts.entry(ctx.invocation_id().to_string()).or_default();
        *count += 1;
        Ok(*count)
    }
}

#[derive(Deserialize, JsonSchema)]
struct Flaky {
    /// So many attempts fail before one succeeds.
    failures: u32,
}

/// Fail a few times, then give the number of attempts.
#[action]
async fn flaky(input: Flaky, ctx: &Context) -> Result<u32, ActionError> {
    let attempt = Attempts::next(ctx)?;
    if attempt <= input.failures {
        return Err(ActionError::external_service("The service is not there.").retryable());
    }
    Ok(attempt)
}

/// Fail a few times, and try again by itself.
#[action(retry(retries = 2, delay_ms = 1))]
async fn flaky_retried(input: Flaky, ctx: &Context) -> Result<u32, ActionError> {
    let attempt = Attempts::next(ctx)?;
    if attempt <= input.failures {
        return Err(ActionError::external_service("The service is not there.").retryable());
    }
    Ok(attempt)
}

/// Stall a few times, then give the number of attempts.
#[action]
async fn stalling(input: Flaky, ctx: &Context) -> Result<u32, ActionError> {
    let attempt = Attempts::next(ctx)?;
    if attempt <= input.failures {
        std::future::pending::<()>().await;
    }
    Ok(attempt)
}

#[derive(Deserialize, JsonSchema)]
struct Wait {
    /// So long; without it, for ever.
    ms: Option<u64>,
}

async fn wait(input: Wait, ctx: &Context) -> Result<String, ActionError> {
    ctx.logger().info("waiting", fields! {});
    match input.ms {
        Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
        None => std::future::pending().await,
    }
    Ok("waited".to_owned())
}

/// Wait, without a limit of its own.
#[action]
async fn wait_unlimited(input: Wait, ctx: &Context) -> Result<String, ActionError> {
    wait(input, ctx).await
}

/// Wait, at most 30 ms in one attempt.
#[action(timeout_ms = 30)]
async fn wait_briefly(input: Wait, ctx: &Context) -> Result<String, ActionError> {
    wait(input, ctx).await
}

/// Wait, at most 30 ms in all.
#[action(deadline_ms = 30)]
async fn wait_with_deadline(input: Wait, ctx: &Context) -> Result<String, ActionError> {
    wait(input, ctx).await
}

#[derive(Deserialize, JsonSchema)]
struct Marker {
    /// A file that is made when the action runs.
    marker: PathBuf,
}

async fn wait_until_cancelled(input: Marker, ctx: &Context) -> Result<(), ActionError> {
    ctx.logger().info("waiting", fields! {});
    ctx.artifacts().add(Artifact::named("so far"));
    tokio::time::sleep(BEFORE_MARKER).await;
    std::fs::write(&input.marker, "")?;
    std::future::pending::<()>().await;
    Ok(())
}

/// Make the marker, then wait until cancelled.
#[action]
async fn wait_forever(input: Marker, ctx: &Context) -> Result<(), ActionError> {
    wait_until_cancelled(input, ctx).await
}

/// Make the marker, then wait until cancelled or timed out.
#[action]
async fn wait_forever_timed(input: Marker, ctx: &Context) -> Result<(), ActionError> {
    wait_until_cancelled(input, ctx).await
}

/// Make the marker, then fail in a way that is worth another try.
#[action(retry(retries = 1, delay_ms = 3_600_000))]
async fn fail_forever(input: Marker) -> Result<(), ActionError> {
    tokio::time::sleep(BEFORE_MARKER).await;
    std::fs::write(&input.marker, "")?;
    Err(ActionError::external_service("The service is not there.").retryable())
}

pub(super) fn actions() -> Vec<Result<Action, DefinitionError>> {
    let mut actions = vec![flaky(), flaky_retried(), stalling()];
    actions.extend([wait_unlimited(), wait_briefly(), wait_with_deadline()]);
    actions.extend([wait_forever(), wait_forever_timed(), fail_forever()]);
    actions
}
