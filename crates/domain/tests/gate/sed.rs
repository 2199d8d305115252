//! What a real GNU `sed` does, held against the gate: no script that runs a command or writes a file is taken for one that edits.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use crate::support::{allow, judged};
use runyard_domain::gate::{Effect, RuleKind};

/// Scripts that run `touch hit` or write that file, where another reading finds no more than lists, texts, names and replacements.
const SCRIPTS: [&str; 14] = [
    // Lists of characters that the first bracket does not end.
    "s/[]/]/ /;e touch hit #/ p",
    "s/[^]/]/ /;e touch hit #/ p",
    "s/[[:alpha:]/]/ /;e touch hit #/ p",
    "s/[[.a.]/]/ /;e touch hit #/ p",
    "s/[[=a=]/]/ /;e touch hit #/ p",
    "s/[]/]/ /;w hit\n#/ p",
    // Texts that go on in the next line.
    "a\\\ns/\ne touch hit\n/x/ d",
    "i\\\ns/\ne touch hit\n/x/ d",
    "1c\\\ns/\ne touch hit\n/x/ d",
    "a x\\\ns/\ne touch hit\n/x/ d",
    "1i\\  x\\\n s/\nw hit\n/x/ p",
    "$a\\x\\\\\\\ns/\ne touch hit\n/x/ d",
    "/a/c x\\\ny/\ne touch hit\n/x/ d",
    // A name that goes on.
    ":a,s/x/\ne touch hit\n/x/ d",
];

/// A directory of its own with one file.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("sed-{name}-{}", std::process::id());
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&directory).unwrap();
        Directory(directory)
    }

    /// Whether the script runs `touch hit` or writes that file.
    fn hits(&self, options: &[&str], script: &str) -> bool {
        fs::write(self.0.join("f"), "a\nb/\n[]]x\nx y\n").unwrap();
        let run = Command::new("sed")
            .args(options)
            .args([script, "f"])
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        run.unwrap();
        fs::remove_file(self.0.join("hit")).is_ok()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// No other `sed` runs commands.
fn is_gnu() -> bool {
    let version = Command::new("sed").arg("--version").stderr(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&version.stdout).contains("GNU sed")
}

fn effect(options: &[&str], script: &str) -> Effect {
    let quoted = script.replace('\'', "'\\''");
    judged(&[allow(RuleKind::Shell, "sed *")], &format!("sed {} '{quoted}' f", options.join(" "))).effect
}

#[test]
fn c11_a_script_of_sed_that_hides_a_command_is_asked_about() {
    let directory = Directory::new("scripts");
    for script in SCRIPTS {
        for options in [&[][..], &["-n"], &["-E", "-e"]] {
            assert!(!is_gnu() || directory.hits(options, script), "sed does not do it: {script}");
            assert_eq!(effect(options, script), Effect::Ask, "{script}");
        }
    }
}

/// Pieces of expressions and replacements, and what would do something if they ended before it.
fn expression() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "[",
        "]",
        "[]",
        "[^]",
        "[^",
        "[:alpha:]",
        "[.a.]",
        "[=a=]",
        "a",
        "\\",
        "/",
        "\\/",
        "\\]",
        "\\[",
        "*",
        "#",
        ";e touch hit #",
        ";w hit\n",
        "\ne touch hit\n",
        "}\ne touch hit\n",
    ]);
    prop::collection::vec(pieces, 0..6).prop_map(|pieces| pieces.concat())
}

fn command() -> impl Strategy<Value = String> {
    let flags = prop::sample::select(vec!["", "g", "p", " p", "I"]);
    let delimiter = prop::sample::select(vec!["/", "/", "|", ":", "]", ".", "a", " "]);
    let changed = prop::sample::select(vec!["a", "[", "[]", "]", "ab", "\\/"]);
    let text = prop::sample::select(vec![
        "", "x", "\\", "\\\n", "x\\", "x\\\\", "\\x\\ ", "s/", "}", "x\\\ns/", "\\\ns/",
    ]);
    let other = prop::sample::select(vec![
        "p",
        "d",
        "N",
        "l 3",
        "#x\\",
        "{",
        "}",
        "{p",
        ":a",
        "b",
        "t a;s/x/",
        "e touch hit",
    ]);
    prop_oneof![
        (delimiter, expression(), expression(), flags)
            .prop_map(|(d, from, to, flags)| format!("s{d}{from}{d}{to}{d}{flags}")),
        (changed.clone(), changed).prop_map(|(from, to)| format!("y/{from}/{to}/")),
        (prop::sample::select(vec!["a", "i", "c", "a "]), text)
            .prop_map(|(command, text)| format!("{command}{text}")),
        other.prop_map(str::to_owned),
    ]
}

fn script() -> impl Strategy<Value = String> {
    let address = prop_oneof![
        prop::sample::select(vec!["", "", "1", "$!", "1,+2", "/a/I"]).prop_map(str::to_owned),
        expression().prop_map(|expression| format!("/{expression}/")),
    ];
    let end =
        prop::sample::select(vec![";", "\n", "\n", "}", " ", "\\\n", "\ne touch hit\n", ";e touch hit #"]);
    let commands = prop::collection::vec((address, command(), end), 1..4);
    let rest = prop::sample::select(vec!["", "p", "/x/p", "#/ p", "//"]);
    (commands, rest).prop_map(|(commands, rest)| {
        let commands = commands.into_iter().map(|(address, command, end)| format!("{address}{command}{end}"));
        format!("{}{rest}", commands.collect::<String>())
    })
}

fn cases() -> ProptestConfig {
    let cases = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => 500,
        Ok("soak") => 100_000,
        _ => 2_000,
    };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn c11_whatever_script_of_sed_is_allowed_runs_and_writes_nothing() {
    if !is_gnu() {
        return;
    }
    let directory = Directory::new("any");
    let options =
        prop::sample::select(vec![vec![], vec!["-n"], vec!["-s"], vec!["-z"], vec!["-E"], vec!["--posix"]]);
    let mut runner = proptest::test_runner::TestRunner::new(cases());
    let held = runner.run(&(options, script()), |(options, script)| {
        let is_allowed = effect(&options, &script) == Effect::Allow;
        prop_assert!(!is_allowed || !directory.hits(&options, &script), "{}", script);
        Ok(())
    });
    held.unwrap();
}
