use runyard_actions::{ActionError, action};

struct Answers;

impl Answers {
    /// Answer.
    #[action(crate = "runyard_actions")]
    async fn answer(&self) -> Result<u32, ActionError> {
        Ok(42)
    }
}

fn main() {}
