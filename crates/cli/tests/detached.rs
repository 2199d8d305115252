//! `runyard run --detach`: with a hub, with that of another command, and with none, where one is started that ends with its runs.
//!
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use support::api::{Scripted, Yard};
use support::terminal::Terminal;
use support::{Home, Ran, eventually, is_running, send};

const ASKS: &str = "[[turn]]\n[[turn.step]]\nshell = \"true\"\n";

fn yard() -> Yard {
    let yard = Yard::new("", &[Scripted { name: "asks", profile: "", script: ASKS }]);
    yard.home.run(["workspaces", "add", yard.place()]).data();
    yard
}

fn detach(yard: &Yard) -> Ran {
    yard.home.run(["run", "x", "--agent", "asks", "--workspace", yard.place(), "--detach"])
}

/// The id that was printed, and nothing else.
#[track_caller]
fn id(ran: &Ran) -> String {
    assert_eq!(ran.exit, 0, "{} {}", ran.stdout, ran.stderr);
    let id = ran.stdout.strip_suffix('\n').unwrap();
    assert!(id.starts_with("run_") && !id.contains(char::is_whitespace), "{id}");
    id.to_owned()
}

fn show(home: &Home, run: &str) -> Value {
    home.run(["runs", "show", run, "--output", "json"]).data()["run"].clone()
}

#[track_caller]
fn until(home: &Home, run: &str, state: &str) {
    eventually(&format!("{run} is {state}"), || (show(home, run)["state"] == state).then_some(()));
}

/// Approves what the run asks for.
#[track_caller]
fn approve(home: &Home, run: &str) {
    let asked = eventually(&format!("{run} asks"), || {
        let open = home.run(["approvals", "list", "--run", run, "--output", "json"]).data();
        open["approvals"][0]["id"].as_str().map(str::to_owned)
    });
    home.run(["approvals", "approve", &asked, "--confirm"]).data();
}

/// How many processes are, or wait to be, a hub of this home in the background.
fn waiting(home: &Home) -> usize {
    let mine = format!("RUNYARD_HOME={}", home.path("").display());
    let mine = mine.trim_end_matches('/').as_bytes();
    let has = |file: PathBuf, wanted: &[u8]| {
        let read = std::fs::read(file).unwrap_or_default();
        read.windows(wanted.len()).any(|window| window == wanted)
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes
        .filter(|at| has(at.join("cmdline"), b"--in-background") && has(at.join("environ"), mine))
        .count()
}

/// What `hub.json` tells, if it is there.
fn told(home: &Home) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(home.path("hub.json")).ok()?).ok()
}

/// The hub in the background. It does not outlive the test.
struct Background(u32);

impl Background {
    #[track_caller]
    fn of(home: &Home) -> Background {
        let told =
            eventually("a hub in the background", || told(home).filter(|told| told["stay"] == "untilDone"));
        Background(u32::try_from(told["pid"].as_u64().unwrap()).unwrap())
    }

    #[track_caller]
    fn is_gone(&self) {
        eventually("the hub in the background ends", || (!is_running(self.0)).then_some(()));
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if is_running(self.0) {
            send(self.0, Signal::KILL);
        }
    }
}

#[test]
fn detach_prints_the_id_and_returns_while_the_hub_goes_on() {
    let yard = yard();
    let hub = yard.home.up();
    let ran = detach(&yard);
    assert_eq!(ran.stderr, "");
    let run = id(&ran);
    approve(&yard.home, &run);
    until(&yard.home, &run, "completed");
    assert_eq!(told(&yard.home).unwrap()["pid"], hub.pid(), "no other hub was started");
}

#[test]
fn without_a_hub_detach_starts_one_that_ends_with_its_runs() {
    let yard = yard();
    let ran = detach(&yard);
    let hub = Background::of(&yard.home);
    let first = id(&ran);
    let said = format!("(process {}) goes on with it in the background.\n", hub.0);
    assert!(ran.stderr.starts_with("The hub at http://127.0.0.1:"), "{}", ran.stderr);
    assert!(ran.stderr.ends_with(&said), "{}", ran.stderr);
    // The next goes on there too.
    let ran = detach(&yard);
    assert!(ran.stderr.ends_with(&said), "{}", ran.stderr);
    let second = id(&ran);
    until(&yard.home, &second, "needs_approval");
    assert_eq!(told(&yard.home).unwrap()["pid"], hub.0);
    // Its place is taken, and whoever wants it is told whose it is.
    let (exit, code, message) = Ran::of(&mut yard.home.command_up()).failure();
    assert_eq!((exit, code.as_str()), (1, "CONFLICT"));
    assert!(message.contains("until its runs are done"), "{message}");
    assert!(message.contains(&format!("kill {}", hub.0)), "{message}");
    approve(&yard.home, &first);
    until(&yard.home, &first, "completed");
    assert!(is_running(hub.0), "a run still waits for its answer");
    approve(&yard.home, &second);
    hub.is_gone();
    until(&yard.home, &second, "completed");
    assert!(told(&yard.home).is_none());
}

#[test]
fn a_hub_in_the_background_belongs_to_no_terminal() {
    let yard = yard();
    let arguments =
        ["run", "x", "--agent", "asks", "--workspace", yard.place(), "--detach", "--output", "text"];
    let mut terminal = Terminal::of(&mut yard.home.command(arguments));
    terminal.wait_for("goes on with it in the background.");
    let hub = Background::of(&yard.home);
    // Reading ends with the last process that holds the terminal.
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", hub.0)).unwrap();
    let of_terminal: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').skip(2).take(3).collect();
    let own = hub.0.to_string();
    assert_eq!(of_terminal, [&own, &own, "0"], "group, session and terminal");
    // Told to stop it leaves its run to the next.
    send(hub.0, Signal::TERM);
    hub.is_gone();
    let runs = yard.home.run(["runs", "list", "--output", "json"]).data();
    let state = runs["runs"][0]["state"].as_str().unwrap();
    assert!(!["completed", "failed", "cancelled"].contains(&state), "{runs}");
}

