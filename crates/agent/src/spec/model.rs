//! What a model is, as data.

use runyard_llm::wire::{
    AnthropicOptions, ChatOptions, OutputTokensField, ResponsesOptions, Structure, Thinking, Wire,
};
use serde::{Deserialize, Serialize};

use super::WireKind;

/// What a model is, as data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelSpec {
    /// What agents call it, unique among the models.
    pub id: String,
    /// Who has it: the id of a provider.
    pub provider: String,
    /// Its name there; the id, where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many tokens of conversation and answer it takes, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// How it is asked, where its provider's wire leaves a choice.
    #[serde(default)]
    pub options: WireOptions,
}

impl ModelSpec {
    /// A model of a provider, which calls it the same.
    pub fn new(id: impl Into<String>, provider: impl Into<String>) -> Self {
        ModelSpec { id: id.into(), provider: provider.into(), ..ModelSpec::default() }
    }

    /// Its name at its provider.
    pub fn upstream(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }
}

/// How a model is asked, where its provider's wire leaves a choice. What a wire has no choice about must be left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct WireOptions {
    /// Responses: whether it is asked for its thoughts, sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sealed_reasoning: Option<bool>,
    /// Chat completions: whether the length of an answer goes by `max_completion_tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_completion_tokens: Option<bool>,
    /// Chat completions: whether it takes the schema of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<bool>,
    /// Anthropic Messages: how long an answer may be where nobody says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens_default: Option<u64>,
    /// Anthropic Messages: how thinking is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingForm>,
}

/// How thinking is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingForm {
    /// As an effort.
    Adaptive,
    /// As a number of tokens.
    Budget,
}

impl WireOptions {
    /// The wire with these options. `None` where one of them means nothing on it.
    pub(crate) fn on(self, kind: WireKind) -> Option<Wire> {
        let WireOptions {
            sealed_reasoning,
            max_completion_tokens,
            json_schema,
            output_tokens_default,
            thinking,
        } = self;
        let of_responses = sealed_reasoning.is_some();
        let of_chat = max_completion_tokens.is_some() || json_schema.is_some();
        let of_messages = output_tokens_default.is_some() || thinking.is_some();
        match kind {
            WireKind::Responses if !of_chat && !of_messages => {
                let mut options = ResponsesOptions::default();
                options.asks_for_sealed_reasoning =
                    sealed_reasoning.unwrap_or(options.asks_for_sealed_reasoning);
                Some(Wire::Responses(options))
            }
            WireKind::Chat if !of_responses && !of_messages => Some(Wire::Chat(ChatOptions {
                output_tokens_field: match max_completion_tokens {
                    Some(true) => OutputTokensField::MaxCompletionTokens,
                    Some(false) => OutputTokensField::MaxTokens,
                    None => OutputTokensField::default(),
                },
                structure: match json_schema {
                    Some(true) => Structure::JsonSchema,
                    Some(false) => Structure::JsonObject,
                    None => Structure::default(),
                },
            })),
            WireKind::Messages if !of_responses && !of_chat => {
                let options = AnthropicOptions::default();
                Some(Wire::Anthropic(AnthropicOptions {
                    output_tokens_default: output_tokens_default.unwrap_or(options.output_tokens_default),
                    thinking: match thinking {
                        Some(ThinkingForm::Adaptive) => Thinking::Adaptive,
                        Some(ThinkingForm::Budget) => Thinking::Budget,
                        None => options.thinking,
                    },
                }))
            }
            WireKind::Responses | WireKind::Chat | WireKind::Messages => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_mean_something_on_their_own_wire_alone() {
        let responses = WireOptions { sealed_reasoning: Some(false), ..WireOptions::default() };
        let chat = WireOptions { max_completion_tokens: Some(true), ..WireOptions::default() };
        let messages = WireOptions { thinking: Some(ThinkingForm::Budget), ..WireOptions::default() };
        let kinds = [WireKind::Responses, WireKind::Chat, WireKind::Messages];
        let on = |options: WireOptions| kinds.map(|kind| options.on(kind).is_some());
        assert_eq!(on(WireOptions::default()), [true, true, true]);
        assert_eq!(on(responses), [true, false, false]);
        assert_eq!(on(chat), [false, true, false]);
        assert_eq!(on(messages), [false, false, true]);
        assert_eq!(
            chat.on(WireKind::Chat),
            Some(Wire::Chat(ChatOptions {
                output_tokens_field: OutputTokensField::MaxCompletionTokens,
                structure: Structure::default(),
            }))
        );
    }
}
