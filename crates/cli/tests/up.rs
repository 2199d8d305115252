//! `runyard up` as a process: what it says, what it leaves in its home, and how it starts, stops and refuses.
//!
//! clause: A16
//! clause: A19

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use support::{Home, Ran, eventually};

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn bearer(home: &Home) -> String {
    format!("Authorization: Bearer {}\r\n", std::fs::read_to_string(home.path("token")).unwrap())
}

#[test]
fn the_first_line_is_the_address_and_the_rest_tells_how_to_log_in() {
    let home = Home::new();
    let mut hub = home.up();
    assert!(hub.url.starts_with("http://127.0.0.1:") && !hub.url.ends_with(":0"), "{}", hub.url);
    let said = hub.said_until("stop with");
    let token = home.path("token");
    assert!(said.contains(&format!("the token in {}", token.display())), "{said}");
    assert!(said.contains(&format!("{}/api/v1/actions", hub.url)), "{said}");
    let secret = std::fs::read_to_string(&token).unwrap();
    assert!(!said.contains(&secret), "the token itself is not shown");
}

#[test]
fn what_it_keeps_is_for_its_owner_alone() {
    let home = Home::new();
    let _hub = home.up();
    assert_eq!(mode(&home.path("")), 0o700);
    assert_eq!(mode(&home.path("token")), 0o600);
    assert_eq!(mode(&home.path("hub.json")), 0o600);
}

#[test]
fn hub_json_says_where_it_runs_while_it_runs() {
    let home = Home::new();
    let hub = home.up();
    let told: Value = serde_json::from_str(&std::fs::read_to_string(home.path("hub.json")).unwrap()).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let expected = json!({
        "url": hub.url, "pid": hub.pid(), "version": version, "stay": "untilStopped", "flags": [["listen", "127.0.0.1:0"]],
    });
    assert_eq!(told, expected);
    let by_flag =
        || home.run(["config", "show", "--origin", "flag", "--output", "json"]).data()["settings"].clone();
    let listen = json!([{"key": "hub.listen", "value": "127.0.0.1:0", "origin": "flag --listen"}]);
    assert_eq!(by_flag(), listen, "what the running hub was told");
    drop(hub);
    assert_eq!(by_flag(), json!([]), "no hub runs");
}

#[test]
fn a_request_with_the_token_is_answered_and_one_without_is_not() {
    let home = Home::new();
    let hub = home.up();
    let (status, body) = hub.get("/api/v1/version", &bearer(&home));
    let envelope: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &envelope["data"]["name"]), (200, &json!("runyard")), "{body}");
    let (status, body) = hub.get("/api/v1/tasks", &bearer(&home));
    assert_eq!(status, 200, "the example's actions are served too: {body}");
    for headers in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic x\r\n"] {
        let (status, body) = hub.get("/api/v1/version", headers);
        let envelope: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &envelope["error"]["code"]), (401, &json!("AUTHENTICATION_ERROR")));
    }
}

#[test]
fn a16_a_second_one_for_the_same_home_is_refused_and_told_where_the_first_is() {
    let home = Home::new();
    let hub = home.up();
    let (exit, code, message) = home.run(["up", "--listen", "127.0.0.1:0"]).failure();
    assert_eq!((exit, code.as_str()), (1, "CONFLICT"));
    assert!(message.contains(&hub.url) && message.contains(&hub.pid().to_string()), "{message}");
    assert!(home.path("hub.json").exists(), "the first one's file is left alone");
    let (status, _) = hub.get("/api/v1/version", &bearer(&home));
    assert_eq!(status, 200);
}

