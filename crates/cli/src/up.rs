//! `runyard up`: serves until it is told to stop.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use runyard::{ActionError, Code};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, cancelled_by_signal};
use runyard_surfaces::http::{Launch, LaunchError, announce, launch_flags};
use serde_json::json;

use crate::database::Database;
use crate::home::Home;
use crate::wiring;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn command(home: Home) -> ExtraCommand {
    let command =
        Command::new("up").about("Start Runyard on this machine").args(launch_flags("127.0.0.1:4710"));
    let run = move |matches: ArgMatches| Box::pin(up(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

async fn up(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    home.make().map_err(|error| refused(format!("cannot make {}: {error}", home.path().display())))?;
    let hub = HubFile::claim(&home)?;
    let database = Database::of(&home)?.open("runyard up").await?;
    let runtime =
        wiring::hub_runtime(&home, database.store()).map_err(|error| refused(format!("{error:#}")))?;
    let launch = Launch::from_flags(&matches, home.token());
    let ready = |url: &str| {
        hub.tell(url);
        announce(url, &home.token());
    };
    let served = launch.run("runyard", VERSION, runtime, cancelled_by_signal(), ready).await;
    served.map(|()| 0).map_err(LaunchError::into_action_error)
}

fn refused(reason: String) -> ActionError {
    ActionError::new(Code::StorageIo, format!("Cannot start: {reason}."))
}

/// `hub.json` of the one hub of a home. The lock beside it goes with the process, however it ends, and its file stays:
/// a file that is removed while another process opens it would be locked twice.
struct HubFile {
    path: PathBuf,
    _lock: File,
}

impl HubFile {
    fn claim(home: &Home) -> Result<Self, ActionError> {
        let (path, lock) = (home.hub(), home.hub_lock());
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&lock);
        let file = opened.map_err(|error| refused(format!("cannot write {}: {error}", lock.display())))?;
        match file.try_lock() {
            Ok(()) => {
                // What a hub that was killed left behind.
                let _ = std::fs::remove_file(&path);
                Ok(HubFile { path, _lock: file })
            }
            Err(TryLockError::WouldBlock) => Err(ActionError::conflict(match owner(&path) {
                Some((url, pid)) => format!("Runyard runs already for this home at {url} (process {pid})."),
                None => "Runyard is just starting or stopping for this home in another process.".to_owned(),
            })),
            Err(TryLockError::Error(error)) => {
                Err(refused(format!("cannot lock {}: {error}", lock.display())))
            }
        }
    }

    /// Written beside and moved into place, so that nobody reads half of it.
    fn tell(&self, url: &str) {
        let told = json!({"url": url, "pid": std::process::id(), "version": VERSION}).to_string();
        let draft = self.path.with_extension("draft");
        let _ = std::fs::remove_file(&draft);
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft);
        let written = opened.and_then(|mut file| file.write_all(told.as_bytes()));
        if let Err(error) = written.and_then(|()| std::fs::rename(&draft, &self.path)) {
            let _ = writeln!(std::io::stderr(), "cannot write {}: {error}", self.path.display());
        }
    }
}

/// Where the hub that holds the lock answers, and its process.
fn owner(path: &Path) -> Option<(String, u64)> {
    let told: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
    Some((told.get("url")?.as_str()?.to_owned(), told.get("pid")?.as_u64()?))
}

impl Drop for HubFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
