//! Asking a model over the network, on each of three wires.
//!
//! ```text
//! wire/endpoint.rs     where a model is, by what name, and with what key
//! wire/model.rs        one question: the request, its head, and what a refusal means
//! wire/answer.rs       the answer as it comes in, with a limit on every wait
//! wire/decoder.rs      bytes to events of the model, however they are cut
//! wire/responses/      the Responses API: a question to JSON, and its events back
//! wire/chat/           chat completions, likewise
//! wire/anthropic/      Anthropic Messages, likewise
//! wire/order.rs        a conversation in the order that providers take
//! wire/failure.rs      what a provider said is wrong, and which error that is
//! wire/typed.rs        the words that providers have for it
//! wire/retry_after.rs  when to come back
//! wire/schema.rs       schemas as providers take them
//! wire/sealed.rs       what a model wants back of a thought
//! ```
//!
//! [`Wire::encode`] and [`Decoder`] are pure. [`WireModel`] is the only part that opens a connection. Nothing here is tried again,
//! nothing is cached, and no answer is made up: what did not come is an error.

mod answer;
mod anthropic;
mod chat;
mod decoder;
mod endpoint;
mod failure;
mod model;
mod order;
mod responses;
mod retry_after;
mod schema;
mod sealed;
mod typed;

use serde_json::{Map, Value, json};

pub use anthropic::{AnthropicOptions, OUTPUT_TOKENS_DEFAULT, THINKING_TOKENS_MIN, Thinking, VERSION};
pub use chat::{ChatOptions, OutputTokensField, Structure};
pub use decoder::{ANSWER_BYTES_MAX, BLOCKS_MAX, CALLS_MAX, Decoder};
pub use endpoint::Endpoint;
pub use failure::{MESSAGE_CHARS_MAX, Said};
pub use model::{ERROR_BODY_BYTES_MAX, ERROR_BODY_TIME_MAX, WireModel};
pub use responses::ResponsesOptions;
pub use retry_after::{RETRY_AFTER_MAX, retry_after};

use self::sealed::Maker;
use crate::inference::InferenceRequest;

/// What a provider speaks, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wire {
    /// The Responses API of OpenAI.
    Responses(ResponsesOptions),
    /// Chat completions.
    Chat(ChatOptions),
    /// Anthropic Messages.
    Anthropic(AnthropicOptions),
}

impl Wire {
    /// What stands behind the base URL.
    pub const fn path(&self) -> &'static str {
        match self {
            Wire::Responses(_) => "responses",
            Wire::Chat(_) => "chat/completions",
            Wire::Anthropic(_) => "messages",
        }
    }

    /// The body that asks this model of this provider.
    pub fn encode(&self, provider: &str, model: &str, request: &InferenceRequest) -> Value {
        let maker = Maker::new(provider, model);
        match self {
            Wire::Responses(options) => responses::encode(options, &maker, request),
            Wire::Chat(options) => chat::encode(options, &maker, request),
            Wire::Anthropic(options) => anthropic::encode(options, &maker, request),
        }
    }

    /// What makes the events of this model of what its provider answers.
    pub fn decoder(&self, provider: &str, model: &str) -> Decoder {
        Decoder::new(self, &Maker::new(provider, model))
    }
}

/// A call's arguments as every provider takes them back: an object. What the model wrote instead is in it.
fn arguments(written: &Value) -> Value {
    match written {
        Value::Object(_) => written.clone(),
        other => json!({"arguments": other}),
    }
}

/// Adds a field, where there is something to add.
fn put(body: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body.insert(name.to_owned(), value.into());
    }
}
