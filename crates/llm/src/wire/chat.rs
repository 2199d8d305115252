//! Chat completions of any provider that has them: a question as JSON, and its chunks as the events of a model.

mod encode;
mod reader;

pub(super) use encode::encode;
pub(super) use reader::Reader;

/// How a provider of chat completions is asked. They differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChatOptions {
    /// Which field says how long the answer may be.
    pub output_tokens_field: OutputTokensField,
    /// How the form of an answer is asked for.
    pub structure: Structure,
}

/// Which field says how long an answer may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputTokensField {
    /// `max_tokens`, the older of two names, which nearly every provider knows.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which newer models of OpenAI insist on.
    MaxCompletionTokens,
}

/// How the form of an answer is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Structure {
    /// With its schema.
    #[default]
    JsonSchema,
    /// As any object, for providers that take no schema. It is put into words then.
    JsonObject,
}

/// What a thought that is wanted back is called on this wire.
const REASONING_CONTENT: &str = "reasoning_content";
