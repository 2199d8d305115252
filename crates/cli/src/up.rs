//! `runyard up`: serves until it is told to stop.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, Write};
use std::os::unix::fs::OpenOptionsExt;

use clap::{ArgMatches, Command};
use runyard::{ActionError, Code, Runtime};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, cancelled_by_signal};
use runyard_surfaces::http::{Launch, launch_flags};
use serde_json::json;

use crate::home::Home;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn command(home: Home, runtime: Runtime) -> ExtraCommand {
    let command =
        Command::new("up").about("Start Runyard on this machine").args(launch_flags("127.0.0.1:4710"));
    let run = move |matches: ArgMatches| Box::pin(up(home, runtime, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

async fn up(home: Home, runtime: Runtime, matches: ArgMatches) -> Result<u8, ActionError> {
    home.make().map_err(|error| refused(format!("cannot make {}: {error}", home.path().display())))?;
    let mut hub = HubFile::claim(&home)?;
    let launch = Launch::from_flags(&matches, home.token());
    let ready = |url: &str| {
        hub.tell(url);
        announce(url, &home);
    };
    let served = launch.run("runyard", VERSION, runtime, cancelled_by_signal(), ready).await;
    served.map(|()| 0).map_err(|error| refused(error.to_string()))
}

fn refused(reason: String) -> ActionError {
    ActionError::new(Code::ValidationError, format!("Cannot start: {reason}."))
}

/// The first line is for programs, the rest for people.
fn announce(url: &str, home: &Home) {
    let mut stdout = std::io::stdout().lock();
    let token = home.token();
    let token = token.display();
    let _ = writeln!(stdout, "listening on {url}");
    let _ = writeln!(stdout, "log in with the token in {token}, for example:");
    let _ = writeln!(stdout, "  curl -H \"Authorization: Bearer $(cat {token})\" {url}/api/v1/actions");
    let _ = writeln!(stdout, "stop with Ctrl-C");
    let _ = stdout.flush();
}

/// `hub.json`, held locked by the one hub of a home. The lock goes with the process, however it ends.
struct HubFile {
    file: File,
    path: std::path::PathBuf,
}

impl HubFile {
    fn claim(home: &Home) -> Result<Self, ActionError> {
        let path = home.hub();
        let opened =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = opened.map_err(|error| refused(format!("cannot write {}: {error}", path.display())))?;
        match file.try_lock() {
            Ok(()) => Ok(HubFile { file, path }),
            Err(TryLockError::WouldBlock) => {
                let owner =
                    std::fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str(&text).ok());
                let owner: serde_json::Value = owner.unwrap_or_default();
                let known =
                    |key: &str| owner.get(key).map(|value| value.to_string().trim_matches('"').to_owned());
                let (url, pid) = (known("url").unwrap_or_default(), known("pid").unwrap_or_default());
                let message = format!("Runyard runs already for this home at {url} (process {pid}).");
                Err(ActionError::conflict(message))
            }
            Err(TryLockError::Error(error)) => {
                Err(refused(format!("cannot lock {}: {error}", path.display())))
            }
        }
    }

    fn tell(&mut self, url: &str) {
        let told = json!({"url": url, "pid": std::process::id(), "version": VERSION}).to_string();
        let written = self
            .file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| self.file.write_all(told.as_bytes()));
        if let Err(error) = written {
            let _ = writeln!(std::io::stderr(), "cannot write {}: {error}", self.path.display());
        }
    }
}

impl Drop for HubFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
