//! The end of a store whose disk failed: nothing is acknowledged any more, and the process ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use runyard_store::StorageError;

use crate::options::Fatal;

/// Whether a write failed in such a way that nothing can be promised any more.
pub(crate) struct Poison {
    set: AtomicBool,
    fatal: Mutex<Option<Fatal>>,
}

impl Poison {
    pub(crate) fn new(fatal: Fatal) -> Self {
        Poison { set: AtomicBool::new(false), fatal: Mutex::new(Some(fatal)) }
    }

    /// From now on nothing is acknowledged.
    pub(crate) fn set(&self) {
        self.set.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::SeqCst)
    }

    pub(crate) fn check(&self) -> Result<(), StorageError> {
        if self.is_set() { Err(StorageError::Poisoned) } else { Ok(()) }
    }

    /// Does what is to be done about it, once. As a rule this does not return.
    pub(crate) fn end(&self, what: &str) {
        self.set();
        let fatal = self.fatal.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(fatal) = fatal {
            tracing::error!(
                what,
                "a write to the disk failed; nothing can be promised until the process starts anew"
            );
            fatal();
        }
    }
}
