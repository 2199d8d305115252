use runyard_actions::{ActionError, Context, action};

/// Answer.
#[action(crate = "runyard_actions")]
async fn three(question: String, ctx: &Context, more: String) -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions")]
async fn two(question: String, more: String) -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
