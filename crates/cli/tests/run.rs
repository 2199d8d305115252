//! `runyard run` as people and programs use it.
//!
//! clause: A19
//! clause: C12
//! clause: C16
//! clause: C22

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout};

use rustix::process::Signal;
use serde_json::{Value, json};

use support::api::{Scripted, Yard};
use support::terminal::Terminal;
use support::{Home, Ran, eventually, send};

/// Nobody is asked about commands.
const ALLOWED: &str = "[[policy.rule]]\neffect = \"allow\"\nkind = \"shell\"\n";

/// A home and a directory to work on.
struct Place {
    home: Home,
    folder: PathBuf,
}

impl Place {
    /// The directory is a workspace already.
    fn new(home: Home) -> Self {
        let place = Place::unlisted(home);
        place.run(&["workspaces", "add", "."]).data();
        place
    }

    fn unlisted(home: Home) -> Self {
        let folder = home.beside("site");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("README.md"), "# Site\n").unwrap();
        Place { folder: folder.canonicalize().unwrap(), home }
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.home.command(arguments).current_dir(&self.folder))
    }

    fn terminal(&self, arguments: &[&str]) -> Terminal {
        Terminal::of(self.home.command(arguments).current_dir(&self.folder))
    }

    fn follow(&self, arguments: &[&str]) -> Followed {
        let mut command = self.home.command(arguments);
        Followed::of(
            command.current_dir(&self.folder).stderr(std::process::Stdio::inherit()).spawn().unwrap(),
        )
    }

    /// Waits until so many approvals are open, and gives their ids, the oldest first.
    fn open(&self, count: usize) -> Vec<String> {
        eventually("approvals are open", || {
            // Without a hub, asking would be a hub for a moment.
            if !self.home.path("hub.json").exists() {
                return None;
            }
            let data = self.run(&["approvals", "list"]).data();
            let approvals = data["approvals"].as_array().unwrap().clone();
            let id = |approval: &Value| approval["id"].as_str().unwrap().to_owned();
            (approvals.len() == count).then(|| approvals.iter().map(id).collect())
        })
    }

    fn approve(&self, id: &str) {
        let data = self.run(&["approvals", "approve", id, "--confirm"]).data();
        assert_eq!(data["approval"]["state"], "approved");
    }

    /// All events of a run, as they are stored.
    fn events(&self, run: &str) -> Vec<Value> {
        self.run(&["runs", "events", run, "--limit", "400"]).data()["events"].as_array().unwrap().clone()
    }

    fn show(&self, run: &str) -> Value {
        self.run(&["runs", "show", run]).data()["run"].clone()
    }
}

/// A run that prints its events.
struct Followed {
    child: Child,
    lines: BufReader<ChildStdout>,
    seen: Vec<Value>,
}

impl Followed {
    fn of(mut child: Child) -> Self {
        let lines = BufReader::new(child.stdout.take().unwrap());
        Followed { child, lines, seen: Vec::new() }
    }

    /// Reads on until an event of this type; gives its run.
    fn until(&mut self, kind: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "no {kind} in {:?}", self.seen);
            let event: Value = serde_json::from_str(&line).unwrap();
            let found = event["type"] == kind;
            self.seen.push(event.clone());
            if found {
                return event["runId"].as_str().unwrap().to_owned();
            }
        }
    }

    /// Reads to the end; the exit code and all events.
    fn ended(mut self) -> (Option<i32>, Vec<Value>) {
        for line in self.lines.lines() {
            self.seen.push(serde_json::from_str(&line.unwrap()).unwrap());
        }
        (self.child.wait().unwrap().code(), self.seen)
    }
}

#[track_caller]
fn check_timeline(seen: &[Value], stored: &[Value]) {
    let sequences: Vec<u64> = seen.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=seen.len() as u64).collect::<Vec<_>>());
    assert_eq!(seen, stored);
}

