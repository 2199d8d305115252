//! `runyard diff`, `apply` and `undo`: what a run changed, and bringing it to your files or back.
//!
//! Applying is an approval, whoever asks for it: that of the run itself while it waits for it, or else that of a new run, which is
//! followed to its end.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::{ActionError, Code};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, cancelled_by_signal, compare_manifests, one_line};
use serde_json::{Value, json};

use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_here::{AnyHub, Stay};
use crate::run::{Shown, data, to_the_end};
use crate::{patches, views};

/// How many files of a diff are looked through at most.
const FILES_MAX: usize = 50_000;

pub(crate) fn commands(home: &Home) -> Vec<ExtraCommand> {
    let run = || Arg::new("id").value_name("RUN").required(true).help("The run's id");
    let file = |help: &'static str| {
        Arg::new("file").long("file").value_name("PATH").action(ArgAction::Append).help(help)
    };
    let confirm = || {
        Arg::new("confirm")
            .long("confirm")
            .action(ArgAction::SetTrue)
            .help("Do not ask again before applying")
    };
    let diff = Command::new("diff")
        .about("Show what a run changed; with two files, whether a manifest is compatible with an older one")
        .args([run(), file("Only this file; may be repeated")])
        .arg(
            Arg::new("new")
                .value_name("FILE")
                .help("Compare manifests: RUN is the old one, this the new one"),
        )
        .arg(Arg::new("stat").long("stat").action(ArgAction::SetTrue).help("Only which files, and how much"));
    let apply = Command::new("apply")
        .about("Bring what a run changed to your files")
        .after_help(
            "Without --file everything is applied but protected files, which must be named. A --hunk belongs to the \
             --file before it. Nothing is written where your files changed in the same places.",
        )
        .args([run(), file("Only this file; may be repeated"), confirm()])
        .arg(
            Arg::new("hunk")
                .long("hunk")
                .value_name("N")
                .action(ArgAction::Append)
                .value_parser(clap::value_parser!(u32).range(1..))
                .help("Only this hunk of the file: 1, 2, 3, …; may be repeated"),
        )
        .arg(Arg::new("branch").long("branch").value_name("NAME").help("Commit to a new branch; your files stay"))
        .arg(
            Arg::new("commit")
                .long("commit")
                .action(ArgAction::SetTrue)
                .conflicts_with("branch")
                .help("Also commit, on the branch that is checked out"),
        );
    let undo = Command::new("undo").about("Take back what a run applied").args([run(), confirm()]);
    let extra = |command: Command, does: Does| {
        let home = home.clone();
        let run = move |matches: ArgMatches| Box::pin(run_command(home, does, matches)) as ExtraRun;
        ExtraCommand { command, run: Box::new(run) }
    };
    vec![extra(diff, Does::Diff), extra(apply, Does::Apply), extra(undo, Does::Undo)]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Diff,
    Apply,
    Undo,
}

async fn run_command(home: Home, does: Does, matches: ArgMatches) -> Result<u8, ActionError> {
    if let (Does::Diff, Ok(Some(new))) = (does, matches.try_get_one::<String>("new")) {
        return Ok(compare_manifests(&matches, &id(&matches), new));
    }
    let stay = if does == Does::Diff { Stay::ForOneCall } else { Stay::WithCommand };
    let mut hub = AnyHub::get(&home, stay).await?;
    let outcome = match does {
        Does::Diff => diff(hub.client(), &matches).await,
        Does::Apply | Does::Undo => carry(&home, &mut hub, does, &matches).await,
    };
    hub.stop().await;
    outcome
}

async fn call(client: &HubClient, action: &str, input: Value) -> Result<Value, ActionError> {
    data(client.invoke(action, input, true, None).await?)
}

async fn diff(client: &HubClient, matches: &ArgMatches) -> Result<u8, ActionError> {
    let id = id(matches);
    let mut found = whole(client, &id).await?;
    let wanted: Vec<String> = matches.get_many::<String>("file").into_iter().flatten().cloned().collect();
    if !wanted.is_empty() {
        let files = wanted.iter().map(|name| named(&found, name)).collect::<Result<Vec<_>, _>>()?;
        found["files"] = Value::Array(files);
    }
    if matches.get_flag("stat") {
        return Ok(views::show(matches, "run_diff", found));
    }
    let form = matches.get_one::<String>("output").map(String::as_str);
    if !matches!(form, None | Some("text")) {
        let mut bodies = Vec::new();
        for file in found["files"].as_array().into_iter().flatten() {
            bodies.push(call(client, "run_diff_file", json!({"id": id, "file": file["id"]})).await?);
        }
        found["bodies"] = Value::Array(bodies);
        return Ok(views::show(matches, "run_diff", found));
    }
    patches::print(client, &id, &found).await?;
    Ok(0)
}

