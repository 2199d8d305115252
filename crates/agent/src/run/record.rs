//! Where a run stands, as it is recorded.

use runyard_domain::Code;
use runyard_llm::usage::Usage;
use serde::{Deserialize, Serialize};

use crate::phase::TerminationReason;

/// Where a run stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It is under way.
    #[default]
    Running,
    /// It waits for an answer.
    Waiting,
    /// It is over.
    Done,
}

impl RunStatus {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Waiting => "waiting",
            RunStatus::Done => "done",
        }
    }
}

/// What is recorded of a run beside its messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// Its agent.
    pub agent_id: String,
    /// Where it stands.
    pub status: RunStatus,
    /// How many times its model was asked.
    pub rounds: u32,
    /// How many steps it began. They are counted on after a wait or a crash.
    #[serde(default)]
    pub steps: u32,
    /// What it cost.
    pub usage: RecordedUsage,
    /// How long it took, without the time in which it waited.
    #[serde(default)]
    pub elapsed_ms: u64,
    /// What it is to answer, and all that it said, stands behind so many messages of its thread.
    #[serde(default)]
    pub before: u64,
    /// Whether the last message is the beginning of an answer whose rest is not stored.
    #[serde(default)]
    pub incomplete: bool,
    /// How it ended, or why it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<RunEnd>,
}

/// What a run cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "as in the usage that it stands for")]
pub struct RecordedUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    pub reasoning_tokens: u64,
}

/// How a run ended, or why it waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEnd {
    /// In a word: `natural_end`, `stopped`, `cancelled`, `blocked`, `suspended`, `failed`.
    pub reason: String,
    /// The code of the error, or of the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl From<Usage> for RecordedUsage {
    fn from(usage: Usage) -> Self {
        let Usage { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = usage;
        RecordedUsage { input_tokens, output_tokens, cached_tokens, reasoning_tokens }
    }
}

impl From<RecordedUsage> for Usage {
    fn from(usage: RecordedUsage) -> Self {
        let RecordedUsage { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = usage;
        Usage { input_tokens, output_tokens, cached_tokens, reasoning_tokens }
    }
}

/// Both together.
pub(crate) fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        input_tokens: one.input_tokens.saturating_add(other.input_tokens),
        output_tokens: one.output_tokens.saturating_add(other.output_tokens),
        cached_tokens: one.cached_tokens.saturating_add(other.cached_tokens),
        reasoning_tokens: one.reasoning_tokens.saturating_add(other.reasoning_tokens),
    }
}

impl From<&TerminationReason> for RunEnd {
    fn from(reason: &TerminationReason) -> Self {
        let end = |reason: &str, code: Option<String>, detail: Option<String>| RunEnd {
            reason: reason.to_owned(),
            code,
            detail,
        };
        match reason {
            TerminationReason::NaturalEnd => end("natural_end", None, None),
            TerminationReason::Stopped { code, detail } => end("stopped", Some(code.clone()), detail.clone()),
            TerminationReason::Cancelled => end("cancelled", None, None),
            TerminationReason::Blocked { reason } => end("blocked", None, Some(reason.clone())),
            TerminationReason::Suspended => end("suspended", None, None),
            TerminationReason::Failed { code, message } => {
                end("failed", Some(code.as_str().to_owned()), Some(message.clone()))
            }
        }
    }
}

impl RunEnd {
    /// The code of the error that it failed with.
    pub fn failed_with(&self) -> Option<Code> {
        self.code.as_deref().filter(|_| self.reason == "failed").and_then(Code::parse)
    }
}
