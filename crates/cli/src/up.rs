//! `runyard up`: a hub with its edge, until it is told to stop.

use clap::{ArgMatches, Command};
use runyard::ActionError;
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, cancelled_by_signal};
use runyard_surfaces::http::{Launch, announce, launch_flags};

use crate::configuration::{Configuration, Environment, Flags};
use crate::home::Home;
use crate::hub_here::{HubHere, Stay};

pub(crate) fn command(home: Home) -> ExtraCommand {
    let command = Command::new("up")
        .about("Start Runyard on this machine: hub, edge and API")
        .args(launch_flags("127.0.0.1:4710"));
    let run = move |matches: ArgMatches| Box::pin(up(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

async fn up(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    let stop = cancelled_by_signal();
    let flags = Flags::of(&matches);
    let configuration = Configuration::load(home.path(), None, &Environment::of_process(), &flags)
        .map_err(ActionError::from)?;
    let listen = configuration.hub().listen;
    let mut launch = Launch { listen, ..Launch::from_flags(&matches, home.token()) };
    launch.origins.extend(configuration.server().origins.iter().cloned());
    let here = HubHere::start(&home, &configuration, launch, Stay::UntilStopped).await?;
    announce(&here.client().url(), &home.token(), Some("runyard open"));
    stop.cancelled().await;
    here.stop().await;
    Ok(0)
}
