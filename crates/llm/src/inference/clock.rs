//! The ports to time and to chance, so that everything that waits or chooses can be told what they are.
//!
//! A [`Clock`] only tells the time. Sleeping is tokio's, which tests pause.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// A clock that never goes back.
pub trait Clock: Send + Sync + fmt::Debug {
    /// How long ago its beginning was.
    fn now(&self) -> Duration;
}

/// The machine's clock; tokio's own while a test pauses it.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// A clock that begins now.
    pub fn new() -> Self {
        SystemClock(Instant::now())
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A clock that moves only when it is told to.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Moves it.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Chance, so that those who failed together do not come back together.
pub trait Jitter: Send + Sync + fmt::Debug {
    /// Any number.
    fn roll(&self) -> u64;
}

/// Chance that is spread well, from a seed. No secret may depend on it.
#[derive(Debug)]
pub struct SeededJitter(AtomicU64);

impl SeededJitter {
    /// The same seed rolls the same numbers.
    pub const fn from_seed(seed: u64) -> Self {
        SeededJitter(AtomicU64::new(seed))
    }

    /// Another seed in every process and at every call.
    pub fn from_chance() -> Self {
        // The standard library's hash keys are the one randomness that needs no other crate.
        Self::from_seed(RandomState::new().hash_one(0_u8))
    }
}

impl Jitter for SeededJitter {
    /// SplitMix64.
    fn roll(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Always the same number: the shortest waits with `0`, the longest with [`u64::MAX`].
#[derive(Debug, Clone, Copy, Default)]
pub struct FixedJitter(pub u64);

impl Jitter for FixedJitter {
    fn roll(&self) -> u64 {
        self.0
    }
}
