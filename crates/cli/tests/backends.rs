//! Backend profiles: what is listed and shown of them, without a look at any secret, and what a check finds, with the real codex and
//! without any.
//!
//! clause: B01
//! clause: B03
//! clause: B04
//! clause: B05
//! clause: B13
//! clause: B16

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use support::api::{Scripted, Yard};
use support::{Home, Ran, eventually};

/// What stands in for a secret; it must be nowhere in what is said.
const VALUE: &str = "hunter2-Tulip-93";

/// A profile that starts this program, with its secret where it has one.
fn with_program(program: &Path, secret: Option<&str>) -> Home {
    let home = Home::with(&format!("[backend.codex]\ncommand = [{program:?}]\n"));
    if let Some(value) = secret {
        std::fs::create_dir_all(home.path("secrets/codex")).unwrap();
        let auth = json!({ "OPENAI_API_KEY": value }).to_string();
        std::fs::write(home.path("secrets/codex/auth.json"), auth).unwrap();
    }
    home
}

fn script(home: &Home, text: &str) -> std::path::PathBuf {
    let program = home.beside("agent");
    std::fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// What was found of one part: whether it is there, what was found, and what to do.
#[track_caller]
fn part<'a>(checked: &'a Value, check: &str) -> (bool, &'a str, &'a str) {
    let lines = checked["checks"].as_array().unwrap_or_else(|| panic!("{checked}"));
    let line = lines.iter().find(|line| line["check"] == check).unwrap_or_else(|| panic!("{checked}"));
    let text = |name: &str| line[name].as_str().unwrap_or_default();
    (line["ok"] == true, text("found"), text("next"))
}

#[track_caller]
fn checked(ran: &Ran) -> (i32, Value) {
    let told: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{} {}", ran.stdout, ran.stderr));
    assert_eq!(told["data"]["ok"], ran.exit == 0, "{told}");
    (ran.exit, told["data"]["backends"][0].clone())
}

/// What is left of processes whose environment has this home, but for the hub's own.
fn left_in(home: &Home) -> Vec<String> {
    let checks = home.path("edge/checks").display().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let there = processes.filter(|entry| {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environ).contains(&checks)
    });
    there.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn b01_b03_the_registry_says_of_each_profile_what_it_is_and_what_bounds_it() {
    let home = Home::with(
        "[backend.mine]\ncommand = [\"/opt/codex\", \"-c\", \"a=b\"]\ngateway = false\ndebug_raw = true\n\
         [backend.whole]\ncommand = [\"/opt/fake\", \"app-server\", \"--quiet\"]\nrequired_secret_keys = []\n",
    );
    let listed = home.run(["backends", "--output", "json"]).data();
    let backends = listed["backends"].as_array().unwrap();
    let of = |name: &str| backends.iter().find(|backend| backend["profile"] == name).unwrap().clone();
    let names: Vec<&str> = backends.iter().map(|backend| backend["profile"].as_str().unwrap()).collect();
    assert_eq!(names, ["action", "codex", "deepseek", "demo", "mine", "whole"]);
    for name in ["codex", "deepseek", "mine", "whole"] {
        let backend = of(name);
        assert_eq!(backend["backendKind"], "codex-app-server-stdio");
        assert_eq!(backend["protocol"], "codex-app-server-jsonrpc-stdio");
        assert_eq!(backend["transport"], "stdio");
        assert_eq!(backend["isolation"]["home"], "session-and-profile");
    }
    let server = ["app-server", "--listen", "stdio://"];
    assert_eq!(of("codex")["command"], json!([&["codex"], &server[..]].concat()));
    assert_eq!(of("mine")["command"], json!([&["/opt/codex", "-c", "a=b"], &server[..]].concat()));
    assert_eq!(of("whole")["command"], json!(["/opt/fake", "app-server", "--quiet"]));
    let credentials = |name: &str| of(name)["isolation"]["credentials"].clone();
    assert_eq!(
        ["codex", "deepseek", "mine", "whole", "demo"].map(credentials),
        ["gateway", "gateway", "projected", "none", "none"].map(Value::from)
    );
    assert_eq!(of("mine")["requiredSecretKeys"], json!(["auth.json"]), "what its kind needs");
    assert_eq!((&of("mine")["debugRaw"], &of("whole")["requiredSecretKeys"]), (&json!(true), &json!([])));
    let deepseek = of("deepseek");
    assert_eq!(
        ["baseUrl", "model", "wire"].map(|name| deepseek[name].as_str().unwrap()),
        ["https://api.deepseek.com/v1", "deepseek-chat", "chat"]
    );
    let shown = home.run(["backends", "show", "deepseek", "--output", "json"]).data();
    assert_eq!(shown["backend"], deepseek);
    let text = home.run(["backends", "show", "deepseek", "--output", "text"]).stdout;
    for said in
        ["codex app-server --listen stdio://", "https://api.deepseek.com/v1 chat", "auth.json; config.toml"]
    {
        assert!(text.contains(said), "{said} in {text}");
    }
}

