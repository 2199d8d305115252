//! A secret that an agent is made to say, print, or fail with is in nothing that is written or shown, nor in the agent's process.
//!
//! clause: B06
//! clause: B11
//! clause: B17
//! clause: C09
//! clause: C15

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::NO_PAD;
use regex::bytes::Regex;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use support::Hub;
use support::api::Api;
use support::codex::{Bench, CODEX_KEY, codex_of, nothing_left};

/// Every byte of a key after these words, as a number in two digits.
fn escaped(key: &str, before: &str) -> String {
    key.bytes().map(|byte| format!("{before}{byte:02x}")).collect()
}

/// What of a key is the same in every Base64 text that it is somewhere in: another one for each place in a group of three bytes.
fn in_base64(key: &str, alphabet: &alphabet::Alphabet) -> [String; 3] {
    [0, 1, 2].map(|before| {
        let bytes = [&vec![0; before], key.as_bytes()].concat();
        let text = GeneralPurpose::new(alphabet, NO_PAD).encode(&bytes);
        text[(before * 8).div_ceil(6)..bytes.len() * 8 / 6].to_owned()
    })
}

/// A key, plainly or in one of the usual wrappings. Those in numbers count in capitals too, and whether all of it is so written or
/// only what is neither letter nor digit.
fn forms_of(key: &str) -> Regex {
    let numbers = |before: &str| {
        let some = |byte: u8| match byte.is_ascii_alphanumeric() {
            true => char::from(byte).to_string(),
            false => format!("{before}{byte:02x}"),
        };
        [escaped(key, before), key.bytes().map(some).collect()]
    };
    let insensitive = [&numbers("%")[..], &numbers("\\u00"), &numbers("\\x"), &[escaped(key, "")]].concat();
    let exact = [
        &[key.to_owned(), key.chars().rev().collect()][..],
        &in_base64(key, &alphabet::STANDARD),
        &in_base64(key, &alphabet::URL_SAFE),
    ]
    .concat();
    let any = |forms: &[String]| forms.iter().map(|form| regex::escape(form)).collect::<Vec<_>>().join("|");
    Regex::new(&format!("(?i-u:{})|(?-u:{})", any(&insensitive), any(&exact))).unwrap()
}

/// Whether the key is in some bytes, plainly or wrapped.
fn holds(bytes: &[u8]) -> bool {
    static FORMS: LazyLock<Regex> = LazyLock::new(|| forms_of(CODEX_KEY));
    FORMS.is_match(bytes)
}

#[test]
fn a_key_is_found_in_every_usual_wrapping_and_nothing_else_is() {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    let key = CODEX_KEY;
    let mut wrapped = vec![
        key.to_owned(),
        json!({"a": key}).to_string(),
        escaped(key, ""),
        escaped(key, "").to_uppercase(),
        escaped(key, "%"),
        key.replace('-', "%2D"),
        escaped(key, "\\u00"),
        key.replace('-', "\\u002d"),
        key.chars().rev().collect(),
    ];
    for before in ["", "u", "u:", "Bearer ", "{\"key\":\""] {
        for after in ["", "x", "\"}"] {
            let text = format!("{before}{key}{after}");
            wrapped.extend([STANDARD.encode(&text), URL_SAFE.encode(&text)]);
        }
    }
    for text in wrapped {
        assert!(holds(format!("some {text} words").as_bytes()), "{text}");
    }
    // The two alphabets differ only where these bytes are.
    let odd = "??>>~~key~~>>??";
    assert!(forms_of(odd).is_match(STANDARD.encode(odd).as_bytes()));
    assert!(forms_of(odd).is_match(URL_SAFE.encode(odd).as_bytes()));
    for other in [&key[1..], "", "tr0ub4dor", &STANDARD.encode("another text")] {
        assert!(!holds(other.as_bytes()), "{other}");
    }
}

#[track_caller]
fn nowhere(files: &[PathBuf]) {
    assert!(files.len() > 10);
    for file in files {
        let bytes = std::fs::read(file).unwrap_or_default();
        assert!(!holds(&bytes), "the key is in {}", file.display());
    }
}

