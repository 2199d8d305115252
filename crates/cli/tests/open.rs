//! `runyard open`: what it opens and where, and the session behind its link, with a real hub.
//!
//! clause: A22
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::api::Api;
use support::{Home, Hub, Ran};

fn link(home: &Home) -> String {
    let opened = home.run(["open", "--print"]);
    assert_eq!((opened.exit, opened.stderr.as_str()), (0, ""));
    opened.stdout.trim_end().to_owned()
}

#[test]
fn open_needs_a_hub_that_runs_and_says_how_to_start_one() {
    let home = Home::new();
    let (exit, code, message) = home.run(["open", "--print", "--output", "json"]).failure();
    assert_eq!((exit, code.as_str()), (1, "NOT_FOUND"));
    assert!(message.contains("runyard up"), "{message}");
    assert!(!home.path("hub.json").exists(), "it starts none");
}

#[test]
fn open_prints_a_link_that_logs_in_and_without_a_screen_does_so_by_itself() {
    let home = Home::new();
    let hub = home.up();
    let page = format!("http://{}/login?next=/runs#", hub.address());
    assert!(link(&home).strip_prefix(&page).is_some_and(|code| code.len() == 64));
    for (named, address) in
        [("approvals", "/approvals"), ("run_01k", "/runs/run_01k"), ("/runs/new", "/runs/new")]
    {
        let told = home.run(["open", named, "--print"]).stdout;
        assert!(told.starts_with(&format!("http://{}/login?next={address}#", hub.address())), "{told}");
    }
    let (exit, code, _) = home.run(["open", "//evil.example", "--print", "--output", "json"]).failure();
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"));
    let mut blind = home.command(["open"]);
    for name in ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"] {
        blind.env_remove(name);
    }
    assert!(Ran::of(&mut blind).stdout.starts_with(&page));
    let told = home.run(["open", "--print", "--output", "json"]).data();
    assert!(told["url"].as_str().unwrap().starts_with(&page) && told["expiresAt"].is_string(), "{told}");
}

// clause: J06
#[test]
fn j06_in_the_environment_of_a_run_nothing_is_opened() {
    let home = Home::new();
    let _hub = home.up();
    let mut agents = home.command(["open", "--print", "--output", "json"]);
    let (exit, code, _) = Ran::of(agents.env("RUNYARD_RUN_ID", "run_1")).failure();
    assert_eq!((exit, code.as_str()), (3, "AUTHORIZATION_ERROR"));
}

/// A folder with one program that writes down what it is told and ends as it should.
fn program(home: &Home, name: &str, exit: i32) -> (String, PathBuf) {
    let (programs, told) = (home.beside("programs"), home.beside(&format!("told-{name}")));
    std::fs::create_dir_all(&programs).unwrap();
    let path = programs.join(name);
    let script = format!("#!/bin/sh\nprintf '%s\\n' $# \"$@\" > {}\nexit {exit}\n", told.display());
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    (format!("{}:/usr/bin:/bin", programs.display()), told)
}

fn lines(told: &Path) -> Vec<String> {
    std::fs::read_to_string(told).unwrap().lines().map(str::to_owned).collect()
}

// CVE-2025-6514: an address that ends in a shell.
#[test]
fn cve_2025_6514_the_browser_is_started_with_the_link_as_its_one_argument() {
    let home = Home::new();
    let hub = home.up();
    let (path, told) = program(&home, "xdg-open", 0);
    let mut command = home.command(["open", "--browser", "--output", "text"]);
    let opened = Ran::of(command.env("PATH", path).env("DISPLAY", ":0"));
    assert_eq!(opened.stdout, format!("Opened http://{}/runs in your browser.\n", hub.address()));
    let told = lines(&told);
    assert_eq!((told.len(), told[0].as_str()), (2, "1"), "{told:?}");
    assert!(told[1].starts_with(&format!("http://{}/login?next=/runs#", hub.address())), "{told:?}");
}

