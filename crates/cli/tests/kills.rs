//! The demo run with the hub killed at every failpoint: each commit and each effect.
//!
//! clause: J05
//! clause: C03
//! clause: C12

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use runyard_backend::failpoint::FAILPOINTS;
use serde_json::{Value, json};

use support::api::{left_by, left_of};
use support::mortal::{Mortal, chosen, passages};
use support::{Home, Hub, eventually};

/// What somebody knew before the hub died. None of it may be otherwise afterwards.
#[derive(Default)]
struct Known {
    run: Option<String>,
    /// The events of the run that were seen.
    seen: Vec<Value>,
    /// The approvals whose answer was taken.
    settled: BTreeSet<String>,
    /// Whether the rule was said to be stored.
    rule: bool,
}

/// A rule that matches nothing here; it is only to be stored.
const RULE: &str = "never-called-here";

fn add_rule(api: &Mortal<'_>) -> Option<()> {
    let rule = json!({"effect": "deny", "kind": "shell", "match": RULE, "idempotencyKey": "rule"});
    let added = api.post("/api/v1/policy/rules", &rule)?;
    (added["ok"] == true).then_some(())
}

/// Starts a run under a key, so that asking again after a death makes no second one.
fn create(api: &Mortal<'_>, workspace: &Path) -> Option<String> {
    let place = workspace.to_str().unwrap();
    api.post("/api/v1/workspaces", &json!({"path": place}))?;
    let new =
        json!({"task": "look around", "agent": "demo", "workspace": place, "idempotencyKey": "the-run"});
    let made = api.post("/api/v1/runs", &new)?;
    Some(made["data"]["run"]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned())
}

/// What must hold of the log of a run at its end. Gives how many decisions are in it.
#[track_caller]
fn check_log(events: &[Value], context: &str) -> usize {
    let mut ids = BTreeSet::new();
    let mut asked: BTreeMap<String, u32> = BTreeMap::new();
    let mut resolved: BTreeMap<String, u32> = BTreeMap::new();
    let mut succeeded: BTreeMap<String, u32> = BTreeMap::new();
    let started = events.iter().position(|event| event["type"] == "run.started");
    let set_up = events.iter().rposition(|event| event["payload"]["tool"] == "setup");
    assert!(set_up.is_some() && set_up < started, "{context}: what had started is not set up again");
    for (place, event) in events.iter().enumerate() {
        assert_eq!(event["sequence"], place as u64 + 1, "{context}: gapless");
        assert!(ids.insert(event["id"].as_str().unwrap().to_owned()), "{context}: doubled {event}");
        let kind = event["type"].as_str().unwrap();
        let terminal = ["run.completed", "run.failed", "run.cancelled"].contains(&kind);
        assert_eq!(terminal, place + 1 == events.len(), "{context}: {kind} at {place} of {}", events.len());
        let text = |name: &str| event["payload"][name].as_str().unwrap_or_default().to_owned();
        match kind {
            "run.approval.requested" => *asked.entry(text("approvalId")).or_default() += 1,
            "run.approval.resolved" => *resolved.entry(text("approvalId")).or_default() += 1,
            // What prepares a run is done anew where a process died meanwhile.
            "run.tool.result" if text("outcome") == "succeeded" && Some(place) > started => {
                *succeeded.entry(text("call")).or_default() += 1
            }
            _ => {}
        }
    }
    assert!(!asked.is_empty(), "{context}: the demo asks");
    assert_eq!(asked, resolved, "{context}: every approval is asked once and resolved once");
    assert!(succeeded.values().all(|count| *count == 1), "{context}: a step is done once: {succeeded:?}");
    resolved.len()
}

/// A workspace, and a home whose runs are prepared by a step of their own.
fn places() -> (Home, tempfile::TempDir) {
    // A short lease, so that it is renewed while the run goes on.
    let home = Home::with(
        "[hub]\nlease_ms = 150\n\n[workspace]\nsetup = [[\"sh\", \"-c\", \"echo made > made.txt\"]]\n",
    );
    let workspace = tempfile::tempdir().unwrap();
    std::fs::write(workspace.path().join("README.md"), "A place to look around in.\n").unwrap();
    (home, workspace)
}

/// Uses a hub until the run is at its end and audited, or the hub is dead. True when it came to the end.
fn used(api: &Mortal<'_>, workspace: &Path, known: &mut Known) -> bool {
    known.rule = add_rule(api).is_some();
    known.run = create(api, workspace);
    let Some(run) = known.run.clone() else { return false };
    let watching = api.watch(&run);
    let end = api.drive(&run).and_then(|_| api.audited(2)).and_then(|()| api.at_rest(&run));
    known.settled = api.settled();
    known.seen = watching.seen();
    end.is_some()
}

/// How often the run of this test passes each failpoint where nobody kills the hub.
fn unkilled() -> BTreeMap<String, u64> {
    let (home, workspace) = places();
    let counts = home.beside("counts");
    let hub = Hub::of(home.command_up().env("RUNYARD_FAILPOINT_COUNTS", &counts).spawn().unwrap()).unwrap();
    let mut known = Known::default();
    assert!(used(&Mortal::new(&home, &hub), workspace.path(), &mut known), "nobody kills it");
    drop(hub);
    passages(&counts)
}

/// Kills the hub at this failpoint, starts it again and lets the run come to its end. Gives what was known when it died, or
/// nothing when it did not.
fn killed_at(failpoint: &str, count: u64) -> Option<Known> {
    let context = format!("{failpoint}:{count}");
    let (home, workspace) = places();
    let mut known = Known::default();
    let armed = home.command_up().env("RUNYARD_FAILPOINT", &context).spawn().unwrap();
    let killed = armed.id();
    // It may die before it listens: the next one starts all the same.
    let reached = match Hub::of(armed) {
        Some(hub) => !used(&Mortal::new(&home, &hub), workspace.path(), &mut known),
        None => true,
    };
    finish(&home, workspace.path(), &known, &context);
    eventually("no git of the killed hub is left", || left_by(killed).is_empty().then_some(()));
    reached.then_some(known)
}

