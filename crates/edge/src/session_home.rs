//! What the runs of a session share for one backend profile, and what of it goes with the last process that uses it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::{private, private_files};

/// The home of a session and profile, held as long as a run uses it.
pub(crate) struct SessionHome {
    path: PathBuf,
    held: File,
}

impl SessionHome {
    /// Makes it if it is not there, and holds it together with other runs of the session.
    pub(crate) async fn enter(path: &Path) -> io::Result<Self> {
        private::make_directory(path)?;
        let held = File::open(path)?;
        let held = tokio::task::spawn_blocking(move || held.lock_shared().map(|()| held)).await??;
        Ok(SessionHome { path: path.to_owned(), held })
    }

    /// Leaves it. What holds secrets or is made of them goes, unless another run uses it still.
    pub(crate) async fn leave(self, private: &'static [&'static str]) -> io::Result<()> {
        let gone = move || match self.held.try_lock() {
            Ok(()) => private_files::remove(&self.path, private),
            Err(TryLockError::WouldBlock) => Ok(()),
            Err(TryLockError::Error(error)) => Err(error),
        };
        tokio::task::spawn_blocking(gone).await?
    }
}
