//! The limit on how many invocations of one action run at once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runyard_domain::Code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{ActionError, Concurrency};

/// So many invocations of one action may wait for a place; further ones are refused at once.
const WAITERS_MAX: usize = 1024;

pub(crate) struct Limiter {
    limit: Concurrency,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Limiter {
    pub(crate) fn new(limit: Concurrency) -> Self {
        let places = Arc::new(Semaphore::new(limit.max as usize));
        Limiter { limit, places, waiting: AtomicUsize::new(0) }
    }

    /// A place, held until it is dropped; `CONCURRENCY_LIMIT` when there is none within the wait.
    pub(crate) async fn enter(&self) -> Result<OwnedSemaphorePermit, ActionError> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        let waiter = Waiter::new(&self.waiting);
        if self.limit.wait_ms == 0 || waiter.number > WAITERS_MAX {
            return Err(self.full());
        }
        let wait = Duration::from_millis(self.limit.wait_ms);
        match tokio::time::timeout(wait, Arc::clone(&self.places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(self.full()),
        }
    }

    fn full(&self) -> ActionError {
        let message = format!("Action runs {} times already, which is its limit.", self.limit.max);
        ActionError::new(Code::ConcurrencyLimit, message).retry_after(Duration::from_secs(1))
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limiter({}/{} free)", self.places.available_permits(), self.limit.max)
    }
}

struct Waiter<'a> {
    waiting: &'a AtomicUsize,
    number: usize,
}

impl<'a> Waiter<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        Waiter { waiting, number: waiting.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
