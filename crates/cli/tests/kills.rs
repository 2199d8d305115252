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

use support::api::left_of;
use support::mortal::Mortal;
use support::{Home, Hub, eventually};

/// How often each failpoint is passed before it kills: the quick proof tries the first times, the long one more.
fn counts() -> std::ops::RangeInclusive<u64> {
    match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => 1..=1,
        Ok("soak") => 1..=12,
        _ => 1..=3,
    }
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

/// Kills the hub at this failpoint, starts it again and lets the run come to its end. False when the failpoint was not reached.
fn killed_at(failpoint: &str, count: u64) -> bool {
    let context = format!("{failpoint}:{count}");
    let home = Home::with("[workspace]\nsetup = [[\"sh\", \"-c\", \"echo made > made.txt\"]]\n");
    let workspace = tempfile::tempdir().unwrap();
    std::fs::write(workspace.path().join("README.md"), "A place to look around in.\n").unwrap();
    let mut run = None;
    let reached = {
        let armed = home.command_up().env("RUNYARD_FAILPOINT", &context).spawn().unwrap();
        let Some(hub) = Hub::of(armed) else { return killed_at_start(&home, workspace.path(), &context) };
        let api = Mortal::new(&home, &hub);
        run = create(&api, workspace.path()).or(run);
        let end = run.as_ref().and_then(|run| api.drive(run)).and_then(|_| api.audited(2));
        end.is_none()
    };
    finish(&home, workspace.path(), run, &context);
    reached
}

/// It died before it listened: the next one starts all the same.
fn killed_at_start(home: &Home, workspace: &Path, context: &str) -> bool {
    finish(home, workspace, None, context);
    true
}

fn finish(home: &Home, workspace: &Path, run: Option<String>, context: &str) {
    let hub = home.up();
    let api = Mortal::new(home, &hub);
    let run = run.unwrap_or_else(|| create(&api, workspace).unwrap());
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
    let decisions = check_log(page["events"].as_array().unwrap(), context);
    api.audited(decisions).unwrap();
    let runs = api.get("/api/v1/runs").unwrap();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{context}: one run");
    eventually("nothing of the run is left", || left_of(&run).is_empty().then_some(()));
    assert!(api.get("/api/v1/approvals?state=open").unwrap()["approvals"].as_array().unwrap().is_empty());
    drop(hub);
    let verified = home.run(["log", "verify", "--output", "json"]);
    assert_eq!(verified.exit, 0, "{context}: {}", verified.stdout);
}

#[test]
fn j05_a_run_survives_kill_9_of_the_hub_at_every_failpoint() {
    for failpoint in FAILPOINTS {
        let mut reached = 0;
        for count in counts() {
            if !killed_at(failpoint, count) {
                break;
            }
            reached += 1;
        }
        assert!(reached > 0, "the demo run never comes by {failpoint}");
    }
}
