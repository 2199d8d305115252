//! What is started for a run before its agent is: asking its program for its version, and `git` for its checkout. Nothing of it
//! outlives the question, the run or the hub.
//!
//! clause: C17
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use support::api::{Api, left_by, left_of, marked};
use support::{Home, Hub, Ran, eventually};

/// A home with a backend whose program is a script that starts something in the background when it is asked for its version.
struct Wrapped {
    home: Home,
    workspace: tempfile::TempDir,
    /// What is in the environment of all that it leaves in the background.
    mark: String,
}

impl Wrapped {
    fn new(then: &str) -> Self {
        let home = Home::new();
        let mark = format!("LEFT_BY={}", home.beside("wrapper").display());
        let program = script(&home, &format!("{mark} sleep 77 &\n{then}"));
        fs::create_dir(home.path("")).unwrap();
        let configuration = format!(
            "[backend.wrapped]\ncommand = [{program:?}]\nrequired_secret_keys = []\n\
             [agent.wrapped]\nbackend = \"wrapped\"\n"
        );
        fs::write(home.path("runyard.toml"), configuration).unwrap();
        let workspace = tempfile::tempdir().unwrap();
        fs::write(workspace.path().join("README.md"), "A place to look around in.\n").unwrap();
        Wrapped { home, workspace, mark }
    }

    /// A hub, its owner's way in, and a run that asks the program.
    fn started(&self) -> (Hub, Api, String) {
        let hub = self.home.up();
        let api = Api::owner(&self.home, &hub);
        api.add_workspace(self.workspace.path());
        let run = api.start("wrapped", self.workspace.path().to_str().unwrap());
        (hub, api, run)
    }

    fn nothing_is_left(&self) {
        eventually("nothing of the wrapper is left", || marked(&self.mark).is_empty().then_some(()));
    }
}

fn script(home: &Home, text: &str) -> PathBuf {
    let program = home.beside("agent");
    fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    program
}

/// Waits until the wrapper has started something, which the look for what is left of a run has to see too.
fn until_it_hangs(wrapped: &Wrapped, run: &str) {
    eventually("the wrapper starts something", || {
        let left = marked(&wrapped.mark);
        (!left.is_empty() && left.iter().all(|process| left_of(run).contains(process))).then_some(())
    });
}

#[test]
fn c17_what_a_program_starts_when_it_is_asked_for_its_version_ends_when_it_has_answered() {
    for (then, said) in [("echo something else", "is not codex"), ("exit 3", "exit code 3")] {
        let wrapped = Wrapped::new(then);
        let (_hub, api, run) = wrapped.started();
        let failed = api.until(&run, "failed");
        assert_eq!(failed["failureKind"], "backend-spawn-failed", "{failed}");
        assert!(failed.to_string().contains(said), "{failed}");
        assert_eq!(marked(&wrapped.mark), [""; 0], "it is gone before the run ends");
    }
}

#[test]
fn j05_what_a_program_starts_when_it_is_asked_for_its_version_ends_with_the_run() {
    let wrapped = Wrapped::new("sleep 78");
    let (_hub, api, run) = wrapped.started();
    until_it_hangs(&wrapped, &run);
    api.post(&format!("/runs/{run}/cancel"), &json!({}));
    api.until(&run, "cancelled");
    wrapped.nothing_is_left();
}

#[test]
fn j05_what_a_program_starts_when_it_is_asked_for_its_version_ends_with_a_killed_hub() {
    let wrapped = Wrapped::new("sleep 78");
    let (hub, _, run) = wrapped.started();
    until_it_hangs(&wrapped, &run);
    // It is killed.
    drop(hub);
    wrapped.nothing_is_left();
    assert_eq!(left_of(&run), [""; 0]);
}

#[test]
fn c17_a_check_of_a_backend_the_doctor_and_init_leave_nothing_of_a_program_either() {
    let wrapped = Wrapped::new("echo codex-cli 9.9");
    let checked = wrapped.home.run(["backends", "check", "wrapped"]);
    let told: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert!(told.to_string().contains("codex-cli 9.9"), "{told}");
    assert_eq!(marked(&wrapped.mark), [""; 0]);
    let doctor = wrapped.home.run(["doctor"]);
    assert!(doctor.stdout.contains("codex-cli 9.9"), "{}", doctor.stdout);
    assert_eq!(marked(&wrapped.mark), [""; 0]);
    let bin = wrapped.home.beside("found");
    fs::create_dir(&bin).unwrap();
    fs::copy(wrapped.home.beside("agent"), bin.join("codex")).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let fresh = Home::new();
    let begun = Ran::of(fresh.command(["init"]).env("PATH", path));
    assert!(begun.stdout.contains("codex-cli 9.9"), "{} {}", begun.stdout, begun.stderr);
    assert_eq!(marked(&wrapped.mark), [""; 0]);
}

