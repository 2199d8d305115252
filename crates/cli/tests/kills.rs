//! The demo run with the hub killed at every failpoint: each commit and each effect.
//!
//! clause: J05
//! clause: C03
//! clause: C12

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use runyard_backend::failpoint::FAILPOINTS;
use serde_json::{Value, json};

use support::{Home, Hub, PATIENCE, eventually};

/// How often each failpoint is passed before it kills: the quick proof tries the first times, the long one more.
fn counts() -> std::ops::RangeInclusive<u64> {
    match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => 1..=1,
        Ok("soak") => 1..=12,
        _ => 1..=3,
    }
}

struct Api<'a> {
    hub: &'a Hub,
    token: String,
}

impl<'a> Api<'a> {
    fn new(home: &Home, hub: &'a Hub) -> Self {
        Api { hub, token: std::fs::read_to_string(home.path("token")).unwrap() }
    }

    /// The data of an answer; nothing when the hub is dead.
    fn get(&self, path: &str) -> Option<Value> {
        let headers = format!("Authorization: Bearer {}\r\n", self.token);
        let (status, body) = self.hub.try_request("GET", path, &headers, "")?;
        let envelope: Value = serde_json::from_str(&body).ok()?;
        assert_eq!(status, 200, "{path}: {envelope}");
        Some(envelope["data"].clone())
    }

    fn post(&self, path: &str, body: &Value) -> Option<Value> {
        let body = body.to_string();
        let length = body.len();
        let token = &self.token;
        let headers = format!(
            "Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
        );
        let (_, answer) = self.hub.try_request("POST", path, &headers, &body)?;
        serde_json::from_str(&answer).ok()
    }

    /// Waits until every decision is in the audit, once; nothing when the hub is dead.
    fn audited(&self, decisions: usize) -> Option<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let audit = self.get("/api/v1/audit?limit=400")?;
            let entries = audit["entries"].as_array().unwrap();
            let found = entries.iter().filter(|entry| entry["type"] == "audit.decision").count();
            if found >= decisions {
                assert_eq!(found, decisions, "{audit}");
                return Some(());
            }
            assert!(Instant::now() < end, "the audit lacks decisions: {audit}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Answers whatever is open with yes, until the run is at its end or the hub is dead.
    fn drive(&self, run: &str) -> Option<Value> {
        let end = Instant::now() + PATIENCE;
        loop {
            let open = self.get("/api/v1/approvals?state=open")?;
            for approval in open["approvals"].as_array().unwrap() {
                let path = format!("/api/v1/approvals/{}/resolve", approval["id"].as_str().unwrap());
                self.post(&path, &json!({"decision": "approve", "digest": approval["digest"]}))?;
            }
            let found = self.get(&format!("/api/v1/runs/{run}"))?["run"].clone();
            if ["completed", "failed", "cancelled"].contains(&found["state"].as_str().unwrap()) {
                return Some(found);
            }
            assert!(Instant::now() < end, "the run does not come to its end: {found}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Starts a run under a key, so that asking again after a death makes no second one.
fn create(api: &Api<'_>, workspace: &Path) -> Option<String> {
    let place = workspace.to_str().unwrap();
    api.post("/api/v1/workspaces", &json!({"path": place}))?;
    let new =
        json!({"task": "look around", "agent": "demo", "workspace": place, "idempotencyKey": "the-run"});
    let made = api.post("/api/v1/runs", &new)?;
    Some(made["data"]["run"]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned())
}

/// Whether any process of the run is left.
fn left_of(run: &str) -> Vec<String> {
    let marker = format!("RUNYARD_RUN_ID={run}");
    let mut left = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.windows(marker.len()).any(|window| window == marker.as_bytes()) {
            left.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    left
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
        let api = Api::new(&home, &hub);
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
    let api = Api::new(home, &hub);
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
