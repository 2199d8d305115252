//! What makes an id unique: the time, and randomness that is cheap rather than secret.

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since 1970 and ten random bytes, for an id.
///
/// The bytes come from a generator per thread, seeded by the operating system: they tell ids apart and are no secret, so
/// nothing may be protected by an id being hard to guess.
pub(crate) fn id_parts() -> (u64, [u8; 10]) {
    // The clock of the last timer tick: a few milliseconds are no matter here, and it is the cheapest there is.
    let tick = clock_gettime(ClockId::RealtimeCoarse);
    let unix_ms = u64::try_from(tick.tv_sec * 1000 + tick.tv_nsec / 1_000_000).unwrap_or_default();
    let mut random = [0; 10];
    random[..8].copy_from_slice(&next().to_le_bytes());
    random[8..].copy_from_slice(&next().to_le_bytes()[..2]);
    (unix_ms, random)
}

/// SplitMix64.
fn next() -> u64 {
    thread_local!(static STATE: Cell<u64> = Cell::new(RandomState::new().build_hasher().finish()));
    let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_of_many_threads_are_all_different() {
        let threads: Vec<_> = (0..8)
            .map(|_| std::thread::spawn(|| (0..10_000).map(|_| id_parts().1).collect::<Vec<_>>()))
            .collect();
        let all: HashSet<[u8; 10]> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(all.len(), 80_000);
    }
}