#[test]
fn a19_a_completed_run_exits_with_0_and_prints_exactly_the_stored_events() {
    let place = Place::new(Home::with(ALLOWED));
    let ran = place.run(&["run", "look around", "--keep"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    let first: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    let stored = place.events(first["runId"].as_str().unwrap());
    let stored: Vec<String> = stored.iter().map(Value::to_string).collect();
    assert_eq!(ran.stdout.lines().collect::<Vec<_>>(), stored);
    assert!(stored.last().unwrap().contains("\"run.completed\""));
}

#[test]
fn a19_json_is_the_run_at_its_end() {
    let place = Place::new(Home::with(ALLOWED));
    let data = place.run(&["run", "look around", "--keep", "--output", "json"]).data();
    assert_eq!(data["run"]["state"], "completed");
    assert_eq!(place.show(data["run"]["id"].as_str().unwrap()), data["run"]);
}

#[test]
fn a19_c12_a_rejected_run_exits_with_1() {
    let place = Place::new(Home::new());
    let mut followed = place.follow(&["run", "look around"]);
    let run = followed.until("run.approval.requested");
    let [id] = &place.open(1)[..] else { panic!() };
    place.run(&["approvals", "reject", id, "--confirm", "--reason", "not now"]).data();
    let (exit, seen) = followed.ended();
    assert_eq!((exit, &seen.last().unwrap()["payload"]["code"]), (Some(1), &json!("approval_rejected")));
    assert_eq!(place.show(&run)["state"], "cancelled");
}

#[test]
fn a19_ctrl_c_cancels_the_run_and_exits_with_130() {
    let place = Place::new(Home::new());
    let mut followed = place.follow(&["run", "look around"]);
    let run = followed.until("run.approval.requested");
    send(followed.child.id(), Signal::INT);
    let (exit, seen) = followed.ended();
    assert_eq!(exit, Some(130));
    assert_eq!(seen.last().unwrap()["type"], "run.cancelled");
    assert_eq!(place.show(&run)["state"], "cancelled");
    // C22: what has ended takes no further word.
    let (exit, code, _) = place.run(&["runs", "turn", &run, "more"]).failure();
    assert_eq!((exit, code.as_str()), (1, "CONFLICT"));
}

#[test]
fn a19_a_run_that_takes_too_long_exits_with_124() {
    let home = Home::new();
    let program = home.beside("never-answers");
    std::fs::write(
        &program,
        "#!/bin/sh\n[ \"$1\" = --version ] && exec echo codex-cli 1.0\nexec sleep 1000\n",
    )
    .unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let backend = format!(
        "[backend.slow]\ncommand = [{program:?}]\nrequired_secret_keys = []\n[agent.slow]\nlabel = \"Slow\"\n"
    );
    std::fs::create_dir(home.path("")).unwrap();
    std::fs::write(home.path("runyard.toml"), backend).unwrap();
    let place = Place::new(home);
    let followed = place.follow(&["run", "look around", "--agent", "slow", "--timeout-ms", "300"]);
    let (exit, seen) = followed.ended();
    let end = seen.last().unwrap();
    assert_eq!((exit, &end["payload"]["code"]), (Some(124), &json!("run_timeout")), "{end}");
}

#[test]
fn c12_a_run_that_has_used_its_time_up_asks_nobody_and_takes_too_long() {
    let place = Place::new(Home::new());
    let (exit, seen) = place.follow(&["run", "look around", "--timeout-ms", "1"]).ended();
    let end = seen.last().unwrap();
    assert_eq!((exit, &end["payload"]["code"]), (Some(124), &json!("run_timeout")), "{end}");
    assert!(seen.iter().all(|event| event["type"] != "run.approval.requested"), "{seen:?}");
}

#[test]
fn a19_mistakes_of_the_command_line_exit_with_2_and_say_what_is_wrong() {
    let place = Place::new(Home::new());
    let (exit, code, _) = place.run(&["run", "x", "--agent", "nobody"]).failure();
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"));
    assert_eq!(place.run(&["run", "x", "--timeout-ms", "soon"]).failure().0, 2);
    assert_eq!(place.run(&["run"]).failure().0, 2);
    let (exit, code, _) = place.run(&["run", "x", "--continue", "nothing"]).failure();
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"));
}

#[test]
fn c16_a_directory_that_is_not_allowed_is_refused_with_the_next_step() {
    let place = Place::unlisted(Home::new());
    let (exit, code, message) = place.run(&["run", "look around"]).failure();
    assert_eq!((exit, code.as_str()), (1, "workspace_outside_allowlist"));
    assert!(message.ends_with(" Allow it with \"runyard workspaces add .\"."), "{message}");
    assert_eq!(place.run(&["runs", "list"]).data()["runs"], json!([]));
}

#[test]
fn c12_where_nobody_may_be_asked_what_would_be_asked_is_denied() {
    let place = Place::new(Home::new());
    let ran = place.run(&["run", "look around", "--approval", "never"]);
    assert!(!ran.stdout.contains("run.approval.requested"), "{}", ran.stdout);
    let denied = ran.stdout.lines().any(|line| line.contains("run.gate.judged") && line.contains("\"deny\""));
    assert!(denied, "{}", ran.stdout);
}

#[test]
fn c22_continue_is_a_new_run_in_the_same_session() {
    let place = Place::new(Home::with(ALLOWED));
    let first = place.run(&["run", "look around", "--keep", "--output", "json"]).data()["run"].clone();
    let id = first["id"].as_str().unwrap();
    // From anywhere: agent and workspace are those of the run before.
    let ran =
        Ran::of(&mut place.home.command(["run", "go on", "--keep", "--continue", id, "--output", "json"]));
    let second = ran.data()["run"].clone();
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second["parentRunId"], first["id"]);
    for same in ["sessionId", "agentId", "workspace"] {
        assert_eq!(second[same], first[same]);
    }
}

#[test]
fn c12_an_approval_is_asked_on_the_terminal_with_its_exact_content() {
    let place = Place::unlisted(Home::new());
    let mut terminal = place.terminal(&["run", "look around"]);
    terminal.wait_for("[y/N] ");
    terminal.type_line("y");
    terminal.wait_for("[n] reject > ");
    let shown = terminal.screen();
    for line in ["  kind: shell", "  command: ls -la", "  cwd: ."] {
        assert!(shown.lines().any(|shown| shown == line), "{line} is not in {shown}");
    }
    // What is no answer grants nothing.
    terminal.type_line("ok");
    terminal.wait_for("Answer with y, r, s, p or n.");
    terminal.wait_for("[n] reject > ");
    terminal.type_line("y");
    // Its changes are shown before they are asked about, and nothing is there until they are approved.
    terminal.wait_for("Apply these changes to your files in");
    terminal.wait_for("[?] help  [n] reject > ");
    let shown = terminal.screen();
    for line in ["added runyard-demo.md +10 −0", "+# A note from the demo agent"] {
        assert!(shown.lines().any(|shown| shown == line), "{line} is not in {shown}");
    }
    assert!(!place.folder.join("runyard-demo.md").exists());
    terminal.type_line("r");
    terminal.wait_for("That is no answer; ? says which there are.");
    terminal.wait_for("[?] help  [n] reject > ");
    terminal.type_line("y");
    terminal.wait_for("completed");
    assert!(place.folder.join("runyard-demo.md").exists());
    let raw = terminal.raw();
    assert!(raw.contains("\u{1b}[1;33mapproval needed:"), "no colours: {raw:?}");
    // The progress line: what turns, the state and the time, taken away before anything else is printed.
    let progress = ["preparing 0s", "running 0s"].map(|line| raw.contains(line));
    assert!(progress.contains(&true), "no progress line: {raw:?}");
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    assert!(!screen.contains("running 0s") && screen.contains("approved by owner"), "{screen}");
}

#[test]
fn c12_what_was_typed_before_a_question_was_shown_does_not_answer_it() {
    let place = Place::unlisted(Home::new());
    let mut terminal = place.terminal(&["run", "look around"]);
    // Three lines, more than are asked for; the terminal keeps them for whoever reads.
    terminal.type_line("y\ny\ny");
    terminal.wait_for("[y/N] ");
    terminal.type_line("y");
    terminal.type_line("y");
    terminal.wait_for("[n] reject > ");
    terminal.type_line("n");
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(1), "{screen}");
    assert!(screen.lines().last().unwrap().starts_with("cancelled by owner"), "{screen}");
}