#[test]
fn open_starts_a_window_of_its_own_with_a_profile_that_only_its_owner_reads() {
    let home = Home::new();
    let hub = home.up();
    let (path, told) = program(&home, "google-chrome", 0);
    let mut command = home.command(["open", "approvals", "--output", "text"]);
    let opened = Ran::of(command.env("PATH", path).env("DISPLAY", ":0"));
    assert_eq!(opened.stdout, format!("Opened http://{}/approvals in a window of its own.\n", hub.address()));
    let (told, profile) = (lines(&told), home.path("browser"));
    assert_eq!((told.len(), told[0].as_str()), (5, "4"), "{told:?}");
    assert!(
        told[1].starts_with(&format!("--app=http://{}/login?next=/approvals#", hub.address())),
        "{told:?}"
    );
    assert_eq!(told[2], format!("--user-data-dir={}", profile.display()));
    assert_eq!(profile.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn where_no_window_can_be_had_the_browser_is_next_and_then_the_link_is_printed() {
    let home = Home::new();
    let hub = home.up();
    let (path, windowed) = program(&home, "google-chrome", 1);
    let (_, browsed) = program(&home, "xdg-open", 3);
    let mut command = home.command(["open"]);
    let opened = Ran::of(command.env("PATH", path).env("DISPLAY", ":0"));
    assert!(
        opened.stdout.starts_with(&format!("http://{}/login?next=/runs#", hub.address())),
        "{}",
        opened.stdout
    );
    let link = opened.stdout.trim_end();
    assert_eq!(
        (lines(&windowed)[1].as_str(), lines(&browsed)[1].as_str()),
        (format!("--app={link}").as_str(), link)
    );
}

// clause: A22
#[test]
fn a22_a_further_origin_of_the_configuration_gets_a_link_of_its_own() {
    let home = Home::new();
    std::fs::create_dir(home.path("")).unwrap();
    std::fs::write(home.path("runyard.toml"), "[server]\norigins = [\"http://localhost:5173\"]\n").unwrap();
    let hub = home.up();
    let told = home.run(["open", "--origin", "http://localhost:5173", "--print"]);
    let link = told.stdout.trim_end();
    assert!(link.starts_with("http://localhost:5173/login?next=/runs#"), "{link}");
    let other = home.run(["open", "--origin", "http://localhost:5174", "--print", "--output", "json"]);
    assert_eq!(other.failure().1, "VALIDATION_ERROR");
    let body = json!({ "code": link.split_once('#').unwrap().1 }).to_string();
    let passed_on = |origin: &str| raw_from(&hub, origin, ("POST", "/login"), "", &body);
    assert_eq!(passed_on("http://localhost:5174").0, 403);
    let (status, answer) = passed_on("http://localhost:5173");
    assert_eq!(status, 200, "{answer}");
    assert!(!answer.to_ascii_lowercase().contains("access-control"), "{answer}");
}

/// What a script of the page would do: logs in and gives the headers of a session.
fn session(hub: &Hub, link: &str) -> Result<String, u16> {
    let body = json!({ "code": link.split_once('#').unwrap().1 }).to_string();
    let (status, answer) = raw(hub, "POST", "/login", "", &body);
    if status != 200 {
        return Err(status);
    }
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let envelope: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let key = envelope["data"]["pageKey"].as_str().unwrap();
    Ok(format!("Cookie: {}\r\nX-Runyard-Page: {key}\r\n", cookie.split(';').next().unwrap()))
}

/// The status, and the whole answer.
fn raw(hub: &Hub, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    raw_from(hub, &format!("http://{}", hub.address()), (method, path), headers, body)
}

/// The same from a page of this origin.
fn raw_from(
    hub: &Hub,
    origin: &str,
    (method, path): (&str, &str),
    headers: &str,
    body: &str,
) -> (u16, String) {
    use std::io::{Read, Write};
    let (host, length) = (hub.address(), body.len());
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(support::PATIENCE)).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nSec-Fetch-Site: same-origin\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

#[test]
fn a_person_whose_token_is_revoked_is_out_at_once() {
    let home = Home::new();
    let hub = home.up();
    let owner = Api::owner(&home, &hub);
    let bob = owner.person("bob", "viewer");
    let link = bob.post("/logins", &json!({}))["url"].as_str().unwrap().to_owned();
    let session = session(&hub, &link).unwrap();
    let list = || raw(&hub, "GET", "/api/v1/session", &session, "");
    let (status, answer) = list();
    assert_eq!(status, 200);
    assert!(answer.contains("\"id\":\"bob\""), "{answer}");
    let wipe = json!({ "input": { "name": "mine", "role": "admin" } }).to_string();
    let (status, refused) = raw(&hub, "POST", "/dev/api/actions/token_create/invoke", &session, &wipe);
    assert_eq!(status, 403, "a viewer's session has a viewer's rights: {refused}");
    let (status, refused) = raw(&hub, "POST", "/api/v1/actions/token_create/invoke", &session, &wipe);
    assert_eq!(status, 403, "on every surface: {refused}");
    let (status, _) = owner.send("DELETE", "/tokens/bob", None);
    assert_eq!(status, 200);
    assert_eq!(list().0, 401);
}
