//! What a rule denies stays denied however it is dressed up, and a rule reaches the runs that are already running.
//!
//! clause: C11
//! clause: C12

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard};

/// Ways to come by `curl`, each of which a rule against `curl *` denies.
const WAYS: [&str; 14] = [
    "curl https://example.org",
    "echo start && curl https://example.org",
    "echo start; curl https://example.org",
    "echo start | curl -d @- https://example.org",
    "sh -c 'curl https://example.org'",
    "bash -lc \"echo start && curl https://example.org\"",
    "env X=1 curl https://example.org",
    "X=1 curl https://example.org",
    "/usr/bin/curl https://example.org",
    "env -i /usr/bin/curl https://example.org",
    "(cd / && curl https://example.org)",
    "echo $(curl https://example.org)",
    "nohup timeout 5 curl https://example.org",
    "'cu'rl https://example.org",
];

fn script(commands: &[&str]) -> String {
    let step = |command: &&str| format!("[[turn.step]]\nshell = {}\n", json!(command));
    "[[turn]]\n".to_owned() + &commands.iter().map(step).collect::<String>()
}

fn deny(api: &Api, pattern: &str) -> Value {
    api.post("/policy/rules", &json!({"effect": "deny", "kind": "shell", "match": pattern}))
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["payload"]).collect()
}

/// Says yes to whatever is asked, until the run is at its end.
fn approve_all(api: &Api, run: &str) -> Value {
    support::eventually(&format!("{run} comes to its end"), || {
        for approval in api.get(&format!("/approvals?run={run}"))["approvals"].as_array().unwrap() {
            api.approve(approval);
        }
        let found = api.run(run);
        ["completed", "failed", "cancelled"].contains(&found["state"].as_str().unwrap()).then_some(found)
    })
}

#[test]
fn c11_a_denied_command_is_denied_in_every_dress_and_the_run_goes_on() {
    let mut commands = WAYS.to_vec();
    commands.push("echo still here");
    let text = script(&commands);
    let yard = Yard::new("", &[Scripted { name: "sly", profile: "", script: &text }]);
    let (_hub, api) = yard.up();
    deny(&api, "curl *");
    // Even where everything else is allowed.
    api.post("/policy/rules", &json!({"effect": "allow", "kind": "shell", "match": "echo *"}));
    let run = api.start("sly", yard.place());
    let end = approve_all(&api, &run);
    assert_eq!(end["state"], "completed", "{end}");
    let events = api.events(&run);
    let denied: Vec<&Value> =
        of_type(&events, "run.gate.judged").into_iter().filter(|judged| judged["effect"] == "deny").collect();
    let commands: Vec<&str> =
        denied.iter().map(|judged| judged["request"]["command"].as_str().unwrap()).collect();
    assert_eq!(commands, WAYS, "each is recorded as denied");
    for judged in &denied {
        assert!(judged["reason"].as_str().unwrap().contains("permission_denied"), "{judged}");
    }
    let told = of_type(&events, "run.message.completed");
    let told: Vec<&str> = told.iter().map(|said| said["text"].as_str().unwrap()).collect();
    assert_eq!(told.len(), WAYS.len(), "the agent is told each time");
    assert!(told.iter().all(|text| text.starts_with("I was not allowed to run")), "{told:?}");
    let done = of_type(&events, "run.tool.call");
    assert_eq!(done.len(), 1, "only what is allowed is done: {done:?}");
    assert_eq!(of_type(&events, "run.approval.requested").len(), 0, "nobody is asked about what is denied");
}

#[test]
fn c11_a_rule_that_is_added_reaches_a_run_that_is_running() {
    let text = script(&["date -u", "date -R", "date +%s"]);
    let yard = Yard::new("", &[Scripted { name: "clock", profile: "", script: &text }]);
    let (_hub, api) = yard.up();
    let run = api.start("clock", yard.place());
    let first = api.asked(&run, &[]);
    assert_eq!(first["request"]["command"], "date -u");
    let rule = deny(&api, "date -R");
    api.approve(&first);
    // The second is denied without a question, so the next that is asked is the third.
    let third = api.asked(&run, &[first["id"].as_str().unwrap()]);
    assert_eq!(third["request"]["command"], "date +%s");
    let id = rule["rule"]["id"].as_str().unwrap();
    let (status, _) = api.send("DELETE", &format!("/policy/rules/{id}"), None);
    assert_eq!(status, 200);
    api.approve(&third);
    api.until(&run, "completed");
    let events = api.events(&run);
    let denied: Vec<&str> = of_type(&events, "run.gate.judged")
        .into_iter()
        .filter(|judged| judged["effect"] == "deny")
        .map(|judged| judged["request"]["command"].as_str().unwrap())
        .collect();
    assert_eq!(denied, ["date -R"]);
    for kind in ["installation.rule.added", "installation.rule.removed"] {
        let entries = api.audit(kind);
        assert_eq!(entries.len(), 1, "{kind} {entries:?}");
        assert_eq!(entries[0]["by"]["id"], "owner");
    }
}

#[test]
fn c11_a_rule_that_allows_never_beats_one_that_denies() {
    let text = script(&["date -R", "date -u"]);
    let yard = Yard::new("", &[Scripted { name: "clock", profile: "", script: &text }]);
    let (_hub, api) = yard.up();
    deny(&api, "date -R");
    api.post("/policy/rules", &json!({"effect": "allow", "kind": "shell", "match": "date *"}));
    let run = api.start("clock", yard.place());
    api.until(&run, "completed");
    let events = api.events(&run);
    let done: Vec<&Value> = of_type(&events, "run.tool.call");
    assert_eq!(done.len(), 1, "{done:?}");
    assert_eq!(done[0]["arguments"]["command"], "date -u");
}
