//! How alike two contents are, for finding what was renamed or copied.
//!
//! It counts the bytes of lines that are in both, in any order, as git does. It is no measure for anything else.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::lines::split;

/// How alike a content must be to what it was made from, as git has it, in percent.
pub(crate) const SIMILAR_MIN: u8 = 50;
/// How long a content is at most to be compared.
pub(crate) const SIMILAR_BYTES_MAX: usize = 1024 * 1024;
/// How long a piece of a content is at most that counts as a whole: a line, or a part of a long one, as in what is no text.
const PIECE_BYTES_MAX: usize = 64;

/// What a content is made of: how many bytes of each piece, sorted by the piece's hash.
pub(crate) struct Print {
    pieces: Vec<(u64, u32)>,
    bytes: u64,
}

/// Takes prints that can be compared with each other.
#[derive(Default)]
pub(crate) struct Prints(RandomState);

impl Prints {
    /// The print of a content; none where it is empty or too long.
    pub(crate) fn take(&self, content: &[u8]) -> Option<Print> {
        if content.is_empty() || content.len() > SIMILAR_BYTES_MAX {
            return None;
        }
        let mut pieces: HashMap<u64, u32> = HashMap::new();
        for piece in split(content).flat_map(|line| line.chunks(PIECE_BYTES_MAX)) {
            // Pieces are at most as long as the whole, which fits.
            *pieces.entry(self.0.hash_one(piece)).or_default() += piece.len() as u32;
        }
        let mut pieces: Vec<_> = pieces.into_iter().collect();
        pieces.sort_unstable();
        Some(Print { pieces, bytes: content.len() as u64 })
    }
}

impl Print {
    /// How many percent of the longer content are in both. Only whole percents count.
    pub(crate) fn similarity(&self, other: &Print) -> u8 {
        let (mut common, mut at) = (0_u64, 0);
        for (piece, bytes) in &self.pieces {
            while other.pieces.get(at).is_some_and(|there| there.0 < *piece) {
                at += 1;
            }
            if let Some(there) = other.pieces.get(at).filter(|there| there.0 == *piece) {
                common += u64::from(*bytes.min(&there.1));
            }
        }
        percent(common, self.bytes.max(other.bytes))
    }

    /// How many pieces it is made of.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// How many pieces are looked at to compare it with another.
    pub(crate) fn steps(&self, other: &Print) -> u64 {
        (self.pieces.len() + other.pieces.len()) as u64
    }
}

fn percent(part: u64, whole: u64) -> u8 {
    // A part is at most the whole, so this is at most 100.
    (part * 100).checked_div(whole).unwrap_or_default() as u8
}

/// How alike two contents are; none where that is not looked at.
pub(crate) fn similarity(before: &[u8], after: &[u8]) -> Option<u8> {
    let prints = Prints::default();
    Some(prints.take(before)?.similarity(&prints.take(after)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_both_counts_by_its_bytes_in_any_order() {
        assert_eq!(similarity(b"a\nb\n", b"b\na\n"), Some(100));
        assert_eq!(similarity(b"a\nb\n", b"a\nc\n"), Some(50));
        assert_eq!(similarity(b"a\n", b"a\na\na\na\n"), Some(25));
        assert_eq!(similarity(b"a\n", b"b\n"), Some(0));
        assert_eq!(similarity(b"", b"a"), None);
        assert_eq!(similarity(b"a", &vec![b'a'; SIMILAR_BYTES_MAX + 1]), None);
    }

    #[test]
    fn a_long_line_is_compared_in_parts() {
        let (one, mut other) = (vec![7; 64 * 100], vec![7; 64 * 100]);
        other[64 * 50..].fill(8);
        assert_eq!(similarity(&one, &other), Some(50));
    }
}
