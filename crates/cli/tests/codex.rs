//! Codex, the real program, in a run of a real hub, against a model provider on loopback: one turn with one approval, also
//! when the agent or the hub is killed in the middle of it.
//!
//! clause: B02
//! clause: B08
//! clause: C12
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use rustix::process::Signal;
use serde_json::{Value, json};

use support::api::Api;
use support::codex::{Bench, codex_of, kinds, nothing_left};
use support::{Hub, eventually, send};

/// What the agent runs: a line more each time.
const COMMAND: &str = "echo ran >> runs.txt";

/// How often the command ran in the run's checkout.
fn runs(bench: &Bench, run: &str) -> usize {
    bench.file(run, "runs.txt").unwrap_or_default().lines().count()
}

#[track_caller]
fn finished(bench: &Bench, api: &Api, run: &str) {
    let done = api.until(run, "completed");
    assert_eq!(done["response"], "The command has run.", "{done}");
    assert_eq!(runs(bench, run), 1, "what was approved once ran once");
    let events = api.events(run);
    let asked = events.iter().filter(|event| event["type"] == "run.approval.requested");
    let asked = asked.filter(|event| event["payload"]["request"]["kind"] != "apply").count();
    assert_eq!(asked, 1, "the answer that was given counts: nobody is asked twice");
    nothing_left(run);
}

#[test]
fn b02_b08_a_real_codex_turn_with_a_real_approval() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", &format!("[[scenario:shell {COMMAND}]] please"));
    let approval = api.asked(&run, &[]);
    assert!(approval["request"]["command"].as_str().unwrap().contains(COMMAND), "{approval}");
    assert_eq!(runs(&bench, &run), 0, "nothing runs before the answer");
    api.approve(&approval);
    finished(&bench, &api, &run);
    let events = api.events(&run);
    let found = kinds(&events);
    for kind in
        ["runtime.status", "run.message.completed", "run.tool.call", "run.tool.result", "run.completed"]
    {
        assert!(found.contains(&kind), "{kind} is not in {found:?}");
    }
    let words: Vec<&Value> = events.iter().map(|event| &event["payload"]["backendEvent"]).collect();
    for word in ["backend_status", "assistant_message", "tool_call", "terminal_status"] {
        assert!(words.contains(&&json!(word)), "{word} is not in {words:?}");
    }
    let status = events.iter().find(|event| event["payload"]["backendEvent"] == "backend_status").unwrap();
    let capability = &status["payload"]["capability"];
    assert_eq!(
        *capability,
        json!({"resumes": "thread", "asks": true, "tellsSteps": true, "checkout": true, "gateway": true})
    );
}

#[test]
fn c12_a_rejection_ends_the_run_and_the_command_never_runs() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", &format!("[[scenario:shell {COMMAND}]] please"));
    let approval = api.asked(&run, &[]);
    let path = format!("/approvals/{}/resolve", approval["id"].as_str().unwrap());
    api.post(&path, &json!({"decision": "reject", "digest": approval["digest"]}));
    let ended = api.until(&run, "cancelled");
    assert_eq!(ended["code"], "approval_rejected");
    nothing_left(&run);
    assert_eq!(runs(&bench, &run), 0);
}

#[test]
fn j05_an_approval_is_answered_after_codex_was_killed() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", &format!("[[scenario:shell {COMMAND}]] please"));
    let approval = api.asked(&run, &[]);
    for pid in codex_of(&run) {
        send(pid, Signal::KILL);
    }
    eventually("the death is recorded", || kinds(&api.events(&run)).contains(&"runtime.died").then_some(()));
    assert_eq!(api.run(&run)["state"], "needs_approval", "the approval outlives the agent");
    api.approve(&approval);
    finished(&bench, &api, &run);
}

