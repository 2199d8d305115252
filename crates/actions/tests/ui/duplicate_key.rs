use runyard_actions::{ActionError, action};

/// Answer.
#[action(crate = "runyard_actions", title = "Answer", title = "The answer")]
async fn answer() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", concurrency(max = 1, max = 2))]
async fn limited() -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