#[test]
fn b01_b16_a_profile_that_there_is_not_is_an_error_that_names_those_that_there_are() {
    let yard = Yard::new("", &[]);
    for verb in ["show", "check"] {
        let (exit, code, message) = yard.home.run(["backends", verb, "codx"]).failure();
        assert_eq!((exit, code.as_str()), (1, "NOT_FOUND"));
        assert!(message.contains("action, codex, deepseek, demo"), "{message}");
    }
    let (_hub, api) = yard.up();
    let (status, body) = api.send("GET", "/backends/codx", None);
    assert!(status == 404 && body.contains("action, codex, deepseek, demo"), "{body}");
    let new = json!({"task": "x", "agent": "demo", "workspace": yard.place(), "backendProfile": "codx"});
    let (status, body) = api.send("POST", "/runs", Some(&new));
    let error = serde_json::from_str::<Value>(&body).unwrap()["error"].take();
    assert_eq!((status, &error["code"]), (400, &json!("VALIDATION_ERROR")), "{body}");
    assert_eq!(error["issues"][0]["path"], json!(["backendProfile"]), "{body}");
    assert!(
        error["issues"][0]["message"].as_str().unwrap().contains("action, codex, deepseek, demo"),
        "{body}"
    );
    assert_eq!(api.get("/runs")["runs"], json!([]), "nothing is stored");
}