#[test]
fn of_many_that_start_at_once_exactly_one_runs() {
    let home = Home::new();
    let mut starting: Vec<_> = (0..6)
        .map(|_| {
            home.command(["up", "--listen", "127.0.0.1:0"])
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let count = starting.len();
    // All but one end by themselves.
    eventually("all but one are refused", || {
        let ended =
            starting.iter_mut().map(|child| child.try_wait().unwrap()).filter(Option::is_some).count();
        (ended == count - 1).then_some(())
    });
    let told = eventually("the one that runs tells where", || {
        serde_json::from_str::<Value>(&std::fs::read_to_string(home.path("hub.json")).ok()?).ok()
    });
    let mut running =
        starting.into_iter().find_map(|mut child| child.try_wait().ok()?.is_none().then_some(child)).unwrap();
    assert_eq!(told["pid"], running.id());
    running.kill().unwrap();
    running.wait().unwrap();
}

#[test]
fn a_polite_end_is_a_success_and_takes_hub_json_away() {
    for signal in [Signal::TERM, Signal::INT] {
        let home = Home::new();
        let hub = home.up();
        hub.signal(signal);
        let (exit, _) = hub.ended();
        assert_eq!(exit, Some(0));
        assert!(!home.path("hub.json").exists());
        assert!(home.path("token").exists());
    }
}

#[test]
fn after_a_hard_end_the_next_one_starts_at_once_with_the_same_token() {
    let home = Home::new();
    let hub = home.up();
    let token = std::fs::read_to_string(home.path("token")).unwrap();
    let old = hub.pid();
    hub.signal(Signal::KILL);
    let (exit, _) = hub.ended();
    assert_eq!(exit, None);
    assert!(home.path("hub.json").exists(), "a killed process cannot clean up");
    let hub = home.up();
    let told: Value = serde_json::from_str(&std::fs::read_to_string(home.path("hub.json")).unwrap()).unwrap();
    assert_ne!(told["pid"], old);
    assert_eq!(told["pid"], hub.pid());
    assert_eq!(std::fs::read_to_string(home.path("token")).unwrap(), token);
}

#[test]
fn a19_an_address_that_is_taken_is_a_clear_failure() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (exit, code, message) = home.run(["up", "--listen", &address]).failure();
    assert_eq!((exit, code.as_str()), (1, "CONFLICT"), "{message}");
    assert!(message.contains(&format!("cannot listen on {address}: Address already in use")), "{message}");
    assert!(!home.path("hub.json").exists());
    home.up();
}

#[test]
fn a19_an_address_that_is_none_is_a_validation_error() {
    let home = Home::new();
    for address in ["nowhere", "127.0.0.1", "127.0.0.1:99999", ""] {
        let ran = home.run(["up", "--listen", address]);
        let (exit, code, _) = ran.failure();
        assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"), "{address}");
    }
    assert!(!home.path("token").exists());
}

#[test]
fn other_machines_are_not_served_without_encryption_unless_that_is_said() {
    let home = Home::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let (exit, code, message) = home.run(["up", "--listen", address]).failure();
        assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"));
        assert!(message.contains("--allow-plaintext"), "{message}");
    }
    assert!(!home.path("hub.json").exists());
    let mut child = home.command(["up", "--listen", "0.0.0.0:0", "--allow-plaintext"]).spawn().unwrap();
    eventually("it listens", || home.path("hub.json").exists().then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Runs it as somebody who may not write there, if this is root, who may.
fn unprivileged(home: &Home, arguments: &[&str]) -> Ran {
    let as_root =
        std::fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own)).unwrap() == 0;
    if !as_root {
        return home.run(arguments);
    }
    // The program is copied to where everybody may run it.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("runyard");
    std::fs::copy(env!("CARGO_BIN_EXE_runyard"), &program).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program).args(arguments);
    Ran::of(command.env("RUNYARD_HOME", home.path("")).current_dir("/"))
}

#[test]
fn a_home_that_cannot_be_written_is_a_clear_failure() {
    let home = Home::with("");
    let outer = home.path("").parent().unwrap().to_owned();
    for (path, mode) in [(outer, 0o755), (home.path(""), 0o555)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let (exit, _, message) = unprivileged(&home, &["up", "--listen", "127.0.0.1:0"]).failure();
    assert_eq!(exit, 1);
    assert!(message.contains("Permission denied") && message.contains("home"), "{message}");
    // Nothing needs to be written to call an action.
    assert_eq!(unprivileged(&home, &["call", "version-show"]).data()["name"], "runyard");
}

#[test]
fn a_home_that_is_a_file_is_a_clear_failure() {
    let home = Home::new();
    std::fs::write(home.path(""), "not a folder").unwrap();
    for arguments in [&["up"][..], &["call", "version-show"]] {
        let (_, _, message) = home.run(arguments).failure();
        assert!(message.contains("Not a directory"), "{message}");
    }
}

#[test]
fn a_token_file_that_holds_no_token_is_a_clear_failure() {
    let home = Home::with("");
    std::fs::write(home.path("token"), "short").unwrap();
    let (exit, _, message) = home.run(["up", "--listen", "127.0.0.1:0"]).failure();
    assert_eq!(exit, 1);
    assert!(message.contains("it holds no token"), "{message}");
    assert!(!home.path("hub.json").exists());
}
