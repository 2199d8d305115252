//! Time that a run still gives to others after it was cancelled, to all of one kind together.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Such time. A clone is the same one.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    cancellation: CancellationToken,
    left: Arc<Mutex<Duration>>,
}

impl Budget {
    /// So much, from when the token is cancelled.
    pub(crate) fn new(cancellation: CancellationToken, time: Duration) -> Self {
        Budget { cancellation, left: Arc::new(Mutex::new(time)) }
    }

    /// The future's output. When it is cancelled, and the time is over, the future is dropped where it is.
    pub(crate) async fn within<F: Future>(&self, future: F) -> Option<F::Output> {
        let begun = OnceLock::new();
        let over = async {
            self.cancellation.cancelled().await;
            let begun = *begun.get_or_init(Instant::now);
            let left = *self.left();
            if !left.is_zero() {
                sleep_until(begun + left).await;
            }
        };
        let output = tokio::select! {
            biased;
            output = future => Some(output),
            () = over => None,
        };
        if let Some(begun) = begun.get() {
            let mut left = self.left();
            *left = left.saturating_sub(begun.elapsed());
        }
        output
    }

    fn left(&self) -> MutexGuard<'_, Duration> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