/// All files of a diff.
async fn whole(client: &HubClient, id: &str) -> Result<Value, ActionError> {
    let mut found = call(client, "run_diff", json!({"id": id, "limit": 500})).await?;
    while let Some(next) = found["next"].as_u64().filter(|next| (*next as usize) < FILES_MAX) {
        let page = call(client, "run_diff", json!({"id": id, "after": next, "limit": 500})).await?;
        if let (Some(files), Value::Array(more)) = (found["files"].as_array_mut(), page["files"].clone()) {
            files.extend(more);
        }
        found["next"] = page["next"].clone();
    }
    Ok(found)
}

/// A file of a diff, by its path or its id.
fn named(found: &Value, name: &str) -> Result<Value, ActionError> {
    let is_it = |file: &&Value| file["path"] == name || file["id"] == name;
    let file = found["files"].as_array().into_iter().flatten().find(is_it);
    file.cloned().ok_or_else(|| {
        let message = format!("The run did not change {}; see \"runyard diff --stat\".", one_line(name));
        ActionError::new(Code::NotFound, message)
    })
}

fn id(matches: &ArgMatches) -> String {
    matches.get_one::<String>("id").cloned().unwrap_or_default()
}

async fn carry(home: &Home, hub: &mut AnyHub, does: Does, matches: &ArgMatches) -> Result<u8, ActionError> {
    let confirmed = matches.get_flag("confirm");
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !confirmed && !terminal {
        let message = "Look at it first with \"runyard diff\", then repeat the command with --confirm.";
        return Err(ActionError::new(Code::ConfirmationRequired, message));
    }
    let (client, id) = (hub.client(), id(matches));
    let made = match does {
        Does::Undo => call(client, "run_undo", json!({"id": id})).await?,
        _ => {
            let found = whole(client, &id).await?;
            let selection = selection(matches, &found)?;
            let run = call(client, "run_show", json!({"id": id})).await?;
            let asks = found["diff"]["approvalId"].clone();
            let open = run["run"]["openApprovals"].as_array().into_iter().flatten().any(|open| *open == asks);
            if open {
                return answer(client, matches, &found, asks, selection, confirmed).await;
            }
            let mut input = json!({"id": id, "digest": found["diff"]["digest"]});
            if let Some(selection) = selection {
                input["selection"] = selection;
            }
            if let Some(branch) = matches.get_one::<String>("branch") {
                input["branch"] = branch.clone().into();
            }
            input["commit"] = matches.get_flag("commit").into();
            call(client, "run_apply", input).await?
        }
    };
    to_the_end(home, hub, &made, Shown::asked_for(matches), confirmed, &cancelled_by_signal()).await
}

/// The run itself waits for this answer.
async fn answer(
    client: &HubClient,
    matches: &ArgMatches,
    found: &Value,
    approval: Value,
    selection: Option<Value>,
    confirmed: bool,
) -> Result<u8, ActionError> {
    if matches.get_flag("commit") || matches.contains_id("branch") {
        let message = "The run still waits to apply its changes to your files: answer that first (\"runyard apply\" without \
                       --branch and --commit, or \"runyard approvals reject\").";
        return Err(ActionError::new(Code::Conflict, message));
    }
    if !confirmed {
        patches::print(client, &id(matches), found).await?;
        patches::confirm("Apply exactly this to your files? [y/N] ").await?;
    }
    let mut input = json!({"id": approval, "decision": "approve", "digest": found["diff"]["digest"]});
    if let Some(selection) = selection {
        input["selection"] = selection;
    }
    let resolved = call(client, "approval_resolve", input).await?;
    Ok(views::show(matches, "approval_resolve", resolved))
}

/// The files and hunks that were named; a hunk belongs to the file before it.
fn selection(matches: &ArgMatches, found: &Value) -> Result<Option<Value>, ActionError> {
    let at = |name: &str| matches.indices_of(name).into_iter().flatten();
    let files = at("file").zip(matches.get_many::<String>("file").into_iter().flatten());
    let hunks = at("hunk").zip(matches.get_many::<u32>("hunk").into_iter().flatten());
    let files: BTreeMap<usize, &String> = files.collect();
    let mut chosen: BTreeMap<usize, Vec<u32>> = files.keys().map(|at| (*at, Vec::new())).collect();
    for (at, hunk) in hunks {
        let Some((_, hunks)) = chosen.range_mut(..at).next_back() else {
            let message = "A --hunk belongs to the --file before it: name the file first.";
            return Err(ActionError::new(Code::ValidationError, message));
        };
        hunks.push(*hunk);
    }
    if chosen.is_empty() {
        return Ok(None);
    }
    let mut selection = Vec::new();
    for (at, hunks) in chosen {
        let file = named(found, files.get(&at).map_or("", |name| name.as_str()))?["id"].clone();
        selection.push(if hunks.is_empty() {
            json!({"file": file})
        } else {
            json!({"file": file, "hunks": hunks})
        });
    }
    Ok(Some(Value::Array(selection)))
}
