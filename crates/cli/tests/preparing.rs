//! What `[workspace]` says is done before an agent begins: in the sandbox, in the log, and only where the configuration counts.
//!
//! clause: C05
//! clause: C13
//! clause: J06

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::path::Path;

use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard};
use support::{Home, Hub, Ran};

const WRITES: &str = "[[turn]]\n[[turn.step]]\nwrite = \"note.md\"\ncontent = \"by the agent\\n\"\n";

struct Site {
    yard: Yard,
    _hub: Hub,
    api: Api,
}

impl Site {
    /// A workspace with ignored files, whose project says this.
    fn new(data: &str, project: &str) -> Self {
        let read_only = Scripted { name: "reader", profile: "sandbox = \"read-only\"", script: READS };
        let yard = Yard::new(data, &[Scripted { name: "writer", profile: "", script: WRITES }, read_only]);
        let place = yard.workspace.path();
        std::fs::create_dir(place.join("modules")).unwrap();
        std::fs::write(place.join("modules/x"), "a module\n").unwrap();
        std::fs::write(place.join(".gitignore"), "modules\n").unwrap();
        if !project.is_empty() {
            write_project(place, &project.replace("{place}", place.to_str().unwrap()));
        }
        git(place, &["init", "-q", "-b", "main"]);
        let (hub, api) = yard.up();
        Site { yard, _hub: hub, api }
    }

    fn command(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.yard.home.command(arguments).current_dir(self.yard.workspace.path()))
    }

    fn is_there(&self, name: &str) -> bool {
        self.yard.workspace.path().join(name).exists()
    }

    /// The paths that a run changed.
    fn changed(&self, run: &str) -> Vec<String> {
        let found = self.api.get(&format!("/runs/{run}/diff"));
        let files = found["files"].as_array().unwrap().iter();
        files.map(|file| file["path"].as_str().unwrap().to_owned()).collect()
    }

    /// What the run's setup did, as its log has it: the types of events, and what was printed.
    fn setup(&self, run: &str) -> (Vec<String>, String) {
        let events = self.api.events(run);
        let started = events.iter().position(|event| event["type"] == "run.started").unwrap_or(events.len());
        let tool =
            events[..started].iter().filter(|event| event["type"].as_str().unwrap().starts_with("run.tool"));
        let kinds = tool.clone().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
        let printed = tool.filter_map(|event| event["payload"]["text"].as_str()).collect();
        (kinds, printed)
    }
}

const READS: &str = "[[turn]]\n[[turn.step]]\nread = \"generated\"\nthen_say = \"It has {lines} lines.\"\n";

fn write_project(place: &Path, text: &str) {
    let file = place.join("runyard.toml");
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
}

