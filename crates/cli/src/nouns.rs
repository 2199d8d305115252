//! The commands that are actions under another name: `runs list` is `call run-list`.
//!
//! The table is all there is to them: flags, help and output come from the action.

mod backend_check;

use std::ffi::OsString;

use clap::{Arg, Command};
use runyard::Runtime;
use runyard_surfaces::cli::{ExtraCommand, ExtraRun};
use runyard_surfaces::{FieldKind, input_fields};
use serde_json::Value;

use crate::audit_bundle;
use crate::home::Home;
use crate::run::{DEFAULT_AGENT, absolute};

/// A verb: its name, the action, the flags that its plain arguments stand for, and what it does.
type Verb = (&'static str, &'static str, &'static [&'static str], &'static str);

#[rustfmt::skip]
const NOUNS: &[(&str, &str, &[Verb])] = &[
    ("runs", "Look at runs and end them", &[
        ("list", "run-list", &[], "The runs, newest first"),
        ("show", "run-show", &["id"], "One run"),
        ("events", "run-events", &["id"], "The events of a run"),
        ("cancel", "run-cancel", &["id"], "End a run"),
        ("turn", "run-command --kind=turn", &["id", "text"], "Give a run a further turn"),
        ("steer", "run-command --kind=steer", &["id", "text"], "Say something into the turn that runs"),
        ("interrupt", "run-command --kind=interrupt", &["id"], "End the turn that runs"),
        ("finish", "run-command --kind=finish", &["id"], "Let a run end that is kept open"),
    ]),
    ("workspaces", "The directories that agents may work on", &[
        ("list", "workspace-list", &[], "The allow-list"),
        ("add", "workspace-add", &["path"], "Allow a directory"),
        ("rm", "workspace-remove", &["id"], "Take a directory off the list"),
    ]),
    ("policy", "What agents may do without asking, and what never", &[
        ("show", "policy-show", &[], "The rules that count"),
        ("add", "policy-add", &["effect", "kind", "match"], "Add a rule: allow, ask or deny"),
        ("rm", "policy-remove", &["id"], "Remove a stored rule"),
        ("test", "policy-test", &["command"], "How a request would be judged, and why"),
    ]),
    ("tokens", "Named tokens for people", &[
        ("list", "token-list", &[], "The tokens, without their text"),
        ("create", "token-create", &["name", "role"], "Make a token; it is shown once"),
        ("revoke", "token-revoke", &["id"], "Revoke a token"),
    ]),
    ("audit", "Who did what", &[
        ("show", "audit-list", &[], "The entries"),
        ("verify", "audit-verify", &[], "Check the chain of entries"),
    ]),
    ("agents", "The agent profiles", &[("list", "agent-list", &[], "The agent profiles")]),
    ("backends", "The backend profiles", &[
        ("list", "backend-list", &[], "The backend profiles"),
        ("show", "backend-show", &["profile"], "One backend profile, and what bounds it"),
    ]),
    ("edges", "The edges", &[("list", "edge-list", &[], "The edges")]),
    ("sessions", "The conversations that runs share", &[
        ("list", "session-list", &[], "The sessions"),
        ("close", "session-close", &["id"], "Remove what agents keep of a conversation; what was recorded stays"),
    ]),
];

/// The commands, for help and completions. Their flags are those of the actions.
pub(crate) fn commands(runtime: &Runtime, home: &Home) -> Vec<ExtraCommand> {
    let whole = |(noun, about, verbs): &(&'static str, &'static str, &[Verb])| {
        let command = command(runtime, noun, about, verbs);
        let home = home.clone();
        // Not all verbs of these are actions.
        match *noun {
            "audit" => {
                let run = move |matches| Box::pin(audit_bundle::run(home, matches)) as ExtraRun;
                ExtraCommand { command: audit_bundle::extend(command), run: Box::new(run) }
            }
            "backends" => {
                let run = move |matches| Box::pin(backend_check::run(home, matches)) as ExtraRun;
                ExtraCommand { command: backend_check::extend(command), run: Box::new(run) }
            }
            _ => extra(command),
        }
    };
    NOUNS.iter().map(whole).collect()
}

