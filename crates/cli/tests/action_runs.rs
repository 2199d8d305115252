//! Runs that are one action, through a real hub: asked about as a whole, bounded by nothing but their own declaration, and ended with
//! all that they started, however their hub ends.
//!
//! clause: C04
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::path::Path;

use serde_json::{Value, json};

use support::api::{Api, Yard, left_of};
use support::eventually;

fn start(api: &Api, yard: &Yard, action: &str, input: &Value) -> String {
    let new =
        json!({"task": {"action": action, "input": input}, "agent": "action", "workspace": yard.place()});
    api.post("/runs", &new)["run"]["id"].as_str().unwrap().to_owned()
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["payload"]).collect()
}

#[test]
fn j01_a_run_of_one_action_is_approved_by_a_person_and_completes() {
    let yard = Yard::new("", &[]);
    let (_hub, api) = yard.up();
    let run = start(&api, &yard, "task_create", &json!({"title": "from a run"}));
    let asked = api.asked(&run, &[]);
    assert_eq!(asked["request"]["kind"], "action", "{asked}");
    assert_eq!(asked["request"]["input"], json!({"title": "from a run"}));
    api.approve(&asked);
    api.until(&run, "completed");
    let read = start(&api, &yard, "task_list", &json!({}));
    api.until(&read, "completed");
    let events = api.events(&read);
    let said = of_type(&events, "run.message.completed")[0]["text"].as_str().unwrap();
    assert!(said.contains("from a run"), "{said}");
    let checks = &of_type(&events, "run.started")[0]["checks"];
    assert_eq!(checks["sandbox"], "none in force: an action does what it was declared to do");
}

#[test]
fn c16_an_action_that_cannot_be_called_as_it_is_fails_with_its_own_code_and_nobody_is_asked() {
    let yard = Yard::new("", &[]);
    let (_hub, api) = yard.up();
    let run = start(&api, &yard, "task_create", &json!({"bogus": 1}));
    let failed = api.until(&run, "failed");
    assert_eq!(
        (&failed["failureKind"], &failed["cause"]),
        (&json!("backend-failed"), &json!("VALIDATION_ERROR"))
    );
    assert!(of_type(&api.events(&run), "run.approval.requested").is_empty());
    let run = start(&api, &yard, "nothing_like_it", &json!({}));
    let failed = api.until(&run, "failed");
    assert_eq!(failed["failureKind"], "backend-failed", "{failed}");
}

#[test]
fn b05_a_task_that_is_nothing_to_its_backend_is_refused_and_nothing_is_stored() {
    let yard = Yard::new("", &[]);
    let (_hub, api) = yard.up();
    for (agent, task, expected) in [
        ("demo", json!({"action": "task_list", "input": {}}), "Expected a text: the agent \"demo\""),
        ("action", json!("look around"), "Expected an action with its input"),
    ] {
        let new = json!({"task": task, "agent": agent, "workspace": yard.place()});
        let (status, body) = api.send("POST", "/runs", Some(&new));
        let refused: Value = serde_json::from_str(&body).unwrap();
        let issue = &refused["error"]["issues"][0];
        assert_eq!((status, &issue["path"]), (400, &json!(["task"])), "{body}");
        assert!(issue["message"].as_str().unwrap().starts_with(expected), "{body}");
    }
    assert_eq!(api.get("/runs")["runs"], json!([]));
}

fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().lines().count()
}

#[test]
fn j05_the_program_of_an_action_is_told_of_its_run_and_ends_with_its_hub() {
    let notes = tempfile::tempdir().unwrap();
    let (began, told) = (notes.path().join("began"), notes.path().join("told"));
    // It leaves its session, and is deaf to what is gentle.
    let script = format!(
        "trap '' TERM INT HUP; env > {told:?}; echo began >> {began:?}; setsid sleep 1000 & sleep 1000; echo '{{}}'"
    );
    let action = format!(
        "[actions.sleeper]\ndescription = \"Sleeps.\"\ncommand = [\"sh\", \"-c\", {}]\nside_effects = \"read\"\n",
        json!(script)
    );
    let yard = Yard::new(&action, &[]);
    let (hub, api) = yard.up();
    let run = start(&api, &yard, "sleeper", &json!({}));
    eventually("it has begun", || (lines(&began) == 1).then_some(()));
    let environment = std::fs::read_to_string(&told).unwrap();
    let has = |line: &str| environment.lines().any(|found| found.starts_with(line));
    assert!(has(&format!("RUNYARD_URL={}", hub.url)), "{environment}");
    assert!(has(&format!("RUNYARD_RUN_ID={run}")) && has("RUNYARD_RUN_TOKEN="), "{environment}");
    drop(hub);
    eventually("nothing of it is left", || left_of(&run).is_empty().then_some(()));
    let (_hub, api) = yard.up();
    eventually("it has begun again", || (lines(&began) == 2).then_some(()));
    api.post(&format!("/runs/{run}/cancel"), &json!({}));
    api.until(&run, "cancelled");
    eventually("nothing of it is left", || left_of(&run).is_empty().then_some(()));
    assert_eq!(lines(&began), 2);
}

#[test]
fn a_program_that_is_tried_again_has_ended_before() {
    let notes = tempfile::tempdir().unwrap();
    let beats = notes.path().join("beats");
    // Deaf to what is gentle, and at work as long as it is there.
    let script = format!("trap '' TERM INT HUP; while :; do echo $$ >> {beats:?}; sleep 0.05; done");
    let action = format!(
        "[actions.beats]\ndescription = \"Beats.\"\ncommand = [\"sh\", \"-c\", {}]\nside_effects = \"read\"\n\
         timeout_ms = 700\nretry = {{ retries = 1, delay_ms = 300 }}\n",
        json!(script)
    );
    let yard = Yard::new(&action, &[]);
    let (_hub, api) = yard.up();
    let run = start(&api, &yard, "beats", &json!({}));
    api.until(&run, "failed");
    eventually("nothing of it is left", || left_of(&run).is_empty().then_some(()));
    let seen = std::fs::read_to_string(&beats).unwrap();
    let mut attempts: Vec<&str> = seen.lines().collect();
    attempts.dedup();
    assert_eq!(attempts.len(), 2, "the first wrote after the second had begun: {seen}");
}
