use runyard_actions::{ActionError, action};

/// Answer.
#[action(crate = "runyard_actions", sideeffects = "read")]
async fn answer() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", colour = "blue")]
async fn colourful() -> Result<u32, ActionError> {
    Ok(42)
}

/// Answer.
#[action(crate = "runyard_actions", retry(times = 3))]
async fn again() -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
