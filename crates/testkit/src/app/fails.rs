//! Actions that fail: with a typed error, an error of another library, a panic.

use std::time::Duration;

use runyard::{Action, ActionError, Artifact, Code, Context, DefinitionError, Issue, action, fields};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Fail {
    /// A code of the table, or one of its own.
    code: String,
    /// What is said.
    #[serde(default = "it_failed")]
    message: String,
    /// Whether repeating may help.
    #[serde(default)]
    retryable: bool,
    /// After which wait.
    retry_after_ms: Option<u64>,
    /// Fields that are to blame.
    #[serde(default)]
    fields: Vec<String>,
}

fn it_failed() -> String {
    "It failed.".to_owned()
}

/// Fail as one is told to.
#[action]
async fn fail(input: Fail) -> Result<(), ActionError> {
    let issues = input.fields.iter().map(|field| Issue::at(field, "Is to blame.")).collect();
    let error = ActionError::application(&input.code, input.message).with_issues(issues);
    let error = if input.retryable { error.retryable() } else { error };
    Err(match input.retry_after_ms {
        Some(wait_ms) => error.retry_after(Duration::from_millis(wait_ms)),
        None => error,
    })
}

/// Log, add an artifact, and then fail.
#[action]
async fn fail_late(ctx: &Context) -> Result<(), ActionError> {
    ctx.logger().info("half way", fields! { step: 1 });
    ctx.artifacts().add(Artifact::named("half.txt"));
    Err(ActionError::new(Code::ExternalServiceError, "The other half is not there."))
}

/// Read a file that is not there; its name is a secret.
#[action]
async fn read_missing_file() -> Result<String, ActionError> {
    Ok(std::fs::read_to_string("/nowhere/hunter22.txt")?)
}

/// Panic with a secret.
#[action]
async fn fall_over(ctx: &Context) -> Result<(), ActionError> {
    ctx.logger().warn("it shakes", fields! {});
    panic!("password=hunter22");
}

/// Wait for a task that was aborted.
#[action]
async fn await_aborted() -> Result<(), ActionError> {
    let task = tokio::spawn(std::future::pending::<()>());
    task.abort();
    Ok(task.await?)
}

/// Wait for a task that panicked.
#[action]
async fn await_panicked() -> Result<(), ActionError> {
    Ok(tokio::spawn(async { panic!("password=hunter22") }).await?)
}

/// Give up by itself.
#[action]
async fn give_up() -> Result<(), ActionError> {
    Err(ActionError::cancelled())
}

pub(super) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![fail(), fail_late(), read_missing_file(), fall_over(), await_aborted(), await_panicked(), give_up()]
}
