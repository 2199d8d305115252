use runyard_actions::{ActionError, Context, action};

/// Answer.
#[action(crate = "runyard_actions")]
async fn answer(ctx: Context) -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions")]
async fn changed(ctx: &mut Context) -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions")]
async fn turned_around(ctx: &Context, question: String) -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions")]
async fn borrowed(question: &str, ctx: &Context) -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
