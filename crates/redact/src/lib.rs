//! Secrets out of text, JSON and streams.
//!
//! A [`Redactor`] looks for known values in all their forms, for credentials that show by their form, for the values of
//! keys that name a secret, and for private absolute paths. Independent scanners tell spans of the raw input; one output
//! stage puts placeholders in their place. What came through is a [`Safe`] value, and only that can be stored.
//!
//! It deliberately does not guess by randomness: checksums, ids and lock files must stay as they are.

mod colours;
mod error;
mod forms;
mod guesses;
mod json;
mod kind;
mod known;
mod lane;
mod names;
mod output;
mod paths;
mod placeholder;
pub mod process;
mod redactor;
mod rules;
mod safe;
mod source_map;
mod span;
mod stream;
mod structured;
mod tree;
mod window;

pub use error::RedactError;
pub use kind::Kind;
pub use known::{KNOWN_ALONE_MIN, Known};
pub use placeholder::{TagKey, holds_placeholder, without_tags};
pub use redactor::{KNOWN_COUNT_MAX, KNOWN_LEN_MAX, KNOWN_TOTAL_MAX, Redactor, RedactorBuilder};
pub use safe::Safe;
pub use stream::{HELD_MAX, Stream};
