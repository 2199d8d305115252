//! How runs end that do not end well: each with its code, what to do first, and the events that led there.
//!
//! clause: C04
//! clause: C12
//! clause: C16

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard, left_of};
use support::eventually;

const WAITS: &str = "[[turn]]\n[[turn.step]]\nwait_for_command = true\n";
const ASKS: &str = "[[turn]]\n[[turn.step]]\nshell = \"true\"\n";

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The run ends as failed with this code, says what to do first, and its last event says the same. Gives the run.
#[track_caller]
fn fails(api: &Api, run: &str, code: &str) -> Value {
    let end = api.until(run, "failed");
    assert_eq!(end["code"], code, "{end}");
    let recovery = end["recovery"].as_str().unwrap_or_default();
    assert!(recovery.len() > 10, "what to do first: {end}");
    assert!(end["message"].as_str().is_some_and(|message| !message.is_empty()), "{end}");
    let events = api.events(run);
    let last = events.last().unwrap();
    assert_eq!(last["type"], "run.failed");
    assert_eq!((&last["payload"]["code"], &last["payload"]["recovery"]), (&end["code"], &end["recovery"]));
    assert_eq!(last["payload"]["failureKind"], end["failureKind"]);
    assert!(api.get(&format!("/approvals?run={run}"))["approvals"].as_array().unwrap().is_empty());
    eventually("nothing of the run is left", || left_of(run).is_empty().then_some(()));
    end
}

#[test]
fn c16_a_workspace_that_is_taken_off_the_list_before_the_run_is_prepared() {
    let agents = [
        Scripted { name: "waits", profile: "", script: WAITS },
        Scripted { name: "asks", profile: "", script: ASKS },
    ];
    let yard = Yard::new("[hub]\nruns_max = 1\n", &agents);
    let (_hub, api) = yard.up();
    let place = tempfile::tempdir().unwrap();
    let workspace = api.add_workspace(place.path());
    let first = api.start("waits", yard.place());
    api.until(&first, "running");
    let second = api.start("asks", place.path().to_str().unwrap());
    assert_eq!(api.run(&second)["state"], "planned", "there is one place, and it is taken");
    let (status, body) = api.send("DELETE", &format!("/workspaces/{workspace}"), None);
    assert_eq!(status, 200, "{body}");
    let (status, body) = api.send("POST", &format!("/runs/{first}/cancel"), Some(&json!({})));
    assert_eq!(status, 200, "{body}");
    api.until(&first, "cancelled");
    fails(&api, &second, "workspace_outside_allowlist");
    let events = api.events(&second);
    assert_eq!(
        kinds(&events),
        ["run.created", "run.planned", "run.accepted", "run.preparing", "run.failed"],
        "nothing of it was started"
    );
    let (status, body) = api.send(
        "POST",
        "/runs",
        Some(&json!({"task": "look", "agent": "asks", "workspace": place.path().to_str().unwrap()})),
    );
    assert!(status >= 400 && body.contains("workspace_outside_allowlist"), "{status} {body}");
}

#[test]
fn c16_a_backend_that_fails_has_its_kind_and_the_runs_code() {
    #[rustfmt::skip]
    let table = [
        ("secret-unavailable",         "runtime_unavailable"),
        ("backend-spawn-failed",       "runtime_unavailable"),
        ("provider-auth-failed",       "runtime_unavailable"),
        ("backend-failed",             "runtime_unavailable"),
        ("backend-protocol-error",     "schema_validation_failed"),
        ("backend-json-parse-error",   "schema_validation_failed"),
        ("backend-response-invalid",   "schema_validation_failed"),
        ("backend-timeout",            "run_timeout"),
        ("provider-rate-limited",      "provider_rate_limited"),
        ("provider-unavailable",       "provider_unavailable"),
    ];
    let scripts = table.map(|(kind, _)| {
        format!("[[turn]]\n[[turn.step]]\nsay = \"Well.\"\n[[turn.step]]\nfail = \"{kind}\"\nmessage = \"it broke\"\n")
    });
    let agents: Vec<Scripted<'_>> = table
        .iter()
        .zip(&scripts)
        .map(|((kind, _), script)| Scripted { name: kind, profile: "", script })
        .collect();
    let yard = Yard::new("", &agents);
    let (_hub, api) = yard.up();
    let runs = table.map(|(kind, code)| (api.start(kind, yard.place()), kind, code));
    let mut recoveries = std::collections::BTreeSet::new();
    for (run, kind, code) in &runs {
        let end = fails(&api, run, code);
        assert_eq!((&end["failureKind"], &end["message"]), (&json!(kind), &json!("it broke")));
        recoveries.insert(end["recovery"].as_str().unwrap().to_owned());
    }
    assert_eq!(recoveries.len(), table.len(), "each says something of its own to do: {recoveries:?}");
}

