//! `runyard run --detach`: a run that goes on when this command is over.
//!
//! Where no hub stays, the run is recorded by one in this process, and goes on with one in a process of its own, which is
//! `runyard up --until-done`.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
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
use crate::hub_file::{self, cannot, told};
use crate::hub_here::{AnyHub, Stay};

/// How often the hub in the background is looked for.
const LOOKS_MAX: u32 = 400;
/// How long between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// How much of what a hub said that did not start is told.
const SAID_BYTES_MAX: u64 = 1024;
/// How long the log of hubs in the background may be when the next of them begins; a longer one is begun anew.
const LOG_BYTES_MAX: u64 = 1024 * 1024;

/// Makes the run, sees to it that a hub goes on with it, and says its id.
pub(super) async fn run(
    home: &Home,
    matches: &ArgMatches,
    shown: Shown,
    interrupts: &Interrupts,
) -> Result<u8, ActionError> {
    let (made, stays) = made(home, matches, shown, interrupts).await?;
    if !stays {
        let id = made["run"]["id"].as_str().unwrap_or_default();
        let goes_on = go_on(home, interrupts).await.map_err(|error| not_gone_on(id, &error))?;
        let _ = writeln!(std::io::stderr(), "{goes_on}");
    }
    Ok(match matches.get_one::<String>("output").map(String::as_str) {
        Some("json" | "ndjson") => show_data(matches, made),
        _ => {
            let id = made["run"]["id"].as_str().unwrap_or_default();
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
    let mut tries = 0;
    loop {
        let hub = AnyHub::get(home, Stay::ForOneCall).await?;
        let (passing, stays) = (hub.is_passing(), hub.client().stay() == Stay::UntilStopped);
        let made = create(hub.client(), matches, Some(&key), shown, interrupts).await;
        hub.stop().await;
        tries += 1;
        match made {
            Err(error) if passing && tries < HUBS_MAX && *error.code() == Code::ExternalServiceError => {}
            made => return Ok((made?, stays)),
        }
    }
}

/// Starts a hub in the background, and says who goes on with the run when that is known.
async fn go_on(home: &Home, interrupts: &Interrupts) -> Result<String, ActionError> {
    let (mut hub, log) = background(home)?;
    let interrupted = interrupts.next();
    for _ in 0..LOOKS_MAX {
        if let (Some(found), Some(told)) = (HubClient::find(home).await, told(&home.hub())) {
            let (url, pid) = (found.url(), told.pid);
            match found.stay() {
                Stay::UntilDone | Stay::UntilStopped => {
                    return Ok(format!(
                        "The hub at {url} (process {pid}) goes on with it in the background."
                    ));
                }
                Stay::WithCommand | Stay::ForOneCall if hub_file::is_waited_for(home) => {
                    return Ok(format!(
                        "The hub of another command (process {pid}) has it while that lasts; one in the background comes after it."
                    ));
                }
                Stay::WithCommand | Stay::ForOneCall => {}
            }
        }
        if let Ok(Some(status)) = hub.try_wait() {
            return match status.success() {
                true => {
                    Ok("It is at its end, or a hub that waits in the background goes on with it.".to_owned())
                }
                false => Err(ActionError::new(Code::Conflict, said(&home.hub_log(), log))),
            };
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = interrupted.cancelled() => break,
        }
    }
    if let Ok(Some(status)) = hub.try_wait()
        && !status.success()
    {
        return Err(ActionError::new(Code::Conflict, said(&home.hub_log(), log)));
    }
    let log = home.hub_log();
    Ok(format!("A hub in the background is still starting (process {}); see {}.", hub.id(), log.display()))
}

fn not_gone_on(run: &str, error: &ActionError) -> ActionError {
    let message = format!(
        "The run {run} is recorded, and no hub in the background could be started to go on with it: {} Start one with \
         \"runyard up\".",
        error.message()
    );
    ActionError::new(Code::Conflict, message)
}

/// The end of what stands in a log from there on.
fn said(log: &Path, from: u64) -> String {
    let mut text = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        let end = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(from.max(end.saturating_sub(SAID_BYTES_MAX))))?;
        file.take(SAID_BYTES_MAX).read_to_end(&mut text)
    });
    match (read, String::from_utf8_lossy(&text).trim()) {
        (Ok(_), said) if !said.is_empty() => said.to_owned(),
        _ => "it ended without a word.".to_owned(),
    }
}

/// A hub in a process of its own, which neither this terminal's Ctrl-C nor its end reaches, and where in its log it begins.
fn background(home: &Home) -> Result<(Child, u64), ActionError> {
    let path = home.hub_log();
    let unusable = |error| cannot("write", &path, &error);
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(unusable)?;
    let mut begins = log.metadata().map_err(unusable)?.len();
    if begins > LOG_BYTES_MAX {
        log.set_len(0).map_err(unusable)?;
        begins = 0;
    }
    // As long as its runs take nobody looks at what it says.
    let level = std::env::var_os("RUNYARD_LOG").unwrap_or_else(|| "warn".into());
    // What this command was started with, a script's lock perhaps, is not to be held until the runs are done.
    close_fds::set_fds_cloexec(3, &[]);
    let started = Command::new(std::env::current_exe()?)
        .args(["up", "--until-done", "--in-background", "--listen", "127.0.0.1:0", "--output", "text"])
        .env("RUNYARD_LOG", level)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    Ok((started?, begins))
}
