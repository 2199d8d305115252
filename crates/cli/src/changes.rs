//! `runyard diff`, `apply` and `undo`: what a run changed, and bringing it to your files or back.
//!
//! Applying is an approval, whoever asks for it: that of the run itself while it waits for it, or else that of a new run, which is
//! followed to its end.

pub(crate) mod part;

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::{ActionError, Code};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, Interrupts, compare_manifests};
use serde_json::{Value, json};

use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_here::{AnyHub, Stay};
use crate::patches::Changes;
use crate::run::typed::{can_ask, confirm};
use crate::run::{Applying, Shown, data, for_somebody_else, from_here, to_the_end};
use crate::views;
use part::Part;

pub(crate) fn commands(home: &Home) -> Vec<ExtraCommand> {
    let run = || Arg::new("id").value_name("RUN").required(true).help("The run's id");
    let [file, _] = part::arguments();
    let confirm = || {
        Arg::new("confirm")
            .long("confirm")
            .action(ArgAction::SetTrue)
            .help("Do not ask again before applying")
    };
    let diff = Command::new("diff")
        .about("Show what a run changed; with two files, whether a manifest is compatible with an older one")
        .args([run(), file])
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
             --file before it, or names its file itself. Nothing is written where your files changed in the same places.",
        )
        .args([run(), confirm()])
        .args(part::arguments())
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
    let mut changes = Changes::of(client, &id).await?;
    let wanted: Vec<&String> = matches.get_many::<String>("file").into_iter().flatten().collect();
    if !wanted.is_empty() {
        let files = wanted.iter().map(|name| part::file(&changes.found, name).cloned());
        changes.found["files"] = Value::Array(files.collect::<Result<_, _>>()?);
    }
    if matches.get_flag("stat") {
        return Ok(views::show(matches, "run_diff", changes.found));
    }
    let form = matches.get_one::<String>("output").map(String::as_str);
    if !matches!(form, None | Some("text")) {
        let mut bodies = Vec::new();
        for file in changes.files() {
            bodies.push(call(client, "run_diff_file", json!({"id": id, "file": file["id"]})).await?);
        }
        changes.found["bodies"] = Value::Array(bodies);
        return Ok(views::show(matches, "run_diff", changes.found));
    }
    changes.print(client).await?;
    Ok(0)
}

fn id(matches: &ArgMatches) -> String {
    matches.get_one::<String>("id").cloned().unwrap_or_default()
}

async fn carry(home: &Home, hub: &mut AnyHub, does: Does, matches: &ArgMatches) -> Result<u8, ActionError> {
    let applying = if matches.get_flag("confirm") { Applying::Confirmed } else { Applying::Asked };
    if applying == Applying::Asked && !can_ask() {
        let message = "Look at it first with \"runyard diff\", then repeat the command with --confirm.";
        return Err(ActionError::new(Code::ConfirmationRequired, message));
    }
    let (client, id) = (hub.client(), id(matches));
    let made = match does {
        Does::Undo => call(client, "run_undo", json!({"id": id})).await?,
        _ => {
            let changes = Changes::of(client, &id).await?;
            let part = Part::named(matches, &changes.found)?;
            let run = call(client, "run_show", json!({"id": id})).await?;
            let asks = &changes.found["diff"]["approvalId"];
            if run["run"]["openApprovals"].as_array().into_iter().flatten().any(|open| open == asks) {
                return settle(home, hub, matches, Waiting { run, changes, part }, applying).await;
            }
            let mut input = json!({"id": id, "digest": changes.found["diff"]["digest"]});
            if let Some(part) = part {
                input["selection"] = part.selection();
            }
            if let Some(branch) = matches.get_one::<String>("branch") {
                input["branch"] = branch.clone().into();
            }
            input["commit"] = matches.get_flag("commit").into();
            call(client, "run_apply", input).await?
        }
    };
    to_the_end(home, hub, &made, Shown::asked_for(matches), applying, &Interrupts::listen()).await
}

/// A run that waits for its changes to be applied.
struct Waiting {
    /// As it was before anything is answered.
    run: Value,
    changes: Changes,
    /// What is to be applied of them; without it all.
    part: Option<Part>,
}

/// The run itself waits for this answer: it is asked as the run would have asked it, unless it is said already.
async fn settle(
    home: &Home,
    hub: &mut AnyHub,
    matches: &ArgMatches,
    waiting: Waiting,
    applying: Applying,
) -> Result<u8, ActionError> {
    if matches.get_flag("commit") || matches.contains_id("branch") {
        let message = "The run still waits to apply its changes to your files: answer that first (\"runyard apply\" without \
                       --branch and --commit, or \"runyard approvals reject\").";
        return Err(ActionError::new(Code::Conflict, message));
    }
    let Waiting { mut run, mut changes, part } = waiting;
    let (client, shown) = (hub.client(), Shown::asked_for(matches));
    if applying == Applying::Confirmed || part.is_some() || shown != Shown::Text {
        let diff = &changes.found["diff"];
        let mut input = json!({"id": diff["approvalId"], "decision": "approve", "digest": diff["digest"]});
        if let Some(part) = part {
            input["selection"] = part.selection();
            changes = changes.only(part);
        }
        if applying == Applying::Asked {
            changes.show(client).await?;
            confirm("Apply exactly this to your files? [y/N] ").await?;
        }
        let approval = input["id"].as_str().unwrap_or_default().to_owned();
        let answered = call(client, "approval_resolve", input).await;
        answered.map_err(|error| for_somebody_else(error, &approval))?;
        run["run"]["openApprovals"] = Value::Null;
    }
    from_here(home, hub, &run, shown, &Interrupts::listen()).await
}
