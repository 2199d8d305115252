//! Credentials that show by their form. [`triggers`] finds where one may be, a matcher in the other modules looks closer.
//!
//! A matcher sees a bounded [`Window`], answers with what to take out, and never reaches to the left of its trigger.

pub(crate) mod flags;
pub(crate) mod headers;
pub(crate) mod jwt;
pub(crate) mod pem;
pub(crate) mod triggers;
pub(crate) mod url;
pub(crate) mod vendors;

use crate::placeholder::SecretKind;
use crate::window::{Window, is_word};

/// The greatest length of a form, from its trigger on.
pub(crate) const FORM_MAX: usize = 4 * 1024;
/// The same for PEM blocks.
pub(crate) const PEM_MAX: usize = 16 * 1024;

/// What a matcher found; offsets count from the trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: SecretKind,
    /// How the secret goes on beyond the greatest length, if it is still open there.
    pub(crate) rest: Option<Rest>,
}

impl Found {
    /// From `start` to `end`; if that is where the window ends, `rest` says how it goes on.
    pub(crate) fn new(
        window: &Window<'_>,
        start: usize,
        end: usize,
        kind: SecretKind,
        rest: Rest,
    ) -> Option<Found> {
        let rest = window.is_cut_at(end).then_some(rest);
        (end > start).then_some(Found { start, end, kind, rest })
    }
}

/// What belongs to a secret that is longer than its form may be: withheld byte by byte, for as long as it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Up to a blank or quote.
    Token,
    /// Up to the end of the line.
    Line,
    /// Up to the closing quote, or the end of the line.
    Quoted(u8),
    /// Base64 and line breaks.
    Pem,
}

impl Rest {
    pub(crate) fn goes_on(self, byte: u8) -> bool {
        match self {
            Rest::Token => !byte.is_ascii_whitespace() && !b"\"'`<>".contains(&byte),
            Rest::Line => byte != b'\n' && byte != b'\r',
            Rest::Quoted(quote) => byte != quote && byte != b'\n',
            Rest::Pem => byte.is_ascii_alphanumeric() || b"+/=\r\n\t \\-".contains(&byte),
        }
    }
}

/// Where a value ends at the latest: before a bracket that closes what was opened before the value.
pub(crate) fn before_unopened(window: &Window<'_>, start: usize, end: usize) -> usize {
    if window.is_cut_at(end) {
        return end;
    }
    let mut open = 0usize;
    for (byte, at) in window.slice(start, end).iter().zip(start..) {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => match open.checked_sub(1) {
                Some(left) => open = left,
                None => return at,
            },
            _ => {}
        }
    }
    end
}

/// A byte of base64, in either alphabet, or of what tokens are made of otherwise.
pub(crate) fn is_token(byte: u8) -> bool {
    is_word(byte) || b"+/=-.~%".contains(&byte)
}
