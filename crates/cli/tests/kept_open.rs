//! A run that is kept open: over HTTP and over its hub's death, and at a terminal.
//!
//! clause: C22

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard};
use support::eventually;
use support::terminal::Terminal;

const TALKS: Scripted<'_> = Scripted {
    name: "talks",
    profile: "",
    script: r#"
[[turn]]
[[turn.step]]
say = "One."
[[turn]]
[[turn.step]]
write = "two.txt"
content = "two\n"
[[turn.step]]
say = "Two."
"#,
};

/// Waits until the run is kept open after this was said.
#[track_caller]
fn kept_open(api: &Api, run: &str, said: &str) {
    eventually(&format!("{run} is kept open after {said:?}"), || {
        let found = api.run(run);
        assert_eq!(found["failureKind"], Value::Null, "{found}");
        (found["response"] == said && found["keptOpenUntil"].is_string()).then_some(())
    });
}

fn kinds(api: &Api, run: &str) -> Vec<String> {
    api.events(run).iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

fn only_run(api: &Api) -> String {
    let runs = api.get("/runs");
    let [run] = runs["runs"].as_array().unwrap().as_slice() else { panic!("{runs}") };
    run["id"].as_str().unwrap().to_owned()
}

#[test]
fn c22_a_kept_open_run_takes_a_turn_after_its_hub_died_and_is_reviewed_when_it_is_let_end() {
    let yard = Yard::new("", &[TALKS]);
    let (hub, api) = yard.up();
    let policy = json!({"keepOpenMs": 3_600_000});
    let new =
        json!({"task": "count", "agent": "talks", "workspace": yard.place(), "executionPolicy": policy});
    let run = api.post("/runs", &new)["run"]["id"].as_str().unwrap().to_owned();
    kept_open(&api, &run, "One.");
    drop(hub);
    let (_hub, api) = yard.up();
    kept_open(&api, &run, "One.");
    let commands = format!("/runs/{run}/commands");
    api.post(&commands, &json!({"kind": "turn", "text": "and two"}));
    kept_open(&api, &run, "Two.");
    let so_far = kinds(&api, &run);
    assert_eq!(so_far.iter().filter(|kind| *kind == "run.turn.started").count(), 2, "nothing was done twice");
    assert!(!so_far.contains(&"run.diff.ready".to_owned()), "nobody looks while it is kept open: {so_far:?}");
    api.post(&commands, &json!({"kind": "finish"}));
    let asked = api.asked(&run, &[]);
    assert_eq!(asked["request"]["kind"], "apply", "{asked}");
    assert_eq!(api.run(&run)["keptOpenUntil"], Value::Null);
    api.approve(&asked);
    api.until(&run, "completed");
    assert_eq!(std::fs::read_to_string(yard.workspace.path().join("two.txt")).unwrap(), "two\n");
    let (status, body) = api.send("POST", &commands, Some(&json!({"kind": "finish"})));
    assert_eq!(status, 409, "{body}");
}

#[test]
fn c22_whoever_follows_a_kept_open_run_is_told_how_to_go_on_and_how_to_end_it() {
    let yard = Yard::new("", &[TALKS]);
    let (_hub, api) = yard.up();
    let arguments =
        ["run", "count", "--agent", "talks", "--workspace", yard.place(), "--keep-open", "10m", "--keep"];
    let mut terminal = Terminal::of(&mut yard.home.command(arguments));
    terminal.wait_for("kept open until ");
    let run = only_run(&api);
    terminal.wait_for(&format!("runyard runs turn {run} TEXT"));
    let told = yard.home.run(["runs", "turn", &run, "and two", "--output", "json"]).data();
    assert_eq!(told["command"]["kind"], "turn");
    terminal.wait_for("kept open until ");
    assert_eq!(api.run(&run)["response"], "Two.");
    let told = yard.home.run(["runs", "finish", &run, "--output", "json"]).data();
    assert_eq!(told["command"]["kind"], "finish");
    terminal.wait_for("completed");
    assert_eq!(terminal.ended().0, Some(0));
    let refused = yard.home.run(["run", "x", "--keep-open", "soon"]).envelope();
    let why = refused["error"]["issues"][0]["message"].as_str().unwrap_or_default();
    assert!(why.contains("--keep-open") && why.contains("like 30m"), "{refused}");
}
