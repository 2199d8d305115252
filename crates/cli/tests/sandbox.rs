//! What confines a run's processes, and what is said where nothing does.
//!
//! clause: B07
//! clause: C04
//! clause: C11
//! clause: J06

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard};
use support::codex::{Bench, nothing_left};
use support::{Hub, Ran};

const NONE: &str = "no sandbox is in force: ";

/// A hub that was started with this `HOME` and this `PATH`.
fn up(yard: &Yard, home: &Path, path: Option<&Path>) -> (Hub, Api) {
    let mut command = yard.home.command_up();
    command.env("HOME", home);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let hub = Hub::of(command.spawn().unwrap()).expect("the hub says where it listens");
    let api = Api::owner(&yard.home, &hub);
    api.add_workspace(yard.workspace.path());
    (hub, api)
}

/// Starts a run, says yes to the command that it asks for, and gives it with what became of it.
#[track_caller]
fn approved(api: &Api, agent: &str, place: &str) -> (String, Value) {
    // What one run leaves must not be there for the next. The profile's sandbox is the stricter one, so it counts.
    let policy = json!({"changes": "keep", "sandbox": "none"});
    let new = json!({"task": "try", "agent": agent, "workspace": place, "executionPolicy": policy});
    let run = api.post("/runs", &new)["run"]["id"].as_str().unwrap().to_owned();
    api.approve(&api.asked(&run, &[]));
    let done = api.until(&run, "completed");
    (run, done)
}

/// What the run left in its checkout.
fn left(yard: &Yard, run: &str, file: &str) -> Option<String> {
    std::fs::read_to_string(yard.home.path(&format!("edge/runs/{run}/checkout/{file}"))).ok()
}

fn in_force(api: &Api, run: &str) -> String {
    let events = api.events(run);
    let started = events.iter().find(|event| event["type"] == "run.started").expect("the run started");
    started["payload"]["checks"]["sandbox"].as_str().unwrap().to_owned()
}

/// A directory with every program of this machine but bubblewrap.
fn without_bubblewrap(place: &Path) -> PathBuf {
    let programs = place.join("programs");
    std::fs::create_dir(&programs).unwrap();
    for directory in ["/usr/bin", "/bin"] {
        for program in std::fs::read_dir(directory).unwrap().flatten() {
            if program.file_name() != "bwrap" {
                // The same program may be in both.
                let _ = symlink(program.path(), programs.join(program.file_name()));
            }
        }
    }
    programs
}

