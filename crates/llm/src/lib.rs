//! What model providers speak.
//!
//! Event streams ([`sse`]), as much of the Responses API as chat completions can carry ([`responses`]), chat completions
//! ([`chat`]), the way from one to the other ([`translate`]), and what a stream that passes by says that it cost
//! ([`usage`]).
//!
//! And asking a model oneself: the port ([`inference`]), who answers it over the network on three wires ([`wire`]), and the one HTTP
//! client for all that goes to a provider ([`http`]).
//!
//! Only [`http`] and the model in [`wire`] touch the network and the clock. All else is pure: bytes and JSON in, bytes and JSON out.

pub mod chat;
mod error;
pub mod http;
pub mod inference;
pub mod responses;
pub mod sse;
pub mod translate;
pub mod usage;
pub mod wire;

pub use error::{LlmError, NAME_CHARS_MAX, What};