#[test]
fn c12_no_on_the_terminal_ends_the_run() {
    let place = Place::new(Home::new());
    let mut terminal = place.terminal(&["run", "look around"]);
    terminal.wait_for("[n] reject > ");
    terminal.type_line("n");
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(1));
    assert!(screen.lines().last().unwrap().starts_with("cancelled by owner"), "{screen}");
}

#[test]
fn a19_ctrl_c_on_the_terminal_cancels_while_it_asks() {
    let place = Place::new(Home::new());
    let mut terminal = place.terminal(&["run", "look around"]);
    terminal.wait_for("[n] reject > ");
    send(terminal.pid(), Signal::INT);
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(130), "{screen}");
    assert!(screen.ends_with("cancelled by owner: Ctrl-C at the terminal"), "{screen}");
}

#[test]
fn c12_what_is_answered_elsewhere_is_not_asked_any_more() {
    let place = Place::new(Home::new());
    let _hub = place.home.up();
    let mut terminal = place.terminal(&["run", "look around", "--keep"]);
    terminal.wait_for("[n] reject > ");
    let [id] = &place.open(1)[..] else { panic!() };
    place.approve(id);
    let (exit, screen) = terminal.ended();
    assert_eq!(exit, Some(0), "{screen}");
    assert!(screen.lines().any(|line| line == "approved by owner"), "{screen}");
    let (_, after) = screen.split_once("approved by owner").unwrap();
    assert!(!after.contains("Run this command"), "what is decided is not asked below it: {screen}");
    let again = place.home.run(["approvals", "approve", id, "--output", "text"]);
    assert_eq!((again.exit, again.stdout.trim()), (0, "approved by owner before"), "nobody is asked again");
}

