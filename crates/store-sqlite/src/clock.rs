//! The database's clock: it starts at the machine's time, or at the last time that the database knows if that is later, and
//! goes on steadily whatever the machine's clock is set to meanwhile. Suspended time counts.

use runyard_domain::Timestamp;
use runyard_store::{Clock, SystemClock};
use rustix::time::{ClockId, clock_gettime};

/// How far the machine's clock may be behind the database's before it is said so.
const BEHIND_MAX_MS: i64 = 60_000;

/// A clock that never goes back.
#[derive(Debug)]
pub(crate) struct SteadyClock {
    started_at_ms: i64,
    started_ms: i64,
}

impl SteadyClock {
    /// Goes on from the machine's time, or from `known` if that is later.
    pub(crate) fn after(known: Timestamp) -> Self {
        let wall_ms = SystemClock.now().unix_ms();
        let behind_ms = known.unix_ms() - wall_ms;
        if behind_ms > BEHIND_MAX_MS {
            tracing::warn!(
                behind_ms,
                "the machine's clock is behind the database's, which goes on from where it was"
            );
        }
        SteadyClock { started_at_ms: wall_ms.max(known.unix_ms()), started_ms: since_boot_ms() }
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.started_at_ms + (since_boot_ms() - self.started_ms))
    }
}

fn since_boot_ms() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
}
