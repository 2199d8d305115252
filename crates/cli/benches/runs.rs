//! What runs cost: the shortest run, appends through an edge's link, an event's way to a reader, a thousand readers, and the
//! start of a hub with many runs behind it.
//!
//! `cargo bench -p runyard-cli --bench runs -- [quick] [shortest] [native] [link] [latency] [readers] [recovery]`; without a name all
//! of them. Each figure stands beside what the disk does in the same run: appends of 4 KiB with fdatasync.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark that cannot go on has nothing to measure"
)]

#[path = "../../engine/tests/support/mod.rs"]
mod played;
#[path = "../tests/support/mod.rs"]
mod support;

#[path = "runs_parts/link.rs"]
mod link;
#[path = "runs_parts/native.rs"]
mod native;
#[path = "runs_parts/readers.rs"]
mod readers;
#[path = "runs_parts/recovery.rs"]
mod recovery;

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use support::Hub;
use support::api::{Api, Scripted, Yard};

/// How many callers start runs side by side.
const CALLERS: usize = 8;
/// For how long the disk is tried.
const DISK: Duration = Duration::from_secs(1);

/// What is asked for on the command line.
struct Asked {
    names: Vec<String>,
    quick: bool,
}

impl Asked {
    fn of_process() -> Self {
        // Cargo says `--bench`.
        let names: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
        let quick = names.iter().any(|name| name == "quick");
        Asked { names: names.into_iter().filter(|name| name != "quick").collect(), quick }
    }

    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|asked| asked == name)
    }

    /// A size, or the small one where it should be quick.
    fn size(&self, usual: usize, quick: usize) -> usize {
        if self.quick { quick } else { usual }
    }
}

/// One thing that is measured.
type Part = fn(&Asked);

fn main() {
    let asked = Asked::of_process();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average: {}", load.trim());
    let parts: [(&str, Part); 6] = [
        ("shortest", shortest),
        ("native", native::runs),
        ("link", link::appends),
        ("latency", latency),
        ("readers", readers::many),
        ("recovery", recovery::start),
    ];
    for (name, part) in parts {
        if asked.wants(name) {
            println!("\n{name}");
            println!("  disk: {:.0} appends of 4 KiB with fdatasync a second", disk());
            part(&asked);
        }
    }
}

/// Appends of 4 KiB with fdatasync a second.
fn disk() -> f64 {
    let mut file = tempfile::tempfile().unwrap();
    let (page, begun, mut count) = ([7; 4096], Instant::now(), 0);
    while begun.elapsed() < DISK {
        file.write_all(&page).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    f64::from(count) / begun.elapsed().as_secs_f64()
}

/// A hub that says nothing but errors, and its owner.
fn up(yard: &Yard) -> (Hub, Api) {
    let mut command = yard.home.command_up();
    command.env("RUNYARD_LOG", "error");
    let hub = Hub::of(command.spawn().unwrap()).expect("the hub listens");
    let api = Api::owner(&yard.home, &hub);
    api.add_workspace(yard.workspace.path());
    (hub, api)
}

/// One of the hub's own figures.
fn figure(api: &Api, name: &str) -> u64 {
    let (_, text) = api.send("GET", "/metrics", None);
    let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).expect("the figure");
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Private memory of the hub in use, in KiB.
fn private_kib(hub: &Hub) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", hub.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Waits until it holds, however long that takes.
fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The given quantile of times, in microseconds.
fn quantile(times: &mut [Duration], quantile: f64) -> u128 {
    times.sort_unstable();
    let at = ((times.len() - 1) as f64 * quantile).round() as usize;
    times[at].as_micros()
}

/// Starts so many runs of an agent, some at a time.
fn start_many(api: &Api, agent: &str, place: &str, count: usize) -> Vec<String> {
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let share = count / CALLERS + usize::from(caller < count % CALLERS);
                scope.spawn(move || (0..share).map(|_| api.start(agent, place)).collect::<Vec<_>>())
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    })
}

/// Runs per second of the shortest scripted run, from the request to the last event, over HTTP.
fn shortest(asked: &Asked) {
    let count = asked.size(2_000, 100);
    for active_max in [1, 16] {
        let configuration = format!("[hub]\nruns_max = {active_max}\n");
        let script = "[[turn]]\n[[turn.step]]\nsay = \"Done.\"\n";
        let yard = Yard::new(&configuration, &[Scripted { name: "short", profile: "", script }]);
        let (_hub, api) = up(&yard);
        start_many(&api, "short", yard.place(), 32);
        until(|| idle(&api));
        let begun = Instant::now();
        let runs = start_many(&api, "short", yard.place(), count);
        until(|| idle(&api));
        let took = begun.elapsed().as_secs_f64();
        let events = api.events(&runs[0]).len();
        println!(
            "  at most {active_max} at a time: {:.0} runs a second ({count} runs, {events} events each, {:.0} events a second)",
            count as f64 / took,
            (count * events) as f64 / took
        );
    }
}

fn idle(api: &Api) -> bool {
    figure(api, "runyard_runs_active") + figure(api, "runyard_runs_waiting") == 0
}

/// From a word said to a run to its event at a reader, and to the agent's answer there.
fn latency(asked: &Asked) {
    let count = asked.size(1_000, 50);
    let script = format!("[[turn]]\n[[turn.step]]\nwait_for_command = true\nrepeat = {count}\n");
    let yard = Yard::new("", &[Scripted { name: "hears", profile: "", script: &script }]);
    let (_hub, api) = up(&yard);
    let run = api.start("hears", yard.place());
    let mut stream = api.stream(&run, None);
    let mut event = |wanted: &str| {
        while stream.next().expect("the run goes on").event != wanted {}
        Instant::now()
    };
    event("run.turn.started");
    let (mut recorded, mut answered) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let path = format!("/runs/{run}/commands");
        let begun = Instant::now();
        let answer = std::thread::scope(|scope| {
            scope.spawn(|| api.post(&path, &json!({"kind": "steer", "text": "on"})));
            recorded.push(event("run.command.received") - begun);
            event("run.message.completed")
        });
        answered.push(answer - begun);
    }
    for (what, times) in [("its event", &mut recorded), ("the agent's answer", &mut answered)] {
        println!(
            "  from a word sent to {what} at the reader: p50 {} µs, p99 {} µs ({count} words)",
            quantile(times, 0.5),
            quantile(times, 0.99)
        );
    }
}