#[test]
fn j05_a_run_whose_hub_in_the_background_was_killed_goes_on_with_the_next() {
    let yard = yard();
    let first = id(&detach(&yard));
    let hub = Background::of(&yard.home);
    until(&yard.home, &first, "needs_approval");
    send(hub.0, Signal::KILL);
    hub.is_gone();
    let second = id(&detach(&yard));
    let hub = Background::of(&yard.home);
    for run in [&first, &second] {
        approve(&yard.home, run);
        until(&yard.home, run, "completed");
    }
    hub.is_gone();
}

#[test]
fn detached_from_the_hub_of_another_command_a_run_goes_on_when_that_is_over() {
    let yard = yard();
    let mut following = yard.home.command(["run", "x", "--agent", "asks", "--workspace", yard.place()]);
    let mut following = following.stdout(Stdio::null()).spawn().unwrap();
    eventually("the other command has a hub", || {
        told(&yard.home).filter(|told| told["stay"] == "withCommand")
    });
    let ran = detach(&yard);
    assert!(ran.stderr.contains("one in the background comes after it"), "{}", ran.stderr);
    let detached = id(&ran);
    until(&yard.home, &detached, "needs_approval");
    assert_eq!(told(&yard.home).unwrap()["pid"], following.id());
    // However many runs there are, one process waits for them.
    let another = id(&detach(&yard));
    eventually("one waits", || (waiting(&yard.home) == 1).then_some(()));
    send(following.id(), Signal::KILL);
    following.wait().unwrap();
    let hub = Background::of(&yard.home);
    let runs = yard.home.run(["runs", "list", "--output", "json"]).data();
    let runs = runs["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap());
    let runs: Vec<&str> = runs.collect();
    assert!(runs.len() == 3 && [&detached, &another].iter().all(|run| runs.contains(&run.as_str())));
    for run in runs {
        approve(&yard.home, run);
        until(&yard.home, run, "completed");
    }
    hub.is_gone();
}

#[test]
fn detach_makes_one_run_for_a_key() {
    let yard = yard();
    let keyed = || {
        let arguments = ["run", "x", "--agent", "asks", "--workspace", yard.place(), "--detach"];
        id(&yard.home.run(arguments.into_iter().chain(["--idempotency-key", "nightly"])))
    };
    let first = keyed();
    let _hub = Background::of(&yard.home);
    assert_eq!(keyed(), first);
}

#[test]
fn what_is_refused_starts_no_hub_and_none_stays_where_nothing_is_to_be_done() {
    let yard = yard();
    let arguments =
        ["run", "x", "--agent", "nobody", "--workspace", yard.place(), "--detach", "--output", "json"];
    assert_eq!(yard.home.run(arguments).failure().1, "VALIDATION_ERROR");
    assert!(told(&yard.home).is_none() && !yard.home.path("hub.log").exists());
    let ended = yard.home.run(["up", "--until-done", "--listen", "127.0.0.1:0"]);
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let _hub = yard.home.up();
    let left = yard.home.run(["up", "--until-done", "--listen", "127.0.0.1:0"]);
    assert_eq!(left.exit, 0, "{}", left.stderr);
}

#[test]
fn a_run_that_no_hub_could_be_started_for_is_named_with_the_reason() {
    for blocked in ["hub.log", "hub.next.lock"] {
        let yard = yard();
        // Nothing can be written there.
        std::fs::create_dir_all(yard.home.path(blocked)).unwrap();
        let arguments =
            ["run", "x", "--agent", "asks", "--workspace", yard.place(), "--detach", "--output", "json"];
        let (exit, code, message) = yard.home.run(arguments).failure();
        assert_eq!((exit, code.as_str()), (1, "CONFLICT"), "{message}");
        let runs = yard.home.run(["runs", "list", "--output", "json"]).data();
        assert!(message.contains(runs["runs"][0]["id"].as_str().unwrap()), "{message}");
        assert!(message.contains(blocked) && message.contains("runyard up"), "{message}");
    }
}

#[test]
fn a_hub_in_the_background_holds_nothing_that_its_command_was_started_with() {
    let yard = yard();
    let lock = yard.home.beside("script.lock");
    let run = yard.home.command(["run", "x", "--agent", "asks", "--workspace", yard.place(), "--detach"]);
    let mut script = Command::new("sh");
    script.args(["-c", "exec 9>\"$LOCK\"; flock 9; \"$@\"", "script"]);
    script.arg(run.get_program()).args(run.get_args()).env("LOCK", &lock);
    for (name, value) in run.get_envs() {
        script.env(name, value.unwrap_or_default());
    }
    id(&Ran::of(&mut script));
    let _hub = Background::of(&yard.home);
    std::fs::File::open(&lock).unwrap().try_lock().unwrap();
}

#[test]
fn the_log_of_hubs_in_the_background_is_for_its_owner_and_begun_anew_when_it_is_long() {
    let yard = yard();
    let log = yard.home.path("hub.log");
    for (length, kept) in [(1024, true), (2 * 1024 * 1024, false)] {
        std::fs::write(&log, vec![b'x'; length]).unwrap();
        let run = id(&detach(&yard));
        let hub = Background::of(&yard.home);
        assert_eq!(std::fs::metadata(&log).unwrap().len() >= 1024, kept);
        approve(&yard.home, &run);
        hub.is_gone();
    }
    std::fs::remove_file(&log).unwrap();
    id(&detach(&yard));
    let _hub = Background::of(&yard.home);
    assert_eq!(std::fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
}
