//! `runyard up`: a hub with its edge, until it is told to stop.

use std::io::Write;
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
use crate::hub_here::{HubHere, Stay, is_passing};

/// How long between two looks whether something is left to do, or whether the hub of another command is still there.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn command(home: Home) -> ExtraCommand {
    let command = Command::new("up")
        .about("Start Runyard on this machine: hub, edge and API")
        .arg(
            Arg::new("until-done")
                .long("until-done")
                .action(ArgAction::SetTrue)
                .help("Stop once every run is at its end; where a hub runs already, leave them to that one"),
        )
        .args(launch_flags("127.0.0.1:4710"));
    let run = move |matches: ArgMatches| Box::pin(up(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

async fn up(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
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
    HubHere::start(home, &configuration, launch, stay).await
}

/// A hub as long as there is something to do. The hub of another command goes on with all runs while it lasts, so this one comes
/// after it.
async fn until_done(home: &Home, matches: &ArgMatches, stop: &CancellationToken) -> Result<u8, ActionError> {
    loop {
        if let Some(url) = kept_by_another(home).await {
            let _ = writeln!(std::io::stderr(), "the hub at {url} goes on with all runs");
            return Ok(0);
        }
        match started(home, matches, Stay::UntilDone).await {
            Ok(here) => {
                announce(&here.client().url(), &home.token(), Some("runyard open"));
                let engine = here.engine();
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = done(&engine) => {}
                }
                here.stop().await;
                // Somebody may have asked for one more just before it answered no longer.
                if stop.is_cancelled() || !engine.has_unfinished_runs().await.map_err(failed)? {
                    return Ok(0);
                }
            }
            Err(error) if is_passing(&error) && !stop.is_cancelled() => tokio::time::sleep(LOOK).await,
            Err(error) => return Err(error),
        }
    }
}

/// Where a hub is that stays.
async fn kept_by_another(home: &Home) -> Option<String> {
    let hub = HubClient::find(home).await?;
    matches!(hub.stay(), Stay::UntilStopped | Stay::UntilDone).then(|| hub.url())
}

/// Returns when every run is at its end.
async fn done(engine: &Engine) {
    let mut committed = engine.committed();
    loop {
        match engine.has_unfinished_runs().await {
            Ok(false) => return,
            Ok(true) => {}
            Err(error) => tracing::warn!(%error, "whether runs are left cannot be read"),
        }
        tokio::time::sleep(LOOK).await;
        if committed.changed().await.is_err() {
            return;
        }
    }
}

fn failed(error: EngineError) -> ActionError {
    ActionError::new(error.code(), error.to_string())
}
