//! What an answer cost, as the provider tells it.
//!
//! [`Told`] looks at the events that pass by and changes nothing of them.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    chat,
    responses::{InputDetails, OutputDetails, Tokens},
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

/// What the events of one answer tell of its cost, taken one by one.
///
/// It does not estimate: where nothing is told, there is nothing to say.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    /// What Anthropic Messages tells when an answer begins, and need not tell again.
    input_tokens: Option<u64>,
    usage: Option<Usage>,
}

impl Told {
    /// Takes the data of the next event.
    pub fn take(&mut self, data: &str) {
        // Most events tell nothing, and need not be parsed for that.
        if !data.contains("\"usage\"") {
            return;
        }
        let Ok(telling) = serde_json::from_str::<Telling>(data) else { return };
        if let Some(begun) = telling.message.as_ref().and_then(|message| message.usage.as_ref()) {
            // What it says of the output is of no answer yet.
            self.input_tokens = input(begun).or(self.input_tokens);
            return;
        }
        self.usage = telling.usage(self.input_tokens).or(self.usage);
    }

    /// What was told last.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// What the conversation cost, which may be known before the answer is.
    #[must_use]
    pub fn input_tokens(&self) -> Option<u64> {
        self.usage.map(|usage| usage.input_tokens).or(self.input_tokens)
    }
}

/// The parts of a body or an event that may tell a cost.
#[derive(Deserialize)]
struct Telling {
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    response: Option<Inner>,
    #[serde(default)]
    message: Option<Inner>,
}

#[derive(Deserialize)]
struct Inner {
    #[serde(default)]
    usage: Option<Value>,
}

impl Telling {
    /// The cost; what it does not say of the input was told `before`.
    fn usage(self, before: Option<u64>) -> Option<Usage> {
        let usage = self.response.and_then(|response| response.usage).or(self.usage)?;
        if usage.get("prompt_tokens").is_some() {
            return chat::Usage::deserialize(&usage).ok().map(Usage::from);
        }
        let count = |place: &str| usage.pointer(place).and_then(Value::as_u64);
        let cached = count("/input_tokens_details/cached_tokens").or(count("/cache_read_input_tokens"));
        Some(Usage {
            // One that is told anew may leave out what was told before.
            input_tokens: input(&usage).max(before)?,
            output_tokens: count("/output_tokens")?,
            cached_tokens: cached.unwrap_or_default(),
            reasoning_tokens: count("/output_tokens_details/reasoning_tokens").unwrap_or_default(),
        })
    }
}

/// All of the input. Anthropic Messages counts what came from its cache, or went there, apart from the rest.
fn input(usage: &Value) -> Option<u64> {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    let apart = ["cache_read_input_tokens", "cache_creation_input_tokens"];
    let apart = apart.into_iter().filter_map(count).fold(0, u64::saturating_add);
    Some(count("input_tokens")?.saturating_add(apart))
}

/// What a whole body of any of these APIs, or the data of one event, tells of its cost.
#[must_use]
pub fn of_body(body: &[u8]) -> Option<Usage> {
    serde_json::from_slice::<Telling>(body).ok()?.usage(None)
}
