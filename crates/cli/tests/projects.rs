//! The `runyard.toml` of a workspace counts for its runs: it narrows, and widens only when a person trusts it.
//!
//! clause: J06
//! clause: C24

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::path::PathBuf;

use serde_json::{Value, json};

use support::api::{self, Scripted};
use support::{Home, Ran, eventually};

/// A home with a workspace that has this configuration.
struct Yard {
    home: Home,
    folder: PathBuf,
}

impl Yard {
    fn new(configuration: &str) -> Self {
        let home = Home::new();
        let folder = home.beside("site");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("README.md"), "# Site\n").unwrap();
        let yard = Yard { home, folder };
        yard.write(configuration);
        yard.run(&["workspaces", "add", "."]).data();
        yard
    }

    fn write(&self, configuration: &str) {
        let file = self.folder.join("runyard.toml");
        std::fs::write(&file, configuration).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.home.command(arguments).current_dir(&self.folder))
    }

    fn judged(&self) -> String {
        let data = self.run(&["policy", "test", "ls -la"]).data();
        data["effect"].as_str().unwrap().to_owned()
    }
}

const DENY: &str = "[[policy.rule]]\neffect = \"deny\"\nkind = \"shell\"\n";
const ALLOW: &str = "[[policy.rule]]\neffect = \"allow\"\nkind = \"shell\"\n";

#[test]
fn j06_a_project_narrows_the_runs_in_its_workspace_without_being_trusted() {
    let yard = Yard::new(DENY);
    let ran = yard.run(&["run", "look around", "--keep"]);
    assert!(ran.stdout.contains("\"effect\":\"deny\""), "{}", ran.stdout);
    assert!(!ran.stdout.contains("run.approval.requested"), "{}", ran.stdout);
    // Elsewhere nothing changes.
    let other = yard.home.beside("other");
    std::fs::create_dir(&other).unwrap();
    let other = other.canonicalize().unwrap();
    yard.run(&["workspaces", "add", other.to_str().unwrap()]).data();
    let ran = yard.run(&["policy", "test", "ls -la", "--workspace", other.to_str().unwrap()]);
    assert_eq!((ran.data()["effect"].as_str(), yard.judged().as_str()), (Some("ask"), "deny"));
}

#[test]
fn j06_what_of_a_project_does_not_count_is_said_before_its_run() {
    let yard = Yard::new(&format!("{ALLOW}[agent.demo]\npreset = \"strict\"\nsandbox = \"none\"\n"));
    let said = "The project's runyard.toml is not trusted, so this does not count: ";
    let ran = yard.run(&["run", "look around", "--keep", "--approval", "never", "--output", "text"]);
    let line =
        ran.stderr.lines().find(|line| line.starts_with(said)).unwrap_or_else(|| panic!("{}", ran.stderr));
    assert!(line.contains("policy.rule") && line.ends_with("See \"runyard trust\"."), "{line}");
    assert!(!line.contains("agent.demo.preset"), "what narrows counts: {line}");
    // From elsewhere it is the workspace that is looked at; what is no longer for people is left as it is.
    let place = yard.folder.to_str().unwrap();
    let elsewhere =
        ["run", "look around", "--keep", "--approval", "never", "--workspace", place, "--output", "text"];
    assert!(yard.home.run(elsewhere).stderr.contains(said));
    assert_eq!(
        yard.run(&["run", "look around", "--keep", "--approval", "never", "--output", "json"]).stderr,
        ""
    );
    let talked = Ran::of(
        yard.home
            .command(["chat", "hello", "--approval", "never", "--output", "text"])
            .current_dir(&yard.folder),
    );
    assert!(talked.stderr.contains(said), "{}", talked.stderr);

    yard.run(&["trust", "--confirm"]).data();
    assert!(
        !yard
            .run(&["run", "look around", "--keep", "--approval", "never", "--output", "text"])
            .stderr
            .contains(said)
    );
}

