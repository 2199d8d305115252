//! Many runs that wait for people at once: each is a row and nothing else, and all of them come to their end when answered.
//!
//! clause: C12
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use support::api::{Api, Scripted, Yard, times};
use support::{Hub, eventually};

/// Of a hub that starts with them: a row is read when somebody asks for it. Room for what the allocator does.
const ROW_BYTES_MAX: u64 = 16 * 1024;
/// Of the hub that ran them: far more than a row needs, and far less than a session.
const RUN_BYTES_MAX: u64 = 256 * 1024;
/// How many go through before anything is measured, so that caches and threads are there.
const WARM: usize = 64;
/// How many callers make and answer runs side by side.
const CALLERS: usize = 4;

const SCRIPT: &str = r#"
[[turn]]
[[turn.step]]
shell = "true"
"#;

const CONFIGURATION: &str = "[hub]\npark_after_ms = 1\nruns_max = 16\n";

/// Does something for each of these, some at a time.
fn for_each<T: Sync>(all: &[T], work: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for part in all.chunks(all.len().div_ceil(CALLERS).max(1)) {
            let work = &work;
            scope.spawn(move || part.iter().for_each(work));
        }
    });
}

/// Waits as long as it takes while there is progress. A thousand runs need longer than one.
#[track_caller]
fn until<T: PartialEq + std::fmt::Debug + Clone>(what: &str, wanted: &T, mut ask: impl FnMut() -> T) {
    let mut seen = ask();
    while seen != *wanted {
        let before = seen.clone();
        seen = eventually(&format!("{what}: still {before:?}, not {wanted:?}"), || {
            let now = ask();
            (now != before).then_some(now)
        });
    }
}

fn figure(api: &Api, name: &str) -> u64 {
    let (_, text) = api.send("GET", "/metrics", None);
    let line =
        text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_else(|| panic!("{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// All that waits for people, by run.
fn open(api: &Api) -> BTreeMap<String, Value> {
    let (mut found, mut after) = (BTreeMap::new(), String::new());
    loop {
        let page = api.get(&format!("/approvals?limit=500{after}"));
        for approval in page["approvals"].as_array().unwrap() {
            found.insert(approval["runId"].as_str().unwrap().to_owned(), approval.clone());
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return found,
        }
    }
}

fn in_state(api: &Api, state: &str) -> usize {
    let (mut found, mut before) = (0, String::new());
    loop {
        let page = api.get(&format!("/runs?state={state}&limit=500{before}"));
        found += page["runs"].as_array().unwrap().len();
        match page["next"].as_str() {
            Some(next) => before = format!("&before={next}"),
            None => return found,
        }
    }
}

/// Private memory of the process that is in use, in bytes, when it does not change any more.
fn settled(hub: &Hub) -> u64 {
    let now = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", hub.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    };
    let (mut least, mut since) = (now(), Instant::now());
    // There is no event to wait for: the allocator gives back what it does not need a while later.
    while since.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(50));
        let bytes = now();
        if bytes < least {
            (least, since) = (bytes, Instant::now());
        }
    }
    least
}

/// Starts so many, waits until they all wait for people and nothing of them is live.
fn make_waiting(api: &Api, place: &str, count: usize) {
    for_each(&vec![(); count], |()| drop(api.start("asker", place)));
    until("runs wait for people", &count, || open(api).len());
    until("no session is live", &0, || figure(api, "runyard_runs_active"));
}

fn answer_all(api: &Api, completed: usize) {
    let waiting: Vec<Value> = open(api).into_values().collect();
    for_each(&waiting, |approval| api.approve(approval));
    until("runs complete", &completed, || in_state(api, "completed"));
    until("no session is live", &0, || figure(api, "runyard_runs_active"));
    assert!(open(api).is_empty());
}

/// Processes that the hub started, directly or not.
fn descendants(hub: &Hub) -> Vec<String> {
    let mut parents = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((name, rest)) = stat.rsplit_once(") ") else { continue };
        let parent: u32 = rest.split(' ').nth(1).unwrap().parse().unwrap();
        parents.insert(entry.file_name().to_string_lossy().into_owned(), (parent, name.to_owned()));
    }
    let of_hub = parents.iter().filter(|(pid, _)| {
        let mut at = (*pid).clone();
        while let Some((parent, _)) = parents.get(&at) {
            if *parent == hub.pid() {
                return true;
            }
            at = parent.to_string();
        }
        false
    });
    of_hub.map(|(pid, (_, name))| format!("{pid} {name}")).collect()
}

#[test]
fn c12_a_thousand_runs_wait_for_people_as_rows_and_all_complete_when_answered() {
    let count = times(100, 1_000, 4_000);
    let yard =
        Yard::new(CONFIGURATION, &[Scripted { name: "asker", profile: "runs_max = 16", script: SCRIPT }]);
    let (hub, api) = yard.up();
    make_waiting(&api, yard.place(), WARM);
    answer_all(&api, WARM);
    let warm = settled(&hub);
    // A hub that has just started, with nothing that waits.
    drop(hub);
    let (hub, api) = yard.up();
    let fresh = settled(&hub);
    assert!(open(&api).is_empty());

    let begun = Instant::now();
    make_waiting(&api, yard.place(), count);
    let made = begun.elapsed();
    assert_eq!(in_state(&api, "needs_approval"), count);
    assert_eq!(descendants(&hub), Vec::<String>::new(), "what waits for people has no process");
    let live = settled(&hub);

    // A hub that has just started, with all of them.
    drop(hub);
    let (hub, api) = yard.up();
    let waiting = settled(&hub);
    assert_eq!(open(&api).len(), count);
    let begun = Instant::now();
    answer_all(&api, WARM + count);
    let answered = begun.elapsed();
    assert_eq!(descendants(&hub), Vec::<String>::new(), "what is over has no process");
    let (each, each_live) = (per_run(fresh, waiting, count), per_run(warm, live, count));
    println!(
        "{count} runs wait: {each} bytes each in a hub that starts with them ({} KiB, {} KiB without), {each_live} in the one \
         that ran them ({} KiB, {} KiB before); made in {made:.1?}, answered in {answered:.1?}",
        waiting / 1024,
        fresh / 1024,
        live / 1024,
        warm / 1024,
    );
    assert!(each_live < RUN_BYTES_MAX, "{each_live} bytes for each run that came to wait");
    // With few of them a page of the allocator is more than a row.
    assert!(count < 1_000 || each < ROW_BYTES_MAX, "{each} bytes for each run that waits");
    let ends = eventually("every decision is in the audit", || {
        let found = api.audit("audit.decision");
        (found.len() >= WARM + count).then_some(found)
    });
    assert_eq!(ends.len(), WARM + count);
}

fn per_run(before: u64, after: u64, count: usize) -> u64 {
    after.saturating_sub(before) / count as u64
}
