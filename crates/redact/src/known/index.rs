//! Thousands of patterns, looked for at once.
//!
//! Every pattern has at least eight bytes, so each of its occurrences covers a place that is a multiple of five, with four
//! bytes of the pattern from there on. Looking only at those places, in a table that fits into the cache, passes over
//! ordinary text several times faster than an automaton, which has to take every byte and is far too large for the cache.
//! What the table lets through is then compared in full, so nothing is found that is not there, and nothing is missed.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::KNOWN_ALONE_MIN;
use crate::placeholder::Tag;

/// How far apart the places are that are looked at.
pub(super) const STRIDE: usize = 5;
/// How many bytes are looked at in each.
pub(super) const GRAM: usize = 4;
const TABLE_BITS: u32 = 16;
/// The first table has one bit for each hash, so that it can tell more of them apart in the same space.
const ANY_BITS: u32 = 20;
const ANY_LEN: usize = 1 << (ANY_BITS - 6);
// A bit for each slot, and none too many.
const _: () = assert!(ANY_LEN * u64::BITS as usize == 1 << ANY_BITS);

/// The patterns of all known values.
pub(crate) struct Index {
    /// Whether four bytes of this hash stand anywhere near the start of a pattern.
    any: Box<[u64; ANY_LEN]>,
    /// For each hash of four bytes: at which offsets of a pattern they stand, one bit each.
    offsets: Box<[u8]>,
    /// The patterns by their first eight bytes, as a range in `patterns`.
    by_start: HashMap<u64, (u32, u32), BuildHasherDefault<Multiplied>>,
    /// Sorted.
    patterns: Vec<(Box<[u8]>, Tag)>,
}

impl Index {
    pub(super) fn new(patterns: impl IntoIterator<Item = (Vec<u8>, Tag)>) -> Self {
        let mut patterns: Vec<(Box<[u8]>, Tag)> =
            patterns.into_iter().map(|(pattern, tag)| (pattern.into_boxed_slice(), tag)).collect();
        patterns.sort();
        patterns.dedup_by(|a, b| a.0 == b.0);
        let mut offsets = vec![0; 1 << TABLE_BITS].into_boxed_slice();
        let mut any = Box::new([0; ANY_LEN]);
        let mut by_start: HashMap<u64, (u32, u32), _> = HashMap::default();
        for ((pattern, _), number) in patterns.iter().zip(0u32..) {
            for offset in 0..STRIDE {
                let gram = u32::from_le_bytes([0, 1, 2, 3].map(|at| pattern[offset + at]));
                offsets[slot(gram)] |= 1 << offset;
                let (word, bit) = any_slot(gram);
                any[word] |= 1 << bit;
            }
            if let Some(start) = start_of(pattern) {
                by_start.entry(start).or_insert((number, number)).1 = number + 1;
            }
        }
        Index { any, offsets, by_start, patterns }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The offsets of patterns, one bit each, at which these four bytes may stand.
    #[inline]
    pub(super) fn offsets(&self, gram: u32) -> u8 {
        let (word, bit) = any_slot(gram);
        if self.any[word] >> bit & 1 == 0 { 0 } else { self.offsets[slot(gram)] }
    }

    /// The patterns that start like this text of at least eight bytes.
    pub(super) fn starting_like(&self, text: &[u8]) -> &[(Box<[u8]>, Tag)] {
        let range = start_of(text).and_then(|start| self.by_start.get(&start));
        range.map_or(&[], |(from, to)| &self.patterns[*from as usize..*to as usize])
    }

    /// Whether a pattern starts with this text and goes on.
    pub(super) fn goes_on_from(&self, text: &[u8]) -> bool {
        let at = self.patterns.partition_point(|(pattern, _)| &**pattern <= text);
        self.patterns.get(at).is_some_and(|(pattern, _)| pattern.starts_with(text))
    }
}

#[inline]
fn any_slot(gram: u32) -> (usize, u32) {
    let hash = gram.wrapping_mul(0x85eb_ca6b) >> (32 - ANY_BITS);
    (hash as usize / 64 % ANY_LEN, hash % 64)
}

#[inline]
fn slot(gram: u32) -> usize {
    (gram.wrapping_mul(0x9e37_79b1) >> (32 - TABLE_BITS)) as usize
}

fn start_of(text: &[u8]) -> Option<u64> {
    text.first_chunk::<KNOWN_ALONE_MIN>().map(|start| u64::from_le_bytes(*start))
}

/// A hash that is good enough for keys that are text already.
#[derive(Default)]
struct Multiplied(u64);

impl Hasher for Multiplied {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const COUNT: u32 = 10_000;

    /// How many of so many numbers a hash tells apart.
    fn told_apart<T: Ord>(hash: impl Fn(u32) -> T) -> usize {
        (0..COUNT).map(|number| hash(number.wrapping_mul(0x0101_4a07))).collect::<BTreeSet<T>>().len()
    }

    #[test]
    fn the_hashes_of_different_bytes_are_spread_over_their_tables() {
        assert!(told_apart(any_slot) > 9_900, "{}", told_apart(any_slot));
        assert!(told_apart(|gram| any_slot(gram).0) > 7_000, "{}", told_apart(|gram| any_slot(gram).0));
        assert!(told_apart(slot) > 9_000, "{}", told_apart(slot));
        let hashed = |numbers: &[u64]| {
            let mut hasher = Multiplied::default();
            numbers.iter().for_each(|number| hasher.write_u64(*number));
            hasher.finish()
        };
        assert_eq!(told_apart(|number| hashed(&[number.into()])), 10_000);
        assert_eq!(told_apart(|number| hashed(&[number.into(), 3])), 10_000);
        assert_eq!(hashed(&[7, hashed(&[7])]), 0, "a number counts with what came before it");
        let high = told_apart(|number| hashed(&[u64::from(number) << 32]) & 0xffff);
        assert!(high > 9_000, "{high}");
        let last = told_apart(|number| any_slot(u32::from_le_bytes([b'a', b'b', b'c', number as u8])));
        assert!(last > 250, "{last}");
        let low = told_apart(|number| hashed(&[number.into()]) & 0xffff);
        assert!(low > 9_000, "{low}");
        let of_bytes = |bytes: &[u8]| {
            let mut hasher = Multiplied::default();
            hasher.write(bytes);
            hasher.finish()
        };
        assert_eq!(of_bytes(b"ab"), hashed(&[b'a'.into(), b'b'.into()]));
    }

    #[test]
    fn only_what_may_be_a_pattern_is_compared_with_patterns() {
        let tag = *b"01234567";
        let index = Index::new([
            (b"abcdefgh1".to_vec(), tag),
            (b"abcdefgh2".to_vec(), tag),
            (b"zyxwvuts".to_vec(), tag),
        ]);
        assert!(!index.is_empty() && Index::new([]).is_empty());
        let like = |text: &[u8]| {
            index.starting_like(text).iter().map(|(pattern, _)| pattern.to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(like(b"abcdefgh"), [b"abcdefgh1", b"abcdefgh2"]);
        assert_eq!(like(b"zyxwvuts"), [b"zyxwvuts"]);
        assert!(like(b"abcdefgx").is_empty() && like(b"abcdefg").is_empty());
        let gram = u32::from_le_bytes(*b"bcde");
        assert_eq!(index.offsets(gram), 1 << 1);
        let other = |other: &u32| slot(*other) == slot(gram) && any_slot(*other) != any_slot(gram);
        assert_eq!(index.offsets((0..u32::MAX).find(other).unwrap()), 0);
    }
}
