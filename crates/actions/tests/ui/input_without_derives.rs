use runyard_actions::{ActionError, action};

struct Question;

/// Answer.
#[action(crate = "runyard_actions")]
async fn answer(_question: Question) -> Result<u32, ActionError> {
    Ok(42)
}

fn main() {}