#[test]
fn j05_an_approval_is_answered_after_the_hub_with_its_edge_was_killed() {
    let bench = Bench::new();
    let (hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", &format!("[[scenario:shell {COMMAND}]] please"));
    let approval = api.asked(&run, &[]);
    hub.signal(Signal::KILL);
    let (code, _) = hub.ended();
    assert_eq!(code, None, "killed");
    nothing_left(&run);
    let again: Hub = bench.yard.home.up();
    let api = Api::owner(&bench.yard.home, &again);
    assert_eq!(api.run(&run)["state"], "needs_approval");
    api.approve(&approval);
    finished(&bench, &api, &run);
}

#[test]
fn j05_a_codex_that_waits_long_is_parked_and_goes_on_with_the_answer() {
    let bench = Bench::with("\n[hub]\npark_after_ms = 300\n", None);
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", &format!("[[scenario:shell {COMMAND}]] please"));
    let approval = api.asked(&run, &[]);
    nothing_left(&run);
    assert_eq!(api.run(&run)["state"], "needs_approval", "a waiting run is a row");
    api.approve(&approval);
    finished(&bench, &api, &run);
    let used = kinds(&api.events(&run)).iter().filter(|kind| **kind == "run.approval.used").count();
    assert_eq!(used, 1, "the answer was held for exactly that request");
}

#[test]
fn b18_a_run_whose_profile_changed_since_it_was_planned_says_so() {
    let bench = Bench::new();
    let (hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", &format!("[[scenario:shell {COMMAND}]] please"));
    let approval = api.asked(&run, &[]);
    hub.signal(Signal::TERM);
    hub.ended();
    let file = bench.yard.home.path("runyard.toml");
    let configuration = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, configuration.replace("gpt-5.5", "gpt-5.6")).unwrap();
    let again: Hub = bench.yard.home.up();
    let api = Api::owner(&bench.yard.home, &again);
    api.approve(&approval);
    finished(&bench, &api, &run);
    let reason = api.run(&run)["degraded"]["reason"].to_string();
    assert!(reason.contains("backend profile codex changed since the run was planned"), "{reason}");
}

/// A text that takes some seconds.
const PACED: &str = "about = \"A text that takes some seconds.\"\n\n[[step]]\nanswer = { say = [\"word \"], repeat = 25, pause_ms = 120 }\n";

/// A bench whose model takes its time.
fn paced() -> (Bench, tempfile::TempDir) {
    let scenarios = tempfile::tempdir().unwrap();
    std::fs::write(scenarios.path().join("paced.toml"), PACED).unwrap();
    (Bench::with("", Some(scenarios.path())), scenarios)
}

/// The run's turn is in the middle of its answer.
#[track_caller]
fn speaks(api: &Api, run: &str) {
    eventually("it speaks", || kinds(&api.events(run)).contains(&"run.message.delta").then_some(()));
}

/// It was resumed in the same turn, said all of its answer, and ended.
#[track_caller]
fn went_on(api: &Api, run: &str) {
    let done = api.until(run, "completed");
    assert_eq!(done["response"], "word ".repeat(25), "{done}");
    let events = api.events(run);
    assert!(events.iter().any(|event| event["payload"]["phase"] == "resumed"), "{:?}", kinds(&events));
    let turns = kinds(&events).iter().filter(|kind| **kind == "run.turn.started").count();
    assert_eq!(turns, 1, "it is the same turn");
    nothing_left(run);
}

#[test]
fn j05_a_turn_goes_on_after_codex_was_killed_in_the_middle_of_it() {
    let (bench, _scenarios) = paced();
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", "[[scenario:paced]]");
    speaks(&api, &run);
    for pid in codex_of(&run) {
        send(pid, Signal::KILL);
    }
    went_on(&api, &run);
}

#[test]
fn j05_a_turn_goes_on_after_the_hub_with_its_edge_was_killed_in_the_middle_of_it() {
    let (bench, _scenarios) = paced();
    let (hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", "[[scenario:paced]]");
    speaks(&api, &run);
    hub.signal(Signal::KILL);
    hub.ended();
    nothing_left(&run);
    let again: Hub = bench.yard.home.up();
    went_on(&Api::owner(&bench.yard.home, &again), &run);
}

#[test]
fn c22_a_run_that_continues_another_goes_on_with_its_conversation() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let first = bench.start(&api, "codex", "[[scenario:text]] hello");
    let ended = api.until(&first, "completed");
    let second = bench.start_with(&api, "codex", "and now?", &json!({ "continues": first }));
    let done = api.until(&second, "completed");
    assert_eq!(done["sessionId"], ended["sessionId"]);
    assert_eq!(done["parentRunId"], json!(first));
    let last = bench.responses.requests().last().unwrap().json().to_string();
    assert!(last.contains("hello") && last.contains("and now?"), "the model sees both turns: {last}");
}