#[test]
fn j06_a_project_widens_nothing_until_a_person_trusts_it_and_then_that_is_in_the_audit() {
    let yard = Yard::new(ALLOW);
    assert_eq!(yard.judged(), "ask");
    yard.run(&["trust", "--confirm"]).data();
    let ran = yard.run(&["run", "look around", "--keep", "--output", "json"]);
    assert_eq!(ran.data()["run"]["state"], "completed");
    let trusts = |entries: &Value| {
        let entries = entries["entries"].as_array().unwrap();
        entries.iter().filter(|entry| entry["type"] == "audit.trust").cloned().collect::<Vec<_>>()
    };
    let found = trusts(&yard.run(&["audit", "show"]).data());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0]["what"]["digest"].as_str().unwrap().starts_with("sha256:"), "{found:?}");
    // Any change ends it.
    yard.write(&format!("{ALLOW}# changed\n"));
    assert_eq!(yard.judged(), "ask");
    assert_eq!(trusts(&yard.run(&["audit", "show"]).data()).len(), 1);
    // What was trusted while no hub looked is there too, though a later trust took its place.
    for text in ["# once more\n", "# and again\n"] {
        yard.write(&format!("{ALLOW}{text}"));
        yard.run(&["trust", "--confirm"]).data();
    }
    yard.run(&["run", "look around", "--keep", "--output", "json"]).data();
    assert_eq!(trusts(&yard.run(&["audit", "show"]).data()).len(), 3);
}

#[test]
fn j06_a_project_that_cannot_be_read_makes_no_run() {
    let yard = Yard::new("[policy\n");
    let (exit, code, message) = yard.run(&["run", "look around"]).failure();
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"), "{message}");
    let (exit, code, message) = yard.run(&["policy", "test", "ls -la"]).failure();
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"), "{message}");
}

/// It asks for a command whenever a person said that it may go on.
const PATIENT: &str = r#"
[[turn]]
[[turn.step]]
shell = "echo one"
[[turn.step]]
ask = "Go on?"
schema = { type = "string" }
[[turn.step]]
shell = "echo two"
"#;

#[test]
fn c24_what_a_project_says_and_whether_it_is_trusted_reaches_a_run_that_is_running_and_is_in_the_audit() {
    let profile = "on_reject = \"continue\"";
    let yard = api::Yard::new("", &[Scripted { name: "patient", profile, script: PATIENT }]);
    let file = yard.workspace.path().join("runyard.toml");
    std::fs::write(&file, ALLOW).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let command =
        |arguments: &[&str]| Ran::of(yard.home.command(arguments).current_dir(yard.workspace.path())).data();
    let (_hub, api) = yard.up();
    // The hub runs already when its rule comes to count.
    command(&["trust", "--confirm"]);
    let rules = || -> Vec<Value> {
        api.audit("audit.policy").iter().map(|entry| entry["what"]["rules"].clone()).collect()
    };
    eventually("the trusted rule counts", || (rules().len() == 1).then_some(()));
    assert_eq!(rules()[0][0]["effect"], "allow");
    let run = api.start("patient", yard.place());
    let question = api.asked(&run, &[]);
    let effects = || -> Vec<Value> {
        let events = api.events(&run);
        let judged = events.iter().filter(|event| event["payload"]["request"]["kind"] == "shell");
        judged.map(|event| event["payload"]["effect"].clone()).collect()
    };
    assert_eq!(effects(), ["allow"]);
    command(&["trust", "--revoke"]);
    eventually("nothing of it counts any more", || (rules().last() == Some(&json!([]))).then_some(()));
    let revoked = api.audit("audit.trust.revoked");
    assert_eq!((revoked.len(), revoked[0]["by"]["kind"].as_str()), (1, Some("person")), "{revoked:?}");
    std::fs::write(&file, DENY).unwrap();
    let denies = || rules().last().is_some_and(|rules| rules[0]["effect"] == "deny");
    eventually("what it denies counts without trust", || denies().then_some(()));
    let answer = json!({"decision": "approve", "digest": question["digest"], "answer": "yes"});
    api.post(&format!("/approvals/{}/resolve", question["id"].as_str().unwrap()), &answer);
    api.until(&run, "completed");
    assert_eq!(effects(), ["allow", "deny"]);
}

