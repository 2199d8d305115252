//! What model providers speak.
//!
//! Event streams ([`sse`]), as much of the Responses API as chat completions can carry ([`responses`]), chat completions
//! ([`chat`]), the way from one to the other ([`translate`]), and what a stream that passes by says that it cost
//! ([`usage`]).
//!
//! Pure: bytes and JSON in, bytes and JSON out. It opens no connection, knows no clock and makes no id; who calls it does.

pub mod chat;
mod error;
pub mod responses;
pub mod sse;
pub mod translate;
pub mod usage;

pub use error::{LlmError, NAME_CHARS_MAX, What};
