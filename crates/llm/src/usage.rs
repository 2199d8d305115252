//! What an answer cost, as the provider tells it.
//!
//! A [`Meter`] looks at a stream that passes by and changes nothing of it. It does not estimate: where nothing is told, there
//! is nothing to say.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    LlmError, chat,
    responses::{InputDetails, OutputDetails, Tokens},
    sse,
};

/// What an answer cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The conversation, with what was known from before.
    pub input_tokens: u64,
    /// The answer, with what was thought.
    pub output_tokens: u64,
    /// What of the input was known from before.
    pub cached_tokens: u64,
    /// What of the output was only thought.
    pub reasoning_tokens: u64,
}

impl From<chat::Usage> for Usage {
    fn from(told: chat::Usage) -> Self {
        let cached = told.prompt_tokens_details.and_then(|details| details.cached_tokens);
        let thought = told.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        Self {
            input_tokens: told.prompt_tokens,
            output_tokens: told.completion_tokens,
            cached_tokens: cached.or(told.prompt_cache_hit_tokens).unwrap_or_default(),
            reasoning_tokens: thought.unwrap_or_default(),
        }
    }
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            input_tokens_details: InputDetails { cached_tokens: usage.cached_tokens },
            output_tokens: usage.output_tokens,
            output_tokens_details: OutputDetails { reasoning_tokens: usage.reasoning_tokens },
            total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
        }
    }
}

/// Reads what a stream of either API tells of its cost.
#[derive(Debug, Default)]
pub struct Meter {
    decoder: sse::Decoder,
    usage: Option<Usage>,
}

impl Meter {
    /// A meter at the beginning of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at bytes that pass by.
    ///
    /// # Errors
    /// [`LlmError::EventTooLong`]; what comes after is not understood any more.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), LlmError> {
        for event in self.decoder.push(bytes)? {
            // Most events tell nothing, and need not be parsed for that.
            if event.data.contains("\"usage\"") {
                self.usage = of_body(event.data.as_bytes()).or(self.usage);
            }
        }
        Ok(())
    }

    /// What was told last.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }
}

/// The parts of a body or an event that may tell a cost.
#[derive(Deserialize)]
struct Telling {
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    response: Option<Inner>,
}

#[derive(Deserialize)]
struct Inner {
    #[serde(default)]
    usage: Option<Value>,
}

/// What a whole body of either API, or the data of one event, tells of its cost.
#[must_use]
pub fn of_body(body: &[u8]) -> Option<Usage> {
    let telling: Telling = serde_json::from_slice(body).ok()?;
    let usage = telling.response.and_then(|response| response.usage).or(telling.usage)?;
    if usage.get("prompt_tokens").is_some() {
        return chat::Usage::deserialize(&usage).ok().map(Usage::from);
    }
    let count = |place: &str| usage.pointer(place).and_then(Value::as_u64);
    Some(Usage {
        input_tokens: count("/input_tokens")?,
        output_tokens: count("/output_tokens")?,
        cached_tokens: count("/input_tokens_details/cached_tokens").unwrap_or_default(),
        reasoning_tokens: count("/output_tokens_details/reasoning_tokens").unwrap_or_default(),
    })
}
