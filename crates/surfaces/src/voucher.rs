//! Sealed texts that are good for a time and, where that is asked for, for one use.
//!
//! Nothing is kept of a voucher until it is spent; of spent ones, what tells them apart is kept until they end.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use crate::seal::{Seal, random};

/// So many spent vouchers are remembered. Beyond that none can be spent until some end, rather than one twice.
const SPENT_MAX: usize = 100_000;
/// So many of them may be one holder's, who then waits alone.
const SPENT_OF_HOLDER_MAX: usize = 10_000;
const TIME_BYTES: usize = 8;
const NONCE_BYTES: usize = 32;

/// Why a voucher does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It was not made here, or for something else.
    NotForThis,
    /// Its time is over.
    Expired,
    /// It was spent.
    Used,
    /// Too many were spent lately.
    Full,
}

/// A voucher that was made here, for this, and whose time is not over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Voucher {
    /// What it says.
    pub(crate) content: Vec<u8>,
    holder: String,
    nonce: [u8; NONCE_BYTES],
    ends: Timestamp,
}

/// Makes vouchers, reads them and takes them.
pub(crate) struct Vouchers {
    seal: Seal,
    spent: Mutex<Spent>,
}

/// What tells spent vouchers apart and when they end, by their holders.
type Spent = HashMap<String, HashMap<[u8; NONCE_BYTES], Timestamp>>;

impl Vouchers {
    pub(crate) fn new() -> Self {
        Vouchers { seal: Seal::new(), spent: Mutex::default() }
    }

    /// A voucher that says this, bound to all of `to`, until `ends`. The first of `to` is what it is for, the second whose it is.
    pub(crate) fn issue(&self, to: &[&str], content: &[u8], ends: Timestamp) -> String {
        let sealed = [&ends.as_millisecond().to_be_bytes()[..], &random(), content].concat();
        self.seal.close(to, &sealed)
    }

    /// Reads a voucher, if it is bound to exactly this.
    pub(crate) fn open(&self, to: &[&str], voucher: &str, now: Timestamp) -> Result<Voucher, Refused> {
        let sealed = self.seal.open(to, voucher).ok_or(Refused::NotForThis)?;
        let (ends, rest) = sealed.split_first_chunk::<TIME_BYTES>().ok_or(Refused::NotForThis)?;
        let (nonce, content) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(Refused::NotForThis)?;
        let ends = Timestamp::from_millisecond(i64::from_be_bytes(*ends)).map_err(|_| Refused::NotForThis)?;
        if now >= ends {
            return Err(Refused::Expired);
        }
        let holder = to.get(1).copied().unwrap_or_default().to_owned();
        Ok(Voucher { content: content.to_vec(), holder, nonce: *nonce, ends })
    }

    /// Takes a voucher, once.
    pub(crate) fn spend(&self, voucher: &Voucher, now: Timestamp) -> Result<(), Refused> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.get(&voucher.holder).is_some_and(|own| own.contains_key(&voucher.nonce)) {
            return Err(Refused::Used);
        }
        if is_full(&spent, &voucher.holder) {
            spent.retain(|_, own| {
                own.retain(|_, ends| *ends > now);
                !own.is_empty()
            });
        }
        if is_full(&spent, &voucher.holder) {
            return Err(Refused::Full);
        }
        spent.entry(voucher.holder.clone()).or_default().insert(voucher.nonce, voucher.ends);
        Ok(())
    }
}

fn is_full(spent: &Spent, holder: &str) -> bool {
    let own = spent.get(holder).map_or(0, HashMap::len);
    own >= SPENT_OF_HOLDER_MAX || spent.values().map(HashMap::len).sum::<usize>() >= SPENT_MAX
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const SECOND: SignedDuration = SignedDuration::from_secs(1);

    #[test]
    fn a_voucher_is_good_for_what_it_was_made_for_until_it_ends_and_is_spent_once() {
        let (vouchers, now) = (Vouchers::new(), Timestamp::now());
        let text = vouchers.issue(&["erase", "ada"], b"all of it", now + SECOND);
        assert_eq!(vouchers.open(&["erase", "eve"], &text, now), Err(Refused::NotForThis));
        assert_eq!(vouchers.open(&["erase", "ada"], &text, now + SECOND), Err(Refused::Expired));
        let voucher = vouchers.open(&["erase", "ada"], &text, now).unwrap();
        assert_eq!(voucher.content, b"all of it");
        assert_eq!(vouchers.spend(&voucher, now), Ok(()));
        assert_eq!(vouchers.spend(&voucher, now), Err(Refused::Used));
        let another = vouchers.issue(&["erase", "ada"], b"all of it", now + SECOND);
        let another = vouchers.open(&["erase", "ada"], &another, now).unwrap();
        assert_eq!(vouchers.spend(&another, now), Ok(()), "each is its own");
    }

    /// As if so many had been spent that end in a second.
    fn fill(vouchers: &Vouchers, holder: &str, count: usize, now: Timestamp) {
        let nonce = |number: usize| {
            let mut nonce = [0; NONCE_BYTES];
            nonce[..8].copy_from_slice(&(number as u64).to_be_bytes());
            nonce
        };
        let own = (0..count).map(|number| (nonce(number), now + SECOND)).collect();
        vouchers.spent.lock().unwrap().insert(holder.to_owned(), own);
    }

    fn spend_of(vouchers: &Vouchers, holder: &str, now: Timestamp) -> Result<(), Refused> {
        let text = vouchers.issue(&["erase", holder], b"", now + SECOND);
        vouchers.spend(&vouchers.open(&["erase", holder], &text, now).unwrap(), now)
    }

    #[test]
    fn whoever_spends_too_many_waits_alone_until_some_end() {
        let (vouchers, now) = (Vouchers::new(), Timestamp::now());
        fill(&vouchers, "ada", SPENT_OF_HOLDER_MAX - 1, now);
        assert_eq!(spend_of(&vouchers, "ada", now), Ok(()));
        assert_eq!(spend_of(&vouchers, "ada", now), Err(Refused::Full));
        assert_eq!(spend_of(&vouchers, "bob", now), Ok(()));
        assert_eq!(spend_of(&vouchers, "ada", now + SECOND), Ok(()));
    }

    #[test]
    fn when_too_many_are_remembered_none_is_taken_until_some_end() {
        let (vouchers, now) = (Vouchers::new(), Timestamp::now());
        for number in 0..SPENT_MAX / SPENT_OF_HOLDER_MAX {
            fill(&vouchers, &number.to_string(), SPENT_OF_HOLDER_MAX, now);
        }
        assert_eq!(spend_of(&vouchers, "ada", now), Err(Refused::Full));
        assert_eq!(spend_of(&vouchers, "ada", now + SECOND), Ok(()));
    }
}
