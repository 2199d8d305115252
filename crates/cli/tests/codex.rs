//! Codex, the real program, in a run of a real hub, against a model provider on loopback: one turn with one approval, also
//! when the agent or the hub is killed while a person thinks about it.
//!
//! clause: B02
//! clause: B08
//! clause: C12
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::path::{Path, PathBuf};

use runyard_demo_provider::DemoProvider;
use rustix::process::Signal;
use serde_json::{Value, json};

use support::api::{Api, Yard, left_of};
use support::{Hub, eventually, send};

/// What the agent runs: a line more each time.
const COMMAND: &str = "echo ran >> runs.txt";

fn codex() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let native =
        "codex-0.166.0/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
    let program = std::env::var_os("RUNYARD_TEST_CODEX").map_or_else(|| target.join(native), PathBuf::from);
    assert!(program.is_file(), "there is no {}; ./test installs it", program.display());
    program
}

/// A hub whose codex talks to a provider of ours.
struct Bench {
    yard: Yard,
    provider: DemoProvider,
}

impl Bench {
    fn new() -> Self {
        let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let provider = executor.block_on(DemoProvider::start()).unwrap();
        let configuration = format!(
            "[backends.codex]\nkind = \"codex-app-server-stdio\"\nsettings.program = {:?}\nsettings.base_url = {:?}\n\
             settings.model = \"gpt-5.5\"\n",
            codex().to_str().unwrap(),
            provider.url()
        );
        Bench { yard: Yard::new(&configuration, &[]), provider }
    }

    fn start(&self, api: &Api, task: &str) -> String {
        let new = json!({"task": task, "agent": "codex", "workspace": self.yard.place()});
        let made = api.post("/runs", &new);
        made["run"]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    /// How often the command ran in the run's checkout.
    fn runs(&self, run: &str) -> usize {
        let file = self.yard.home.path(&format!("edge/runs/{run}/checkout/runs.txt"));
        std::fs::read_to_string(file).unwrap_or_default().lines().count()
    }
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The processes of the run whose program is codex.
fn codex_of(run: &str) -> Vec<u32> {
    let codex = |pid: &String| {
        std::fs::read_link(format!("/proc/{pid}/exe"))
            .is_ok_and(|exe| exe.file_name().is_some_and(|name| name == "codex"))
    };
    left_of(run).into_iter().filter(codex).map(|pid| pid.parse().unwrap()).collect()
}

#[track_caller]
fn finished(bench: &Bench, api: &Api, run: &str) {
    let done = api.until(run, "completed");
    assert_eq!(done["response"], "The command has run.", "{done}");
    assert_eq!(bench.runs(run), 1, "what was approved once ran once");
    let events = api.events(run);
    let asked = events.iter().filter(|event| event["type"] == "run.approval.requested");
    let asked = asked.filter(|event| event["payload"]["request"]["kind"] != "apply").count();
    assert_eq!(asked, 1, "the answer that was given counts: nobody is asked twice");
    eventually("nothing of the run is left", || left_of(run).is_empty().then_some(()));
}

#[test]
fn b02_b08_a_real_codex_turn_with_a_real_approval() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, &format!("[[scenario:shell {COMMAND}]] please"));
    let approval = api.asked(&run, &[]);
    assert!(approval["request"]["command"].as_str().unwrap().contains(COMMAND), "{approval}");
    assert_eq!(bench.runs(&run), 0, "nothing runs before the answer");
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
    assert!(!bench.provider.requests().is_empty());
}

#[test]
fn c12_a_rejection_ends_the_run_and_the_command_never_runs() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, &format!("[[scenario:shell {COMMAND}]] please"));
    let approval = api.asked(&run, &[]);
    let path = format!("/approvals/{}/resolve", approval["id"].as_str().unwrap());
    api.post(&path, &json!({"decision": "reject", "digest": approval["digest"]}));
    let ended = api.until(&run, "cancelled");
    assert_eq!(ended["code"], "approval_rejected");
    eventually("nothing of the run is left", || left_of(&run).is_empty().then_some(()));
    assert_eq!(bench.runs(&run), 0);
}

#[test]
fn j05_an_approval_is_answered_after_codex_was_killed() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, &format!("[[scenario:shell {COMMAND}]] please"));
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
fn j05_an_approval_is_answered_after_the_hub_was_killed() {
    let bench = Bench::new();
    let (hub, api) = bench.yard.up();
    let run = bench.start(&api, &format!("[[scenario:shell {COMMAND}]] please"));
    let approval = api.asked(&run, &[]);
    hub.signal(Signal::KILL);
    let (code, _) = hub.ended();
    assert_eq!(code, None, "killed");
    eventually("nothing of the run is left", || left_of(&run).is_empty().then_some(()));
    let again: Hub = bench.yard.home.up();
    let api = Api::owner(&bench.yard.home, &again);
    assert_eq!(api.run(&run)["state"], "needs_approval");
    api.approve(&approval);
    finished(&bench, &api, &run);
}

#[test]
fn c16_a_run_that_uses_more_tokens_than_its_budget_fails_and_nothing_of_it_is_left() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let new = |task: &str, tokens: u64| {
        let policy = json!({ "budget": { "tokens": tokens } });
        let place = bench.yard.place();
        let made = api.post(
            "/runs",
            &json!({"task": task, "agent": "codex", "workspace": place, "executionPolicy": policy}),
        );
        made["run"]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    };
    let run = new("[[scenario:text]] hello", 100);
    let ended = api.until(&run, "failed");
    assert_eq!(ended["code"], "budget_exceeded", "{ended}");
    let events = api.events(&run);
    let used = events.last().unwrap()["payload"]["exceeded"]["used"].as_u64().unwrap();
    let usage = &events[events.len() - 2]["payload"]["usage"];
    let reported = usage["inputTokens"].as_u64().unwrap() + usage["outputTokens"].as_u64().unwrap();
    assert!(used == reported && used > 100, "{events:?}");
    eventually("nothing of the run is left", || left_of(&run).is_empty().then_some(()));
    let run = new(&format!("[[scenario:shell {COMMAND}]] please"), 10_000_000);
    api.approve(&api.asked(&run, &[]));
    finished(&bench, &api, &run);
}

#[test]
fn c22_a_run_that_continues_another_goes_on_with_its_conversation() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let first = bench.start(&api, "[[scenario:text]] hello");
    let ended = api.until(&first, "completed");
    let new =
        json!({"task": "and now?", "agent": "codex", "workspace": bench.yard.place(), "continues": first});
    let second = api.post("/runs", &new)["run"]["id"].as_str().unwrap().to_owned();
    let done = api.until(&second, "completed");
    assert_eq!(done["sessionId"], ended["sessionId"]);
    assert_eq!(done["parentRunId"], json!(first));
    let last = bench.provider.requests().last().unwrap().json().to_string();
    assert!(last.contains("hello") && last.contains("and now?"), "the model sees both turns: {last}");
}
