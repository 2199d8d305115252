//! Our own agent loop inside Runyard, through the real binary, on a loopback model provider.
//!
//! clause: J01
//! clause: J02
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::collections::BTreeMap;

use runyard_backend::failpoint::FAILPOINTS;
use rustix::process::Signal;
use serde_json::{Value, json};

use support::api::left_of;
use support::mortal::{Mortal, chosen, passages};
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
    let results = of_type(&events, "run.tool.result");
    let [ended] = results.as_slice() else { panic!("one result: {results:?}") };
    assert_eq!((&ended["outcome"], &ended["code"]), (&json!("denied"), &json!("tool.denied")));
    let told = serde_json::to_string(&of_type(&events, "run.thread.recorded")).unwrap();
    assert!(told.contains("tool.denied"), "{told}");
}

#[test]
fn d10_an_answer_in_whose_middle_the_hub_was_killed_is_stored_once_and_no_message_stays_half_told() {
    let native = Native::new("");
    let (hub, api) = native.yard.up();
    let run = native.start(&api, "[[scenario:long-told]]", &json!({}));
    eventually("it speaks", || (!of_type(&api.events(&run), "run.message.delta").is_empty()).then_some(()));
    hub.signal(Signal::KILL);
    hub.ended();
    let (_hub, api) = native.yard.up();
    let done = api.until(&run, "completed");
    let text = "word ".repeat(100);
    assert_eq!(done["response"], text, "{done}");
    let events = api.events(&run);
    let (pieces, whole) = (of_type(&events, "run.message.delta"), of_type(&events, "run.message.completed"));
    let broke_off: Vec<bool> = whole.iter().map(|message| message["brokeOff"] == true).collect();
    assert_eq!(broke_off, [true, false]);
    let told: Vec<(&Value, &Value)> =
        whole.iter().map(|message| (&message["item"], &message["text"])).collect();
    let [(broken, anew), (item, said)] = told.as_slice() else { panic!("two messages: {told:?}") };
    assert_eq!((*anew, *said), (&json!("[This answer broke off and was begun anew.]"), &json!(text)));
    assert!(pieces.iter().all(|piece| [*broken, *item].contains(&&piece["item"])), "none stays open");
    let seen = pieces.iter().filter(|piece| piece["item"] == **item);
    let seen: String = seen.map(|piece| piece["text"].as_str().unwrap()).collect();
    assert_eq!(seen, text, "what was seen of it is what is stored");
    assert_eq!(roles(&events, 0), ["user", "assistant"]);
}

/// A run of three calls.
struct Three {
    native: Native,
    scenario: &'static str,
    /// The roles of its conversation.
    said: &'static [&'static str],
}

/// Starts such a run under a key, so that asking again after a death makes no second one.
fn three(api: &Mortal<'_>, Three { native, scenario, .. }: &Three, key: &str) -> Option<String> {
    let place = native.yard.place();
    let new = json!({"task": format!("[[scenario:{scenario}]]"), "agent": "mine", "workspace": place,
        "executionPolicy": {"changes": "keep"}, "idempotencyKey": key});
    api.post("/api/v1/workspaces", &json!({"path": place}))?;
    let made = api.post("/api/v1/runs", &new)?;
    Some(made["data"]["run"]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned())
}

/// Uses a hub until the run is at its end, answering also whether to repeat what may have been done. Nothing when the hub died.
fn used(api: &Mortal<'_>, of: &Three, key: &str, run: &mut Option<String>) -> Option<()> {
    *run = three(api, of, key);
    let run = run.as_ref()?;
    api.drive(run)?;
    api.at_rest(run)
}

/// How often such a run passes each failpoint where nobody kills the hub.
fn unkilled(of: &Three, key: &str) -> BTreeMap<String, u64> {
    let home = &of.native.yard.home;
    let counts = home.beside(key);
    let mut command = home.command_up();
    let hub = Hub::of(command.env("RUNYARD_FAILPOINT_COUNTS", &counts).spawn().unwrap()).unwrap();
    used(&Mortal::new(home, &hub), of, key, &mut None).expect("nobody kills it");
    drop(hub);
    passages(&counts)
}

