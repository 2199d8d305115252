//! How often a flaky scenario was refused already: the only thing that is remembered from one request to the next.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// Beyond so many conversations none is flaky any more.
const COUNTED_MAX: usize = 10_000;

/// Whom a count is for, as far as a provider can tell one conversation from another.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Caller {
    pub(crate) scenario: String,
    pub(crate) argument: String,
    pub(crate) key: String,
}

#[derive(Debug, Default)]
pub(crate) struct Refused(Mutex<HashMap<Caller, u32>>);

impl Refused {
    /// Whether this request is among the first so many of its caller.
    pub(crate) fn refuses(&self, caller: Caller, first: u32) -> bool {
        if first == 0 {
            return false;
        }
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= COUNTED_MAX && !counts.contains_key(&caller) {
            return false;
        }
        let count = counts.entry(caller).or_default();
        let refused = *count < first;
        *count += u32::from(refused);
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(number: usize) -> Caller {
        Caller { scenario: "s".into(), argument: number.to_string(), key: "k".into() }
    }

    #[test]
    fn each_caller_is_refused_so_many_times_and_never_again() {
        let refused = Refused::default();
        let of_one: Vec<_> = (0..4).map(|_| refused.refuses(caller(1), 2)).collect();
        assert_eq!(of_one, [true, true, false, false]);
        assert!(refused.refuses(caller(2), 1), "another's count is its own");
        assert!(!refused.refuses(caller(3), 0));
    }

    #[test]
    fn the_counts_are_bounded() {
        let refused = Refused::default();
        assert!((0..COUNTED_MAX).all(|number| refused.refuses(caller(number), 2)));
        assert!(!refused.refuses(caller(COUNTED_MAX), 2));
        assert!(refused.refuses(caller(0), 2), "who is counted already stays so");
    }
}