/// Those who look after the processes of a run.
fn supervisors_of(run: &str) -> Vec<u32> {
    let found = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let arguments = std::fs::read(entry.path().join("cmdline")).ok()?;
        let arguments = String::from_utf8_lossy(&arguments);
        let is_one = arguments.contains(run)
            && ["\0guard\0", "\0keeper\0"].iter().any(|role| arguments.contains(role));
        is_one.then(|| entry.file_name().to_str()?.parse().ok()).flatten()
    });
    found.collect()
}

/// Looks into the hub, the supervisors of a run and its agent.
#[track_caller]
fn in_no_process(hub: &Hub, run: &str) {
    let (agents, supervisors) = (codex_of(run), supervisors_of(run));
    assert!(!agents.is_empty() && supervisors.len() >= 2, "{agents:?} {supervisors:?}");
    for pid in [&[hub.pid()], &agents[..], &supervisors].concat() {
        for file in ["environ", "cmdline"] {
            match std::fs::read(format!("/proc/{pid}/{file}")) {
                Ok(bytes) => assert!(!holds(&bytes), "the key is in {file} of process {pid}"),
                // Nobody is there any more to have it.
                Err(error)
                    if [Errno::NOENT, Errno::SRCH]
                        .map(|gone| Some(gone.raw_os_error()))
                        .contains(&error.raw_os_error()) => {}
                // Nobody but root sees what those have.
                Err(error) => {
                    assert!(error.kind() == ErrorKind::PermissionDenied && !agents.contains(&pid), "{error}");
                }
            }
        }
    }
}

#[test]
fn b11_b12_the_key_is_in_no_process_of_the_agent_and_in_nothing_written_or_answered() {
    let bench = Bench::with("debug_raw = true", None);
    let (hub, api) = bench.yard.up();
    let mut runs = Vec::new();
    for scenario in ["secret-echo", "secret-pieces", "secret-error", "http-401"] {
        let run = bench.start(&api, "codex", &format!("[[scenario:{scenario}]]"));
        runs.push(run);
    }
    let shell = bench.start(&api, "codex", "[[scenario:secret-shell]]");
    let approval = api.asked(&shell, &[]);
    in_no_process(&hub, &shell);
    nowhere(&bench.written());
    api.approve(&approval);
    runs.push(shell);
    for run in &runs {
        support::eventually("it is over", || {
            let found = api.run(run);
            let state = found["state"].as_str().unwrap();
            ["completed", "failed", "cancelled"].contains(&state).then_some(())
        });
        nothing_left(run);
        let (_, events) = api.send("GET", &format!("/runs/{run}/events?limit=500"), None);
        let (_, shown) = api.send("GET", &format!("/runs/{run}"), None);
        assert!(!holds(events.as_bytes()) && !holds(shown.as_bytes()));
    }
    let debug: Vec<_> = api
        .events(&runs[0])
        .into_iter()
        .filter(|event| event["type"] == "run.artifact.ready" && event["payload"]["kind"] == "debug")
        .collect();
    assert_eq!(debug.len(), 1, "the raw lines are kept where the profile says so");
    for path in ["/backends", "/health", "/audit", "/agents", "/edges"] {
        let (_, body) = api.send("GET", path, None);
        assert!(!holds(body.as_bytes()), "{path}");
    }
    drop(hub);
    nowhere(&bench.written());
}

#[test]
fn c09_raw_lines_are_kept_only_where_the_profile_says_so() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", "[[scenario:text]]");
    api.until(&run, "completed");
    let artifacts = api.events(&run).into_iter().filter(|event| event["type"] == "run.artifact.ready");
    assert_eq!(artifacts.count(), 0);
}

