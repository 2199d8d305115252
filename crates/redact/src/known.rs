//! Values that are known to be secret, found exactly, in every form they are commonly written in.
//!
//! This is the only layer that can be complete: it guesses nothing. [`encodings`] writes a value's forms down, [`index`]
//! finds them all at once, [`scan`] does so in a text that arrives in pieces.

mod encodings;
mod index;
mod scan;

use std::fmt;

use encodings::Look;
use index::Index;
pub(crate) use scan::KnownScans;

use crate::placeholder::TagKey;

/// Shorter values are no more than words: they are taken out only where they are the value of their key.
pub const KNOWN_ALONE_MIN: usize = 8;

/// A value that the caller knows to be secret, and the name it goes by, if it has one.
#[derive(Clone)]
pub struct Known {
    pub(crate) name: Option<String>,
    pub(crate) value: Vec<u8>,
}

impl Known {
    /// A secret value without a name.
    pub fn value(value: impl Into<Vec<u8>>) -> Self {
        Known { name: None, value: value.into() }
    }

    /// A secret value that goes by a name, such as that of its environment variable.
    pub fn named(name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        Known { name: Some(name.into()), value: value.into() }
    }

    /// Whether the value is too short to be looked for alone.
    pub fn is_short(&self) -> bool {
        self.value.len() < KNOWN_ALONE_MIN
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A value under eight bytes, which counts only as the value of a key.
pub(crate) struct ShortKnown {
    /// Its name, folded; without one it counts under every key that names a secret.
    pub(crate) name: Option<String>,
    pub(crate) value: Vec<u8>,
}

/// All that is known, ready to be looked for.
pub(crate) struct KnownValues {
    index: Index,
    /// The forms that have blanks, for a second look.
    with_blanks: Index,
    pub(crate) short: Vec<ShortKnown>,
}

impl KnownValues {
    /// The patterns for a look at a text.
    fn index(&self, look: Look) -> &Index {
        match look {
            Look::WithoutIndentation | Look::WithoutDiffMarks => &self.index,
            Look::WithIndentation => &self.with_blanks,
        }
    }

    pub(crate) fn new(known: &[Known], key: &TagKey) -> Self {
        let (mut patterns, mut with_blanks) = (Vec::new(), Vec::new());
        let mut short = Vec::new();
        for Known { name, value } in known {
            let tag = key.tag(value);
            if value.len() < KNOWN_ALONE_MIN {
                if !value.is_empty() {
                    let name = name.as_deref().map(|name| crate::names::folded(name.as_bytes()));
                    short.push(ShortKnown { name, value: value.clone() });
                }
                continue;
            }
            let of = |look| encodings::of(value, look).into_iter().map(move |pattern| (pattern, tag));
            patterns.extend(of(Look::WithoutIndentation));
            with_blanks.extend(of(Look::WithIndentation));
        }
        KnownValues { index: Index::new(patterns), with_blanks: Index::new(with_blanks), short }
    }
}
