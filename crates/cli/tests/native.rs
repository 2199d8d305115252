//! Our own agent loop inside Runyard, through the real binary, on a loopback model provider.
//!
//! clause: J01
//! clause: J02
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use runyard_backend::failpoint::FAILPOINTS;
use serde_json::{Value, json};

use support::api::{left_of, times};
use support::mortal::Mortal;
use support::native::{KEY, Native};
use support::{Hub, eventually};

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["payload"]).collect()
}

/// The roles of the conversation that a run's log holds, after checking that nothing is missing in it.
#[track_caller]
fn roles(events: &[Value], mut after: u64) -> Vec<String> {
    let mut roles = Vec::new();
    for recorded in of_type(events, "run.thread.recorded") {
        assert_eq!(recorded["after"], after, "nothing is missing and nothing doubled: {recorded}");
        for message in recorded["messages"].as_array().unwrap() {
            roles.push(message["role"].as_str().unwrap().to_owned());
            after += 1;
        }
    }
    roles
}

#[test]
fn j01_j02_an_agent_of_our_own_asks_acts_and_goes_on_and_all_of_it_is_in_one_log() {
    let native = Native::new("");
    let (hub, api) = native.yard.up();
    let run =
        native.start(&api, r#"[[scenario:tool shell {"command": "echo hello > made.txt"}]]"#, &json!({}));
    let approval = api.asked(&run, &[]);
    assert_eq!(approval["request"]["command"], "echo hello > made.txt");
    assert_eq!(native.file(&run, "made.txt"), None, "it waits for a person");
    api.approve(&approval);
    let done = api.until(&run, "completed");
    assert_eq!(
        (&done["response"], &done["degraded"]),
        (&json!("The tool was called."), &Value::Null),
        "{done}"
    );
    assert_eq!(native.file(&run, "made.txt").as_deref(), Some("hello\n"));
    let events = api.events(&run);
    assert_eq!(roles(&events, 0), ["user", "assistant", "tool", "assistant"]);
    let result = of_type(&events, "run.tool.result");
    assert_eq!((result.len(), &result[0]["outcome"]), (1, &json!("succeeded")));
    assert!(!serde_json::to_string(&events).unwrap().contains(KEY));

    // Another run of the session goes on with the conversation, which is in the log of the first.
    let next = native.start(&api, "and now?", &json!({ "continues": run }));
    let done = api.until(&next, "completed");
    assert_eq!(roles(&api.events(&next), 4), ["user", "assistant"], "{done}");
    let asked = native.provider.requests();
    let last = asked.last().unwrap().body.to_string();
    assert!(last.contains("The tool was called."), "the model reads what was said before: {last}");
    drop(hub);

    // Both are derived from their logs again, also without a hub that runs.
    let replayed = |run: &str| native.yard.home.run(["replay", run]).data()["replay"].clone();
    let (first, second) = (replayed(&run), replayed(&next));
    assert_eq!([&first["differences"], &second["differences"]], [&json!([]), &json!([])]);
    let thread = |replay: &Value| {
        ["messages", "messagesBefore", "runsBefore", "calls", "callsOpen"]
            .map(|name| replay["thread"][name].as_u64())
    };
    assert_eq!(thread(&first), [4, 0, 0, 1, 0].map(Some));
    assert_eq!(thread(&second), [6, 4, 1, 1, 0].map(Some));
}

#[test]
fn j01_what_a_person_rejects_or_a_rule_denies_is_told_to_the_model_and_nothing_runs() {
    let native = Native::new("");
    let (_hub, api) = native.yard.up();
    api.post("/policy/rules", &json!({"effect": "deny", "kind": "shell", "match": "rm *"}));
    let run = native.start(&api, r#"[[scenario:tool shell {"command": "rm README.md"}]]"#, &json!({}));
    let done = api.until(&run, "completed");
    assert_eq!(done["response"], "The tool was called.", "the run goes on: {done}");
    assert!(native.file(&run, "README.md").is_some());
    let events = api.events(&run);
    assert_eq!(of_type(&events, "run.gate.judged").last().unwrap()["effect"], "deny");
    assert_eq!(of_type(&events, "run.tool.call").len(), 0, "it was never made");
    let told = serde_json::to_string(&of_type(&events, "run.thread.recorded")).unwrap();
    assert!(told.contains("tool.denied"), "{told}");
}

/// Answers, also whether to repeat what may have been done.
fn killed_at(native: &Native, failpoint: &str, count: u64) -> bool {
    let context = format!("{failpoint}:{count}");
    let place = native.yard.place();
    let new = json!({"task": "[[scenario:three]]", "agent": "mine", "workspace": place,
        "executionPolicy": {"changes": "keep"}, "idempotencyKey": context});
    let create = |api: &Mortal<'_>| -> Option<String> {
        api.post("/api/v1/workspaces", &json!({"path": place}))?;
        let made = api.post("/api/v1/runs", &new)?;
        Some(made["data"]["run"]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned())
    };
    let armed = native.yard.home.command_up().env("RUNYARD_FAILPOINT", &context).spawn().unwrap();
    let (mut run, mut reached) = (None, true);
    if let Some(hub) = Hub::of(armed) {
        let api = Mortal::new(&native.yard.home, &hub);
        run = create(&api);
        reached = run.as_ref().and_then(|run| api.drive(run)).is_none();
    }
    let hub = native.yard.home.up();
    let api = Mortal::new(&native.yard.home, &hub);
    let run = run.unwrap_or_else(|| create(&api).unwrap());
    let end = api.drive(&run).unwrap_or_else(|| panic!("{context}: the second hub died"));
    assert_eq!(end["state"], "completed", "{context}: {end}");
    assert_eq!(end["response"], "All three are done.", "{context}");
    let page = api.get(&format!("/api/v1/runs/{run}/events?limit=500")).unwrap();
    let events = page["events"].as_array().unwrap();
    let said = ["user", "assistant", "tool", "assistant", "tool", "assistant", "tool", "assistant"];
    assert_eq!(roles(events, 0), said, "{context}");
    let repeated = of_type(events, "run.approval.requested");
    let repeated: Vec<&str> = repeated.iter().filter_map(|asked| asked["request"]["step"].as_str()).collect();
    let marks = native.file(&run, "marks.txt").unwrap();
    for mark in ["one", "two", "three"] {
        let done = marks.lines().filter(|line| *line == mark).count();
        let asked = repeated.iter().any(|step| step.contains(mark));
        assert!(
            done == 1 || (asked && done == 2),
            "{context}: {mark} was done {done} times, asked: {repeated:?}"
        );
    }
    eventually("nothing of the run is left", || left_of(&run).is_empty().then_some(()));
    reached
}

/// The failpoints that no such run comes by: nothing prepares its checkout, and it applies nothing.
#[rustfmt::skip]
const ELSEWHERE: &[&str] = &[
    "setup.ran", "setup.done",
    "apply.staged", "apply.begin", "apply.drafted", "apply.placed", "apply.tidied", "apply.done",
];

#[test]
fn j05_each_of_three_calls_is_made_once_or_asked_about_whenever_the_hub_is_killed() {
    let native = Native::new("");
    let mut missed = Vec::new();
    for failpoint in FAILPOINTS {
        let passes = (1..=times(1, 8, 64) as u64).take_while(|count| killed_at(&native, failpoint, *count));
        if passes.count() == 0 {
            missed.push(*failpoint);
        }
    }
    assert_eq!(missed, ELSEWHERE, "the run comes by every other one");
}