/// Kills the hub at this failpoint, starts it again and lets the run come to its end. False when the failpoint was not reached.
fn killed_at(of: &Three, failpoint: &str, count: u64) -> bool {
    let native = &of.native;
    let context = format!("{failpoint}:{count}");
    let armed = native.yard.home.command_up().env("RUNYARD_FAILPOINT", &context).spawn().unwrap();
    let mut run = None;
    let reached = match Hub::of(armed) {
        Some(hub) => used(&Mortal::new(&native.yard.home, &hub), of, &context, &mut run).is_none(),
        None => true,
    };
    let hub = native.yard.home.up();
    let api = Mortal::new(&native.yard.home, &hub);
    let run = run.unwrap_or_else(|| three(&api, of, &context).unwrap());
    let end = api.drive(&run).unwrap_or_else(|| panic!("{context}: the second hub died"));
    assert_eq!(end["state"], "completed", "{context}: {end}");
    assert_eq!(end["response"], "All three are done.", "{context}");
    let page = api.get(&format!("/api/v1/runs/{run}/events?limit=500")).unwrap();
    let events = page["events"].as_array().unwrap();
    assert_eq!(roles(events, 0), of.said, "{context}");
    let repeated = of_type(events, "run.approval.requested");
    let repeated: Vec<&str> = repeated.iter().filter_map(|asked| asked["request"]["step"].as_str()).collect();
    for (mark, file) in [("one", "marks.txt"), ("two", "README.md")] {
        let text = native.file(&run, file).unwrap_or_default();
        let done = text.lines().filter(|line| *line == mark).count();
        let asked = repeated.iter().any(|step| step.contains(file));
        assert!(
            done == 1 || (asked && done == 2),
            "{context}: {mark} was done {done} times, asked: {repeated:?}"
        );
    }
    assert_eq!(native.file(&run, "three.txt").as_deref(), Some("three\n"), "{context}");
    eventually("nothing of the run is left", || left_of(&run).is_empty().then_some(()));
    drop(hub);
    let replayed = native.yard.home.run(["replay", &run]).data()["replay"].clone();
    assert_eq!(replayed["differences"], json!([]), "{context}");
    reached
}

/// The failpoints that no such run comes by: its workspace is on the list, nothing prepares its checkout, no keyed result is kept,
/// and it applies nothing.
#[rustfmt::skip]
const ELSEWHERE: &[&str] = &[
    "key.make", "key.made", "setup.ran", "setup.done", "process.stop", "workspaces.write", "workspaces.written", "result.keep", "result.kept",
    "result.forgotten", "apply.stage", "apply.staged", "apply.begin", "apply.checked", "apply.begun", "apply.drafted", "apply.durable",
    "apply.placed", "apply.whole", "apply.tidied", "apply.done",
];

/// So that it is renewed while the run goes on.
const SHORT_LEASE: &str = "[hub]\nlease_ms = 150";

#[test]
fn j05_each_of_three_calls_is_made_once_or_asked_about_whenever_the_hub_is_killed() {
    let said = &["user", "assistant", "tool", "assistant", "tool", "assistant", "tool", "assistant"];
    let three = Three { native: Native::new(SHORT_LEASE), scenario: "three", said };
    // The first hub of a home has more to write.
    unkilled(&three, "first");
    let passages = unkilled(&three, "second");
    let missed: Vec<&str> =
        FAILPOINTS.iter().copied().filter(|failpoint| !passages.contains_key(*failpoint)).collect();
    assert_eq!(missed, ELSEWHERE, "the run comes by every other one");
    for (failpoint, passages) in &passages {
        let chosen = chosen(*passages);
        let missed = chosen.iter().filter(|count| !killed_at(&three, failpoint, **count)).count();
        // How often one is passed depends a little on the scheduler, and how often a lease is renewed on how long a run takes.
        let few = if failpoint.starts_with("lease.renew") { chosen.len() - 1 } else { chosen.len() / 4 };
        assert!(missed <= 1.max(few), "{failpoint}: {missed} of {chosen:?}");
        assert!(missed < chosen.len(), "no kill at {failpoint}");
    }
}

#[test]
fn j05_each_of_three_calls_at_once_is_made_once_or_asked_about_whenever_the_hub_is_killed() {
    let said = &["user", "assistant", "tool", "tool", "tool", "assistant"];
    let three = Three {
        native: Native::new(&format!("parallel_calls = true\n\n{SHORT_LEASE}")),
        scenario: "at-once",
        said,
    };
    unkilled(&three, "first");
    let passages = unkilled(&three, "second");
    // In the middle of what such a hub does: the test above goes on where one call follows another.
    let missed: Vec<&String> = passages
        .iter()
        .filter(|(failpoint, passages)| !killed_at(&three, failpoint, passages.div_ceil(2)))
        .map(|(failpoint, _)| failpoint)
        .collect();
    assert!(missed.len() <= passages.len() / 4, "not killed at {missed:?}");
}
