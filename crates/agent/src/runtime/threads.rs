//! One run on each thread of this process.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::RuntimeError;

/// The threads that have a run in this process.
#[derive(Debug, Default)]
pub(super) struct Threads(Mutex<HashSet<Arc<str>>>);

/// A thread that is taken. It is free again when this is dropped, however that comes about.
#[derive(Debug)]
pub(super) struct Slot {
    threads: Arc<Threads>,
    thread_id: Arc<str>,
}

impl Threads {
    /// Takes a thread, if nobody has.
    pub(super) fn take(self: &Arc<Self>, thread_id: &str) -> Result<Slot, RuntimeError> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.contains(thread_id) {
            return Err(RuntimeError::ThreadAlreadyRunning { thread_id: thread_id.to_owned() });
        }
        let thread_id: Arc<str> = thread_id.into();
        taken.insert(Arc::clone(&thread_id));
        Ok(Slot { threads: Arc::clone(self), thread_id })
    }
}

impl Slot {
    pub(super) fn thread_id(&self) -> &Arc<str> {
        &self.thread_id
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.threads.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.thread_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d04_a_thread_is_taken_once_and_free_again_after_a_drop_and_after_a_panic() {
        let threads = Arc::new(Threads::default());
        let slot = threads.take("a").unwrap();
        let refused = RuntimeError::ThreadAlreadyRunning { thread_id: "a".into() };
        assert_eq!(threads.take("a").unwrap_err(), refused);
        assert!(threads.take("b").is_ok());
        drop(slot);
        let slot = threads.take("a").unwrap();
        let panicking = std::panic::AssertUnwindSafe(move || {
            let _slot = slot;
            panic!("on purpose");
        });
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert!(threads.take("a").is_ok());
    }
}
