use runyard_actions::{ActionError, action};

/// Answer.
#[action(crate = "runyard_actions", side_effects = "delete")]
fn answer() -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
