//! One shortest turn: a run through a hub against driving the same program directly, on the same provider, in turns.

use std::time::Duration;

use crate::direct::{self, Direct};
use crate::support::codex::Bench;
use crate::through_hub::{self, SHORTEST, run, up};
use crate::{Asked, median, ms};

pub(crate) fn overhead(asked: &Asked) {
    let bench = Bench::new();
    let (_hub, api) = up(&bench);
    let direct = Direct::on(&bench);
    // What only the first one costs is not what one costs.
    direct.turn(SHORTEST);
    let first = run(&bench, &api);
    let (mut through, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..asked.size(20, 3) {
        plain.push(direct.turn(SHORTEST));
        through.push(run(&bench, &api));
    }
    let events = api.events(&first.run);
    let started = events.iter().find(|event| event["type"] == "run.started").expect("it was started");
    println!("  {} rounds; sandbox: {}", plain.len(), started["payload"]["checks"]["sandbox"]);
    let of_run = |part: fn(&through_hub::Took) -> Duration| median(through.iter().map(part));
    let of_direct = |part: fn(&direct::Took) -> Duration| median(plain.iter().map(part));
    let (run, direct) = (of_run(|took| took.whole), of_direct(|took| took.whole));
    println!(
        "  directly: {:.0} ms (until the turn {:.0}, turn {:.0})",
        ms(direct),
        ms(of_direct(|took| took.until_turn)),
        ms(of_direct(|took| took.turn))
    );
    println!(
        "  as a run: {:.0} ms (preparing {:.0}, start of codex {:.0}, turn {:.0}, ending {:.0}); {} events",
        ms(run),
        ms(of_run(|took| took.preparing)),
        ms(of_run(|took| took.starting)),
        ms(of_run(|took| took.turn)),
        ms(of_run(|took| took.ending)),
        events.len()
    );
    let ratio = |run: Duration, direct: Duration| run.as_secs_f64() / direct.as_secs_f64();
    println!(
        "  ratio: {:.2} (aim: under 1.1), {:.0} ms more; of the turn alone {:.2}",
        ratio(run, direct),
        ms(run) - ms(direct),
        ratio(of_run(|took| took.turn), of_direct(|took| took.turn))
    );
}
