use runyard_actions::{ActionError, action};

/// Answers.
#[action(crate = "runyard_actions")]
async fn answer(_nothing: ()) -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
