//! `runyard approvals`: the inbox over all runs, and answering from it.
//!
//! An answer is bound to the content that was looked at: approving shows it first, and sends its digest.

use std::io::{IsTerminal, Write};

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::{ActionError, Code};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, one_line};
use serde_json::{Value, json};

use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_here::{AnyHub, Stay};
use crate::run::{asked, data};
use crate::{patches, views};

pub(crate) fn command(home: Home) -> ExtraCommand {
    let id = || Arg::new("id").value_name("APPROVAL").required(true).help("The approval's id");
    let reason = || Arg::new("reason").long("reason").value_name("TEXT").help("Why; the agent is told");
    let digest = || {
        Arg::new("digest")
            .long("digest")
            .value_name("DIGEST")
            .help("Only if the content still has this digest")
    };
    let confirm = || {
        Arg::new("confirm")
            .long("confirm")
            .action(ArgAction::SetTrue)
            .help("Do not ask again before answering")
    };
    let command = Command::new("approvals")
        .about("What agents wait for, and your answers")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list")
                .about("Everything that is open, oldest first")
                .arg(Arg::new("run").long("run").value_name("RUN").help("Only of this run"))
                .arg(
                    Arg::new("after").long("after").value_name("APPROVAL").help("Only those after this one"),
                ),
        )
        .subcommand(Command::new("show").about("One approval, with exactly what is asked").arg(id()))
        .subcommand(
            Command::new("approve")
                .about("Allow exactly what is asked")
                .args([id(), reason(), digest(), confirm()])
                .arg(
                    Arg::new("scope")
                        .long("scope")
                        .value_parser(["once", "run"])
                        .default_value("once")
                        .help("Once, or whenever the same is asked in the run"),
                )
                .arg(Arg::new("answer").long("answer").value_name("JSON").help("The answer to a question")),
        )
        .subcommand(Command::new("reject").about("Refuse what is asked").args([
            id(),
            reason(),
            digest(),
            confirm(),
        ]));
    let run = move |matches: ArgMatches| Box::pin(run(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

async fn run(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    let hub = AnyHub::get(&home, Stay::ForOneCall).await?;
    let outcome = answer(hub.client(), &matches).await;
    hub.stop().await;
    outcome
}

async fn answer(client: &HubClient, matches: &ArgMatches) -> Result<u8, ActionError> {
    let Some((verb, matches)) = matches.subcommand() else { return Ok(2) };
    let text = |name: &str| matches.try_get_one::<String>(name).ok().flatten().cloned();
    if verb == "list" {
        let mut input = json!({"state": "open"});
        for name in ["run", "after"] {
            if let Some(given) = text(name) {
                input[name] = given.into();
            }
        }
        let found = data(client.invoke("approval_list", input, false, None).await?)?;
        return Ok(views::show(matches, "approval_list", found));
    }
    let id = text("id").unwrap_or_default();
    let found = data(client.invoke("approval_show", json!({"id": id}), false, None).await?)?;
    if verb == "show" {
        return Ok(views::show(matches, "approval_show", found));
    }
    let approval = &found["approval"];
    let approve = verb == "approve";
    if !matches.get_flag("confirm") {
        confirm(approval, approve).await?;
    }
    let digest = text("digest").map_or_else(|| approval["digest"].clone(), Value::String);
    let decision = if approve { "approve" } else { "reject" };
    let mut input = json!({"id": id, "decision": decision, "digest": digest});
    if let Some(reason) = text("reason") {
        input["reason"] = reason.into();
    }
    if approve {
        input["scope"] = text("scope").unwrap_or_default().into();
    }
    if let Some(answer) = text("answer") {
        input["answer"] = serde_json::from_str(&answer).unwrap_or(Value::String(answer));
    }
    let resolved = data(client.invoke("approval_resolve", input, true, None).await?)?;
    Ok(views::show(matches, "approval_resolve", resolved))
}

/// Shows exactly what is asked, and asks whether the answer is meant. Without a terminal it must be said with the command.
async fn confirm(approval: &Value, approve: bool) -> Result<(), ActionError> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let message =
            "Look at it first with \"runyard approvals show\", then repeat the command with --confirm.";
        return Err(ActionError::new(Code::ConfirmationRequired, message));
    }
    let mut stderr = std::io::stderr();
    let title = one_line(approval["title"].as_str().unwrap_or_default());
    let _ = writeln!(stderr, "{title}");
    for line in asked(approval) {
        let _ = writeln!(stderr, "{line}");
    }
    let verb = if approve { "Approve" } else { "Reject" };
    patches::confirm(&format!("{verb} exactly this? [y/N] ")).await
}
