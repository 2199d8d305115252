//! `runyard init` as a process: with agents and without, on a terminal and without one, once and again.
//!
//! clause: C12

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use support::terminal::Terminal;
use support::{Home, Ran};

/// A machine with these programs, each with what it says as its version.
struct Machine {
    home: Home,
    programs: TempDir,
    project: TempDir,
}

impl Machine {
    fn with(agents: &[(&str, &str)]) -> Self {
        let (programs, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = std::env::var_os("PATH").unwrap();
        for tool in ["git", "sh", "bwrap", "true"] {
            let found =
                std::env::split_paths(&path).map(|place| place.join(tool)).find(|path| path.is_file());
            if let Some(found) = found {
                symlink(found, programs.path().join(tool)).unwrap();
            }
        }
        for (name, script) in agents {
            let path = programs.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let home = Home::new();
        std::fs::create_dir(home.beside("tmp")).unwrap();
        Machine { home, programs, project }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(arguments);
        command
            .current_dir(self.project.path())
            .env("PATH", self.programs.path())
            .env("TMPDIR", self.home.beside("tmp"));
        command
    }

    #[track_caller]
    fn init(&self, arguments: &[&str]) -> Value {
        let ran = Ran::of(&mut self.command(&[&["init"], arguments].concat()));
        assert_eq!(ran.exit, 0, "{}{}", ran.stdout, ran.stderr);
        ran.data()
    }

    fn file(&self) -> PathBuf {
        self.home.path("runyard.toml")
    }

    fn workspaces(&self) -> usize {
        let listed = Ran::of(&mut self.command(&["workspaces", "list"])).data();
        listed["workspaces"].as_array().unwrap().len()
    }
}

const CODEX: (&str, &str) = ("codex", "echo codex-cli 1.2.3");

#[test]
fn c12_without_anybody_to_ask_nothing_is_written_and_the_demo_runs_all_the_same() {
    let machine = Machine::with(&[CODEX, ("claude", "echo 9.9 '(Claude Code)'")]);
    let told = machine.init(&[]);
    let agents = told["agents"].as_array().unwrap();
    let version = |name: &str| agents.iter().find(|agent| agent["name"] == name).unwrap().clone();
    assert_eq!(
        (&version("codex")["version"], &version("codex")["adapter"]),
        (&json!("codex-cli 1.2.3"), &json!(true))
    );
    assert_eq!(
        (&version("claude")["installed"], &version("claude")["adapter"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(version("opencode")["installed"], false);
    assert_eq!(
        (&told["profile"]["written"], &told["workspace"]["allowed"]),
        (&json!(false), &json!(false)),
        "{told}"
    );
    assert!(!machine.file().exists() && machine.workspaces() == 0);
    assert_eq!((&told["demo"]["worked"], &told["doctor"]["usable"]), (&json!(true), &json!(true)), "{told}");
    let run = told["demo"]["run"].as_str().unwrap();
    let shown = Ran::of(&mut machine.command(&["runs", "show", run])).data();
    assert_eq!(shown["run"]["state"], "completed");
    assert_eq!(told["next"], "runyard secrets set codex auth.json", "it cannot be used without");
    std::fs::create_dir_all(machine.home.path("secrets/codex")).unwrap();
    std::fs::write(machine.home.path("secrets/codex/auth.json"), "{\"OPENAI_API_KEY\": \"mine\"}").unwrap();
    assert!(machine.init(&[])["next"].as_str().unwrap().ends_with("--agent codex"));
}

#[test]
fn c12_with_yes_the_profile_is_written_once_and_this_directory_is_allowed_once() {
    let machine = Machine::with(&[CODEX]);
    let told = machine.init(&["--yes"]);
    assert_eq!(
        (&told["profile"]["written"], &told["workspace"]["allowed"]),
        (&json!(true), &json!(true)),
        "{told}"
    );
    let written = std::fs::read_to_string(machine.file()).unwrap();
    let program = machine.programs.path().join("codex");
    let expected = format!("[backend.codex]\ncommand = [{program:?}]\n");
    assert!(written.starts_with(&expected), "{written}");
    assert_eq!(std::fs::metadata(machine.file()).unwrap().permissions().mode() & 0o777, 0o600);
    let doctor = Ran::of(&mut machine.command(&["doctor"])).data();
    let codex =
        doctor["findings"].as_array().unwrap().iter().find(|row| row["what"] == "backend codex").unwrap();
    assert_eq!(
        (&codex["state"], &codex["found"]),
        (&json!("ok"), &json!("codex-cli 1.2.3")),
        "what was written works"
    );

    let again = machine.init(&["--yes"]);
    assert_eq!(
        (&again["profile"]["written"], &again["workspace"]["allowed"]),
        (&json!(false), &json!(true)),
        "{again}"
    );
    assert_eq!(std::fs::read_to_string(machine.file()).unwrap(), written);
    assert_eq!(machine.workspaces(), 1, "the demo's own is gone");
}

#[test]
fn what_a_person_wrote_stays_byte_for_byte() {
    let machine = Machine::with(&[CODEX]);
    std::fs::create_dir(machine.home.path("")).unwrap();
    std::fs::set_permissions(machine.home.path(""), std::fs::Permissions::from_mode(0o700)).unwrap();
    let mine = "# mine\n[agent.codex]\nlabel = \"My Codex\"";
    std::fs::write(machine.file(), mine).unwrap();
    assert_eq!(machine.init(&["--yes"])["profile"]["written"], false);
    assert_eq!(std::fs::read_to_string(machine.file()).unwrap(), mine);
    let other = "[hub]\nruns_max = 3 # three\n";
    std::fs::write(machine.file(), other).unwrap();
    assert_eq!(machine.init(&["--yes"])["profile"]["written"], true);
    assert!(std::fs::read_to_string(machine.file()).unwrap().starts_with(other));
}

#[test]
fn without_an_agent_it_says_so_and_the_demo_is_what_comes_next() {
    let machine = Machine::with(&[("claude", "echo 9.9"), ("codex", "exit 3")]);
    let ran = Ran::of(&mut machine.command(&["init", "--yes", "--output", "text"]));
    assert_eq!(ran.exit, 0, "{}{}", ran.stdout, ran.stderr);
    for said in [
        "there is no adapter for it yet",
        "opencode   not installed",
        "does not say its version",
        "it worked",
    ] {
        assert!(ran.stdout.contains(said), "{said} in {}", ran.stdout);
    }
    assert!(ran.stdout.ends_with("\nNext: runyard run \"look around\"\n"), "{}", ran.stdout);
    assert!(!machine.file().exists());
    let left = std::fs::read_dir(machine.home.beside("tmp")).unwrap();
    assert_eq!(left.count(), 0, "the demo's directory is gone");
}

#[test]
fn on_a_terminal_it_shows_what_it_would_write_and_asks() {
    let machine = Machine::with(&[CODEX]);
    let mut terminal = Terminal::of(&mut machine.command(&["init"]));
    terminal.wait_for("[backend.codex]");
    terminal.wait_for("runyard.toml? [y/N] ");
    terminal.type_line("n");
    terminal.wait_for("Allow agents to work on copies of");
    terminal.wait_for("[y/N] ");
    terminal.type_line("y");
    terminal.wait_for("Next: runyard secrets set codex auth.json");
    assert_eq!(terminal.ended().0, Some(0));
    assert!(!machine.file().exists() && machine.workspaces() == 1);
}

#[test]
fn it_is_for_people_and_not_for_an_agent_in_its_run() {
    let machine = Machine::with(&[CODEX]);
    let ran = Ran::of(machine.command(&["init", "--yes"]).env("RUNYARD_RUN_ID", "run_1"));
    assert_eq!(ran.failure().1, "AUTHORIZATION_ERROR");
    assert!(!machine.home.path("").exists());
}
