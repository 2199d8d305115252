use runyard_actions::{ActionError, action};

/// Answer.
#[action(crate = "runyard_actions", side_effects = "delete")]
async fn side_effects() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", idempotency = "yes")]
async fn idempotency() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", visibility = "internal")]
async fn visibility() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", surfaces = ["cli", "web"])]
async fn surfaces() -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
