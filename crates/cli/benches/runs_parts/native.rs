//! What a run of our own agent costs inside Runyard, with its log: one call of a tool, then a last message.
//!
//! Beside it stands a scripted agent that does the same without a model, in the same run: what is between them is the loop, its
//! record, and two questions to a model provider through the gateway.

use std::time::{Duration, Instant};

use crate::support::Hub;
use crate::support::api::{Api, Scripted, Yard};
use crate::support::native::Native;
use crate::{Asked, CALLERS, idle, until, up};

/// The same as the model's script: it reads a file, and says something.
const SCRIPT: &str =
    "[[turn]]\n[[turn.step]]\nread = \"README.md\"\n[[turn.step]]\nsay = \"The tool was called.\"\n";
const TASK: &str = r#"[[scenario:tool read {"path": "README.md"}]]"#;

pub fn runs(asked: &Asked) {
    let count = asked.size(1_000, 50);
    let yard = Yard::new("", &[Scripted { name: "reads", profile: "", script: SCRIPT }]);
    let (hub, api) = up(&yard);
    let scripted = measured("scripted", &hub, &api, "reads", yard.place(), count);
    drop(hub);
    let native = Native::new("");
    let (hub, api) = up(&native.yard);
    let own = measured("our own agent", &hub, &api, "mine", native.yard.place(), count);
    println!(
        "  processor time of the hub, our own agent to scripted: {:.2}",
        own.as_secs_f64() / scripted.as_secs_f64()
    );
}

/// Processor time of the hub for each run.
fn measured(name: &str, hub: &Hub, api: &Api, agent: &str, place: &str, count: usize) -> Duration {
    start(api, agent, place, 32);
    let (begun, before) = (Instant::now(), processor_time(hub));
    let first = start(api, agent, place, count);
    let took = begun.elapsed().as_secs_f64();
    let each = (processor_time(hub) - before) / u32::try_from(count).unwrap();
    let events = api.events(&first);
    assert_eq!(events.last().unwrap()["type"], "run.completed", "{events:?}");
    println!(
        "  {name}: {:.0} runs a second ({count} runs, {} events each), {:.2} ms of the hub's processor time each",
        count as f64 / took,
        events.len(),
        each.as_secs_f64() * 1e3
    );
    each
}

/// Starts so many runs and waits for the last. Gives one of them.
fn start(api: &Api, agent: &str, place: &str, count: usize) -> String {
    let new = serde_json::json!({"task": TASK, "agent": agent, "workspace": place,
        "executionPolicy": {"changes": "keep"}});
    let first = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let share = count / CALLERS + usize::from(caller < count % CALLERS);
                let new = &new;
                scope.spawn(move || {
                    let mut started = None;
                    for _ in 0..share {
                        started = api.post("/runs", new)["run"]["id"].as_str().map(str::to_owned);
                    }
                    started
                })
            })
            .collect();
        callers.into_iter().find_map(|caller| caller.join().unwrap())
    });
    until(|| idle(api));
    first.expect("at least one")
}

/// What the hub's process has used of the processor. Ticks are hundredths of a second on Linux.
fn processor_time(hub: &Hub) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", hub.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = [11, 12].iter().map(|at| fields[*at].parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}
