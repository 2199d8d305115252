use runyard_actions::{ActionError, action};

#[action(crate = "runyard_actions")]
async fn answer() -> Result<u32, ActionError> {
    Ok(42)
}

///
#[action(crate = "runyard_actions")]
async fn blank() -> Result<u32, ActionError> {
    Ok(42)
}

#[action(crate = "runyard_actions", description = " ")]
async fn empty() -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