/// It writes a file whenever a person said that it may go on.
const WRITES: &str = r#"
[[turn]]
[[turn.step]]
write = "one.txt"
content = "one\n"
[[turn.step]]
ask = "Go on?"
schema = { type = "string" }
[[turn.step]]
write = "two.txt"
content = "two\n"
"#;

/// What the gate said of the run's writes.
fn writes(api: &api::Api, run: &str) -> Vec<Value> {
    let events = api.events(run);
    let writes = events.iter().filter(|event| event["payload"]["request"]["kind"] == "write");
    let said = |event: &Value| match event["type"].as_str().unwrap() {
        "run.gate.judged" => event["payload"]["effect"].clone(),
        kind => kind.into(),
    };
    writes.map(said).collect()
}

fn go_on(api: &api::Api, question: &Value) {
    let answer = json!({"decision": "approve", "digest": question["digest"], "answer": "yes"});
    api.post(&format!("/approvals/{}/resolve", question["id"].as_str().unwrap()), &answer);
}

const WRITER: Scripted<'static> = Scripted { name: "writer", profile: "", script: WRITES };

// clause: C11
#[test]
fn c11_a_stricter_preset_of_a_project_reaches_a_run_that_is_running() {
    let yard = api::Yard::new("", &[WRITER]);
    let (_hub, api) = yard.up();
    let run = api.start("writer", yard.place());
    let question = api.asked(&run, &[]);
    assert_eq!(writes(&api, &run), ["allow"]);
    let file = yard.workspace.path().join("runyard.toml");
    std::fs::write(&file, "[policy]\npreset = \"strict\"\n").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let found = eventually("its preset is in the audit", || api.audit("audit.policy").pop());
    assert_eq!(found["what"]["preset"], "strict", "{found}");
    assert_eq!(found["what"]["agents"]["writer"], "strict", "{found}");
    go_on(&api, &question);
    api.asked(&run, &[question["id"].as_str().unwrap()]);
    assert_eq!(writes(&api, &run), ["allow", "run.approval.requested"]);
    // A run elsewhere is none of its business.
    let other = tempfile::tempdir().unwrap();
    api.add_workspace(other.path());
    let elsewhere = api.start("writer", other.path().to_str().unwrap());
    go_on(&api, &api.asked(&elsewhere, &[]));
    api.until(&elsewhere, "completed");
    assert_eq!(writes(&api, &elsewhere), ["allow", "allow"]);
}

// clause: C11
#[test]
fn c11_what_the_hubs_own_file_says_of_the_policy_reaches_a_run_that_is_running_and_is_in_the_audit() {
    let profile = "on_reject = \"continue\"";
    let yard = api::Yard::new("", &[Scripted { name: "patient", profile, script: PATIENT }]);
    let (_hub, api) = yard.up();
    let run = api.start("patient", yard.place());
    let first = api.asked(&run, &[]);
    let id = first["id"].as_str().unwrap();
    let yes = json!({"decision": "approve", "digest": first["digest"]});
    api.post(&format!("/approvals/{id}/resolve"), &yes);
    let question = api.asked(&run, &[id]);
    let file = yard.home.path("runyard.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let said = || api.audit("audit.policy").pop().map(|entry| entry["what"].clone());
    // What is not valid changes nothing.
    std::fs::write(&file, format!("{text}\n{DENY}unknown = 1\n")).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(said(), None);
    std::fs::write(&file, format!("{text}\n{DENY}[hub]\nown_runs = \"refuse\"\n")).unwrap();
    let what = eventually("what it denies is in the audit", said);
    assert_eq!((&what["rules"][0]["effect"], &what["ownRuns"]), (&json!("deny"), &json!("refuse")), "{what}");
    let grace = api.person("grace", "approver");
    go_on(&grace, &question);
    api.until(&run, "completed");
    let events = api.events(&run);
    let judged = events.iter().rfind(|event| event["payload"]["request"]["kind"] == "shell").unwrap();
    assert_eq!((&judged["type"], &judged["payload"]["effect"]), (&json!("run.gate.judged"), &json!("deny")));
    // What it no longer says no longer counts.
    std::fs::write(&file, text).unwrap();
    eventually("it says nothing any more", || said().filter(|what| what["rules"] == json!([])));
    let again = api.start("patient", yard.place());
    api.asked(&again, &[]);
}

// clause: C11
#[test]
fn c11_a_milder_preset_of_the_hubs_own_file_counts_for_runs_that_are_made_then() {
    let yard = api::Yard::new("", &[WRITER]);
    let file = yard.home.path("runyard.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n[policy]\npreset = \"strict\"\n")).unwrap();
    let (_hub, api) = yard.up();
    let preset = || {
        let agents = api.get("/agents")["agents"].take();
        agents.as_array().unwrap().iter().find(|agent| agent["id"] == "writer").unwrap()["preset"].clone()
    };
    let strict = api.start("writer", yard.place());
    let asked = api.asked(&strict, &[]);
    assert_eq!((preset(), writes(&api, &strict)), (json!("strict"), vec![json!("run.approval.requested")]));
    std::fs::write(&file, text).unwrap();
    eventually("the preset is the milder one", || (preset() == "default").then_some(()));
    let mild = api.start("writer", yard.place());
    let question = api.asked(&mild, &[]);
    assert_eq!(
        (&question["request"]["kind"], writes(&api, &mild)),
        (&json!("question"), vec![json!("allow")])
    );
    // What was planned under the stricter one stays so.
    api.approve(&asked);
    go_on(&api, &api.asked(&strict, &[asked["id"].as_str().unwrap()]));
    let told = vec![json!("run.approval.requested"), json!("run.approval.requested")];
    eventually("the other file is asked about too", || (writes(&api, &strict) == told).then_some(()));
}

