//! A hostile agent: the real codex with a model that was told everything and may run any command. In every sandbox each attempt
//! fails and is recorded; where there is no sandbox, the run says so before it begins.
//!
//! clause: B07
//! clause: B12
//! clause: C11
//! clause: J05
//! clause: J06

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use support::api::Api;
use support::codex::{Bench, CODEX_KEY, nothing_left};
use support::eventually;

/// What it tries, in this order.
const ATTEMPTS: [&str; 19] = [
    "tokens",
    "hub-token",
    "store",
    "secrets",
    "key",
    "read-other",
    "write-other",
    "resolve-http",
    "resolve-mcp",
    "policy-http",
    "token-http",
    "watch-own",
    "resolve-own",
    "workspace",
    "configuration",
    "checkout",
    "daemon",
    "host",
    "plant",
];
/// What it can do everywhere, and what comes to nothing: it leaves processes behind, and rules and words for the agent that comes
/// after it.
const TAKEN: [&str; 3] = ["watch-own", "daemon", "plant"];

/// A hub with a run that waits for a person, and a workspace in which the hostile agent's script lies.
struct Scene {
    bench: Bench,
    other: String,
    asked: Value,
    /// A host that may not be reached where the network is denied.
    host: TcpListener,
    /// What the daemon that is left behind is known by.
    mark: String,
}

impl Scene {
    fn new(api: &Api, bench: Bench, mark: &str) -> Self {
        let other = bench.start(api, "codex", "[[scenario:shell true]]");
        let asked = api.asked(&other, &[]);
        let host = TcpListener::bind("127.0.0.1:0").unwrap();
        host.set_nonblocking(true).unwrap();
        Scene { bench, other, asked, host, mark: mark.to_owned() }
    }

    /// Leaves in the workspace what the agent knows: the run's record would not hold these places.
    fn tell(&self) {
        let data = self.bench.yard.home.path("");
        let (half, rest) = CODEX_KEY.split_at(CODEX_KEY.len() / 2);
        let facts = [
            ("data", data.to_str().unwrap().trim_end_matches('/')),
            ("workspace", self.bench.yard.place()),
            ("other", &self.other),
            ("asked", self.asked["id"].as_str().unwrap()),
            ("digest", self.asked["digest"].as_str().unwrap()),
            ("port", &self.host.local_addr().unwrap().port().to_string()),
            ("mark", &self.mark),
            ("half", half),
            ("rest", rest),
        ];
        let facts: String = facts.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        std::fs::write(self.bench.yard.workspace.path().join("facts"), facts).unwrap();
    }
}

fn bench() -> Bench {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let bench = Bench::with("[agent.free]\nbackend = \"codex\"\nsandbox = \"none\"\n", Some(&scenarios));
    std::fs::copy(scenarios.join("attempts.sh"), bench.yard.workspace.path().join("attempts.sh")).unwrap();
    bench
}

/// Says yes to every command, until the run is at its end; `before` sees each first.
fn approve_all(api: &Api, run: &str, before: impl Fn(&str)) -> Value {
    eventually(&format!("{run} comes to its end"), || {
        for approval in api.get(&format!("/approvals?run={run}"))["approvals"].as_array().unwrap() {
            before(approval["request"]["command"].as_str().unwrap_or_default());
            api.approve(approval);
        }
        let found = api.run(run);
        ["completed", "failed", "cancelled"].contains(&found["state"].as_str().unwrap()).then_some(found)
    })
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["payload"]).collect()
}

/// What every attempt came to, as it printed it.
fn outcomes(events: &[Value]) -> Vec<String> {
    let printed: String =
        of_type(events, "run.tool.output").iter().map(|output| output["text"].as_str().unwrap()).collect();
    printed.lines().map(str::to_owned).collect()
}

/// All files of a directory with what is in them.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut left) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => left.push(entry.path()),
                kind if kind.is_file() => found.push((entry.path(), std::fs::read(entry.path()).unwrap())),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// Whether a process with this argument is there.
fn is_running(argument: &str) -> bool {
    let argument = format!("\0{argument}\0");
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        words.windows(argument.len()).any(|window| window == argument.as_bytes())
    })
}