#[test]
fn c16_a_backend_that_cannot_go_on_or_cannot_start() {
    let blocked =
        "[[turn]]\n[[turn.step]]\nblock = \"permission_denied\"\nmessage = \"it needs the network\"\n";
    let agents = [
        Scripted { name: "blocked", profile: "", script: blocked },
        Scripted { name: "broken", profile: "", script: "[[turn]]\n[[turn.step]]\ndance = true\n" },
    ];
    let yard = Yard::new("", &agents);
    let (_hub, api) = yard.up();
    let end = fails(&api, &api.start("blocked", yard.place()), "permission_denied");
    assert_eq!((&end["failureKind"], &end["message"]), (&Value::Null, &json!("it needs the network")));
    let end = fails(&api, &api.start("broken", yard.place()), "runtime_unavailable");
    assert_eq!(end["failureKind"], "backend-spawn-failed");
    assert!(end["message"].as_str().unwrap().contains("line 3"), "it says what is wrong: {end}");
}

#[test]
fn c16_a_run_that_takes_too_long_and_what_it_started_end() {
    let script = "[[turn]]\n[[turn.step]]\nshell = \"sleep 1000\"\n";
    let yard = Yard::new("", &[Scripted { name: "slow", profile: "timeout_ms = 1500", script }]);
    let (_hub, api) = yard.up();
    api.post("/policy/rules", &json!({"effect": "allow", "kind": "shell", "match": "sleep *"}));
    let run = api.start("slow", yard.place());
    fails(&api, &run, "run_timeout");
    assert!(kinds(&api.events(&run)).contains(&"runtime.timeout"));
}

#[test]
fn c16_a_run_that_uses_more_than_its_budget_and_what_it_started_end() {
    let script = "[[turn]]\n[[turn.step]]\nstatus = { input_tokens = 60, output_tokens = 40, cost_usd = 0.3 }\n\
                  [[turn.step]]\nsay = \"Just enough.\"\n\
                  [[turn.step]]\nstatus = { input_tokens = 60, output_tokens = 41 }\n\
                  [[turn.step]]\nshell = \"sleep 1000\"\n";
    let profile = "budget = \"0.30\"\nbudget_tokens = 100";
    let yard = Yard::new("", &[Scripted { name: "spender", profile, script }]);
    let (_hub, api) = yard.up();
    api.post("/policy/rules", &json!({"effect": "allow", "kind": "shell", "match": "sleep *"}));
    let run = api.start("spender", yard.place());
    let end = fails(&api, &run, "budget_exceeded");
    assert_eq!(end["message"], "The run used 101 tokens, and its budget is 100.");
    let events = api.events(&run);
    assert_eq!(
        events.last().unwrap()["payload"]["exceeded"],
        json!({"limit": "tokens", "allowed": 100, "used": 101})
    );
    let used = &events[events.len() - 2];
    assert_eq!(
        (&used["type"], &used["payload"]["usage"]["outputTokens"]),
        (&json!("runtime.status"), &json!(41)),
        "what it used stands before its end"
    );
    assert!(kinds(&events).contains(&"run.message.completed"), "exactly the budget is fine");
    assert!(!kinds(&events).contains(&"run.tool.call"), "nothing is begun after it");
}

#[test]
fn b05_a_budget_that_the_backend_does_not_report_is_refused_when_the_run_is_made() {
    let script = "[[turn]]\n[[turn.step]]\nstatus = { cost_usd = 2.51 }\n";
    let yard = Yard::new("", &[Scripted { name: "spender", profile: "", script }]);
    let (_hub, api) = yard.up();
    let make = |agent: &str, budget: Value| {
        let policy = json!({ "budget": budget });
        let new = json!({"task": "x", "agent": agent, "workspace": yard.place(), "executionPolicy": policy});
        let (status, body) = api.send("POST", "/runs", Some(&new));
        (status, serde_json::from_str::<Value>(&body).unwrap())
    };
    #[rustfmt::skip]
    let table = [
        ("codex",  json!("2.50"),           "executionPolicy.budget.costUsd", "It can have a limit of tokens."),
        ("action", json!({"tokens": 9}),    "executionPolicy.budget.tokens",  "It can have no budget."),
        ("demo",   json!({}),               "executionPolicy.budget",         "Expected costUsd, tokens or both."),
    ];
    for (agent, budget, path, why) in table {
        let (status, refused) = make(agent, budget);
        let issue = &refused["error"]["issues"][0];
        assert_eq!(
            (
                status,
                issue["path"].as_array().map(|path| path
                    .iter()
                    .map(|part| part.as_str().unwrap())
                    .collect::<Vec<_>>()
                    .join("."))
            ),
            (400, Some(path.to_owned())),
            "{refused}"
        );
        assert!(issue["message"].as_str().unwrap().ends_with(why), "{refused}");
    }
    assert_eq!(make("demo", json!("2,50")).0, 400);
    assert!(api.get("/runs")["runs"].as_array().unwrap().is_empty(), "nothing is stored");
    let (_, made) = make("spender", json!("2.50"));
    let run = made["data"]["run"]["id"].as_str().unwrap_or_else(|| panic!("{made}"));
    let end = fails(&api, run, "budget_exceeded");
    assert_eq!(end["message"], "The run cost 2.51 US dollars, and its budget is 2.50.");
}

