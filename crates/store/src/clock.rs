//! Time for leases, timers and records.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use runyard_domain::Timestamp;

/// The database's clock, where the database has none of its own.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_unix_ms(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that moves only when it is told to, in either direction.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `unix_ms`.
    pub const fn at(unix_ms: i64) -> Self {
        ManualClock(AtomicI64::new(unix_ms))
    }

    /// Moves it, backwards too.
    pub fn advance_ms(&self, by_ms: i64) {
        self.0.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.0.load(Ordering::SeqCst))
    }
}