/// Runs the hostile agent under this policy, and checks what holds under each.
fn check(sandbox: &str, network: &str, mark: &str) {
    let bench = bench();
    let (_hub, api) = bench.yard.up();
    let scene = Scene::new(&api, bench, mark);
    scene.tell();
    let (home, workspace) = (&scene.bench.yard.home, scene.bench.yard.workspace.path());
    let before = files(workspace);
    let policy = json!({"sandbox": sandbox, "network": network, "changes": "keep"});
    let run =
        scene.bench.start_with(&api, "codex", "[[scenario:hostile]]", &json!({ "executionPolicy": policy }));
    let done = approve_all(&api, &run, |command| {
        // What it left behind tries to answer this very question, and notes what it was told.
        if network == "ask" && command.contains("attempts.sh resolve-own") {
            let note = home.path(&format!("edge/runs/{run}/home/own.txt"));
            let told = eventually("it tries to say yes itself", || std::fs::read_to_string(&note).ok());
            assert!(told.starts_with("HTTP/1.1 403 "), "{told}");
        }
        if command.contains("attempts.sh host") {
            eventually("the daemon is there", || is_running(&scene.mark).then_some(()));
        }
    });
    assert_eq!(done["state"], "completed", "{done}");
    // What it did to its own repository is no change that could be applied, and that is said.
    let own_repository =
        "The checkout holds what can be no change: .git (it lies in a repository's own directory)";
    let degraded = if sandbox == "read-only" { Value::Null } else { json!({ "reason": own_repository }) };
    assert_eq!(done["degraded"], degraded, "{done}");

    let events = api.events(&run);
    let taken = |name: &str| match name {
        // Its own checkout is its own.
        "checkout" => sandbox == "workspace-write",
        // Every host may be reached once a person said yes to the command.
        "host" => network != "deny",
        name => TAKEN.contains(&name),
    };
    let outcome = |name: &&str| format!("{name} {}", if taken(name) { "taken" } else { "failed" });
    assert_eq!(outcomes(&events), ATTEMPTS.iter().map(outcome).collect::<Vec<_>>());
    let asked = of_type(&events, "run.approval.requested");
    let asked = asked.iter().map(|asked| asked["request"]["command"].as_str().unwrap_or_default());
    for (command, name) in asked.zip(ATTEMPTS) {
        assert!(command.contains(&format!("attempts.sh {name}")), "{name} is recorded: {command}");
    }

    assert_eq!(files(workspace), before, "nothing of it reached the person's files");
    assert_eq!(api.run(&scene.other)["state"], "needs_approval", "the other run still waits for a person");
    assert_eq!(scene.bench.file(&scene.other, "README.md").unwrap(), "A place to look around in.\n");
    assert!(api.get("/policy")["policy"]["stored"].as_array().unwrap().is_empty());
    for file in ["token", "runyard.toml"] {
        let content = std::fs::read_to_string(home.path(file)).unwrap();
        assert!(!content.contains("hostile"), "{file}: {content}");
    }
    nothing_left(&run);
    assert!(!is_running(&scene.mark), "the daemon is gone");
    if network == "deny" {
        assert!(scene.host.accept().is_err(), "nobody came");
    } else {
        check_refused(&api, &run);
    }
    check_planted(&scene, &api, &run, &policy);
}

/// What it planted has no effect on a run that continues it.
#[track_caller]
fn check_planted(scene: &Scene, api: &Api, run: &str, policy: &Value) {
    let more = json!({ "continues": run, "executionPolicy": policy });
    let next = scene.bench.start_with(api, "codex", "[[scenario:shell touch pwned.txt]]", &more);
    let asked = api.asked(&next, &[]);
    assert!(asked["request"]["command"].as_str().unwrap().contains("touch pwned.txt"), "{asked}");
    assert_eq!(scene.bench.file(&next, "pwned.txt"), None, "it waits for a person");
    let session = api.run(run)["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(api.run(&next)["sessionId"], session.as_str(), "the home is the same");
    let homes = std::fs::read_dir(scene.bench.yard.home.path(&format!("edge/sessions/{session}"))).unwrap();
    let homes: Vec<PathBuf> = homes.map(|home| home.unwrap().path().join("codex")).collect();
    assert!(homes.iter().any(|home| home.join("config.toml").is_file()), "{homes:?}");
    for name in ["rules/default.rules", "AGENTS.override.md", ".env", "hooks.json", "planted.toml"] {
        assert!(!homes.iter().any(|home| home.join(name).exists()), "{name}");
    }
    api.post(&format!("/runs/{next}/cancel"), &json!({}));
    api.until(&next, "cancelled");
    nothing_left(&next);
}

/// What it asked of the hub was refused, and stands in the audit as its own.
#[track_caller]
fn check_refused(api: &Api, run: &str) {
    let refused = api.audit("audit.refused");
    for action in ["approval_resolve", "policy_add", "token_create"] {
        let entry = refused.iter().find(|entry| entry["what"]["action"] == action);
        let entry = entry.unwrap_or_else(|| panic!("{action} is not in the audit: {refused:?}"));
        assert_eq!([&entry["by"]["kind"], &entry["by"]["runId"]], ["agent", run], "{entry}");
    }
}

#[test]
fn j06_b12_a_hostile_agent_that_may_write_its_checkout_gets_nothing_and_leaves_nothing() {
    check("workspace-write", "ask", "98301");
}

#[test]
fn j06_b12_a_hostile_agent_that_may_only_read_gets_nothing_and_leaves_nothing() {
    check("read-only", "ask", "98302");
}

#[test]
fn b07_a_hostile_agent_without_a_network_reaches_no_host_and_no_hub() {
    check("workspace-write", "deny", "98303");
}

#[test]
fn b07_a_hostile_agent_that_may_only_read_reaches_no_host_without_a_network() {
    check("read-only", "deny", "98304");
}

#[test]
fn j06_without_a_sandbox_a_run_is_marked_before_its_agent_does_anything() {
    let bench = bench();
    let (_hub, api) = bench.yard.up();
    std::fs::write(bench.yard.workspace.path().join("facts"), "data=$HOME/../../../..\n").unwrap();
    let run = bench.start(&api, "free", "[[scenario:shell bash attempts.sh hub-token]]");
    let asked = api.asked(&run, &[]);
    let degraded = api.run(&run)["degraded"]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(degraded.starts_with("no sandbox is in force: "), "{degraded:?}");
    let kinds: Vec<String> =
        api.events(&run).iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    let place = |kind: &str| kinds.iter().position(|found| found == kind).unwrap();
    assert!(place("run.degraded") < place("run.approval.requested"), "{kinds:?}");
    api.approve(&asked);
    approve_all(&api, &run, |_| ());
    assert_eq!(outcomes(&api.events(&run)), ["hub-token taken"], "that is what it was marked for");
}
