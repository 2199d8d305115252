//! `runyard audit export`, `audit verify FILE` and `audit key`: what happened in a run as one file that anybody can check.
//!
//! An export reads the record beside a running hub and writes nothing to it; checking needs neither hub nor data directory.

pub(crate) mod draft;
mod key;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use runyard::{ActionError, Code, Issue, RunId};
use runyard_engine::bundle::{self, BundleBreakKind, BundleError, Checked, Fingerprint, Origin};
use runyard_store::{Clock, SystemClock};
use runyard_surfaces::cli::{local_actor, show_data};
use serde_json::{Value, json};

use self::draft::Draft;
use crate::configuration::Configuration;
use crate::database::{Database, refused};
use crate::home::Home;
use crate::views::is_text;

/// The verbs of `audit` that are no actions, beside those that are.
pub(crate) fn extend(command: Command) -> Command {
    let path = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).value_name(value).value_parser(value_parser!(PathBuf)).help(help)
    };
    let export = Command::new("export")
        .about("Write everything that is recorded of a run into one file that anybody can check")
        .arg(Arg::new("run").value_name("RUN").required(true).help("The run"))
        .arg(path("to", "FILE", "The file; by default RUN.audit.jsonl in this directory").long("to"))
        .arg(Arg::new("force").long("force").action(ArgAction::SetTrue).help("Replace the file if it is there"))
        .after_help(
            "The file holds the events of the run and of the runs that came from it, the approvals, the entries of the audit \
             about them, the diff and what else the events refer to, and is signed with the key of this installation.\n\
             Secrets are not in it, as they are not in the record, and neither are screenshots that nobody has passed; the task, \
             messages and diffs are.",
        );
    let key = Command::new("key")
        .about("Show the public key that exports are signed with; it is made on first use");
    command
        .mut_subcommand("verify", |verify| {
            verify
                .about("Check the chain of entries, or an exported FILE without any hub")
                .arg(path("file", "FILE", "An exported file; without it the chain of entries is checked"))
                .arg(
                    Arg::new("key")
                        .long("key")
                        .value_name("FINGERPRINT")
                        .requires("file")
                        .help("Whose key must have signed FILE, as \"runyard audit key\" shows it there"),
                )
                .after_help("Exit codes of FILE: 0 it holds, 1 it does not, 2 the command line is wrong.")
        })
        .subcommands([export, key])
}

/// Whether `audit` with these arguments is one of these verbs, and no action.
pub(crate) fn is_meant(arguments: &[&str]) -> bool {
    let Some((&"verify", rest)) = arguments.split_first() else { return false };
    let mut is_value = false;
    rest.iter().any(|argument| {
        let plain = !is_value && !argument.starts_with('-');
        is_value = *argument == "--output";
        plain || *argument == "--key" || argument.starts_with("--key=")
    })
}

/// Does what one of the verbs says.
pub(crate) async fn run(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    let (data, text) = match matches.subcommand() {
        Some(("export", asked)) => exported(&home, asked).await?,
        Some(("verify", asked)) => verified(&home, asked)?,
        Some(("key", _)) => shown(&home)?,
        _ => return Ok(0),
    };
    let form = matches.get_one::<String>("output").map(String::as_str);
    Ok(show_data(&matches, if is_text(form) { text.into() } else { data }))
}

async fn exported(home: &Home, asked: &ArgMatches) -> Result<(Value, String), ActionError> {
    let run = asked.get_one::<String>("run").map(String::as_str).unwrap_or_default();
    let run: RunId = run.parse().map_err(|error| invalid(format!("RUN is {error}.")))?;
    let default = PathBuf::from(format!("{run}.audit.jsonl"));
    let path = asked.get_one::<PathBuf>("to").unwrap_or(&default);
    let force = asked.get_flag("force");
    let in_the_way =
        || ActionError::conflict(format!("{} is there already; say --force to replace it.", path.display()));
    if !force && path.symlink_metadata().is_ok() {
        return Err(in_the_way());
    }
    let database = Database::of(home, &Configuration::of_data(home)?);
    let store = database.open_to_read().await?.store();
    let key = key::own(home)?;
    let origin = Origin {
        run,
        made_at: SystemClock.now(),
        made_by: local_actor().id.clone(),
        runyard: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let unwritable = |error: std::io::Error| unwritten(path, error.into());
    let mut draft = Draft::beside(path).map_err(unwritable)?;
    let mut into = BufWriter::new(draft.file());
    let made = bundle::export(&*store, &key, origin, &mut into).await;
    let made = made.and_then(|made| into.flush().map(|()| made).map_err(BundleError::from));
    drop(into);
    let made = made.map_err(|error| unwritten(path, error))?;
    if !draft.publish(force).map_err(unwritable)? {
        return Err(in_the_way());
    }
    let left_out: Vec<String> = made.left_out.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "{} holds {} events of {}, {} approvals, {} entries of the audit and {} blobs.\nSigned with {}.",
        path.display(),
        made.events,
        counted(made.runs, "run"),
        made.approvals,
        made.entries,
        made.blobs,
        made.key,
    );
    if made.private > 0 {
        let screenshots = counted(made.private, "screenshot");
        text.push_str(&format!("\nLeft out, as their privacy review is not passed: {screenshots}."));
    }
    if left_out.len() > made.private {
        let others = left_out.len() - made.private;
        text.push_str(&format!(
            "\nLeft out, as too large or not stored any more: {}.",
            counted(others, "blob")
        ));
    }
    if !left_out.is_empty() {
        text.push_str(&format!("\nWhat is left out is named in it: {}.", left_out.join(", ")));
    }
    text.push_str(&format!(
        "\nCheck it anywhere with: runyard audit verify {} --key {}",
        path.display(),
        made.key
    ));
    let data = json!({
        "file": path.display().to_string(),
        "run": run,
        "runs": made.runs,
        "events": made.events,
        "approvals": made.approvals,
        "entries": made.entries,
        "blobs": made.blobs,
        "leftOut": left_out,
        "private": made.private,
        "key": made.key.to_string(),
    });
    Ok((data, text))
}

