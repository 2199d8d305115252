//! Step 7: running the handler, with timeout and retry.

use std::time::Duration;

use runyard_domain::Code;
use serde_json::Value;

use crate::handler::Prepared;
use crate::{Action, ActionError, Context, LogLevel, RetryPolicy, fields};

/// How one invocation is run: the action's word, or the caller's where it said something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) retry: RetryPolicy,
}

/// Runs the handler until it succeeds, fails for good, or the retries are used up.
pub(crate) async fn run_with_retries(
    action: &Action,
    input: &Value,
    context: &Context,
    first: Prepared,
    running: Running,
) -> Result<Value, ActionError> {
    let mut prepared = first;
    let mut retries = 0;
    loop {
        let error = match attempt(prepared, context, running.timeout_ms).await {
            Err(error) if error.is_retryable() && retries < running.retry.retries => error,
            outcome => return outcome,
        };
        retries += 1;
        let delay_ms = running.retry.delay_ms.saturating_mul(u64::from(retries));
        context.logger().log(
            LogLevel::Warn,
            "Retrying action after retryable failure.",
            fields! { attempt: retries, code: error.code().as_str(), delayMs: delay_ms },
        );
        Box::pin(tokio::time::sleep(Duration::from_millis(delay_ms))).await;
        prepared = (action.handler())(input).map_err(|issue| ActionError::invalid_input(vec![issue]))?;
    }
}

async fn attempt(
    prepared: Prepared,
    context: &Context,
    timeout_ms: Option<u64>,
) -> Result<Value, ActionError> {
    // However the attempt ends, also by being dropped, what it started elsewhere is told.
    let _ended = EndAttempt(context);
    let run = prepared(context.clone());
    let Some(timeout_ms) = timeout_ms else { return run.await };
    match Box::pin(tokio::time::timeout(Duration::from_millis(timeout_ms), run)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            Err(ActionError::new(Code::Timeout, format!("Action timed out after {timeout_ms}ms."))
                .retryable())
        }
    }
}

struct EndAttempt<'a>(&'a Context);

impl Drop for EndAttempt<'_> {
    fn drop(&mut self) {
        self.0.0.record.end_attempt();
    }
}
