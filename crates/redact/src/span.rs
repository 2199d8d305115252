//! What scanners find: pieces of the raw input, and what is put in their place.

use std::sync::Arc;

use crate::placeholder::{SecretKind, Tag};

/// Which scanner found a span. Where two start at the same byte, the earlier one here names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    Known,
    Forms,
    Guesses,
    Paths,
}

/// What is put in the place of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// A placeholder.
    Secret { kind: SecretKind, tag: Tag },
    /// A placeholder in quotes: in JSON, where something other than a string stood.
    QuotedSecret { kind: SecretKind, tag: Tag },
    /// A known value in raw JSON: a placeholder, in quotes unless it stands in a string.
    KnownInJson(Tag),
    /// The short name of a private path.
    Path(Arc<[u8]>),
    /// Nothing: it continues what was replaced just before it.
    Continuation,
}

/// A piece of the raw input that is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) layer: Layer,
    pub(crate) replacement: Replacement,
}
