//! What is started for a run before its agent is: asking its program for its version. Nothing of it outlives the question,
//! the run or the hub.
//!
//! clause: C17
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use support::api::{Api, left_of, marked};
use support::{Home, Hub, eventually};

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
fn c17_a_check_of_a_backend_and_the_doctor_leave_nothing_of_a_program_either() {
    let wrapped = Wrapped::new("echo codex-cli 9.9");
    let checked = wrapped.home.run(["backends", "check", "wrapped"]);
    let told: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert!(told.to_string().contains("codex-cli 9.9"), "{told}");
    assert_eq!(marked(&wrapped.mark), [""; 0]);
    let doctor = wrapped.home.run(["doctor"]);
    assert!(doctor.stdout.contains("codex-cli 9.9"), "{}", doctor.stdout);
    assert_eq!(marked(&wrapped.mark), [""; 0]);
}
