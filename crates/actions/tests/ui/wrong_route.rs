use runyard_actions::{ActionError, action};

/// Answer.
#[action(crate = "runyard_actions", http = "/api/v1/answer")]
async fn no_method() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", http = "FETCH /api/v1/answer")]
async fn no_such_method() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", http = "GET answer")]
async fn no_slash() -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