// clause: C11
#[test]
fn c11_a_stricter_preset_of_an_agent_reaches_a_run_that_a_new_hub_goes_on_with() {
    let yard = api::Yard::new("", &[WRITER]);
    let (hub, api) = yard.up();
    let run = api.start("writer", yard.place());
    let question = api.asked(&run, &[]);
    hub.signal(rustix::process::Signal::TERM);
    hub.ended();
    let file = yard.home.path("runyard.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}preset = \"strict\"\n")).unwrap();
    let (_hub, api) = yard.up();
    let found = api.audit("audit.policy");
    assert_eq!((found.len(), &found[0]["what"]["agents"]["writer"]), (1, &json!("strict")), "{found:?}");
    go_on(&api, &question);
    api.asked(&run, &[question["id"].as_str().unwrap()]);
    assert_eq!(writes(&api, &run), ["allow", "run.approval.requested"]);
}

#[test]
fn c24_what_a_file_no_longer_says_is_in_the_audit_also_where_it_went_without_a_hub() {
    let yard = Yard::new("");
    let policies = || -> Vec<Value> {
        let shown = yard.run(&["audit", "show", "--limit", "499"]).data();
        let entries = shown["entries"].as_array().unwrap().iter();
        entries.filter(|entry| entry["type"] == "audit.policy").map(|entry| entry["what"].clone()).collect()
    };
    assert_eq!(policies(), [json!(null); 0], "nothing is said of it");
    let own = yard.home.path("runyard.toml");
    std::fs::write(&own, format!("[policy]\npreset = \"strict\"\n{DENY}[hub]\nown_runs = \"refuse\"\n"))
        .unwrap();
    let said = policies();
    let (preset, own_runs) = (&said[0]["preset"], &said[0]["ownRuns"]);
    assert_eq!((said.len(), preset, own_runs), (1, &json!("strict"), &json!("refuse")), "{said:?}");
    assert_eq!(said[0]["rules"][0]["effect"], "deny");
    std::fs::remove_file(&own).unwrap();
    let said = policies();
    assert_eq!(said[1..], [json!({"rules": [], "preset": "default", "ownRuns": "approve"})]);
    yard.write(DENY);
    assert_eq!(policies()[2..].iter().map(|what| &what["rules"][0]["effect"]).collect::<Vec<_>>(), ["deny"]);
    yard.write("# It says nothing any more.\n");
    let said = policies();
    assert_eq!((said.len(), &said[3]["rules"], said[3]["workspace"].is_string()), (4, &json!([]), true));
    assert_eq!(policies().len(), 4, "and is said once");
}
