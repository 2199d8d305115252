//! The quickstart of the README, run as it stands there: what is typed is typed, and what is shown is what comes.
//!
//! Ids, times, sizes and paths differ from run to run and are compared by what they are.
//!
//! clause: C12

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use rustix::process::Signal;

use support::terminal::Terminal;
use support::{Home, eventually, send};

const README: &str = include_str!("../../../README.md");
/// A line of this stands for any lines.
const AND_SO_ON: &str = "…";
/// What a person is asked ends so.
const PROMPTS: [&str; 2] = ["[y/N] ", "[n] reject > "];

/// A command of the README with what it shows.
#[derive(Debug)]
struct Step {
    command: String,
    shown: Vec<String>,
}

fn steps() -> Vec<Step> {
    let (_, after) = README.split_once("<!-- quickstart:").expect("the README has a quickstart");
    let (part, _) = after.split_once("\n## ").unwrap();
    let mut steps = Vec::new();
    for block in part.split("```console\n").skip(1) {
        let (block, _) = block.split_once("```").unwrap();
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                // What a run shows of the agent's commands looks the same.
                Some(command) if ["runyard ", "mkdir "].iter().any(|word| command.starts_with(word)) => {
                    steps.push(Step { command: command.to_owned(), shown: Vec::new() });
                }
                _ => steps.last_mut().unwrap().shown.push(line.to_owned()),
            }
        }
    }
    steps
}

/// What the ids of the README are in this run.
type Ids = BTreeMap<String, String>;

fn ids(line: &str) -> Vec<String> {
    let ids = Regex::new("(run|apr)_[0-9a-f]{32}").unwrap();
    ids.find_iter(line).map(|id| id.as_str().to_owned()).collect()
}

/// The command with the ids of this run.
fn meant(ids: &Ids, command: &str) -> String {
    ids.iter().fold(command.to_owned(), |command, (told, real)| command.replace(told, real))
}

/// A line by what it says, without what differs from run to run.
fn alike(line: &str) -> String {
    let table = [
        ("(run|apr)_[0-9a-f]{32}", "$1_<id>"),
        (r"^[d-][rwx-]{9} .*:\d\d (.+)$", "<listed> $1"),
        (r"^total \d+", "total <n>"),
        (r"\b\d\d:\d\d:\d\d\b", "<time>"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
        (r"\b\d+ (s|min|h|days) ago", "<age>"),
        (r"\bin \d+ days", "<days>"),
        (r"\bin \d+\.\d s$", "in <time>"),
        (r"\b\d+ (ms|bytes)$", "<n> $1"),
        (r" {2,}", " "),
    ];
    table.iter().fold(line.trim().to_owned(), |line, (pattern, by)| {
        Regex::new(pattern).unwrap().replace_all(&line, *by).into_owned()
    })
}

/// Holds what comes against what the README shows, and learns which id is which.
#[track_caller]
fn compare(step: &Step, found: &[String], known: &mut Ids) {
    let mut rest = found;
    for (at, line) in step.shown.iter().enumerate() {
        if line == AND_SO_ON {
            let Some(next) = step.shown.get(at + 1) else { return };
            let skipped = rest.iter().position(|line| alike(line) == alike(next));
            rest = &rest[skipped.unwrap_or_else(|| panic!("{next:?} never comes: {step:#?} {found:#?}"))..];
            continue;
        }
        let Some((came, more)) = rest.split_first() else { panic!("{line:?} never comes: {found:#?}") };
        assert_eq!(alike(line), alike(came), "{step:#?}\n{found:#?}");
        for (told, real) in ids(line).into_iter().zip(ids(came)) {
            assert_eq!(*known.entry(told).or_insert_with(|| real.clone()), real, "{step:#?}");
        }
        rest = more;
    }
    assert_eq!(rest, &[] as &[String], "more comes than the README shows: {step:#?}");
}

struct Session {
    home: Home,
    folder: PathBuf,
    ids: Ids,
    hub: Option<Terminal>,
}

impl Session {
    fn shell(&self, line: &str) -> Command {
        let mut command = self.home.command(["unused"]);
        let environment: Vec<_> =
            command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
        command = Command::new("sh");
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let programs = Path::new(env!("CARGO_BIN_EXE_runyard")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        command.args(["-c", line]).current_dir(&self.folder).env("PATH", path).env("NO_COLOR", "1");
        // Whoever has the default port on this machine keeps it.
        command.env("RUNYARD_LISTEN", "127.0.0.1:0");
        command
    }

    /// What comes, line by line.
    fn found(&self, screen: &str) -> Vec<String> {
        let told = screen.replace(self.folder.to_str().unwrap(), "/home/ada/hello");
        told.lines().map(str::to_owned).collect()
    }

    fn play(&mut self, step: &Step) {
        let command = meant(&self.ids, &step.command);
        if !command.starts_with("runyard ") {
            let output = self.shell(&format!("{command} && pwd")).output().unwrap();
            assert!(output.status.success(), "{step:?}");
            self.folder = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
            return;
        }
        let mut terminal = Terminal::of(&mut self.shell(&format!("exec {command}")));
        if command == "runyard up" {
            terminal.wait_for("stop with Ctrl-C");
            let found = self.found(&terminal.screen());
            compare(step, &found, &mut self.ids);
            self.hub = Some(terminal);
            return;
        }
        for line in &step.shown {
            for prompt in PROMPTS {
                if let Some((_, answer)) = line.split_once(prompt) {
                    terminal.wait_for(prompt);
                    terminal.type_line(answer);
                }
            }
        }
        let (exit, screen) = terminal.ended();
        assert_eq!(exit, Some(0), "{step:?}\n{screen}");
        let found = self.found(&screen);
        compare(step, &found, &mut self.ids);
    }
}

#[test]
fn the_quickstart_of_the_readme_is_what_really_happens() {
    let home = Home::new();
    let folder = home.beside("terminal");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    let mut session = Session { home, folder, ids: Ids::default(), hub: None };
    let steps = steps();
    assert!(steps.len() >= 9, "{steps:#?}");
    for step in &steps {
        // A person looks for what is asked when it has been asked, and at the end when it has come.
        if step.command == "runyard approvals list" {
            let open = || session.home.run(["approvals", "list"]).stdout.contains("apr_").then_some(());
            eventually("an approval is open", open);
        }
        if step.command.starts_with("runyard runs show") {
            let run = meant(&session.ids, step.command.rsplit(' ').next().unwrap());
            let ended =
                || session.home.run(["runs", "show", &run]).stdout.contains("\"completed\"").then_some(());
            eventually("the run is completed", ended);
        }
        session.play(step);
    }
    let hub = session.hub.take().expect("the quickstart starts a hub");
    send(hub.pid(), Signal::INT);
    assert_eq!(hub.ended().0, Some(0));
}
