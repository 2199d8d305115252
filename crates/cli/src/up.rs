//! `runyard up`: a hub with its edge, until it is told to stop.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::ActionError;
use runyard_engine::{Engine, EngineError};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, cancelled_by_signal};
use runyard_surfaces::http::{Launch, announce, launch_flags};
use tokio_util::sync::CancellationToken;

use crate::configuration::{Configuration, Environment, Flags};
use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_file;
use crate::hub_here::{HubHere, Stay, is_passing};

/// How long between two looks whether something is left to do, or whether the hub of another command is still there.
const LOOK: Duration = Duration::from_millis(200);

/// How often in a row a hub is tried that cannot start though no other has its place.
const REFUSED_MAX: u32 = 25;

pub(crate) fn command(home: Home) -> ExtraCommand {
    let switch = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let command = Command::new("up")
        .about("Start Runyard on this machine: hub, edge and API")
        .arg(switch("until-done").help(
            "Stop once every run is at its end; where a hub that stays runs already, leave them to that one",
        ))
        .arg(switch("in-background").hide(true).help("Leave the session of the terminal"))
        .args(launch_flags("127.0.0.1:4710"));
    let run = move |matches: ArgMatches| Box::pin(up(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

async fn up(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    if matches.get_flag("in-background") {
        rustix::process::setsid().map_err(std::io::Error::from)?;
    }
    let stop = cancelled_by_signal();
    if matches.get_flag("until-done") {
        return until_done(&home, &matches, &stop).await;
    }
    let here = started(&home, &matches, Stay::UntilStopped).await?;
    announce(&here.client().url(), &home.token(), Some("runyard open"));
    stop.cancelled().await;
    here.stop().await;
    Ok(0)
}

async fn started(home: &Home, matches: &ArgMatches, stay: Stay) -> Result<HubHere, ActionError> {
    let flags = Flags::of(matches);
    let configuration = Configuration::load(home.path(), None, &Environment::of_process(), &flags)
        .map_err(ActionError::from)?;
    let listen = configuration.hub().listen;
    let mut launch = Launch { listen, ..Launch::from_flags(matches, home.token()) };
    launch.origins.extend(configuration.server().origins.iter().cloned());
    HubHere::start(home, &configuration, &flags, launch, stay).await
}

/// A hub as long as there is something to do.
async fn until_done(home: &Home, matches: &ArgMatches, stop: &CancellationToken) -> Result<u8, ActionError> {
    while let Some(here) = in_turn(home, matches, stop).await? {
        announce(&here.client().url(), &home.token(), Some("runyard open"));
        let engine = here.engine();
        tokio::select! {
            () = stop.cancelled() => {}
            () = done(&engine) => {}
        }
        here.stop().await;
        // Somebody may have asked for one more just before it answered no longer.
        if stop.is_cancelled() || !engine.has_unfinished_runs().await.map_err(failed)? {
            break;
        }
    }
    Ok(0)
}

/// A hub, when its turn comes. That of another command goes on with all runs while it lasts, so this one comes after it, and one
/// that waits is enough: it looks at every run that is there by then.
async fn in_turn(
    home: &Home,
    matches: &ArgMatches,
    stop: &CancellationToken,
) -> Result<Option<HubHere>, ActionError> {
    home.make().map_err(|error| hub_file::cannot("make", home.path(), &error))?;
    let Some(_turn) = hub_file::next(home).await? else { return Ok(None) };
    let mut refused = 0;
    while !stop.is_cancelled() {
        if HubClient::find(home).await.is_some_and(|hub| hub.stay().is_lasting()) {
            return Ok(None);
        }
        match started(home, matches, Stay::UntilDone).await {
            Err(error) if is_passing(&error) && refused < REFUSED_MAX => {
                // The place of another command's hub may be taken for hours; an address that is taken stays so.
                refused = if hub_file::is_claimed(home) { 0 } else { refused + 1 };
            }
            started => return started.map(Some),
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = stop.cancelled() => {}
        }
    }
    Ok(None)
}

/// Returns when every run is at its end.
async fn done(engine: &Engine) {
    let mut committed = engine.committed();
    loop {
        match engine.has_unfinished_runs().await {
            Ok(false) => return,
            Ok(true) => {
                if committed.changed().await.is_err() {
                    return;
                }
            }
            Err(error) => tracing::warn!(%error, "whether runs are left cannot be read"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn failed(error: EngineError) -> ActionError {
    ActionError::new(error.code(), error.to_string())
}
