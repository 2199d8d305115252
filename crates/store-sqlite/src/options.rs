//! How a store is opened.

use std::path::PathBuf;
use std::sync::Arc;

use runyard_store::Clock;

use crate::group::GROUP_EVENTS_MAX;

/// What the process exits with when its disk failed: the code that sysexits.h gives to input/output errors.
pub const POISONED_EXIT_CODE: i32 = 74;

/// What is done when the store is poisoned.
pub(crate) type Fatal = Box<dyn FnOnce() + Send>;

/// How to open a store.
pub struct OpenOptions {
    pub(crate) path: PathBuf,
    pub(crate) owner: String,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) fatal: Fatal,
    pub(crate) group_events_max: usize,
}

impl OpenOptions {
    /// The database file, and the name by which others are told who owns it.
    pub fn new(path: impl Into<PathBuf>, owner: impl Into<String>) -> Self {
        OpenOptions {
            path: path.into(),
            owner: owner.into(),
            clock: None,
            fatal: Box::new(|| std::process::exit(POISONED_EXIT_CODE)),
            group_events_max: GROUP_EVENTS_MAX,
        }
    }

    /// Another clock than the database's own, which goes on steadily whatever the machine's clock is set to.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// What is done when an error of the disk poisons the store, after those who wait were told. Otherwise the process
    /// exits with [`POISONED_EXIT_CODE`].
    #[must_use]
    pub fn on_poisoned(mut self, fatal: impl FnOnce() + Send + 'static) -> Self {
        self.fatal = Box::new(fatal);
        self
    }

    /// How many events are committed together at most: for measuring.
    #[must_use]
    pub fn group_events_max(mut self, events: usize) -> Self {
        self.group_events_max = events.clamp(1, GROUP_EVENTS_MAX);
        self
    }
}
