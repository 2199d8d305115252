//! Work on files, which blocks: off the executor's threads, stopped when nobody waits for it any more, and never outlived by its
//! session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;
use tokio::task::JoinError;

/// Does it. The flag says that nobody waits any more. The session is not over before this is, since the next one would use the same
/// place: that is what `living` is for.
pub(crate) async fn blocking<T: Send + 'static>(
    living: &Arc<watch::Sender<()>>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, JoinError> {
    /// Stops the work when it is dropped.
    struct Stop(Arc<AtomicBool>);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = Stop(Arc::default());
    let (stopped, living) = (Arc::clone(&stop.0), Arc::clone(living));
    tokio::task::spawn_blocking(move || {
        let done = work(&stopped);
        drop(living);
        done
    })
    .await
}
