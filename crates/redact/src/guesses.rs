//! Guesses by the name of a key. They apply to texts, JSON, headers and environments, never to file content or diffs.

pub(crate) mod assignment;
pub(crate) mod header_lines;
mod place;
pub(crate) mod values;
