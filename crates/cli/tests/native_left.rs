//! A conversation with our own agent goes on however its last run ended: what was called and has no result gets one before
//! anything else is said, and it says no more than is known.
//!
//! clause: J02
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use rustix::process::Signal;
use serde_json::{Value, json};

use support::api::Api;
use support::native::{Native, messages, of_type, reject, results, roles};
use support::{Hub, eventually};

const WIRES: [&str; 3] = ["responses", "chat", "messages"];

/// Each wire's provider is asked once for each answer: one that refuses a question ends the run.
fn on_each_wire(checked: impl Fn(&Native, &Api, &str)) {
    for wire in WIRES {
        let native = Native::new(&format!("provider.wire = {wire:?}\nlimits.retries_max = 0"));
        let (_hub, api) = native.yard.up();
        checked(&native, &api, wire);
    }
}

/// Goes on with the conversation of a run that ended with an open call, and gives what the model read of that call.
#[track_caller]
fn gone_on_from(native: &Native, api: &Api, run: &str, wire: &str) -> Value {
    let before = messages(&api.events(run), 0);
    assert_eq!(roles(&before), ["user", "assistant"], "{wire}: the call is in the log, and no result");
    let next = native.start(api, "and now? [[scenario:text]]", &json!({ "continues": run }));
    let done = api.until(&next, "completed");
    assert_eq!(done["response"], "Hello from the demo provider.", "{wire}: {done}");
    let more = messages(&api.events(&next), 2);
    assert_eq!(roles(&more), ["tool", "user", "assistant"], "{wire}: its result stands right behind it");
    for run in [run, &next] {
        let replay = native.yard.home.run(["replay", run]).data()["replay"].clone();
        assert_eq!((&replay["same"], &replay["differences"]), (&json!(true), &json!([])), "{wire}: {replay}");
    }
    let [result] = results(&more).try_into().unwrap();
    serde_json::from_str(&result).unwrap()
}

#[test]
fn j02_after_a_persons_no_the_conversation_goes_on_and_the_model_is_told_of_it() {
    on_each_wire(|native, api, wire| {
        let task = r#"[[scenario:tool shell {"command": "echo made > made.txt"}]]"#;
        let run = native.start(api, task, &json!({}));
        reject(api, &api.asked(&run, &[]), "not on a Friday");
        api.until(&run, "cancelled");
        let told = gone_on_from(native, api, &run, wire);
        assert_eq!(told["error"], "tool.denied", "{wire}: {told}");
        let why = told["message"].as_str().unwrap();
        assert!(why.contains("was not made") && why.contains("not on a Friday"), "{wire}: {told}");
        assert_eq!(native.file(&run, "made.txt"), None, "{wire}");
    });
}

#[test]
fn j02_j05_after_a_cancel_while_a_command_runs_the_model_is_told_that_nobody_knows_of_it() {
    on_each_wire(|native, api, wire| {
        let task = r#"[[scenario:tool shell {"command": "echo - > begun.txt; exec sleep 1000"}]]"#;
        let run = native.start(api, task, &json!({}));
        api.approve(&api.asked(&run, &[]));
        eventually("the command runs", || native.file(&run, "begun.txt"));
        api.post(&format!("/runs/{run}/cancel"), &json!({}));
        api.until(&run, "cancelled");
        let told = gone_on_from(native, api, &run, wire);
        assert_eq!(told["error"], "outcome_unknown", "{wire}: {told}");
    });
}

#[test]
fn j02_after_a_cancel_before_anybody_answered_the_model_is_told_that_nothing_was_made() {
    on_each_wire(|native, api, wire| {
        let run = native.start(api, r#"[[scenario:tool shell {"command": "ls"}]]"#, &json!({}));
        api.asked(&run, &[]);
        api.post(&format!("/runs/{run}/cancel"), &json!({}));
        api.until(&run, "cancelled");
        let told = gone_on_from(native, api, &run, wire);
        assert_eq!(told["error"], "tool.cancelled", "{wire}: {told}");
        assert!(told["message"].as_str().unwrap().contains("was not made"), "{wire}: {told}");
    });
}

/// A run whose command is under way when the hub is killed. Under the next hub a person says that it is to be made again, and the gate
/// asks about it as about any other.
fn killed_in_a_call(native: &Native, command: &str, policy: &Value) -> (Hub, Api, String, Value) {
    let (hub, api) = native.yard.up();
    let task = format!("[[scenario:tool shell {}]]", json!({ "command": command }));
    let run = native.start(&api, &task, &json!({ "executionPolicy": policy }));
    api.approve(&api.asked(&run, &[]));
    eventually("the command runs", || native.file(&run, "begun.txt"));
    hub.signal(Signal::KILL);
    hub.ended();
    let (hub, api) = native.yard.up();
    let asked = api.asked(&run, &[]);
    assert_eq!(asked["request"]["kind"], "repeat", "{asked}");
    api.approve(&asked);
    let gated = api.asked(&run, &[]);
    assert_eq!(gated["request"]["kind"], "shell", "{gated}");
    (hub, api, run, gated)
}

#[test]
fn j05_a_call_that_a_person_has_made_again_after_a_death_is_not_asked_about_a_second_time() {
    let native = Native::new("");
    let command = "echo - >> begun.txt; [ $(wc -l < begun.txt) -gt 1 ] || exec sleep 1000";
    let (_hub, api, run, gated) = killed_in_a_call(&native, command, &json!({ "changes": "keep" }));
    api.approve(&gated);
    let done = api.until(&run, "completed");
    assert_eq!(done["response"], "The tool was called.", "{done}");
    assert_eq!(native.file(&run, "begun.txt").as_deref(), Some("-\n-\n"), "it was made again, once");
    let events = api.events(&run);
    let kinds: Vec<&Value> =
        of_type(&events, "run.approval.requested").iter().map(|asked| &asked["request"]["kind"]).collect();
    assert_eq!(kinds, ["shell", "repeat", "shell"]);
}

#[test]
fn j05_c22_a_call_that_is_to_be_made_again_and_is_interrupted_is_not_said_to_be_unmade() {
    let native = Native::new("");
    let command = "echo - >> begun.txt; exec sleep 1000";
    let policy = json!({ "changes": "keep", "keepOpenMs": 3_600_000 });
    let (_hub, api, run, gated) = killed_in_a_call(&native, command, &policy);
    assert_eq!(gated["state"], "open", "{gated}");
    api.post(&format!("/runs/{run}/commands"), &json!({ "kind": "interrupt" }));
    let outcome =
        || of_type(&api.events(&run), "run.turn.ended").last().map(|ended| ended["outcome"].clone());
    assert_eq!(eventually("its turn is over", outcome), "interrupted");
    let more = json!({ "kind": "turn", "text": "and now? [[scenario:text]]" });
    api.post(&format!("/runs/{run}/commands"), &more);
    eventually("the next turn is over", || {
        (of_type(&api.events(&run), "run.turn.ended").len() == 2).then_some(())
    });
    let [told] = results(&messages(&api.events(&run), 0)).try_into().unwrap();
    assert!(told.contains("outcome_unknown"), "{told}");
}
