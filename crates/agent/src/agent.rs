//! An agent that is ready to run: everything that its definition names has been found.

use std::sync::Arc;

use runyard_llm::inference::{AnswerFormat, Effort, Inference, InferenceRequest, ToolSpec};
use serde::{Deserialize, Serialize};

use crate::plugin::Environment;
use crate::run::{ContextPolicy, Limits};
use crate::state::UnknownKeyPolicy;

/// An agent that is ready to run. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    /// Its id.
    pub id: Arc<str>,
    /// What its model is told before the conversation.
    pub instructions: Arc<str>,
    /// How it asks its models.
    pub inference: Inference,
    /// Its keys, hooks, gates and tools.
    pub environment: Arc<Environment>,
    /// The tools that its model is offered, out of those of the environment.
    pub tools: Arc<[ToolSpec]>,
    /// How its model is asked.
    pub settings: Settings,
    /// How the calls of one answer are made.
    pub calls: CallOrder,
    /// When it stops by itself.
    pub limits: Arc<Limits>,
    /// How much of a long conversation its model reads.
    pub context: ContextPolicy,
    /// What to do with stored state that it has no key for.
    pub unknown_keys: UnknownKeyPolicy,
}

/// How the calls of one answer are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOrder {
    /// One after the other. Each sees what those before it changed.
    #[default]
    OneByOne,
    /// Side by side, on one revision of the state.
    Parallel,
}

/// How a model is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// How freely the model chooses.
    pub temperature: Option<f64>,
    /// How much of what is likely it chooses from.
    pub top_p: Option<f64>,
    /// How long an answer may be, in tokens.
    pub output_tokens_max: Option<u64>,
    /// How much it should think.
    pub effort: Option<Effort>,
    /// The form of its answers, where it is not plain text.
    pub format: Option<AnswerFormat>,
}

impl Agent {
    /// A question without a conversation.
    pub(crate) fn question(&self) -> InferenceRequest {
        let Settings { temperature, top_p, output_tokens_max, effort, format } = self.settings.clone();
        InferenceRequest {
            instructions: self.instructions.to_string(),
            tools: Arc::clone(&self.tools),
            parallel_tool_calls: true,
            temperature,
            top_p,
            output_tokens_max,
            effort,
            format,
            ..InferenceRequest::default()
        }
    }
}
