//! `runyard open` and the page behind it, with a real hub and a real browser.
//!
//! clause: A22
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::api::Api;
use support::{Home, Hub, Ran};

/// Commands as actions: one with everything that a form can have, one with what is rare in a schema, one that reports as it goes,
/// one that goes on until it is stopped.
fn configuration(pid_file: &Path) -> String {
    format!(
        r#"
[actions.shapes]
description = "Gives its input back."
command = ["cat"]
[actions.shapes.input]
type = "object"
additionalProperties = false
[actions.shapes.input.properties]
text = {{ type = "string", description = "Some lines of text." }}
count = {{ type = "integer", minimum = 1, default = 3, description = "How often." }}
ratio = {{ type = "number" }}
flag = {{ type = "boolean" }}
kind = {{ enum = ["a", "b"] }}
tags = {{ type = "array", items = {{ type = "string" }} }}
place = {{ type = "object", properties = {{ x = {{ type = "integer" }}, y = {{ type = "integer" }} }} }}
any = {{}}

[actions.odd]
description = "Has an odd schema.\U000E0041\u200B"
command = ["cat"]
[actions.odd.input]
type = "object"
[actions.odd.input.properties]
either = {{ anyOf = [true, {{ type = "integer" }}], description = "Anything at all." }}
never = false
said = {{ anyOf = [{{ type = "string" }}, {{ type = "object" }}] }}
big = {{ type = "integer" }}
ratio = {{ type = ["number", "null"] }}
rows = {{ type = "array", items = {{ type = "object", properties = {{ x = {{ type = "integer" }} }} }} }}
toString = {{ type = "string" }}

[actions.steps]
description = "Does something in steps."
command = ["sh", "-c", '''
cat >/dev/null
echo 'first <b>' >&2
echo '{{"type": "progress", "percent": 50, "message": "half"}}' >&2
echo '{{"type": "artifact", "artifact": {{"name": "report.txt"}}}}' >&2
echo second >&2
echo 9007199254740993
''']

[actions.wait]
description = "Goes on until it is stopped."
command = ["sh", "-c", 'echo $$ > {}; echo waiting >&2; exec sleep 600']
"#,
        pid_file.display()
    )
}

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
    let page = format!("http://{}/login#", hub.address());
    assert!(link(&home).strip_prefix(&page).is_some_and(|code| code.len() == 64));
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

// CVE-2025-6514: an address that ends in a shell.
#[test]
fn cve_2025_6514_the_browser_is_started_with_the_link_as_its_one_argument() {
    let home = Home::new();
    let hub = home.up();
    let (programs, told) = (home.beside("programs"), home.beside("told"));
    std::fs::create_dir(&programs).unwrap();
    let opener = programs.join("xdg-open");
    std::fs::write(&opener, format!("#!/bin/sh\nprintf '%s\\n' $# \"$@\" > {}\n", told.display())).unwrap();
    std::fs::set_permissions(&opener, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = home.command(["open", "--output", "text"]);
    let opened = Ran::of(command.env("PATH", path).env("DISPLAY", ":0"));
    assert_eq!(opened.stdout, format!("Opened http://{}/dev in your browser.\n", hub.address()));
    let told = std::fs::read_to_string(told).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2, "1"), "{told}");
    assert!(lines[1].starts_with(&format!("http://{}/login#", hub.address())), "{told}");
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
    use std::io::{Read, Write};
    let (host, length) = (hub.address(), body.len());
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(support::PATIENCE)).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nSec-Fetch-Site: same-origin\r\nConnection: close\r\n\
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
    let list = || raw(&hub, "GET", "/dev/api/actions", &session, "");
    let (status, answer) = list();
    assert_eq!(status, 200);
    assert!(answer.contains("\"id\":\"bob\""), "{answer}");
    let wipe = json!({ "input": { "name": "mine", "role": "admin" } }).to_string();
    let (status, refused) = raw(&hub, "POST", "/dev/api/actions/token_create/invoke", &session, &wipe);
    assert_eq!(status, 403, "a viewer's session has a viewer's rights: {refused}");
    let (status, _) = owner.send("DELETE", "/tokens/bob", None);
    assert_eq!(status, 200);
    assert_eq!(list().0, 401);
}

/// The folder in which `crates/testkit/node/package.json` is installed, and the Node in it.
fn browser_modules() -> (PathBuf, PathBuf) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder =
        std::env::var_os("RUNYARD_TEST_NODE").map_or_else(|| target.join("node-programs"), PathBuf::from);
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let node = folder.join(format!("node_modules/node-linux-{machine}/bin/node"));
    assert!(node.is_file(), "there is no {}; ./test installs it", node.display());
    (folder, node)
}

// clause: A04
// clause: A20
// clause: A21
#[test]
fn a_person_uses_the_dev_page_in_a_real_browser() {
    let home = Home::new();
    let pid_file = home.beside("pid");
    std::fs::create_dir(home.path("")).unwrap();
    std::fs::write(home.path("runyard.toml"), configuration(&pid_file)).unwrap();
    let hub = home.up();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/dev_page.mjs");
    let chromium = Path::new("/usr/bin/chromium");
    assert!(chromium.is_file(), "there is no {}; ./test installs it", chromium.display());
    let (modules, node) = browser_modules();
    let output = Command::new(node)
        .arg(script)
        .env("LINK", link(&home))
        .env("MODULES", modules)
        .env("CHROMIUM", chromium)
        .env("PID_FILE", &pid_file)
        .env("HOME", home.beside(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let copied: Value = serde_json::from_slice(&output.stdout).unwrap();
    // What was copied really is that call, whatever a shell makes of its characters.
    let token = std::fs::read_to_string(home.path("token")).unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_runyard")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    for (name, more) in [("curl", " --silent"), ("cli", " --output json")] {
        let line = copied[name].as_str().unwrap().to_owned() + more;
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &line])
            .env("PATH", &path)
            .env("RUNYARD_HOME", home.path(""))
            .env("RUNYARD_TOKEN", token.trim());
        let ran = Ran::of(&mut shell);
        let envelope: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{line}: {}", ran.stderr));
        assert_eq!(envelope["data"]["title"], copied["title"], "{line}");
    }
    drop(hub);
}