fn git(place: &Path, arguments: &[&str]) {
    let ran = std::process::Command::new("git").arg("-C").arg(place).args(arguments).output().unwrap();
    assert!(ran.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Copies a module, and prints a token that stands in a file of the workspace.
const PREPARES: &str = r#"
[workspace]
copy = ["modules"]
setup = [["sh", "-c", "cat modules/x > generated && cat secret.txt && echo made"], ["test", "-f", "generated"]]
"#;

#[test]
fn c13_a_checkout_is_prepared_in_the_log_and_that_is_no_change_of_the_agent() {
    let site = Site::new(PREPARES, "");
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    std::fs::write(site.yard.workspace.path().join("secret.txt"), format!("{token}\n")).unwrap();
    let run = site.api.start("writer", site.yard.place());
    site.api.asked(&run, &[]);
    assert_eq!(site.changed(&run), ["note.md"], "what was set up is no change");
    let (kinds, printed) = site.setup(&run);
    assert_eq!(
        kinds,
        ["run.tool.call", "run.tool.output", "run.tool.result", "run.tool.call", "run.tool.result"],
        "before it started"
    );
    assert!(printed.contains("made") && !printed.contains(&token), "{printed}");
    let events = site.api.events(&run);
    let planned = &events.iter().find(|event| event["type"] == "run.planned").unwrap()["payload"];
    assert_eq!(planned["preparation"]["copy"], json!(["modules"]), "{planned}");
    let started = &events.iter().find(|event| event["type"] == "run.started").unwrap()["payload"];
    assert_eq!(started["checks"]["setup"], "2 steps; files made 1, changed 0, removed 0", "{started}");

    site.api.until(&run, "completed");
    assert!(site.is_there("note.md") && !site.is_there("generated"), "only the agent's work is applied");
}

#[test]
fn c13_a_run_that_may_not_write_is_prepared_all_the_same() {
    let site = Site::new(PREPARES, "");
    std::fs::write(site.yard.workspace.path().join("secret.txt"), "").unwrap();
    let run = site.api.start("reader", site.yard.place());
    let found = site.api.until(&run, "completed");
    assert_eq!(found["response"], "It has 1 lines.", "{found}");
}

const PROJECT: &str = "[workspace]\nsetup = [[\"touch\", \"generated\"]]\n";

#[test]
fn j06_what_an_untrusted_project_says_prepares_nothing_and_is_said_to() {
    let site = Site::new("", PROJECT);
    let run = site.api.start("writer", site.yard.place());
    site.api.asked(&run, &[]);
    assert_eq!(site.setup(&run).0, [""; 0]);
    let shown = site.command(&["config", "show", "--origin", "project", "--output", "json"]).data();
    let row = &shown["settings"][0];
    assert_eq!(row["key"], "workspace.setup", "{shown}");
    assert!(row["ignored"].as_str().unwrap().contains("runyard trust"), "{shown}");

    let refused = site.command(&["trust"]);
    assert!(refused.stdout.contains("1 command and"), "it is counted among the commands: {}", refused.stdout);
    site.command(&["trust", "--confirm"]).data();
    let run = site.api.start("writer", site.yard.place());
    site.api.asked(&run, &[]);
    assert_eq!(site.setup(&run).0, ["run.tool.call", "run.tool.result"], "trusted, it counts");
}

#[test]
fn c05_a_step_that_fails_fails_the_run_before_an_agent_begins() {
    let site =
        Site::new("[workspace]\nsetup = [[\"true\"], [\"sh\", \"-c\", \"echo no luck >&2; exit 3\"]]\n", "");
    let run = site.api.start("writer", site.yard.place());
    let failed = site.api.until(&run, "failed");
    assert_eq!(failed["code"], "setup_failed", "{failed}");
    let message = failed["message"].as_str().unwrap();
    assert!(
        message.starts_with("Setup step 2 (sh -c ") && message.ends_with("failed: exit code 3."),
        "{failed}"
    );
    assert!(failed["recovery"].as_str().unwrap().contains("[workspace] setup"), "{failed}");
    assert!(site.setup(&run).1.contains("no luck"));
    assert!(!site.api.events(&run).iter().any(|event| event["type"] == "run.started"));

    let site = Site::new("[workspace]\nsetup = [[\"no-such-program\", \"x\"]]\n", "");
    let run = site.api.start("writer", site.yard.place());
    let failed = site.api.until(&run, "failed");
    assert_eq!(failed["code"], "setup_failed", "{failed}");
    assert!(failed["message"].as_str().unwrap().contains("no-such-program"), "{failed}");
}

#[test]
fn c11_a_step_sees_neither_the_persons_files_nor_the_data_directory_nor_a_token() {
    let project = r#"
[workspace]
setup = [["sh", "-c", "echo hi > {place}/mine; cat {place}/README.md; env; ls $HOME/../../..; true"]]
"#;
    let site = Site::new("", project);
    site.command(&["trust", "--confirm"]).data();
    let run = site.api.start("writer", site.yard.place());
    site.api.asked(&run, &[]);
    let (_, printed) = site.setup(&run);
    assert!(!site.is_there("mine"), "{printed}");
    assert!(!printed.contains("A place to look around in."), "{printed}");
    assert!(printed.contains("PATH=") && !printed.contains("RUNYARD_RUN_TOKEN"), "{printed}");
    assert!(!printed.contains("runyard.db"), "{printed}");
}

#[test]
fn c05_what_is_no_preparation_is_said_with_what_is_expected() {
    #[rustfmt::skip]
    let table = [
        ("setup = \"npm ci\"", "a list of commands"),
        ("setup = [\"npm ci\"]", "[[\"npm\", \"ci\"]]"),
        ("setup = [[]]", "a list of commands"),
        ("setup = [[\"\"]]", "a list of commands"),
        ("copy = \"node_modules\"", "a list of relative paths"),
        ("copy = [\"/etc/passwd\"]", "a list of relative paths"),
        ("copy = [\"../other\"]", "a list of relative paths"),
        ("copy = [\"!kept\"]", "a list of relative paths"),
        ("kopy = []", "did you mean \"copy\"?"),
    ];
    for (line, expected) in table {
        let home = Home::with(&format!("[workspace]\n{line}\n"));
        let shown = home.run(["config", "show", "--output", "json"]);
        let told: Value = serde_json::from_str(&shown.stdout).unwrap();
        assert_eq!(told["error"]["code"], "VALIDATION_ERROR", "{line}: {told}");
        assert!(told.to_string().replace("\\\"", "\"").contains(expected), "{line}: {told}");
    }
    let home = Home::with(
        "[workspace]\ncopy = [\"target/cache\", \"*.env.local\"]\nsetup = [[\"npm\", \"ci\", \"\"]]\n",
    );
    let shown = home.run(["config", "show", "--origin", "data", "--output", "json"]).data();
    assert_eq!(shown["settings"][1]["value"], json!([["npm", "ci", ""]]), "{shown}");
}
