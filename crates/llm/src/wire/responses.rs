//! The Responses API: a question as its JSON, and its events as those of a model.
//!
//! Nothing is stored at the provider (`store` is false), so what it thought comes back sealed and is handed to it again.

mod encode;
mod reader;

pub(super) use encode::{encode, url, word};
pub(super) use reader::Reader;

/// How a provider of the Responses API is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponsesOptions {
    /// Whether it is asked for its thoughts, sealed, when it is asked how much to think, and gets them back. A model that does not think
    /// refuses both.
    pub asks_for_sealed_reasoning: bool,
}

impl Default for ResponsesOptions {
    fn default() -> Self {
        ResponsesOptions { asks_for_sealed_reasoning: true }
    }
}

/// What a thought is called on this wire.
const REASONING: &str = "reasoning";