fn finish(home: &Home, workspace: &Path, known: &Known, context: &str) {
    let hub = home.up();
    let api = Mortal::after(home, &hub, known.settled.clone());
    let run = known.run.clone().unwrap_or_else(|| create(&api, workspace).unwrap());
    let end = api.drive(&run).unwrap_or_else(|| panic!("{context}: the second hub died"));
    assert_eq!(end["state"], "completed", "{context}: {end}");
    let applied = std::fs::read_to_string(workspace.join("runyard-demo.md")).unwrap_or_default();
    assert!(
        applied.starts_with("# A note from the demo agent"),
        "{context}: what was approved is there: {applied:?}"
    );
    let left = std::fs::read_dir(workspace).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(
        left.collect::<BTreeSet<_>>(),
        BTreeSet::from(["README.md".into(), "runyard-demo.md".into()]),
        "{context}"
    );
    let page = api.get(&format!("/api/v1/runs/{run}/events?limit=500")).unwrap();
    let events = page["events"].as_array().unwrap();
    let decisions = check_log(events, context);
    check_known(known, events, context);
    api.audited(decisions).unwrap();
    let rules = api.get("/api/v1/policy").unwrap().to_string().matches(RULE).count();
    assert!(rules <= 1 && rules >= usize::from(known.rule), "{context}: {rules} rules");
    let audit = api.get("/api/v1/audit?limit=499").unwrap();
    let entries = audit["entries"].as_array().unwrap().iter();
    let listed: Vec<_> = entries.filter(|entry| entry["type"] == "audit.workspace").collect();
    assert_eq!(listed.len(), 1, "{context}: the workspace came in once: {listed:?}");
    assert_eq!(listed[0]["by"]["id"], "owner", "{context}: and it is known who added it");
    let runs = api.get("/api/v1/runs").unwrap();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{context}: one run");
    eventually("nothing of the run is left", || left_of(&run).is_empty().then_some(()));
    eventually("no git of the hub is left", || left_by(hub.pid()).is_empty().then_some(()));
    assert!(api.get("/api/v1/approvals?state=open").unwrap()["approvals"].as_array().unwrap().is_empty());
    drop(hub);
    let verified = home.run(["log", "verify", "--output", "json"]);
    assert_eq!(verified.exit, 0, "{context}: {}", verified.stdout);
}

/// What was seen before the hub died stands where it stood, and an answer that was taken is the one that counts.
#[track_caller]
fn check_known(known: &Known, events: &[Value], context: &str) {
    for seen in &known.seen {
        let place = seen["sequence"].as_u64().unwrap() as usize - 1;
        assert_eq!(events.get(place), Some(seen), "{context}: what was seen is still there");
    }
    for id in &known.settled {
        let mut resolved = events.iter().filter(|event| event["type"] == "run.approval.resolved");
        let of_it = resolved.find(|event| event["payload"]["approvalId"] == **id);
        let payload =
            of_it.map(|event| &event["payload"]).unwrap_or_else(|| panic!("{context}: {id} is lost"));
        assert_eq!(payload["resolution"], "approved", "{context}: {payload}");
        assert_eq!(payload["decidedBy"]["id"], "owner", "{context}: {payload}");
    }
}

/// So many of the last passages of a failpoint may not come; of many, a quarter.
const MISSED_MIN: usize = 1;

/// Kills at each of these failpoints, at every passage. How often one is passed depends a little on the scheduler, so the last
/// passages may not come; most do, and what was seen by then says how far the kills went.
fn survives(failpoints: &[&str], passages: &BTreeMap<String, u64>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for failpoint in failpoints {
        let chosen = chosen(passages.get(*failpoint).copied().unwrap_or_default());
        let killed: Vec<Known> = chosen.iter().filter_map(|count| killed_at(failpoint, *count)).collect();
        assert!(!killed.is_empty(), "the demo run never comes by {failpoint}");
        let missed = chosen.len() - killed.len();
        assert!(missed <= MISSED_MIN.max(chosen.len() / 4), "{failpoint}: {missed} of {chosen:?}");
        let kinds = killed.iter().flat_map(|known| &known.seen).map(|event| event["type"].as_str().unwrap());
        seen.extend(kinds.map(str::to_owned));
    }
    seen
}

#[test]
fn j05_a_run_survives_kill_9_of_the_hub_at_every_failpoint() {
    let passages = unkilled();
    let mut lanes: [Vec<&str>; 2] = Default::default();
    for failpoint in FAILPOINTS {
        let shorter = usize::from(work(&lanes[1], &passages) < work(&lanes[0], &passages));
        lanes[shorter].push(failpoint);
    }
    let seen: BTreeSet<String> = std::thread::scope(|scope| {
        let lanes = lanes.each_ref().map(|lane| scope.spawn(|| survives(lane, &passages)));
        lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    });
    // From the first event to the last: the hub died before and after each.
    for kind in ["run.created", "run.started", "run.approval.requested", "run.applied", "run.completed"] {
        assert!(seen.contains(kind), "no kill came after {kind}: {seen:?}");
    }
}

/// How many kills these failpoints are.
fn work(failpoints: &[&str], passages: &BTreeMap<String, u64>) -> u64 {
    failpoints.iter().filter_map(|failpoint| passages.get(*failpoint)).sum()
}