#[test]
fn b07_j06_an_approved_command_reaches_nothing_but_its_run_unless_the_policy_says_so() {
    let (person, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (key, own) = (person.path().join(".ssh/id_ed25519"), workspace.path().join("own.txt"));
    std::fs::create_dir(key.parent().unwrap()).unwrap();
    std::fs::write(&key, "a key\n").unwrap();
    std::fs::write(&own, "the person's own\n").unwrap();
    // The home of the run lies in the data directory, so the way there is known.
    let script = format!(
        "[[turn]]\n[[turn.step]]\nshell = '''for file in {} {} $HOME/../../../../token $HOME/../../*/checkout/taken.txt; \
         do cat $file >> taken.txt; done; echo written > written.txt'''\n",
        key.display(),
        own.display()
    );
    let agents = [
        Scripted { name: "free", profile: "sandbox = \"none\"", script: &script },
        Scripted { name: "confined", profile: "", script: &script },
        Scripted { name: "reading", profile: "sandbox = \"read-only\"", script: &script },
    ];
    let yard = Yard::new("", &agents);
    let (_hub, api) = up(&yard, person.path(), None);
    api.add_workspace(workspace.path());
    let place = workspace.path().to_str().unwrap();
    let token = std::fs::read_to_string(yard.home.path("token")).unwrap();

    let (free, done) = approved(&api, "free", place);
    let taken = left(&yard, &free, "taken.txt").unwrap();
    for secret in ["a key", "the person's own", token.trim()] {
        assert!(taken.contains(secret), "without a sandbox {secret:?} is read: {taken}");
    }
    let reason = done["degraded"]["reason"].as_str().unwrap_or_else(|| panic!("{done}"));
    assert!(reason.starts_with(&format!("{NONE}the run's execution policy asks for none")), "{reason}");

    let (run, done) = approved(&api, "confined", place);
    assert_eq!(done["degraded"], Value::Null, "{done}");
    assert_eq!(
        in_force(&api, &run),
        "bubblewrap: writes only in its checkout and home, the machine's network"
    );
    assert_eq!(left(&yard, &run, "taken.txt").as_deref(), Some(""), "also not what the first run left");
    assert_eq!(left(&yard, &run, "written.txt").as_deref(), Some("written\n"));

    let (reading, _) = approved(&api, "reading", place);
    assert_eq!((left(&yard, &reading, "taken.txt"), left(&yard, &reading, "written.txt")), (None, None));
}

#[test]
fn c04_without_bubblewrap_a_run_is_degraded_and_everybody_is_told_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    let programs = without_bubblewrap(place.path());
    let script = "[[turn]]\n[[turn.step]]\nshell = \"echo written > written.txt\"\n";
    let yard = Yard::new("", &[Scripted { name: "plain", profile: "", script }]);
    let (_hub, api) = up(&yard, place.path(), Some(&programs));
    let (run, done) = approved(&api, "plain", yard.place());
    let why = "bubblewrap is not installed (apt install bubblewrap)";
    let reason = done["degraded"]["reason"].as_str().unwrap_or_else(|| panic!("{done}"));
    assert!(reason.starts_with(&format!("{NONE}{why}")), "{reason}");
    assert_eq!(in_force(&api, &run), format!("none in force: {why}"));
    assert_eq!(left(&yard, &run, "written.txt").as_deref(), Some("written\n"), "it runs all the same");
    let degraded = api.events(&run).into_iter().filter(|event| event["type"] == "run.degraded").count();
    assert_eq!(degraded, 1);
    let shown = yard.home.run(["runs", "show", &run, "--output", "text"]);
    assert!(shown.stdout.contains(&format!("{NONE}{why}")), "{}", shown.stdout);
    let edges = yard.home.run(["edges", "list"]).data();
    assert_eq!(edges["edges"][0]["sandbox"], format!("none in force: {why}"));
    let told = Ran::of(yard.home.command(["doctor"]).env("PATH", &programs));
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let findings = told["data"]["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["what"] == "sandbox").unwrap();
    assert_eq!(finding["state"], "note");
    assert!(finding["next"].as_str().unwrap().starts_with("Install bubblewrap"), "{finding}");
}

#[test]
fn c04_a_run_that_goes_on_without_its_sandbox_says_so() {
    let place = tempfile::tempdir().unwrap();
    let programs = without_bubblewrap(place.path());
    let script = "[[turn]]\n[[turn.step]]\nshell = \"echo written > written.txt\"\n";
    let yard = Yard::new("", &[Scripted { name: "plain", profile: "", script }]);
    let (hub, api) = up(&yard, place.path(), None);
    let run = api.start("plain", yard.place());
    let asked = api.asked(&run, &[]);
    assert_eq!(api.run(&run)["degraded"], Value::Null);
    hub.signal(Signal::KILL);
    hub.ended();
    let (_hub, api) = up(&yard, place.path(), Some(&programs));
    api.approve(&asked);
    let done = api.until(&run, "completed");
    let reason = done["degraded"]["reason"].as_str().unwrap_or_else(|| panic!("{done}"));
    assert!(reason.starts_with(NONE), "{reason}");
}

/// What a command saw of the network.
#[track_caller]
fn only_loopback(interfaces: Option<String>) {
    let interfaces = interfaces.unwrap();
    assert_eq!(interfaces.lines().skip(2).map(str::trim).collect::<Vec<_>>(), ["lo"]);
}

#[test]
fn b07_an_agent_that_needs_no_provider_has_no_network_where_it_is_denied() {
    let script = "[[turn]]\n[[turn.step]]\nshell = \"cut -d: -f1 /proc/net/dev > net.txt\"\n";
    let yard = Yard::new("", &[Scripted { name: "cut", profile: "network = \"deny\"", script }]);
    let (_hub, api) = up(&yard, yard.workspace.path(), None);
    let (run, done) = approved(&api, "cut", yard.place());
    assert_eq!(done["degraded"], Value::Null, "{done}");
    assert!(in_force(&api, &run).ends_with("no network"));
    only_loopback(left(&yard, &run, "net.txt"));
}

/// Through the gateway codex reaches its provider, and nothing but that.
#[test]
fn b07_codex_works_where_the_network_is_denied_and_has_none_but_the_gateway() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let policy = json!({"executionPolicy": {"network": "deny", "changes": "keep"}});
    let task = "[[scenario:shell cut -d: -f1 /proc/net/dev > net.txt]]";
    for agent in ["codex", "deepseek"] {
        let run = bench.start_with(&api, agent, task, &policy);
        api.approve(&api.asked(&run, &[]));
        let done = api.until(&run, "completed");
        assert_eq!(done["degraded"], Value::Null, "{done}");
        assert_eq!(done["response"], "The command has run.", "{done}");
        assert!(in_force(&api, &run).ends_with("no network but the gateway"));
        only_loopback(bench.file(&run, "net.txt"));
        nothing_left(&run);
    }
}

/// Without the gateway codex must reach its provider itself, so that its network namespace cannot be its own.
#[test]
fn b07_a_network_that_cannot_be_cut_for_an_agent_makes_its_run_degraded() {
    let bench = Bench::with("gateway = false", None);
    let (_hub, api) = bench.yard.up();
    let policy = json!({"executionPolicy": {"network": "deny"}});
    let run = bench.start_with(&api, "codex", "[[scenario:text]]", &policy);
    let done = api.until(&run, "completed");
    let reason = done["degraded"]["reason"].as_str().unwrap_or_else(|| panic!("{done}"));
    assert!(reason.contains("the network is denied and not cut"), "{reason}");
    assert!(in_force(&api, &run).ends_with("the network is not cut"));
}
