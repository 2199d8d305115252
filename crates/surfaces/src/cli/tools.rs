//! The tools around the actions: list, JSON runner, manifest, diff, lint, documents, definitions for
//! language models, completions.

use std::sync::Arc;

use clap::{Arg, ArgMatches, Command};
use runyard_actions::{ActionError, Envelope, Issue};
use runyard_domain::{Code, Surface};
use serde_json::{Value, json};
use tokio::io::BufReader;

use super::flags::action_command;
use super::output::{Mode, show};
use super::terminal_text::{json_for_stdout, one_line};
use super::{ActionCommands, Cli, cancelled_by_signal, llm_tools, output_flag, print, print_json, table};
use crate::lint::Severity;
use crate::manifest_diff::{Change, ManifestDiff, Verdict, diff_manifests};
use crate::{action_docs, json_runner, lint, manifest};

pub(super) fn commands() -> Vec<Command> {
    let file =
        |name: &'static str, help: &'static str| Arg::new(name).value_name("FILE").required(true).help(help);
    let shells = ["bash", "elvish", "fish", "powershell", "zsh"];
    vec![
        Command::new("actions").about("List the actions").arg(output_flag()),
        Command::new("json")
            .about("Read payloads {\"action\", \"input\", …} from standard input, answer envelopes"),
        Command::new("manifest").about("Print all actions with their schemas as JSON"),
        Command::new("diff")
            .about("Compare two manifests: is the new one compatible for callers? Exits with 1 if not")
            .arg(file("old", "The manifest that callers know"))
            .arg(file("new", "The manifest to be released"))
            .arg(output_flag()),
        Command::new("lint").about("Say what is probably not meant in the definitions").arg(output_flag()),
        Command::new("docs").about("Print the actions as a Markdown page"),
        llm_tools::command(),
        Command::new("completions")
            .about("Print a completion script for a shell")
            .arg(Arg::new("shell").required(true).value_parser(shells)),
    ]
}

pub(super) async fn run(cli: &Cli, name: &str, matches: &ArgMatches, mode: Mode) -> u8 {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    match name {
        "actions" => actions(cli, mode),
        "json" => json_lines(cli).await,
        "manifest" => print_json(&manifest::manifest(&cli.name, &cli.version, &cli.runtime)),
        "diff" => diff(text("old"), text("new"), mode),
        "lint" => linted(cli, mode),
        "tools" => llm_tools::run(cli, matches, mode).await,
        "docs" => print(&action_docs::action_docs(&cli.name, &cli.runtime)),
        _ => completions(cli, text("shell")),
    }
}

fn actions(cli: &Cli, mode: Mode) -> u8 {
    let listed = cli.runtime.listed(Surface::Cli, &cli.actor);
    if mode != Mode::Text {
        let manifests: Vec<Value> = listed.map(runyard_actions::Action::manifest).collect();
        return print_json(&json!({ "actions": manifests }));
    }
    let rows: Vec<Value> = listed
        .map(|action| {
            let spec = action.spec();
            let about = spec.description.lines().next().unwrap_or_default();
            json!({"name": spec.name, "effects": spec.side_effects, "about": about})
        })
        .collect();
    print(&table::render(&Value::Array(rows)))
}

async fn json_lines(cli: &Cli) -> u8 {
    let cancel = cancelled_by_signal();
    let (input, output) = (BufReader::new(tokio::io::stdin()), tokio::io::stdout());
    let actor = Arc::clone(&cli.actor);
    let answered =
        json_runner::run_spelled(&cli.runtime, actor, input, output, cancel.clone(), json_for_stdout);
    let cancelled = async {
        cancel.cancelled().await;
        // Time for a call in flight to end with its own envelope.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    };
    tokio::select! {
        exit = answered => exit.unwrap_or(1),
        () = cancelled => 130,
    }
}

pub(super) fn diff(old: &str, new: &str, mode: Mode) -> u8 {
    let compared = read(old, "old")
        .and_then(|old| read(new, "new").map(|new| (old, new)))
        .and_then(|(old, new)| diff_manifests(&old, &new).map_err(|error| Issue::root(error.to_string())));
    match compared {
        Err(issue) => super::refuse(mode, None, issue),
        Ok(diff) => {
            match mode {
                Mode::Text => print(&format!("{}\n", on_own_lines(&diff))),
                Mode::Json | Mode::Ndjson => print_json(&json!(diff)),
            };
            u8::from(diff.verdict == Verdict::Breaking)
        }
    }
}

/// The same with every text on one line: the manifests may be anyone's, and each change is one line.
fn on_own_lines(diff: &ManifestDiff) -> ManifestDiff {
    let changes = diff.changes.iter().map(|change| Change {
        action: one_line(&change.action),
        what: one_line(&change.what),
        path: one_line(&change.path),
        message: one_line(&change.message),
        verdict: change.verdict,
    });
    ManifestDiff { changes: changes.collect(), ..diff.clone() }
}

fn read(path: &str, which: &str) -> Result<Value, Issue> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Issue::at(which, format!("Cannot read {path}: {}.", error.kind())))?;
    serde_json::from_str(&text)
        .map_err(|error| Issue::at(which, format!("{path} is not valid JSON: {error}.")))
}

fn linted(cli: &Cli, mode: Mode) -> u8 {
    let findings = lint::lint(&cli.runtime);
    let failed = findings.iter().any(|finding| finding.severity == Severity::Error);
    match mode {
        Mode::Text if findings.is_empty() => print("nothing to say\n"),
        Mode::Text => print(&findings.iter().fold(String::new(), |text, finding| {
            let said = format!("{}: {} {}", finding.action, finding.rule, finding.message);
            text + &one_line(&said) + "\n"
        })),
        Mode::Json | Mode::Ndjson => print_json(&json!({ "findings": findings })),
    };
    u8::from(failed)
}

fn completions(cli: &Cli, shell: &str) -> u8 {
    let mut root = cli.root();
    let listed: Vec<_> = cli.runtime.listed(Surface::Cli, &cli.actor).cloned().collect();
    let program = cli.action_program();
    let commands = listed.iter().map(|action| action_command(&program, action).no_binary_name(false));
    match cli.actions {
        ActionCommands::TopLevel => {
            for command in commands {
                let name = command.get_name().to_owned();
                root = match root.find_subcommand(&name) {
                    Some(_) => root.mut_subcommand(name, |_| command),
                    None => root,
                };
            }
        }
        ActionCommands::BehindCall => {
            let call = Command::new("call").about("Call an action").subcommands(commands);
            root = root.mut_subcommand("call", |_| call);
        }
    }
    let Ok(shell) = shell.parse::<clap_complete::Shell>() else {
        let error = ActionError::new(Code::ValidationError, "Unknown shell.");
        return show(Mode::Json, &Envelope::refusal(Surface::Cli, None, error));
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut root, cli.name.clone(), &mut script);
    print(&String::from_utf8_lossy(&script))
}
