//! `runyard config show` and `runyard trust` as processes.
//!
//! clause: J06

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use support::{Home, Ran};

const PROJECT: &str = r#"
[agent.demo]
sandbox = "none"
idle_ms = 5

[[policy.rule]]
effect = "allow"
kind = "shell"
match = "cargo test"

[actions.count]
description = "Counts."
command = ["wc", "-l"]
"#;

/// A home and, beside it, a project.
struct Yard {
    home: Home,
    project: PathBuf,
}

impl Yard {
    fn new(data: &str, project: &str) -> Self {
        let home = Home::with(data);
        std::fs::set_permissions(home.path("runyard.toml"), PermissionsExt::from_mode(0o600)).unwrap();
        let folder = home.path("").parent().unwrap().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(folder.join(".git")).unwrap();
        let yard = Yard { home, project: folder };
        yard.write(project);
        yard
    }

    fn file(&self) -> PathBuf {
        self.project.join("runyard.toml")
    }

    fn write(&self, text: &str) {
        std::fs::write(self.file(), text).unwrap();
        std::fs::set_permissions(self.file(), PermissionsExt::from_mode(0o644)).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(arguments);
        command.current_dir(&self.project).env("USER", "ada");
        for name in ["RUNYARD_DATABASE_URL", "RUNYARD_LISTEN", "RUNYARD_RUN_ID", "RUNYARD_RUN_TOKEN"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&mut self.command(arguments))
    }

    /// The rows of `config show`.
    #[track_caller]
    fn shown(&self, arguments: &[&str]) -> Vec<Value> {
        let arguments: Vec<&str> = ["config", "show"].iter().chain(arguments).copied().collect();
        self.run(&arguments).data()["settings"].as_array().unwrap().clone()
    }

    #[track_caller]
    fn row(&self, key: &str) -> Value {
        let rows = self.shown(&[]);
        rows.into_iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}"))
    }

    fn trusted(&self) -> Value {
        let sandbox = self.row("agent.demo.sandbox")["value"] == "none";
        let action =
            self.shown(&[]).iter().any(|row| row["key"] == "actions.count" && row["ignored"].is_null());
        assert_eq!(sandbox, action);
        json!(sandbox)
    }
}

#[test]
fn config_show_says_where_each_value_came_from_and_what_does_not_count() {
    let yard = Yard::new("[hub]\nruns_max = 3\n", PROJECT);
    let data = yard.home.path("runyard.toml");
    assert_eq!(
        yard.row("hub.runs_max"),
        json!({"key": "hub.runs_max", "value": 3, "origin": "data", "file": data, "line": 2})
    );
    assert_eq!(yard.row("hub.stop_ms"), json!({"key": "hub.stop_ms", "value": 15000, "origin": "default"}));
    let idle =
        json!({"key": "agent.demo.idle_ms", "value": 5, "origin": "project", "file": yard.file(), "line": 4});
    assert_eq!(yard.row("agent.demo.idle_ms"), idle);
    let ignored: Vec<Value> =
        yard.shown(&["--origin", "project"]).into_iter().filter(|row| !row["ignored"].is_null()).collect();
    let told: Vec<(&Value, &Value)> = ignored.iter().map(|row| (&row["key"], &row["line"])).collect();
    assert_eq!(
        told,
        [
            (&json!("agent.demo.sandbox"), &json!(3)),
            (&json!("policy.rule allow shell cargo test"), &json!(6)),
            (&json!("actions.count"), &json!(11)),
        ]
    );
    assert!(ignored.iter().all(|row| row["ignored"] == "not trusted: run `runyard trust`"), "{ignored:?}");
    let mut command = yard.command(&["config", "show", "--origin", "environment"]);
    let ran = Ran::of(command.env("RUNYARD_LISTEN", "127.0.0.1:9"));
    let expected =
        json!([{"key": "hub.listen", "value": "127.0.0.1:9", "origin": "environment RUNYARD_LISTEN"}]);
    assert_eq!(ran.data()["settings"], expected);
    let text = yard.run(&["config", "show", "--output", "text"]);
    assert!(text.stdout.starts_with("KEY"), "{}", text.stdout);
    assert!(text.stdout.contains("not trusted: run `runyard trust`"), "{}", text.stdout);
}

