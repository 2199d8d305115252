//! `hub.json`: which process is the hub of a home, and where it answers.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runyard::{ActionError, Code};
use runyard_backend::failpoint;
use serde::Deserialize;
use serde_json::json;

use crate::configuration::Flags;
use crate::home::Home;
use crate::hub_here::Stay;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How often the place of the next hub is tried for, and how long between two tries.
const NEXT_LOOKS_MAX: u32 = 20;
const NEXT_LOOK: Duration = Duration::from_millis(20);

/// That a file of the home cannot be used: what may not be written is told apart from a disk that fails.
pub(crate) fn cannot(what: &str, path: &Path, error: &Error) -> ActionError {
    let code = match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Code::StorageReadOnly,
        _ => Code::StorageIo,
    };
    ActionError::new(code, format!("Cannot start: cannot {what} {}: {error}.", path.display()))
}

/// `hub.json` of the one hub of a home. The lock beside it goes with the process, however it ends, and its file stays:
/// a file that is removed while another process opens it would be locked twice.
pub(crate) struct HubFile {
    path: PathBuf,
    _lock: File,
}

impl HubFile {
    pub(crate) fn claim(home: &Home) -> Result<Self, ActionError> {
        let (path, lock) = (home.hub(), home.hub_lock());
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&lock);
        let file = opened.map_err(|error| cannot("write", &lock, &error))?;
        match file.try_lock() {
            Ok(()) => {
                // What a hub that was killed left behind.
                let _ = std::fs::remove_file(&path);
                Ok(HubFile { path, _lock: file })
            }
            Err(TryLockError::WouldBlock) => Err(ActionError::conflict(match told(&path) {
                Some(Told { url, pid, stay: Stay::UntilDone, .. }) => format!(
                    "Runyard runs already for this home at {url} (process {pid}) until its runs are done; to stop it before, \
                     use \"kill {pid}\": they go on with the next."
                ),
                Some(Told { url, pid, .. }) => {
                    format!("Runyard runs already for this home at {url} (process {pid}).")
                }
                None => "Runyard is just starting or stopping for this home in another process.".to_owned(),
            })),
            Err(TryLockError::Error(error)) => Err(cannot("lock", &lock, &error)),
        }
    }

    /// Written beside and moved into place, so that nobody reads half of it.
    pub(crate) fn tell(&self, url: &str, stay: Stay, flags: &Flags) {
        let pid = std::process::id();
        let told =
            json!({"url": url, "pid": pid, "version": VERSION, "stay": stay, "flags": flags}).to_string();
        let draft = self.path.with_extension("draft");
        let _ = std::fs::remove_file(&draft);
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft);
        let written = opened.and_then(|mut file| file.write_all(told.as_bytes()));
        failpoint::reach("hub.tell");
        let told = written.and_then(|()| std::fs::rename(&draft, &self.path));
        failpoint::reach("hub.told");
        if let Err(error) = told {
            let _ = writeln!(std::io::stderr(), "cannot write {}: {error}", self.path.display());
        }
    }
}

/// What `hub.json` tells.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Told {
    pub(crate) url: String,
    pub(crate) pid: u64,
    /// A hub of a version that did not say so stays until it is stopped.
    #[serde(default = "Stay::until_stopped")]
    pub(crate) stay: Stay,
    /// What its command line said of the configuration.
    #[serde(default)]
    pub(crate) flags: Flags,
}

/// Of the hub that holds the lock.
pub(crate) fn told(path: &Path) -> Option<Told> {
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

/// Whether some process holds the place of the hub.
pub(crate) fn is_claimed(home: &Home) -> bool {
    is_held(&home.hub_lock())
}

/// The place of the one that waits to be the next hub, as long as this is kept; none where another has it. Whoever looks whether
/// one waits has it for a moment, too, which is waited for.
pub(crate) async fn next(home: &Home) -> Result<Option<File>, ActionError> {
    for _ in 0..NEXT_LOOKS_MAX {
        match next_now(home)? {
            None => tokio::time::sleep(NEXT_LOOK).await,
            held => return Ok(held),
        }
    }
    Ok(None)
}

fn next_now(home: &Home) -> Result<Option<File>, ActionError> {
    let path = home.hub_next_lock();
    let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = opened.map_err(|error| cannot("write", &path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(cannot("lock", &path, &error)),
    }
}

/// Whether some process waits to be the next hub.
pub(crate) fn is_waited_for(home: &Home) -> bool {
    is_held(&home.hub_next_lock())
}

fn is_held(lock: &Path) -> bool {
    let file = OpenOptions::new().write(true).open(lock);
    file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

impl Drop for HubFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_written_is_read_only_and_what_fails_is_not() {
        let code =
            |kind: ErrorKind| cannot("write", Path::new("/home/hub.lock"), &kind.into()).code().clone();
        assert_eq!(code(ErrorKind::PermissionDenied), Code::StorageReadOnly);
        assert_eq!(code(ErrorKind::ReadOnlyFilesystem), Code::StorageReadOnly);
        assert_eq!(code(ErrorKind::StorageFull), Code::StorageIo);
    }
}
