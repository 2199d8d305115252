//! Timers that were due and refused: each is tried again later and later, so that one that can never be does not keep the hub
//! busy, and none keeps another from its turn.

use std::collections::HashMap;
use std::time::Duration;

use runyard_domain::RunId;
use runyard_store::Timer;
use tokio::time::Instant;

/// After how long a timer is tried again that was refused once; each time it is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// How long at most until it is tried again.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How many are remembered. Of further ones each look is a try.
const REFUSED_MAX: usize = 900;

/// What was refused, and when it is tried again.
#[derive(Default)]
pub(crate) struct Refused(HashMap<(RunId, String), (Duration, Instant)>);

impl Refused {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many places they take among what is due.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// Forgets those that are not due any more.
    pub(crate) fn keep_only(&mut self, due: &[Timer]) {
        self.0.retain(|(run, name), _| due.iter().any(|timer| timer.run == *run && timer.name == *name));
    }

    pub(crate) fn may_try(&self, timer: &Timer, now: Instant) -> bool {
        self.0.get(&key(timer)).is_none_or(|(_, again_at)| *again_at <= now)
    }

    /// It was refused, once more.
    pub(crate) fn again(&mut self, timer: &Timer, now: Instant) {
        let pause = self.0.get(&key(timer)).map_or(PAUSE_MIN, |(pause, _)| (*pause * 2).min(PAUSE_MAX));
        if self.0.len() < REFUSED_MAX || self.0.contains_key(&key(timer)) {
            self.0.insert(key(timer), (pause, now + pause));
        }
    }

    /// It was not refused this time.
    pub(crate) fn forget(&mut self, timer: &Timer) {
        self.0.remove(&key(timer));
    }
}

fn key(timer: &Timer) -> (RunId, String) {
    (timer.run, timer.name.clone())
}
