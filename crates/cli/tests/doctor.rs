//! `runyard doctor`: what it finds, and what it says to do.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use support::{Home, Ran};

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// The exit code, and each thing with its state, what was found and what to do.
fn doctor(ran: &Ran) -> (i32, Vec<(String, String, String)>) {
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let finding = |finding: &Value| {
        let said = format!("{} {}", text(&finding["found"]), text(&finding["next"]));
        (text(&finding["what"]), text(&finding["state"]), said)
    };
    assert_eq!(told["data"]["usable"], ran.exit == 0);
    (ran.exit, told["data"]["findings"].as_array().unwrap().iter().map(finding).collect())
}

#[track_caller]
fn check(findings: &[(String, String, String)], what: &str, state: &str, said: &str) {
    let found = findings.iter().find(|(name, ..)| name == what);
    let (_, found_state, found_said) = found.unwrap_or_else(|| panic!("no {what} in {findings:?}"));
    assert!(found_state == state && found_said.contains(said), "{what}: {found_state} {found_said}");
}

#[test]
fn a_new_installation_can_be_used_and_nothing_is_made_by_looking() {
    let home = Home::new();
    let (exit, findings) = doctor(&home.run(["doctor"]));
    assert_eq!(exit, 0, "{findings:?}");
    check(&findings, "hub", "note", "runyard up");
    check(&findings, "workspaces", "note", "runyard workspaces add");
    check(&findings, "backend demo", "ok", "demo");
    check(&findings, "sandbox", "ok", "bubblewrap");
    check(&findings, "custody", "ok", "");
    assert!(!home.path("").exists());
}

#[test]
fn a_running_hub_is_told_with_its_place_and_process() {
    let home = Home::new();
    let hub = home.up();
    let (exit, findings) = doctor(&home.run(["doctor"]));
    assert_eq!(exit, 0, "{findings:?}");
    check(&findings, "hub", "ok", &format!("{} (process {})", hub.url, hub.pid()));
    check(&findings, "database", "ok", "runyard.db");
    check(&findings, "token", "ok", "token");
    std::fs::write(home.path("runyard.toml"), "[hub]\nruns_max = 3\n").unwrap();
    let (_, findings) = doctor(&home.run(["doctor"]));
    check(&findings, "configuration", "note", "changed since the hub started");
}

#[test]
fn what_is_missing_for_one_agent_does_not_stop_the_others() {
    let home = Home::new();
    let ran = Ran::of(home.command(["doctor"]).env("PATH", "/nowhere"));
    let (exit, findings) = doctor(&ran);
    assert_eq!(exit, 0, "{findings:?}");
    check(&findings, "backend codex", "note", "npm install -g @openai/codex");
    let (.., said) = findings.iter().find(|(what, ..)| what == "backend codex").unwrap();
    assert_eq!(said.to_lowercase().matches("install").count(), 1, "{said}");
}

#[test]
fn b13_each_profile_is_told_which_of_its_own_secrets_it_lacks() {
    let home = Home::with(
        "[backend.mine]\nmodel = \"m\"\ngateway = false\n[backend.open]\nrequired_secret_keys = []\n",
    );
    mode(&home.path(""), 0o700);
    std::fs::create_dir_all(home.path("secrets/mine")).unwrap();
    for (key, content) in
        [("auth.json", "{\"OPENAI_API_KEY\": \"hunter2\"}"), ("config.toml", "a = \"hunter2\"")]
    {
        std::fs::write(home.path("secrets/mine").join(key), content).unwrap();
    }
    let ran = home.run(["doctor"]);
    let (exit, findings) = doctor(&ran);
    assert_eq!(exit, 0, "{findings:?}");
    let missing = "auth.json of codex is missing Give it with: runyard secrets set codex auth.json";
    check(&findings, "secrets codex", "note", missing);
    check(&findings, "secrets deepseek", "note", "runyard secrets set deepseek auth.json");
    check(&findings, "secrets mine", "ok", "auth.json, config.toml of mine, in the session's home");
    assert!(
        !findings.iter().any(|(what, ..)| what == "secrets open" || what == "secrets demo"),
        "{findings:?}"
    );
    assert!(!ran.stdout.contains("hunter2"));
}

#[test]
fn what_must_be_done_first_is_an_exit_code_of_1() {
    let home = Home::with("[hub]\nlisen = 1\n");
    mode(&home.path(""), 0o700);
    let (exit, findings) = doctor(&home.run(["doctor"]));
    assert_eq!(exit, 1);
    check(&findings, "configuration", "do", "unknown key \"hub.lisen\"");
    check(&findings, "data directory", "ok", "free");

    let home = Home::with("");
    mode(&home.path(""), 0o755);
    let (exit, findings) = doctor(&home.run(["doctor"]));
    assert_eq!(exit, 1);
    check(&findings, "data directory", "do", "chmod 700");
}

#[test]
fn what_a_project_says_and_does_not_count_is_told_with_how_to_trust_it() {
    let home = Home::new();
    let project = home.beside("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("runyard.toml"), "[[policy.rule]]\neffect = \"allow\"\nkind = \"shell\"\n")
        .unwrap();
    let (exit, findings) = doctor(&Ran::of(home.command(["doctor"]).current_dir(&project)));
    assert_eq!(exit, 0, "{findings:?}");
    check(&findings, "configuration", "note", "runyard trust");
}

#[test]
fn people_read_lines_with_what_to_do_below() {
    let ran = Home::new().run(["doctor", "--output", "text"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.ends_with("\nRunyard can be used.\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nnote  hub "), "{}", ran.stdout);
}
