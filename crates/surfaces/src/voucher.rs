//! Sealed texts that are good for a time and, where that is asked for, for one use.
//!
//! Nothing is kept of a voucher until it is spent; of spent ones, what tells them apart is kept until they end.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use crate::seal::{Seal, random};

/// So many spent vouchers are remembered. Beyond that none can be spent until some end, rather than one twice.
const SPENT_MAX: usize = 100_000;
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
    nonce: [u8; NONCE_BYTES],
    ends: Timestamp,
}

/// Makes vouchers, reads them and takes them.
pub(crate) struct Vouchers {
    seal: Seal,
    spent: Mutex<HashMap<[u8; NONCE_BYTES], Timestamp>>,
}

impl Vouchers {
    pub(crate) fn new() -> Self {
        Vouchers { seal: Seal::new(), spent: Mutex::default() }
    }

    /// A voucher that says this, bound to all of `to`, until `ends`.
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
        Ok(Voucher { content: content.to_vec(), nonce: *nonce, ends })
    }

    /// Takes a voucher, once.
    pub(crate) fn spend(&self, voucher: &Voucher, now: Timestamp) -> Result<(), Refused> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.contains_key(&voucher.nonce) {
            return Err(Refused::Used);
        }
        if spent.len() >= SPENT_MAX {
            spent.retain(|_, ends| *ends > now);
        }
        if spent.len() >= SPENT_MAX {
            return Err(Refused::Full);
        }
        spent.insert(voucher.nonce, voucher.ends);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const SECOND: SignedDuration = SignedDuration::from_secs(1);

    #[test]
    fn a_voucher_is_good_for_what_it_was_made_for_until_it_ends_and_is_spent_once() {
        let (vouchers, now) = (Vouchers::new(), Timestamp::now());
        let text = vouchers.issue(&["ada", "erase"], b"all of it", now + SECOND);
        assert_eq!(vouchers.open(&["eve", "erase"], &text, now), Err(Refused::NotForThis));
        assert_eq!(vouchers.open(&["ada", "erase"], &text, now + SECOND), Err(Refused::Expired));
        let voucher = vouchers.open(&["ada", "erase"], &text, now).unwrap();
        assert_eq!(voucher.content, b"all of it");
        assert_eq!(vouchers.spend(&voucher, now), Ok(()));
        assert_eq!(vouchers.spend(&voucher, now), Err(Refused::Used));
        let another = vouchers.issue(&["ada", "erase"], b"all of it", now + SECOND);
        let another = vouchers.open(&["ada", "erase"], &another, now).unwrap();
        assert_eq!(vouchers.spend(&another, now), Ok(()), "each is its own");
    }

    #[test]
    fn when_too_many_are_remembered_none_is_taken_until_some_end() {
        let (vouchers, now) = (Vouchers::new(), Timestamp::now());
        for number in 0..SPENT_MAX as u64 {
            let mut nonce = [0; NONCE_BYTES];
            nonce[..8].copy_from_slice(&number.to_be_bytes());
            vouchers.spent.lock().unwrap().insert(nonce, now + SECOND);
        }
        let voucher = |at| vouchers.open(&[], &vouchers.issue(&[], b"", at + SECOND), at).unwrap();
        assert_eq!(vouchers.spend(&voucher(now), now), Err(Refused::Full));
        let later = now + SECOND;
        assert_eq!(vouchers.spend(&voucher(later), later), Ok(()));
    }
}