#[test]
fn a_hub_in_a_command_answers_other_processes_too() {
    let place = Place::new(Home::new());
    let mut followed = place.follow(&["run", "look around", "--keep"]);
    followed.until("run.approval.requested");
    let [id] = &place.open(1)[..] else { panic!() };
    place.approve(id);
    let (exit, seen) = followed.ended();
    assert_eq!(exit, Some(0), "{seen:?}");
    check_timeline(&seen, &place.events(seen[0]["runId"].as_str().unwrap()));
}

#[test]
fn a_run_goes_on_when_the_command_that_was_its_hub_has_ended() {
    let place = Place::new(Home::new());
    let mut first = place.follow(&["run", "first", "--keep"]);
    first.until("run.approval.requested");
    let mut second = place.follow(&["run", "second", "--keep"]);
    second.until("run.approval.requested");
    let [one, other] = &place.open(2)[..] else { panic!() };
    place.approve(one);
    assert_eq!(first.ended().0, Some(0));
    // Whoever approves now finds the second command's hub.
    eventually("the second command is the hub", || {
        let told = std::fs::read_to_string(place.home.path("hub.json")).ok()?;
        let told: Value = serde_json::from_str(&told).ok()?;
        (told["pid"] == second.child.id()).then_some(())
    });
    place.approve(other);
    let (exit, seen) = second.ended();
    assert_eq!(exit, Some(0), "{seen:?}");
    check_timeline(&seen, &place.events(seen[0]["runId"].as_str().unwrap()));
}

#[test]
fn following_survives_the_death_of_the_hub() {
    let place = Place::new(Home::new());
    let hub = place.home.up();
    let mut followed = place.follow(&["run", "look around", "--keep"]);
    let run = followed.until("run.approval.requested");
    hub.signal(Signal::KILL);
    assert_eq!(hub.ended().0, None);
    let _next = place.home.up();
    let [id] = &place.open(1)[..] else { panic!() };
    place.approve(id);
    let (exit, seen) = followed.ended();
    assert_eq!(exit, Some(0), "{seen:?}");
    check_timeline(&seen, &place.events(&run));
}

#[test]
fn commands_that_start_at_once_share_one_hub() {
    let place = Place::new(Home::new());
    let listing = || place.home.command(["runs", "list"]).spawn().unwrap();
    let all: Vec<Child> = (0..6).map(|_| listing()).collect();
    for child in all {
        Ran::from(child.wait_with_output().unwrap()).data();
    }
}