#[test]
fn config_show_shows_no_secret() {
    let secret = "hunter2-Tulip-93";
    let token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let data = format!("[backend.demo.settings]\nscript = \"{token}\"\nscriptFile = \"fast\"\n");
    let yard = Yard::new(&data, "");
    for output in ["text", "json", "ndjson"] {
        let mut command = yard.command(&["config", "show", "--output", output]);
        let ran =
            Ran::of(command.env("RUNYARD_DATABASE_URL", format!("postgres://ada:{secret}@db.example/r")));
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        for secret in [secret, token] {
            assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{output}: {}", ran.stdout);
        }
        assert!(
            ran.stdout.contains("db.example") && ran.stdout.contains("REDACTED"),
            "{output}: {}",
            ran.stdout
        );
    }
    assert_eq!(yard.row("backend.demo.settings.scriptFile")["value"], "fast");
}

#[test]
fn what_no_backend_knows_is_refused_alike_where_it_is_shown_and_where_it_would_count() {
    let data = "[backend.x]\nkind = \"scripted\"\nsettings.script = \"demo\"\nsettings.scritpFile = \"1\"\n";
    let yard = Yard::new(data, "");
    let issue = |ran: &Ran| {
        assert_ne!(ran.exit, 0, "{} {}", ran.stdout, ran.stderr);
        let envelope = ran.envelope();
        assert_eq!(envelope["error"]["code"], "VALIDATION_ERROR", "{envelope}");
        envelope["error"]["issues"][0]["message"].as_str().unwrap().to_owned()
    };
    let shown = issue(&yard.run(&["config", "show"]));
    let expected =
        "runyard.toml:4: unknown key \"backend.x.settings.scritpFile\"; did you mean \"scriptFile\"?";
    assert!(shown.ends_with(expected), "{shown}");
    let refused = issue(&yard.run(&["up", "--listen", "127.0.0.1:0", "--output", "json"]));
    assert!(refused.ends_with(expected), "{refused}");
    let doctor = yard.run(&["doctor", "--output", "text"]);
    assert_eq!(doctor.exit, 1, "{}", doctor.stdout);
    assert!(
        doctor.stdout.lines().any(|line| line.starts_with("do ") && line.ends_with(expected)),
        "{}",
        doctor.stdout
    );
}