#[test]
fn c04_a_silent_backend_makes_the_run_degraded_and_it_goes_on() {
    let yard = Yard::new("", &[Scripted { name: "mute", profile: "idle_ms = 300", script: WAITS }]);
    let (_hub, api) = yard.up();
    let run = api.start("mute", yard.place());
    let degraded = eventually("the run is degraded", || {
        let found = api.run(&run);
        (!found["degraded"].is_null()).then_some(found)
    });
    assert_eq!(degraded["state"], "running", "degraded is no state");
    assert!(degraded["degraded"]["reason"].as_str().unwrap().contains("silent"), "{degraded}");
    api.post(&format!("/runs/{run}/commands"), &json!({"kind": "steer", "text": "go on"}));
    let end = api.until(&run, "completed");
    assert_eq!(end["degraded"], degraded["degraded"], "that it was stays known");
    let events = api.events(&run);
    let count = kinds(&events).iter().filter(|kind| **kind == "run.degraded").count();
    assert_eq!(count, 1, "the same is said once");
}

#[test]
fn c16_a_workspace_that_is_too_deep_for_a_checkout() {
    let yard = Yard::new("", &[Scripted { name: "asks", profile: "", script: ASKS }]);
    let (_hub, api) = yard.up();
    let deep = (0..200).fold(yard.workspace.path().to_owned(), |at, _| at.join("d"));
    std::fs::create_dir_all(deep).unwrap();
    let run = api.start("asks", yard.place());
    let end = fails(&api, &run, "VALIDATION_ERROR");
    let message = end["message"].as_str().unwrap();
    assert!(message.contains("deep") && message.contains("limit of a checkout"), "{end}");
    assert!(!kinds(&api.events(&run)).contains(&"run.started"));
}

#[test]
fn c12_no_answer_in_time_is_a_rejection() {
    let yard = Yard::new(
        "[hub]\napproval_expiry_ms = 700\n",
        &[
            Scripted { name: "asks", profile: "", script: ASKS },
            Scripted { name: "patient", profile: "on_reject = \"continue\"", script: ASKS },
        ],
    );
    let (_hub, api) = yard.up();
    let run = api.start("asks", yard.place());
    let end = api.until(&run, "cancelled");
    assert_eq!(end["code"], "approval_rejected", "{end}");
    assert!(end["recovery"].as_str().is_some_and(|recovery| !recovery.is_empty()), "{end}");
    check_resolved(&api, &run, "expired");
    let patient = api.start("patient", yard.place());
    api.until(&patient, "completed");
    check_resolved(&api, &patient, "expired");
    assert!(!kinds(&api.events(&patient)).contains(&"run.tool.call"), "what nobody approved is not done");
}

#[test]
fn c12_a_rejection_ends_the_run_with_the_persons_reason() {
    let yard = Yard::new("", &[Scripted { name: "asks", profile: "", script: ASKS }]);
    let (_hub, api) = yard.up();
    let run = api.start("asks", yard.place());
    let asked = api.asked(&run, &[]);
    let path = format!("/approvals/{}/resolve", asked["id"].as_str().unwrap());
    api.post(&path, &json!({"decision": "reject", "digest": asked["digest"], "reason": "not today"}));
    let end = api.until(&run, "cancelled");
    assert_eq!((&end["code"], &end["message"]), (&json!("approval_rejected"), &json!("not today")));
    check_resolved(&api, &run, "rejected");
}

#[track_caller]
fn check_resolved(api: &Api, run: &str, resolution: &str) {
    let events = api.events(run);
    let resolved = events.iter().filter(|event| event["type"] == "run.approval.resolved");
    let resolved: Vec<&str> =
        resolved.map(|event| event["payload"]["resolution"].as_str().unwrap()).collect();
    assert_eq!(resolved, [resolution]);
}

#[test]
fn c12_where_nobody_may_be_asked_a_question_is_a_no_and_the_run_goes_on() {
    let yard = Yard::new("", &[Scripted { name: "alone", profile: "approval = \"never\"", script: ASKS }]);
    let (_hub, api) = yard.up();
    let run = api.start("alone", yard.place());
    api.until(&run, "completed");
    let events = api.events(&run);
    let judged: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "run.gate.judged")
        .map(|event| &event["payload"])
        .collect();
    assert_eq!(judged.len(), 1, "{judged:?}");
    assert_eq!(judged[0]["effect"], "deny");
    assert!(!kinds(&events).contains(&"run.tool.call"));
}