#[test]
fn tables_for_people_fit_a_terminal() {
    let place = Place::new(Home::with(ALLOWED));
    place.run(&["run", "look around", "--keep"]);
    for arguments in [
        &["runs", "list"][..],
        &["sessions"],
        &["agents"],
        &["backends"],
        &["edges"],
        &["workspaces", "list"],
        &["audit", "show"],
        &["policy", "show"],
        &["policy", "test", "rm -rf build && ls"],
    ] {
        let ran =
            Ran::of(place.home.command(arguments).args(["--output", "text"]).current_dir(&place.folder));
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{arguments:?}");
        let widest = ran.stdout.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 140 && !ran.stdout.contains("{\""), "{arguments:?}: {}", ran.stdout);
    }
}

#[test]
fn a_policy_test_takes_this_directory_and_says_why_for_each_part() {
    let place =
        Place::new(Home::with("[[policy.rule]]\neffect = \"deny\"\nkind = \"shell\"\nmatch = \"rm *\"\n"));
    let data = place.run(&["policy", "test", "ls && rm -rf build"]).data();
    assert_eq!(data["effect"], "deny");
    let parts: Vec<(&str, &str)> = data["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| (part["what"].as_str().unwrap(), part["effect"].as_str().unwrap()))
        .collect();
    assert_eq!(parts, [("ls", "ask"), ("rm -rf build", "deny")]);
}

#[test]
fn c16_a_run_is_started_with_a_budget_of_tokens_and_shows_what_it_used() {
    let script = "[[turn]]\n[[turn.step]]\nstatus = { input_tokens = 60, output_tokens = 41 }\n\
                  [[turn.step]]\nsay = \"Enough.\"\n[[turn.step]]\nshell = \"date -u\"\n";
    let yard = Yard::new(ALLOWED, &[Scripted { name: "spender", profile: "", script }]);
    let (_hub, _api) = yard.up();
    let run = |arguments: &[&str]| Ran::of(yard.home.command(arguments).current_dir(yard.workspace.path()));
    let spend = |tokens: &str| {
        run(&["run", "spend", "--agent", "spender", "--budget-tokens", tokens, "--output", "json"])
    };
    let ended = |ran: &Ran| serde_json::from_str::<Value>(&ran.stdout).unwrap()["data"]["run"].clone();
    let beyond = ended(&spend("100"));
    assert_eq!(beyond["code"], "budget_exceeded", "{beyond}");
    let within = ended(&spend("101"));
    assert_eq!(within["state"], "completed", "{within}");
    let shown = run(&["runs", "show", within["id"].as_str().unwrap(), "--output", "text"]).stdout;
    let line = shown.lines().find(|line| line.starts_with("tokens ")).unwrap_or_else(|| panic!("{shown}"));
    assert!(line.contains("  60 in, 41 out"), "{line}");
    assert_eq!(spend("many").exit, 2);
    assert!(run(&["run", "--help"]).stdout.contains("--budget-tokens <TOKENS>"));
}

#[test]
fn a19_where_only_the_end_is_printed_it_is_said_that_an_approval_is_waited_for() {
    let place = Place::new(Home::new());
    let mut child = place
        .home
        .command(["run", "look around", "--keep", "--output", "json"])
        .current_dir(&place.folder)
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let told = "waits for an approval: runyard approvals approve ";
    let id = line.trim_end().strip_prefix(told).unwrap_or_else(|| panic!("{line}"));
    place.approve(id);
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn a19_a_failure_in_text_says_what_kind_it_is() {
    let backend = "[backend.other]\ncommand = [\"/bin/true\"]\nrequired_secret_keys = []\n\
                   [agent.other]\nlabel = \"Other\"\n";
    let place = Place::new(Home::with(backend));
    let ran = place.run(&["run", "look around", "--agent", "other", "--output", "text"]);
    assert_eq!(ran.exit, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("failed [runtime_unavailable, backend-spawn-failed] "), "{}", ran.stdout);
}
