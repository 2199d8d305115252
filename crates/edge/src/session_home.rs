//! What the runs of a session share for one backend profile, and what of it goes with the processes that used it.
//!
//! One run at a time: two would write each other's files, and a conversation has one writer anyway.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runyard_backend::failpoint;
use tokio::time::{Instant, sleep};

use crate::{private, private_files};

/// How long a run waits for another one of its session to end.
const ENTERED_WITHIN: Duration = Duration::from_secs(30);
/// The wait between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// The home of a session and profile, held as long as a run uses it. What holds secrets or is made of them goes when it is left,
/// however that comes about.
pub(crate) struct SessionHome {
    path: PathBuf,
    private: &'static [&'static str],
    _held: File,
}

impl SessionHome {
    /// Makes it if it is not there, and holds it alone. [`io::ErrorKind::ResourceBusy`] where another run does not let it go.
    pub(crate) async fn enter(path: &Path, private: &'static [&'static str]) -> io::Result<Self> {
        let deadline = Instant::now() + ENTERED_WITHIN;
        loop {
            private::make_directory(path)?;
            let held = File::open(path)?;
            match held.try_lock() {
                Ok(()) if is_still(path, &held)? => {
                    failpoint::reach("home.entered");
                    return Ok(SessionHome { path: path.to_owned(), private, _held: held });
                }
                // Whoever closed the session has removed it between the look and the lock.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(PAUSE).await,
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

/// Whether the open directory is the one that the path leads to.
fn is_still(path: &Path, held: &File) -> io::Result<bool> {
    let (open, now) = (
        held.metadata()?,
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            now => now?,
        },
    );
    Ok((open.dev(), open.ino()) == (now.dev(), now.ino()))
}

impl Drop for SessionHome {
    fn drop(&mut self) {
        if let Err(error) = private_files::remove(&self.path, self.private) {
            tracing::error!(%error, "secrets of a session could not be removed; they go when the edge starts again");
        }
        failpoint::reach("home.left");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn b12_one_run_at_a_time_has_the_home_and_its_secrets_go_however_it_is_left() {
        let edge = tempfile::tempdir().unwrap();
        let path = edge.path().join("sessions/s/codex");
        let home = SessionHome::enter(&path, &["auth.json"]).await.unwrap();
        std::fs::write(path.join("auth.json"), "{}").unwrap();
        std::fs::write(path.join("kept"), "").unwrap();
        let second = SessionHome::enter(&path, &["auth.json"]).await;
        assert_eq!(second.err().unwrap().kind(), io::ErrorKind::ResourceBusy);
        let dropped = tokio::spawn(async move {
            let _home = home;
            std::future::pending::<()>().await;
        });
        tokio::task::yield_now().await;
        dropped.abort();
        let (Ok(()) | Err(_)) = dropped.await;
        assert!(!path.join("auth.json").exists() && path.join("kept").exists());
        SessionHome::enter(&path, &["auth.json"]).await.unwrap();
    }
}
