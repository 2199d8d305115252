//! The lock file that says whether anything of a run is still being looked after.
//!
//! Supervisors share the lock for as long as they live; whoever wants to know that all are gone tries to have it alone.
//! It keeps nobody from starting more: that is for the edge to order. The file belongs outside of what the agent may
//! write, or the agent can hold it too.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// A supervisor tries so often to share the lock; only somebody who looks whether it is free is ever in the way.
const ATTEMPTS_MAX: u32 = 1_000;
/// The wait between two looks at the lock.
const PAUSE: Duration = Duration::from_millis(5);

/// Shares the lock until the file is dropped, and makes the file if there is none.
pub(super) fn hold(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    for _ in 0..ATTEMPTS_MAX {
        match file.try_lock_shared() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Waits until no supervisor holds the lock any more, so that nothing that was started under it is left.
///
/// Where there is no such file nothing was ever started. After `limit` it fails with [`io::ErrorKind::TimedOut`]:
/// something is left that cannot be stopped. It may be dropped at any time.
pub async fn wait_until_gone(lock: &Path, limit: Duration) -> io::Result<()> {
    let file = match File::open(lock) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let deadline = Instant::now() + limit;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(TryLockError::WouldBlock) => sleep(PAUSE).await,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}