#[test]
fn a_broken_configuration_is_refused_with_every_problem() {
    let yard = Yard::new("[hub]\nlisen = 1\n", "[agent.demo]\nsandbox = 1\n");
    let envelope = yard.run(&["config", "show"]).envelope();
    assert_eq!(envelope["error"]["code"], "VALIDATION_ERROR");
    let issues: Vec<&str> = envelope["error"]["issues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["message"].as_str().unwrap())
        .collect();
    let [data, project] = issues.as_slice() else { panic!("{issues:?}") };
    assert!(data.ends_with("runyard.toml:2: unknown key \"hub.lisen\"; did you mean \"listen\"?"), "{data}");
    assert!(project.starts_with(&format!("{}:2: ", yard.file().display())), "{project}");
    assert_eq!(yard.run(&["config", "show"]).exit, 2);
}

#[test]
fn beside_a_running_hub_a_broken_configuration_keeps_nobody_from_its_runs() {
    let home = Home::new();
    let hub = home.up();
    std::fs::write(home.path("runyard.toml"), "[policy\n").unwrap();
    let listed = home.run(["runs", "list", "--output", "json"]);
    let envelope: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(envelope["data"]["runs"], json!([]));
    assert!(listed.stderr.contains("only the running hub is asked"), "{}", listed.stderr);
    drop(hub);
    let (exit, _, message) = home.run(["runs", "list", "--output", "json"]).failure();
    assert!(exit == 2 && message.contains("runyard.toml:1"), "without one nothing starts: {message}");
}

#[test]
fn j06_trust_counts_after_it_was_confirmed_and_ends_with_one_byte() {
    let yard = Yard::new("", PROJECT);
    let refused = yard.run(&["trust"]).envelope();
    assert_eq!(refused["error"]["code"], "CONFIRMATION_REQUIRED");
    let lines: Vec<&Value> =
        refused["error"]["issues"].as_array().unwrap().iter().map(|one| &one["message"]).collect();
    assert_eq!(
        lines,
        [
            "actions.count runs [\"wc\",\"-l\"]",
            "policy.rule allow shell cargo test",
            "agent.demo.sandbox = \"none\"",
            "agent.demo.idle_ms = 5",
        ]
    );
    assert_eq!((yard.trusted(), yard.home.path("trust.json").exists()), (json!(false), false));

    let trusted = yard.run(&["trust", "--confirm"]).data();
    assert_eq!((&trusted["state"], &trusted["path"]), (&json!("trusted"), &json!(yard.file())));
    assert_eq!(yard.trusted(), true);
    let mode = std::fs::metadata(yard.home.path("trust.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!yard.home.path("trust.draft").exists());
    assert_eq!(yard.run(&["trust"]).data()["state"], "trusted already");
    let listed = yard.run(&["trust", "--list"]).data()["trusted"][0].clone();
    assert_eq!((&listed["state"], &listed["by"]), (&json!("trusted"), &json!("ada")));
    assert_eq!(listed["digest"], trusted["digest"]);

    yard.write(&format!("{PROJECT} "));
    assert_eq!(yard.trusted(), false);
    assert_eq!(yard.run(&["trust", "--list"]).data()["trusted"][0]["state"], "changed");
    yard.write(PROJECT);
    assert_eq!(yard.trusted(), true);

    let folder = yard.project.to_str().unwrap();
    assert_eq!(yard.run(&["trust", folder, "--revoke"]).data()["state"], "revoked");
    assert_eq!(yard.trusted(), false);
    assert_eq!(yard.run(&["trust", "--list"]).data(), json!({"trusted": []}));
    let (exit, code, _) = yard.run(&["trust", "--revoke"]).failure();
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"));
}

#[test]
fn trust_can_be_revoked_for_a_file_that_is_gone() {
    let yard = Yard::new("", PROJECT);
    yard.run(&["trust", "--confirm"]).data();
    std::fs::remove_file(yard.file()).unwrap();
    assert_eq!(yard.run(&["trust", "--list"]).data()["trusted"][0]["state"], "gone");
    let file = yard.file();
    assert_eq!(yard.run(&["trust", file.to_str().unwrap(), "--revoke"]).data()["state"], "revoked");
}

#[test]
fn j06_trust_is_for_people_only() {
    let yard = Yard::new("", PROJECT);
    yard.run(&["trust", "--confirm"]).data();
    let before = std::fs::read(yard.home.path("trust.json")).unwrap();
    for name in ["RUNYARD_RUN_ID", "RUNYARD_RUN_TOKEN"] {
        for arguments in [&["trust", "--confirm"][..], &["trust", "--revoke"]] {
            let (exit, code, message) = Ran::of(yard.command(arguments).env(name, "x")).failure();
            assert_eq!((exit, code.as_str()), (3, "AUTHORIZATION_ERROR"), "{message}");
        }
    }
    assert_eq!(std::fs::read(yard.home.path("trust.json")).unwrap(), before);
    // No other surface has it: there is no such action to call.
    let actions = yard.run(&["manifest"]).stdout;
    assert!(!actions.contains("trust"), "{actions}");
}

#[test]
fn what_cannot_count_is_not_trusted() {
    let cases = [
        ("[hub\n", "runyard.toml:1: "),
        ("[agent.demo]\nlable = \"x\"\n", "did you mean \"label\"?"),
        ("[actions.x]\ndescription = \"X.\"\n", "has no command"),
    ];
    for (project, expected) in cases {
        let yard = Yard::new("", project);
        let envelope = yard.run(&["trust", "--confirm"]).envelope();
        let issues = envelope["error"]["issues"].to_string().replace("\\\"", "\"");
        assert!(issues.contains(expected), "{issues}");
        assert!(!yard.home.path("trust.json").exists());
    }
    let yard = Yard::new("", PROJECT);
    std::fs::set_permissions(yard.file(), PermissionsExt::from_mode(0o666)).unwrap();
    let envelope = yard.run(&["trust", "--confirm"]).envelope();
    assert!(envelope["error"]["issues"].to_string().contains("others can write it"), "{envelope}");
    for (path, expected) in [
        ("other.toml", "Name a runyard.toml, or the directory that holds it."),
        (
            yard.home.path("").to_str().unwrap(),
            "The data directory's own configuration counts without being trusted.",
        ),
    ] {
        let (exit, _, message) = yard.run(&["trust", path, "--confirm"]).failure();
        assert_eq!((exit, message.as_str()), (2, expected));
    }
    std::fs::remove_file(yard.file()).unwrap();
    assert_eq!(yard.run(&["trust"]).failure().2, "There is no runyard.toml here or above.");
}

#[test]
fn a_person_at_a_terminal_is_shown_what_counts_and_asked() {
    let nasty = "[actions.count]\ndescription = \"x\"\ncommand = [\"wc\", \"\\u001b[2Jclean\"]\n";
    for (answer, state, exit) in [("y\n", "trusted", 0), ("n\n", "Not trusted.", 1)] {
        let yard = Yard::new("", nasty);
        let mut command = Command::new("script");
        let line = format!("{} trust", env!("CARGO_BIN_EXE_runyard"));
        command.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(&yard.project);
        command.env("RUNYARD_HOME", yard.home.path("")).env("SHELL", "/bin/sh").env_remove("RUNYARD_RUN_ID");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script of util-linux");
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let screen = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(exit), "{screen}");
        assert!(screen.contains("actions.count runs [\"wc\",\"\\u001b[2Jclean\"]"), "{screen}");
        assert!(screen.contains("1 thing in all, among them 1 command and 0 allow rules"), "{screen}");
        assert!(screen.contains("as it is now? [y/N]") && screen.contains(state), "{screen}");
        assert!(!screen.contains("\u{1b}[2J"), "{screen:?}");
        assert_eq!(yard.home.path("trust.json").exists(), exit == 0);
    }
}

#[test]
fn many_at_once_lose_no_record() {
    let yard = Yard::new("", "");
    let folders: Vec<PathBuf> = (0..8).map(|number| yard.project.join(format!("p{number}"))).collect();
    for folder in &folders {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("runyard.toml"), PROJECT).unwrap();
        std::fs::set_permissions(folder.join("runyard.toml"), PermissionsExt::from_mode(0o644)).unwrap();
    }
    let started: Vec<_> = folders
        .iter()
        .map(|folder| yard.command(&["trust", folder.to_str().unwrap(), "--confirm"]).spawn().unwrap())
        .collect();
    for child in started {
        Ran::from(child.wait_with_output().unwrap()).data();
    }
    let listed = yard.run(&["trust", "--list"]).data();
    let trusted =
        listed["trusted"].as_array().unwrap().iter().filter(|row| row["state"] == "trusted").count();
    assert_eq!(trusted, folders.len());
}

#[test]
fn the_example_of_the_documentation_works_as_it_stands() {
    let page = include_str!("../../../docs/configuration.md");
    let mut examples =
        page.split("```toml\n").skip(1).map(|rest| rest.split_once("```").expect("it ends").0.to_owned());
    let (configuration, script) = (examples.next().expect("a file"), examples.next().expect("a script"));
    let home = Home::new();
    let (file, place) = (home.beside("greeter.toml"), home.beside("greeted"));
    std::fs::create_dir(home.path("")).unwrap();
    std::fs::create_dir(&place).unwrap();
    std::fs::write(&file, script).unwrap();
    let named = "/home/ada/.runyard/greeter.toml";
    assert!(configuration.contains(named));
    let configuration = configuration.replace(named, file.to_str().unwrap());
    std::fs::write(home.path("runyard.toml"), configuration).unwrap();
    let place = place.to_str().unwrap();
    home.run(["workspaces", "add", place]).data();
    let ran = home.run(["run", "Say hello", "--agent", "greeter", "--workspace", place, "--keep"]);
    assert_eq!(ran.exit, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("I was asked: Say hello"), "{}", ran.stdout);
    let judged = |command: &str| {
        let asked = ["policy", "test", command, "--agent", "greeter", "--workspace", place];
        home.run(asked).data()["effect"].as_str().unwrap().to_owned()
    };
    assert_eq!((judged("cargo test -q").as_str(), judged("cargo publish").as_str()), ("allow", "ask"));
}