fn command(runtime: &Runtime, noun: &'static str, about: &'static str, verbs: &[Verb]) -> Command {
    let verb = |(name, action, plain, about): &Verb| {
        let (action, set) = action.split_once(' ').unwrap_or((action, ""));
        let found = runtime.actions().find(|found| found.name() == action.replace('-', "_"));
        let schema = found.map(|found| found.spec().input.json().clone()).unwrap_or_default();
        let kinds = found.map(|found| input_fields(&found.spec().input)).unwrap_or_default();
        let fields = schema["properties"].as_object().cloned().unwrap_or_default();
        let needed = schema["required"].as_array().cloned().unwrap_or_default();
        let arg = |name: &str, field: &Value| {
            let about = field["description"].as_str().unwrap_or_default();
            let arg = Arg::new(name.to_owned()).help(about.to_owned()).value_name(name.to_uppercase());
            match kinds.iter().find(|kind| kind.path == [name]).map(|found| &found.kind) {
                Some(FieldKind::Boolean) => arg.num_args(0),
                Some(FieldKind::Text(words)) if !words.is_empty() => {
                    arg.help(format!("{about} One of: {}.", words.join(", ")))
                }
                _ => arg,
            }
        };
        let positional = plain.iter().map(|name| {
            let field = fields.get(*name).unwrap_or(&Value::Null);
            arg(name, field).required(needed.iter().any(|needed| needed == name))
        });
        let flags = fields
            .iter()
            .filter(|(name, _)| !plain.contains(&name.as_str()) && !set.starts_with(&format!("--{name}=")));
        let flags = flags.map(|(name, field)| arg(name, field).long(kebab(name)));
        let about = about.to_string();
        Command::new(*name).about(about).args(positional).args(flags)
    };
    let lists = lists_by_itself(noun, verbs);
    Command::new(noun)
        .about(about)
        .subcommand_required(!lists)
        .arg_required_else_help(!lists)
        .subcommands(verbs.iter().map(verb))
}

/// Whether the noun alone lists.
fn lists_by_itself(noun: &str, verbs: &[Verb]) -> bool {
    verbs.len() == 1 || matches!(noun, "backends" | "sessions")
}

fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            kebab.push('-');
        }
        kebab.push(if character == '_' { '-' } else { character.to_ascii_lowercase() });
    }
    kebab
}

fn extra(command: Command) -> ExtraCommand {
    // Whatever is a whole command was rewritten before; only help and mistakes come here.
    ExtraCommand { command, run: Box::new(|_| Box::pin(async { Ok(0_u8) }) as ExtraRun) }
}

/// The same command line in terms of `call`; as it is where it is none of these, or asks for help.
pub(crate) fn rewritten(arguments: Vec<OsString>, is_switch: &dyn Fn(&str, &str) -> bool) -> Vec<OsString> {
    let texts: Option<Vec<&str>> = arguments.iter().map(|argument| argument.to_str()).collect();
    match texts.as_deref().and_then(|texts| as_call(texts, is_switch)) {
        Some(call) => call.into_iter().map(OsString::from).collect(),
        None => arguments,
    }
}

/// Whether the action's flag is true where it stands alone.
pub(crate) fn is_switch(runtime: &Runtime, action: &str, flag: &str) -> bool {
    let (action, flag) = (action.replace('-', "_"), kebab(flag));
    let found = runtime.actions().find(|found| found.name() == action);
    found.is_some_and(|found| {
        let fields = input_fields(&found.spec().input);
        fields.iter().any(|field| field.kind == FieldKind::Boolean && kebab(&field.path.join(".")) == flag)
    })
}

fn as_call(arguments: &[&str], is_switch: &dyn Fn(&str, &str) -> bool) -> Option<Vec<String>> {
    let (noun, rest) = arguments.split_first()?;
    let (_, _, verbs) = NOUNS.iter().find(|(name, _, _)| name == noun)?;
    if rest.iter().any(|argument| matches!(*argument, "-h" | "--help")) {
        return None;
    }
    if *noun == "audit" && audit_bundle::is_meant(rest) {
        return None;
    }
    let by_itself = verbs.first().filter(|_| lists_by_itself(noun, verbs));
    let (verb, rest) = match (by_itself, rest.split_first()) {
        (Some(list), None) => (list, rest),
        (Some(list), Some((first, _))) if first.starts_with('-') => (list, rest),
        (_, Some((first, rest))) => (verbs.iter().find(|(name, ..)| name == first)?, rest),
        _ => return None,
    };
    let (_, action, plain, _) = verb;
    let name = action.split(' ').next().unwrap_or(action);
    let mut call = vec!["call".to_owned()];
    call.extend(action.split(' ').map(str::to_owned));
    let mut plain = plain.iter();
    let mut flags_value = false;
    for (at, argument) in rest.iter().enumerate() {
        let names = argument.starts_with("--");
        match plain.as_slice().first() {
            Some(name) if !names && !flags_value => {
                plain.next();
                call.push(format!("--{name}={}", value(name, argument)));
            }
            _ => call.push((*argument).to_owned()),
        }
        // A flag without `=` takes the argument after it; one that stands alone only what it can be.
        let alone = matches!(*argument, "--confirm" | "--schema");
        let switch = || is_switch(name, argument.trim_start_matches('-'));
        let said = || matches!(rest.get(at + 1), Some(&("true" | "false")));
        flags_value = names && !argument.contains('=') && !alone && (!switch() || said());
    }
    let named = |flag: &str| call.iter().any(|argument| argument.split('=').next() == Some(flag));
    if *action == "policy-test" && !named("--run") {
        assume(&mut call, "agent", DEFAULT_AGENT);
        assume(&mut call, "workspace", &value("path", "."));
    }
    Some(call)
}

