use runyard_actions::{ActionError, action};

/// Answer.
#[action(crate = "runyard_actions")]
async fn answer() -> Result<u32, ActionError> {
    let answer = std::rc::Rc::new(42);
    std::future::ready(()).await;
    Ok(*answer)
}

fn main() {}
