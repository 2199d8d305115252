//! What a matcher may look at: some bytes to the left of a place, and so many to the right.
//!
//! A matcher that looked past what has arrived so far is *starved*: whatever it answered is thrown away, and it is asked
//! again when there is more. So no answer can depend on how the text was cut into chunks, by construction.

use std::cell::Cell;

/// How far to the left a matcher can look.
pub(crate) const LOOK_BEHIND_MAX: usize = 128;

/// A place in a text, and what may be seen from there. Offsets count from that place.
pub(crate) struct Window<'a> {
    text: &'a [u8],
    at: usize,
    floor: usize,
    limit: usize,
    ended: bool,
    starved: Cell<bool>,
}

impl<'a> Window<'a> {
    /// The view from `at`, at most `limit` bytes to the right; `ended` says that nothing follows `text`.
    pub(crate) fn new(text: &'a [u8], at: usize, limit: usize, ended: bool) -> Self {
        let floor = at.saturating_sub(LOOK_BEHIND_MAX);
        Window { text, at, floor, limit, ended, starved: Cell::new(false) }
    }

    /// Whether something was looked at that has not arrived yet.
    pub(crate) fn is_starved(&self) -> bool {
        self.starved.get()
    }

    /// The byte at `offset`; none at the end of the text, and none beyond the limit.
    pub(crate) fn get(&self, offset: usize) -> Option<u8> {
        if offset >= self.limit {
            return None;
        }
        let byte = self.text.get(self.at + offset).copied();
        if byte.is_none() && !self.ended {
            self.starved.set(true);
        }
        byte
    }

    /// The byte so many places to the left; 1 is the nearest.
    pub(crate) fn before(&self, back: usize) -> Option<u8> {
        let at = self.at.checked_sub(back)?;
        if at < self.floor { None } else { self.text.get(at).copied() }
    }

    /// What is to the left.
    pub(crate) fn left(&self) -> &'a [u8] {
        &self.text[self.floor..self.at]
    }

    /// Whether the view ends at `offset`, so that what is open there has no end in sight.
    pub(crate) fn is_cut_at(&self, offset: usize) -> bool {
        offset >= self.limit
    }

    /// Where the run of bytes that `keep` accepts ends, from `from` on.
    pub(crate) fn run(&self, from: usize, keep: impl Fn(u8) -> bool) -> usize {
        let mut end = from;
        while self.get(end).is_some_and(&keep) {
            end += 1;
        }
        end
    }

    /// The same with a bound on the length of the run.
    pub(crate) fn run_of(&self, from: usize, length_max: usize, keep: impl Fn(u8) -> bool) -> usize {
        let mut end = from;
        while end - from < length_max && self.get(end).is_some_and(&keep) {
            end += 1;
        }
        end
    }

    /// Past spaces and tabs, a few at most.
    pub(crate) fn blanks(&self, from: usize) -> usize {
        self.run_of(from, 16, |byte| byte == b' ' || byte == b'\t')
    }

    /// What has been looked at from `from` to `to`.
    pub(crate) fn slice(&self, from: usize, to: usize) -> &'a [u8] {
        self.text.get(self.at + from..self.at + to).unwrap_or_default()
    }

    /// Whether `literal` stands at `offset`.
    pub(crate) fn has(&self, offset: usize, literal: &[u8]) -> bool {
        literal.iter().zip(offset..).all(|(byte, at)| self.get(at) == Some(*byte))
    }

    /// Whether `literal`, given in lower case, stands at `offset` in any case.
    pub(crate) fn has_in_any_case(&self, offset: usize, literal: &[u8]) -> bool {
        literal
            .iter()
            .zip(offset..)
            .all(|(byte, at)| self.get(at).is_some_and(|b| b.to_ascii_lowercase() == *byte))
    }

    /// Whether a word can begin here: the byte to the left is no part of one. The `n` of an escaped line break is none.
    pub(crate) fn is_word_start(&self) -> bool {
        match self.before(1) {
            Some(b'n' | b'r' | b't') => self.before(2) == Some(b'\\'),
            Some(byte) => !is_word(byte),
            None => true,
        }
    }

    /// Whether an escape of a URL stands to the left, such as `%20`.
    pub(crate) fn is_behind_percent(&self) -> bool {
        let is_digit = |back| self.before(back).is_some_and(|byte: u8| byte.is_ascii_hexdigit());
        self.before(3) == Some(b'%') && is_digit(1) && is_digit(2)
    }
}

/// A byte of a name or word, in ASCII.
pub(crate) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
