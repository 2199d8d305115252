//! Anthropic Messages: a question as JSON, and its events as those of a model.

mod encode;
mod reader;
mod turns;

pub(super) use encode::encode;
pub(super) use reader::Reader;

/// The version of the API that is spoken here.
pub const VERSION: &str = "2023-06-01";
/// How long an answer may be where nobody says: this wire always wants a number.
pub const OUTPUT_TOKENS_DEFAULT: u64 = 16_384;
/// Less thinking than this cannot be asked for.
pub const THINKING_TOKENS_MIN: u64 = 1024;

/// How a provider of Anthropic Messages is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnthropicOptions {
    /// How long an answer may be where the question does not say.
    pub output_tokens_default: u64,
    /// How thinking is asked for.
    pub thinking: Thinking,
}

impl Default for AnthropicOptions {
    fn default() -> Self {
        AnthropicOptions { output_tokens_default: OUTPUT_TOKENS_DEFAULT, thinking: Thinking::default() }
    }
}

/// How thinking is asked for. A model takes one form or the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Thinking {
    /// As an effort: the model decides how long it thinks. From version 4.6 on.
    #[default]
    Adaptive,
    /// As a number of tokens, for older models.
    Budget,
}

/// What a thought is called on this wire.
const THINKING: &str = "thinking";
/// What a thought is called that is not shown.
const REDACTED: &str = "redacted_thinking";
