use runyard_actions::action;

/// Answer.
#[action(crate = "runyard_actions")]
struct Answer;

fn main() {}