fn verified(home: &Home, asked: &ArgMatches) -> Result<(Value, String), ActionError> {
    let file = asked.get_one::<PathBuf>("file").map(PathBuf::as_path).unwrap_or(Path::new(""));
    let expected = asked.get_one::<String>("key").map(|key| key.parse::<Fingerprint>()).transpose();
    let expected = expected.map_err(|error| invalid(format!("--key is {error}.")))?;
    let unreadable = |error: std::io::Error| {
        let code =
            if error.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::StorageIo };
        ActionError::new(code, format!("{} cannot be read: {error}.", file.display()))
    };
    let input = BufReader::new(File::open(file).map_err(unreadable)?);
    let checked =
        bundle::verify(input).map_err(unreadable)?.map_err(|found| broken(file, &found.to_string()))?;
    if let Some(expected) = expected.filter(|expected| *expected != checked.key) {
        return Err(broken(file, &BundleBreakKind::OtherKey { found: checked.key, expected }.to_string()));
    }
    let own = key::known(home).is_some_and(|own| own == checked.key);
    Ok((told(file, &checked, own), said(file, &checked, own, expected.is_some())))
}

fn told(file: &Path, checked: &Checked, own: bool) -> Value {
    let run = |run: &bundle::CheckedRun| json!({"run": run.run, "state": run.state, "events": run.events, "head": run.head});
    json!({
        "file": file.display().to_string(),
        "holds": true,
        "run": checked.run,
        "madeAt": checked.made_at,
        "madeBy": checked.made_by,
        "runyard": checked.runyard,
        "runs": checked.runs.iter().map(run).collect::<Vec<_>>(),
        "approvals": checked.approvals,
        "entries": checked.entries,
        "blobs": checked.blobs,
        "private": checked.private,
        "leftOut": checked.left_out.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "key": checked.key.to_string(),
        "ownKey": own,
    })
}

fn said(file: &Path, checked: &Checked, own: bool, expected: bool) -> String {
    let mut lines = vec![format!("{} holds: nothing was changed, added or cut off.", file.display())];
    for run in &checked.runs {
        lines.push(format!("{}, {}, {} events", run.run, run.state.replace('_', " "), run.events));
    }
    lines.push(format!(
        "{}, {} of the audit, {}; made {} by {} with Runyard {}",
        counted(checked.approvals, "approval"),
        if checked.entries == 1 { "1 entry".to_owned() } else { format!("{} entries", checked.entries) },
        counted(checked.blobs, "blob"),
        checked.made_at,
        checked.made_by,
        checked.runyard,
    ));
    if !checked.left_out.is_empty() {
        let private = match checked.private {
            0 => String::new(),
            private => format!(", {private} of them as private"),
        };
        lines.push(format!("{} left out when it was made{private}", counted(checked.left_out.len(), "blob")));
    }
    lines.push(match (own, expected) {
        (_, true) => format!("Signed with {}, as expected.", checked.key),
        (true, _) => format!("Signed with {}, the key of this installation.", checked.key),
        (false, _) => format!(
            "Signed with {}. Whether that is the right key only its owner can say: compare it with \"runyard audit key\" there.",
            checked.key
        ),
    });
    lines.join("\n")
}

fn shown(home: &Home) -> Result<(Value, String), ActionError> {
    let key = key::own(home)?;
    let (public, fingerprint) = (key.public_key(), key.fingerprint());
    let text = format!("{fingerprint}\nEd25519 {public}");
    Ok((json!({"fingerprint": fingerprint.to_string(), "algorithm": "Ed25519", "publicKey": public}), text))
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn invalid(what: String) -> ActionError {
    ActionError::new(Code::ValidationError, "Invalid command line.").with_issues(vec![Issue::root(what)])
}

fn broken(file: &Path, found: &str) -> ActionError {
    let message =
        format!("{} does not hold: have it exported again where the run was recorded.", file.display());
    ActionError::new(Code::StorageCorrupt, message).with_issues(vec![Issue::root(format!("{found}."))])
}

fn unwritten(path: &Path, error: BundleError) -> ActionError {
    match error {
        BundleError::Storage(error) => refused(error),
        BundleError::Io(error) => {
            let code = BundleError::from(std::io::Error::from(error.kind())).code();
            ActionError::new(code, format!("{} cannot be written: {error}.", path.display()))
        }
        error => {
            let mut message = error.to_string();
            if let Some(first) = message.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            ActionError::new(error.code(), format!("{message}."))
        }
    }
}
