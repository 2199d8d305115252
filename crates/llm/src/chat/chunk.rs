//! The chunks of a streamed answer, as they are read.

use serde::Deserialize;
use serde_json::Value;

/// One chunk. One that carries an error has nothing else.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Chunk {
    /// The answer's id, the same in every chunk.
    #[serde(default)]
    pub id: Option<String>,
    /// The answers; one is asked for, and the chunk that tells the usage has none.
    #[serde(default)]
    pub choices: Option<Vec<Choice>>,
    /// What the answer cost so far, in one of the last chunks.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// Why the provider gave up; see [`Failure::of`].
    #[serde(default)]
    pub error: Option<Value>,
}

/// More of one answer.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Choice {
    /// Which answer.
    #[serde(default)]
    pub index: u32,
    /// What is added.
    #[serde(default)]
    pub delta: Option<Delta>,
    /// Why it ended.
    #[serde(default)]
    pub finish_reason: Option<String>,
}

/// What is added to an answer.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Delta {
    /// Said.
    #[serde(default)]
    pub content: Option<String>,
    /// Said instead of an answer.
    #[serde(default)]
    pub refusal: Option<String>,
    /// Thought.
    #[serde(default)]
    pub reasoning_content: Option<String>,
    /// Thought, as other providers call it.
    #[serde(default)]
    pub reasoning: Option<String>,
    /// Called.
    #[serde(default)]
    pub tool_calls: Option<Vec<ToolCallDelta>>,
}

/// More of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ToolCallDelta {
    /// Which call of the answer; some providers that send calls whole leave it out.
    #[serde(default)]
    pub index: Option<u32>,
    /// By what its result is found, usually with the first chunk.
    #[serde(default)]
    pub id: Option<String>,
    /// What is called.
    #[serde(default)]
    pub function: Option<FunctionDelta>,
}

/// More of what is called.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct FunctionDelta {
    /// The function's name, usually with the first chunk.
    #[serde(default)]
    pub name: Option<String>,
    /// More of its arguments.
    #[serde(default)]
    pub arguments: Option<String>,
}

/// What an answer cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Usage {
    /// The conversation.
    #[serde(default)]
    pub prompt_tokens: u64,
    /// The answer, with what was thought.
    #[serde(default)]
    pub completion_tokens: u64,
    /// What of the conversation was cheaper.
    #[serde(default)]
    pub prompt_tokens_details: Option<PromptDetails>,
    /// What of the answer was not said.
    #[serde(default)]
    pub completion_tokens_details: Option<CompletionDetails>,
    /// The same as the cached tokens, as DeepSeek calls it.
    #[serde(default)]
    pub prompt_cache_hit_tokens: Option<u64>,
}

/// What of the conversation was cheaper.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct PromptDetails {
    /// Known from before.
    #[serde(default)]
    pub cached_tokens: Option<u64>,
}

/// What of the answer was not said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct CompletionDetails {
    /// Thought only.
    #[serde(default)]
    pub reasoning_tokens: Option<u64>,
}

/// Why a provider refused or gave up: the `error` of a body or of a chunk.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Failure {
    /// A sentence for it.
    #[serde(default)]
    pub message: Option<String>,
    /// The sort of error.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// A word for it; some providers give a number.
    #[serde(default)]
    pub code: Option<Value>,
}

impl Failure {
    /// Reads the `error` of a body or of a chunk, whatever form it has.
    #[must_use]
    pub fn of(error: &Value) -> Self {
        match error {
            Value::String(message) => Self { message: Some(message.clone()), ..Self::default() },
            other => Self::deserialize(other).unwrap_or_default(),
        }
    }

    /// A word for it: the code, or else the sort of error.
    #[must_use]
    pub fn word(&self) -> Option<&str> {
        self.code.as_ref().and_then(Value::as_str).or(self.kind.as_deref())
    }
}
