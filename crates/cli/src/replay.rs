//! `runyard replay`: derives a run from its log again, and says whether what is stored is the same.
//!
//! It is no action under another name, since what differs is an exit code.

use clap::{Arg, ArgMatches, Command};
use runyard::ActionError;
use runyard_surfaces::cli::{ExtraCommand, ExtraRun};
use serde_json::json;

use crate::home::Home;
use crate::hub_here::{AnyHub, Stay};
use crate::run::data;
use crate::views;

/// What the command ends with where something differs.
const DIFFERS: u8 = 1;

pub(crate) fn command(home: Home) -> ExtraCommand {
    let command = Command::new("replay")
        .about("Derive a run from its log again, and say whether what is stored differs")
        .after_help(
            "The log is read from its first event: the chain of hashes, every state, what the run came to, its approvals, \
             and the conversation where our own agent keeps it there. Nothing is changed. Not compared: when the row was written, \
             timers, leases and the outbox, which do not follow from the log, and the rows of earlier runs of the conversation.\n\n\
             Exit codes: 0 nothing differs, 1 something does; errors have their own, which may be 1 too: --output json tells \
             them apart by \"ok\".",
        )
        .arg(Arg::new("run").value_name("RUN").required(true).help("The run's id"));
    let run = move |matches: ArgMatches| Box::pin(run(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

async fn run(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    let hub = AnyHub::get(&home, Stay::ForOneCall).await?;
    let input = json!({ "id": matches.get_one::<String>("run") });
    let replayed = hub.client().invoke("run_replay", input, false, None).await;
    hub.stop().await;
    let replayed = data(replayed?)?;
    let same = replayed["replay"]["same"] == true;
    Ok(views::show(&matches, "run_replay", replayed).max(if same { 0 } else { DIFFERS }))
}
