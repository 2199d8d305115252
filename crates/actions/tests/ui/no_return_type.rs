use runyard_actions::action;

/// Answer.
#[action(crate = "runyard_actions")]
async fn answer() {}

fn main() {}