#[test]
fn b04_listing_and_showing_open_no_secret() {
    let yard = Yard::new("", &[]);
    std::fs::create_dir_all(yard.home.path("secrets/codex")).unwrap();
    // Whoever opened it to read would wait for a writer for ever.
    let pipe = yard.home.path("secrets/codex/auth.json");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    std::fs::set_permissions(yard.home.path("secrets"), std::fs::Permissions::from_mode(0o000)).unwrap();
    let (_hub, api) = yard.up();
    assert_eq!(api.get("/backends")["backends"].as_array().unwrap().len(), 4);
    assert_eq!(api.get("/backends/codex")["backend"]["requiredSecretKeys"], json!(["auth.json"]));
    std::fs::set_permissions(yard.home.path("secrets"), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(api.get("/backends")["backends"].as_array().unwrap().len(), 4);
}

#[test]
fn b05_a_run_whose_scope_has_no_reference_to_its_profiles_secrets_is_refused() {
    let yard = Yard::new("", &[]);
    let (_hub, api) = yard.up();
    let entry = json!({"profile": "deepseek", "secretRef": {"name": "codex"}});
    for credentials in [json!([]), json!([entry])] {
        let scope = json!({"secretScope": {"providerCredentials": credentials}});
        let new =
            json!({"task": "x", "agent": "deepseek", "workspace": yard.place(), "executionPolicy": scope});
        let (status, body) = api.send("POST", "/runs", Some(&new));
        let error = serde_json::from_str::<Value>(&body).unwrap()["error"].take();
        assert_eq!((status, &error["code"]), (409, &json!("secret-unavailable")), "{body}");
        assert!(error["message"].as_str().unwrap().contains("the backend profile deepseek"), "{body}");
    }
    assert_eq!(api.get("/runs")["runs"], json!([]), "nothing is stored");
}

#[test]
fn b05_without_an_execution_policy_the_profiles_own_secrets_are_recorded() {
    let yard = Yard::new("", &[]);
    let (_hub, api) = yard.up();
    for policy in [json!(null), json!({"network": "deny"})] {
        let mut new = json!({"task": "x", "agent": "deepseek", "workspace": yard.place()});
        if !policy.is_null() {
            new["executionPolicy"] = policy;
        }
        let run = api.post("/runs", &new)["run"]["id"].as_str().unwrap().to_owned();
        let recorded = &api.events(&run)[0]["payload"]["executionPolicy"]["secretScope"];
        let keys = json!(["auth.json", "config.toml"]);
        let entry = json!({"profile": "deepseek", "secretRef": {"name": "deepseek", "keys": keys}});
        assert_eq!(*recorded, json!({"providerCredentials": [entry]}));
    }
}

#[test]
fn a_check_with_the_real_codex_finds_its_version_its_secret_and_that_it_answers() {
    let home = with_program(&support::codex::program(), Some(VALUE));
    let ran = home.run(["backends", "check", "codex"]);
    let (exit, found) = checked(&ran);
    assert_eq!(exit, 0, "{found}");
    let (ok, version, _) = part(&found, "program");
    assert!(ok && version.starts_with("codex-cli "), "{found}");
    assert_eq!(part(&found, "secrets"), (true, "auth.json of codex, held by the gateway", ""));
    let (ok, answer, _) = part(&found, "handshake");
    assert!(ok && answer.starts_with("it answers as "), "{found}");
    assert!(part(&found, "sandbox").0, "{found}");
    assert!(!ran.stdout.contains(VALUE) && !ran.stderr.contains(VALUE));
    eventually("nothing of it is left", || left_in(&home).is_empty().then_some(()));
    assert_eq!(std::fs::read_dir(home.path("edge/checks")).unwrap().count(), 0, "its place is gone");
    let text = home.run(["backends", "check", "codex", "--output", "text"]).stdout;
    assert!(text.starts_with("codex could be used now\n  ✓ program "), "{text}");
}

#[test]
fn b13_a_check_says_what_a_run_could_not_use() {
    for auth in ["garbage{", "{}", "{\"OPENAI_API_KEY\": \"\"}", "{\"tokens\": {\"access\": \"a-login\"}}"] {
        let home = with_program(&support::codex::program(), Some(VALUE));
        std::fs::write(home.path("secrets/codex/auth.json"), auth).unwrap();
        let ran = home.run(["backends", "check", "codex"]);
        let (exit, found) = checked(&ran);
        assert_eq!((exit, part(&found, "secrets").0), (1, false), "{auth}: {found}");
        assert!(!ran.stdout.contains("a-login"), "{found}");
    }
}

#[test]
fn b13_a_check_says_what_is_missing_and_how_to_get_it() {
    let home = Home::new();
    let ran = Ran::of(home.command(["backends", "check", "deepseek"]).env("PATH", "/nowhere"));
    let (exit, found) = checked(&ran);
    assert_eq!(exit, 1, "{found}");
    let (ok, why, next) = part(&found, "program");
    assert!(
        !ok && why.contains("there is no program codex") && next.contains("npm install -g @openai/codex"),
        "{found}"
    );
    let (ok, why, next) = part(&found, "secrets");
    assert!(!ok && why.starts_with("auth.json of deepseek is missing"), "{found}");
    assert_eq!(next, "Run: runyard secrets set deepseek auth.json");
    assert!(!part(&found, "handshake").0, "{found}");
    let (ok, _, next) = part(&found, "sandbox");
    assert!(ok && next.contains("bubblewrap"), "without one runs are degraded, and not refused: {found}");
    let mut command = home.command(["backends", "check", "deepseek", "--output", "text"]);
    let text = Ran::of(command.env("PATH", "/nowhere"));
    assert_eq!(text.exit, 1);
    assert!(text.stdout.starts_with("deepseek cannot be used yet\n  ✗ program "), "{}", text.stdout);
}

#[test]
fn a_program_that_is_no_codex_or_does_not_answer_is_told_and_nothing_of_it_is_left() {
    let place = Home::new();
    let version = "[ \"$1\" = --version ] && exec echo codex-cli 9.9";
    for (text, said) in [
        ("exec echo something else", "is not codex"),
        (
            &*format!(
                "{version}\nsleep 1000 &\necho '{{\"id\":1,\"error\":{{\"message\":\"too old\"}}}}'\nsleep 1000"
            ),
            "too old",
        ),
        (&*format!("{version}\necho gone wrong >&2\nexit 3"), "gone wrong"),
        (&*format!("{version}\necho not json"), "no JSON"),
    ] {
        let home = with_program(&script(&place, text), Some(VALUE));
        let (exit, found) = checked(&home.run(["backends", "check", "codex"]));
        assert_eq!(exit, 1, "{found}");
        assert!(found.to_string().contains(said), "{said} in {found}");
        let lines = found["checks"].as_array().unwrap().iter();
        assert!(lines.filter(|line| line["ok"] == false).all(|line| line["next"].is_string()), "{found}");
        eventually("nothing of it is left", || left_in(&home).is_empty().then_some(()));
    }
}

#[test]
fn without_a_name_every_profile_is_checked() {
    let home = Home::new();
    let ran = Ran::of(home.command(["backends", "check"]).env("PATH", "/nowhere"));
    assert_eq!(ran.exit, 1);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    let verdicts: Vec<(&str, bool)> = told["data"]["backends"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| (found["profile"].as_str().unwrap(), found["ok"] == true))
        .collect();
    assert_eq!(verdicts, [("action", true), ("codex", false), ("deepseek", false), ("demo", true)]);
}

#[test]
fn j06_a_check_is_for_people_who_may_start_runs_and_not_for_an_agent_in_its_run() {
    let script = "[[turn]]\n[[turn.step]]\nshell = \"printf %s $RUNYARD_RUN_TOKEN > left.txt\"\n[[turn.step]]\nshell = \"true\"\n";
    let yard = Yard::new("", &[Scripted { name: "sly", profile: "", script }]);
    let (_hub, api) = yard.up();
    let (status, _) = api.person("vera", "viewer").send("POST", "/backends/demo/check", Some(&json!({})));
    assert_eq!(status, 403);
    assert_eq!(api.person("olga", "operator").post("/backends/demo/check", &json!({}))["ok"], true);
    let run = api.start("sly", yard.place());
    let first = api.asked(&run, &[]);
    api.approve(&first);
    api.asked(&run, &[first["id"].as_str().unwrap()]);
    let token =
        std::fs::read_to_string(yard.home.path(&format!("edge/runs/{run}/checkout/left.txt"))).unwrap();
    let agent = api.with_token(&token);
    assert_eq!(agent.send("GET", "/backends", None).0, 200);
    let (status, body) = agent.send("POST", "/backends/demo/check", Some(&json!({})));
    assert!(status == 403 && body.contains("AUTHORIZATION_ERROR"), "{body}");
    api.post(&format!("/runs/{run}/cancel"), &json!({}));
    api.until(&run, "cancelled");
}
