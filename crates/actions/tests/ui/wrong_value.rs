use runyard_actions::{ActionError, action};

/// Answer.
#[action(crate = "runyard_actions", timeout_ms = "5s")]
async fn timeout() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", deadline_ms = -1)]
async fn deadline() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", people_only = true)]
async fn flag() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", permissions = "tasks.write")]
async fn list() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", title, version = "1.0.0")]
async fn nothing() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", retry = 3)]
async fn retry() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", concurrency = 3)]
async fn concurrency() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", concurrency(wait_ms = 3))]
async fn unlimited() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", deprecated(since = "1.0.0"))]
async fn deprecated() -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
