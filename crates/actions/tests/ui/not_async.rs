use runyard_actions::{ActionError, action};

/// Answer.
#[action(crate = "runyard_actions")]
fn answer() -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
