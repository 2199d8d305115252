use runyard_actions::{ActionError, action};

/// Answer.
#[action(crate = "runyard_actions", name = "get-answer")]
async fn answer() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions")]
#[allow(non_snake_case)]
async fn getAnswer() -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
