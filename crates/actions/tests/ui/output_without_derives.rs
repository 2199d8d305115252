use runyard_actions::{ActionError, action};

struct Answer;

/// Answer.
#[action(crate = "runyard_actions")]
async fn answer() -> Result<Answer, ActionError> {
    Ok(Answer)
}

fn main() {}
