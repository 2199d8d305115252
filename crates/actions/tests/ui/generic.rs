use runyard_actions::{ActionError, action};

/// Answer.
#[action(crate = "runyard_actions")]
async fn answer<T>(question: T) -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions")]
async fn hidden(question: impl ToString) -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
