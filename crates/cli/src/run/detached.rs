//! `runyard run --detach`: a run that goes on when this command is over.
//!
//! Where no hub stays, the run is recorded by one in this process, and goes on with one in a process of its own, which is
//! `runyard up --until-done`.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::ArgMatches;
use runyard::{ActionError, Code};
use runyard_surfaces::cli::{Interrupts, show_data};
use serde_json::Value;

use super::{Shown, create};
use crate::elsewhere::{HUBS_MAX, fresh_key};
use crate::home::Home;
use crate::hub_client::HubClient;
use crate::hub_file::{cannot, told};
use crate::hub_here::{AnyHub, Stay};

/// How often the hub in the background is looked for.
const LOOKS_MAX: u32 = 400;
/// How long between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// How much of what a hub said that did not start is told.
const SAID_BYTES_MAX: usize = 1024;

/// Makes the run, sees to it that a hub goes on with it, and says its id.
pub(super) async fn run(
    home: &Home,
    matches: &ArgMatches,
    shown: Shown,
    interrupts: &Interrupts,
) -> Result<u8, ActionError> {
    let (made, stays) = made(home, matches, shown, interrupts).await?;
    let id = made["run"]["id"].as_str().unwrap_or_default().to_owned();
    if !stays {
        go_on(home, &id).await?;
    }
    Ok(match matches.get_one::<String>("output").map(String::as_str) {
        Some("json" | "ndjson") => show_data(matches, made),
        _ => {
            let _ = writeln!(std::io::stdout(), "{id}");
            0
        }
    })
}

/// The run, and whether the hub that made it stays. That of another command may end just when it is asked; then the next one is,
/// under the same key, so that no run is made twice.
async fn made(
    home: &Home,
    matches: &ArgMatches,
    shown: Shown,
    interrupts: &Interrupts,
) -> Result<(Value, bool), ActionError> {
    let key = matches.get_one::<String>("idempotency-key").cloned().unwrap_or_else(fresh_key);
    for _ in 0..HUBS_MAX {
        let hub = AnyHub::get(home, Stay::ForOneCall).await?;
        let (passing, stays) = (hub.is_passing(), hub.client().stay() == Stay::UntilStopped);
        let made = create(hub.client(), matches, Some(&key), shown, interrupts).await;
        hub.stop().await;
        match made {
            Err(error) if passing && *error.code() == Code::ExternalServiceError => {}
            made => return Ok((made?, stays)),
        }
    }
    Err(ActionError::new(Code::ExternalServiceError, "Every hub that was found ended at once."))
}

/// Starts a hub in the background, and returns when one is there that goes on with the run.
async fn go_on(home: &Home, run: &str) -> Result<(), ActionError> {
    let mut hub = background(home)?;
    for _ in 0..LOOKS_MAX {
        // That of another command may have it until then.
        let found = HubClient::find(home).await.filter(|hub| hub.stay() != Stay::ForOneCall);
        if let Some(found) = found {
            let pid = hub.id();
            if told(&home.hub()).is_some_and(|told| told.pid == u64::from(pid)) {
                let url = found.url();
                let line = format!(
                    "A hub in the background goes on with it: {url}, process {pid}. It ends with its runs."
                );
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            return Ok(());
        }
        match hub.try_wait() {
            // It found nothing left to do, or another that stays.
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(_)) => return Err(not_gone_on(run, &said(home))),
            Ok(None) | Err(_) => tokio::time::sleep(LOOK).await,
        }
    }
    Err(not_gone_on(run, "it does not answer"))
}

fn not_gone_on(run: &str, why: &str) -> ActionError {
    let message = format!(
        "The run {run} is recorded, and the hub that was to go on with it in the background did not start: {why}. Start one \
         with \"runyard up\"."
    );
    ActionError::new(Code::ExternalServiceError, message)
}

/// The end of what a hub in the background said.
fn said(home: &Home) -> String {
    let text = std::fs::read_to_string(home.hub_log()).unwrap_or_default();
    let text = text.trim();
    let begin = text.ceil_char_boundary(text.len().saturating_sub(SAID_BYTES_MAX));
    text[begin..].trim_end_matches('.').to_owned()
}

/// A hub in a process of its own, which neither this terminal's Ctrl-C nor its end reaches.
fn background(home: &Home) -> Result<Child, ActionError> {
    let path = home.hub_log();
    let mut file = OpenOptions::new();
    let log = file.write(true).create(true).truncate(true).mode(0o600).open(&path);
    let log = log.map_err(|error| cannot("write", &path, &error))?;
    let program = std::env::current_exe()?;
    // As long as its runs take nobody looks at what it says.
    let level = std::env::var_os("RUNYARD_LOG").unwrap_or_else(|| "warn".into());
    let started = Command::new(program)
        .env("RUNYARD_LOG", level)
        .args(["up", "--until-done", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0)
        .spawn();
    Ok(started?)
}