/// A home whose hub finds this `git`, which starts something in the background, out of its group and session, when it is asked about a
/// workspace, and then does not end.
fn with_git() -> Wrapped {
    let wrapped = Wrapped::new("exit 3");
    let bin = wrapped.home.beside("bin");
    fs::create_dir(&bin).unwrap();
    let git = format!("#!/bin/sh\n{} setsid sleep 77 &\nsleep 78\n", wrapped.mark);
    fs::write(bin.join("git"), git).unwrap();
    fs::set_permissions(bin.join("git"), Permissions::from_mode(0o755)).unwrap();
    let script = "[[turn]]\n[[turn.step]]\nsay = \"done\"\n";
    fs::write(wrapped.home.beside("script.toml"), script).unwrap();
    let configuration = format!(
        "[backend.wrapped]\nkind = \"scripted\"\nsettings.scriptFile = {:?}\n[agent.wrapped]\nbackend = \"wrapped\"\n",
        wrapped.home.beside("script.toml")
    );
    fs::write(wrapped.home.path("runyard.toml"), configuration).unwrap();
    wrapped
}

fn started_with_git(wrapped: &Wrapped) -> (Hub, Api, String) {
    let path = format!("{}:{}", wrapped.home.beside("bin").display(), std::env::var("PATH").unwrap());
    let hub = Hub::of(wrapped.home.command_up().env("PATH", path).spawn().unwrap()).unwrap();
    let api = Api::owner(&wrapped.home, &hub);
    api.add_workspace(wrapped.workspace.path());
    let run = api.start("wrapped", wrapped.workspace.path().to_str().unwrap());
    eventually("git starts something", || {
        let left = marked(&wrapped.mark);
        (!left.is_empty() && left.iter().all(|process| left_by(hub.pid()).contains(process))).then_some(())
    });
    (hub, api, run)
}

#[test]
fn without_a_git_a_workspace_is_copied_all_the_same() {
    let wrapped = with_git();
    let hub = Hub::of(wrapped.home.command_up().env("PATH", "/nowhere").spawn().unwrap()).unwrap();
    let api = Api::owner(&wrapped.home, &hub);
    api.add_workspace(wrapped.workspace.path());
    let run = api.start("wrapped", wrapped.workspace.path().to_str().unwrap());
    api.until(&run, "completed");
    let events = api.events(&run);
    let started = events.iter().find(|event| event["type"] == "run.started").unwrap();
    assert!(
        started["payload"]["checks"]["checkout"].as_str().unwrap().starts_with("a private copy"),
        "{started}"
    );
    assert!(events.iter().any(|event| event.to_string().contains("git is not installed")), "{events:?}");
}

#[test]
fn j05_who_cannot_look_after_a_git_says_so_and_starts_none() {
    let home = Home::new();
    let touched = home.beside("touched");
    let arguments = ["child", "warden", "1", "touch", touched.to_str().unwrap()];
    let ran = Ran::of(&mut home.command(arguments));
    assert_eq!((ran.exit, touched.exists()), (126, false), "the edge that it names is not its parent");
}

#[test]
fn j05_a_git_of_a_checkout_and_what_it_started_end_with_a_killed_hub() {
    let wrapped = with_git();
    let (hub, _, _) = started_with_git(&wrapped);
    let killed = hub.pid();
    drop(hub);
    wrapped.nothing_is_left();
    eventually("nothing of the hub is left", || left_by(killed).is_empty().then_some(()));
}

#[test]
fn j05_a_git_of_a_checkout_and_what_it_started_end_with_the_run() {
    let wrapped = with_git();
    let (hub, api, run) = started_with_git(&wrapped);
    api.post(&format!("/runs/{run}/cancel"), &json!({}));
    api.until(&run, "cancelled");
    wrapped.nothing_is_left();
    eventually("no git is left", || left_by(hub.pid()).is_empty().then_some(()));
}