#[test]
fn b12_without_the_gateway_a_plain_run_leaves_the_key_in_nothing_once_its_processes_are_gone() {
    let bench = Bench::with("gateway = false", None);
    let (hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", "[[scenario:shell echo hello]]");
    let approval = api.asked(&run, &[]);
    in_no_process(&hub, &run);
    let session = api.run(&run)["sessionId"].as_str().unwrap().to_owned();
    let home = bench.yard.home.path(&format!("edge/sessions/{session}/codex/codex"));
    let given: Vec<PathBuf> =
        bench.written().into_iter().filter(|file| holds(&std::fs::read(file).unwrap_or_default())).collect();
    assert_eq!(given, [home.join("auth.json")], "the only file that holds it while the agent works");
    api.approve(&approval);
    api.until(&run, "completed");
    nothing_left(&run);
    support::eventually("the secret is gone", || (!home.join("auth.json").exists()).then_some(()));
    for path in [format!("/runs/{run}/events?limit=500"), format!("/runs/{run}"), "/audit".to_owned()] {
        let (_, body) = api.send("GET", &path, None);
        assert!(!holds(body.as_bytes()), "{path}");
    }
    assert!(home.join("sessions").is_dir(), "what the agent keeps is there, and is looked into");
    nowhere(&bench.written());
    drop(hub);
    nowhere(&bench.written());
}

/// Somebody who is not root: for them `/proc` is another matter.
const SOMEBODY: u32 = 65_534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A command of somebody who is not root.
fn as_somebody(mut command: Command) -> Command {
    if is_root() {
        command.uid(SOMEBODY).gid(SOMEBODY);
    }
    command
}

/// Gives everything below a directory, and itself, to somebody who is not root.
fn give(directory: &Path) {
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        chown(&next, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        if next.is_dir() {
            left.extend(std::fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
}

/// Whether another process of the same user can look into this one.
fn can_be_seen(pid: u32) -> bool {
    let mut look = Command::new("cat");
    look.arg(format!("/proc/{pid}/environ")).stdout(Stdio::null()).stderr(Stdio::null());
    as_somebody(look).status().unwrap().success()
}

/// All of it as somebody who is not root, and with the network cut: then the hub and its supervisors find this binary, their open
/// files and the gateway's socket by `/proc/self`, of which a process that cannot be looked into owns nothing.
#[test]
fn b11_nobody_looks_into_the_hub_or_its_supervisors_and_they_leave_no_core_file() {
    let bench = Bench::new();
    let (home, workspace) = (&bench.yard.home, bench.yard.workspace.path());
    if is_root() {
        [home.beside(""), workspace.to_owned()].iter().for_each(|place| give(place));
    }
    // Else there might be none to leave in the first place.
    let limit = getrlimit(Resource::Core);
    setrlimit(Resource::Core, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let mut command = home.command_up();
    command.env("HOME", home.beside("person"));
    let denied = |error: &std::io::Error| is_root() && error.kind() == ErrorKind::PermissionDenied;
    let mut version = Command::new(support::codex::program());
    version.arg("--version").stdout(Stdio::null());
    if as_somebody(version).status().is_err_and(|error| denied(&error)) {
        eprintln!("not tried: nobody but root can execute codex where it lies");
        return;
    }
    let hub = match as_somebody(command).spawn() {
        Err(error) if denied(&error) => {
            eprintln!("not tried: nobody but root can execute the binary where it lies");
            return;
        }
        started => Hub::of(started.unwrap()).expect("the hub says where it listens"),
    };
    let api = Api::owner(home, &hub);
    api.add_workspace(workspace);
    let policy = json!({"executionPolicy": {"network": "deny", "changes": "keep"}});
    let run = bench.start_with(&api, "codex", "[[scenario:shell echo hello > hello.txt]]", &policy);
    let approval = api.asked(&run, &[]);

    let supervisors = supervisors_of(&run);
    assert!(supervisors.len() >= 2, "{supervisors:?}");
    for pid in [&[hub.pid()], &supervisors[..]].concat() {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
        assert_eq!(core.split_ascii_whitespace().next(), Some("0"), "{limits}");
        assert_eq!(std::fs::metadata(format!("/proc/{pid}/mem")).unwrap().uid(), 0, "it is not its user's");
        assert!(!can_be_seen(pid), "{pid}");
    }
    let mut plain = Command::new("cat");
    plain.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut plain = as_somebody(plain).spawn().unwrap();
    assert!(can_be_seen(plain.id()), "any other process can be looked into");
    drop(plain.stdin.take());
    plain.wait().unwrap();

    api.approve(&approval);
    let done = api.until(&run, "completed");
    assert_eq!(
        (&done["degraded"], &done["response"]),
        (&json!(null), &json!("The command has run.")),
        "{done}"
    );
    assert_eq!(bench.file(&run, "hello.txt").as_deref(), Some("hello\n"));
    nothing_left(&run);
}
