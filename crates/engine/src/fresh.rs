//! New ids.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use runyard_domain::Timestamp;

/// The parts of a new id: the time, and ten bytes that no other id of this or any other process has. They are no secret.
/// Those of one process go up, also within a millisecond.
pub(crate) fn parts(now: Timestamp) -> (u64, [u8; 10]) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let mut random = [0; 10];
    // The first twelve bits that an id takes from here.
    random[..2].copy_from_slice(&[count[6] & 0x0f, count[7]]);
    random[2..].copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
    (now.unix_ms().max(0).unsigned_abs(), random)
}

/// A new id of the given type.
macro_rules! fresh {
    ($id:ty, $now:expr) => {{
        let (unix_ms, random) = $crate::fresh::parts($now);
        <$id>::from_parts(unix_ms, &random)
    }};
}
pub(crate) use fresh;

#[cfg(test)]
mod tests {
    use super::*;
    use runyard_domain::RunId;

    #[test]
    fn ids_of_one_moment_are_different_and_go_up() {
        let now = Timestamp::from_unix_ms(1);
        // Not over the end of the count, which tests of this process share.
        let ids: Vec<RunId> = (0..500).map(|_| fresh!(RunId, now)).collect();
        let falls = ids.windows(2).filter(|pair| pair[0] >= pair[1]).count();
        assert!(falls <= 1, "{falls}");
    }
}
