//! A codex run through a hub, timed by what its reader sees.

use std::time::{Duration, Instant};

use crate::support::Hub;
use crate::support::api::Api;
use crate::support::codex::Bench;

/// The shortest turn: some words, no step.
pub(crate) const SHORTEST: &str = "[[scenario:text]]";

/// A hub that says nothing but errors, and its owner.
pub(crate) fn up(bench: &Bench) -> (Hub, Api) {
    let mut command = bench.yard.home.command_up();
    command.env("RUNYARD_LOG", "error");
    let hub = Hub::of(command.spawn().unwrap()).expect("the hub listens");
    let api = Api::owner(&bench.yard.home, &hub);
    api.add_workspace(bench.yard.workspace.path());
    (hub, api)
}

/// What a run took.
pub(crate) struct Took {
    pub(crate) run: String,
    /// From the request until it is prepared: accepted, checked, its checkout made.
    pub(crate) preparing: Duration,
    /// From there to the beginning of the turn: codex starts.
    pub(crate) starting: Duration,
    /// The turn.
    pub(crate) turn: Duration,
    /// From there to the end of the run: codex is stopped, the checkout is looked at.
    pub(crate) ending: Duration,
    pub(crate) whole: Duration,
}

/// Starts a run and follows it to its end.
pub(crate) fn run(bench: &Bench, api: &Api) -> Took {
    let begun = Instant::now();
    let run = bench.start(api, "codex", SHORTEST);
    let mut stream = api.stream(&run, None);
    let mut until = |wanted: &str| loop {
        let message =
            stream.next().unwrap_or_else(|| panic!("{run} ended before {wanted}: {}", api.run(&run)));
        if message.event == wanted {
            return begun.elapsed();
        }
    };
    let started = until("run.started");
    let turn_started = until("run.turn.started");
    let turn_ended = until("run.turn.ended");
    let whole = until("run.completed");
    Took {
        preparing: started,
        starting: turn_started - started,
        turn: turn_ended - turn_started,
        ending: whole - turn_ended,
        whole,
        run,
    }
}