/// Gives a flag its value where the command line has none.
fn assume(call: &mut Vec<String>, flag: &str, value: &str) {
    let (name, given) = (format!("--{flag}"), format!("--{flag}="));
    if !call.iter().any(|argument| *argument == name || argument.starts_with(&given)) {
        call.push(given + value);
    }
}

/// A directory is meant from here, and the hub may be elsewhere.
fn value(name: &str, given: &str) -> String {
    if name != "path" {
        return given.to_owned();
    }
    let path = std::path::Path::new(given);
    // What is not there has no canonical form, and is meant from here all the same.
    let meant = || std::path::absolute(path).ok()?.into_os_string().into_string().ok();
    absolute(path).ok().or_else(meant).unwrap_or_else(|| given.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_and_a_verb_are_an_action() {
        #[track_caller]
        fn check(given: &str, expected: &str) {
            let given: Vec<OsString> = given.split(' ').map(OsString::from).collect();
            let found: Vec<String> = rewritten(given, &|_, flag| flag == "dry-run")
                .into_iter()
                .map(|argument| argument.into_string().unwrap())
                .collect();
            assert_eq!(found.join(" "), expected);
        }
        check("runs list", "call run-list");
        check("runs list --state running", "call run-list --state running");
        check("runs show run_1 --output json", "call run-show --id=run_1 --output json");
        check("runs events --limit 5 run_1", "call run-events --limit 5 --id=run_1");
        check("runs turn run_1 more", "call run-command --kind=turn --id=run_1 --text=more");
        check("runs steer run_1 left", "call run-command --kind=steer --id=run_1 --text=left");
        check("runs interrupt run_1", "call run-command --kind=interrupt --id=run_1");
        check("runs cancel run_1 --reason=no", "call run-cancel --id=run_1 --reason=no");
        check("policy rm rul_1", "call policy-remove --id=rul_1");
        check("tokens create ada viewer", "call token-create --name=ada --role=viewer");
        check("tokens revoke ada", "call token-revoke --id=ada");
        check("workspaces rm site", "call workspace-remove --id=site");
        check("runs finish run_1", "call run-command --kind=finish --id=run_1");
        check("policy add deny shell rm", "call policy-add --effect=deny --kind=shell --match=rm");
        for dry in ["--dry-run", "--dry-run=false", "--dry-run false"] {
            check(
                &format!("policy add {dry} deny shell rm"),
                &format!("call policy-add {dry} --effect=deny --kind=shell --match=rm"),
            );
        }
        check(
            "policy add --agent demo deny shell --dry-run rm",
            "call policy-add --agent demo --effect=deny --kind=shell --dry-run --match=rm",
        );
        check("policy test --run run_1 ls", "call policy-test --run run_1 --command=ls");
        check("policy test ls --run=run_1", "call policy-test --command=ls --run=run_1");
        let here = absolute(std::path::Path::new(".")).unwrap();
        check("policy test ls", &format!("call policy-test --command=ls --agent=demo --workspace={here}"));
        check(
            "policy test ls --agent codex --workspace=site",
            "call policy-test --command=ls --agent codex --workspace=site",
        );
        check("workspaces add .", &format!("call workspace-add --path={here}"));
        check("agents", "call agent-list");
        check("agents --output json", "call agent-list --output json");
        check("backends", "call backend-list");
        check("backends --output json", "call backend-list --output json");
        check("backends show codex", "call backend-show --profile=codex");
        check("backends check codex", "backends check codex");
        check("runs --help", "runs --help");
        check("runs show --help", "runs show --help");
        check("runs nonsense", "runs nonsense");
        check("call run-list", "call run-list");
        check("audit verify", "call audit-verify");
        check("audit verify --output json", "call audit-verify --output json");
        check("audit verify --output json a.jsonl", "audit verify --output json a.jsonl");
        check("audit verify a.jsonl --key=sha256:0", "audit verify a.jsonl --key=sha256:0");
        check("audit verify --key sha256:0", "audit verify --key sha256:0");
        check("audit export run_1", "audit export run_1");
    }
}
