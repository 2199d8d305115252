//! Many codex runs at once, against as many processes that are driven directly, on the same provider.
//!
//! Time and memory are taken in rounds of their own: looking at the memory of many processes takes time itself.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::direct::Direct;
use crate::memory::{self, Peak};
use crate::support::codex::Bench;
use crate::through_hub::{SHORTEST, run, up};
use crate::{Asked, median};

pub(crate) fn at_once(asked: &Asked) {
    let (count, rounds) = (asked.size(20, 4), asked.size(3, 1));
    let bench =
        Bench::with(&format!("\n[hub]\nruns_max = {count}\n\n[agent.codex]\nruns_max = {count}\n"), None);
    let direct = Direct::on(&bench);
    let (hub, api) = up(&bench);
    let runs = || {
        together(count, || {
            run(&bench, &api);
        })
    };
    let turns = || {
        together(count, || {
            direct.turn(SHORTEST);
        })
    };
    run(&bench, &api);
    direct.turn(SHORTEST);
    let (mut through, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        through.push(runs());
        plain.push(turns());
    }
    let (through, plain) = (median(through), median(plain));
    let (_, of_runs) = memory::during(hub.pid(), runs);
    let of_hub = memory::of(hub.pid()).unwrap_or_default();
    // Everything that this process starts from now on is driven directly.
    drop(hub);
    let (_, of_turns) = memory::during(std::process::id(), turns);
    println!("  {count} at once, all completed in each of {rounds} rounds");
    println!(
        "  as runs:  {:.2} s; {}, and the hub itself {:.0} MB after them",
        through.as_secs_f64(),
        shown(of_runs),
        of_hub as f64 / 1e3
    );
    println!("  directly: {:.2} s; {}", plain.as_secs_f64(), shown(of_turns));
    println!("  ratio: {:.2}", through.as_secs_f64() / plain.as_secs_f64());
}

/// Does it so many times at once: the time until all are done.
fn together(count: usize, work: impl Fn() + Sync) -> Duration {
    let ready = Barrier::new(count + 1);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(|| {
                    ready.wait();
                    work();
                })
            })
            .collect();
        ready.wait();
        let begun = Instant::now();
        all.into_iter().for_each(|one| one.join().unwrap());
        begun.elapsed()
    })
}

fn shown(peak: Peak) -> String {
    format!("at most {:.0} MB in {} processes", peak.kib as f64 / 1e3, peak.processes)
}
