//! When something happens in a run, and how a run ends.

use std::fmt;

use runyard_domain::Code;
use runyard_llm::inference::{Message, ToolCall};
use serde::{Deserialize, Serialize};

use crate::tool::{ToolError, ToolResult};

/// A phase of a run, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Once, before anything else.
    RunStart,
    /// Before each step.
    StepStart,
    /// Before the model is asked.
    BeforeInference,
    /// After it answered.
    AfterInference,
    /// When a call is to be decided on.
    ToolGate,
    /// Before a call is made.
    BeforeToolExecute,
    /// After it was made, or failed.
    AfterToolExecute,
    /// After each step.
    StepEnd,
    /// Once, however the run ends.
    RunEnd,
}

impl Phase {
    /// All of them, in their order.
    pub const ALL: [Phase; 9] = [
        Phase::RunStart,
        Phase::StepStart,
        Phase::BeforeInference,
        Phase::AfterInference,
        Phase::ToolGate,
        Phase::BeforeToolExecute,
        Phase::AfterToolExecute,
        Phase::StepEnd,
        Phase::RunEnd,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Phase::RunStart => "run_start",
            Phase::StepStart => "step_start",
            Phase::BeforeInference => "before_inference",
            Phase::AfterInference => "after_inference",
            Phase::ToolGate => "tool_gate",
            Phase::BeforeToolExecute => "before_tool_execute",
            Phase::AfterToolExecute => "after_tool_execute",
            Phase::StepEnd => "step_end",
            Phase::RunEnd => "run_end",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A phase, with what is there to be looked at in it.
#[derive(Debug, Clone, Copy)]
pub enum Moment<'a> {
    /// See [`Phase::RunStart`].
    RunStart,
    /// See [`Phase::StepStart`].
    StepStart,
    /// See [`Phase::BeforeInference`].
    BeforeInference,
    /// See [`Phase::AfterInference`].
    AfterInference {
        /// What the model said.
        answer: &'a Message,
    },
    /// See [`Phase::ToolGate`].
    ToolGate {
        /// The call.
        call: &'a ToolCall,
    },
    /// See [`Phase::BeforeToolExecute`].
    BeforeToolExecute {
        /// The call.
        call: &'a ToolCall,
    },
    /// See [`Phase::AfterToolExecute`].
    AfterToolExecute {
        /// The call.
        call: &'a ToolCall,
        /// What came of it.
        outcome: &'a Result<ToolResult, ToolError>,
    },
    /// See [`Phase::StepEnd`].
    StepEnd,
    /// See [`Phase::RunEnd`].
    RunEnd {
        /// How the run ends.
        reason: &'a TerminationReason,
    },
}

impl Moment<'_> {
    /// The phase.
    pub const fn phase(&self) -> Phase {
        match self {
            Moment::RunStart => Phase::RunStart,
            Moment::StepStart => Phase::StepStart,
            Moment::BeforeInference => Phase::BeforeInference,
            Moment::AfterInference { .. } => Phase::AfterInference,
            Moment::ToolGate { .. } => Phase::ToolGate,
            Moment::BeforeToolExecute { .. } => Phase::BeforeToolExecute,
            Moment::AfterToolExecute { .. } => Phase::AfterToolExecute,
            Moment::StepEnd => Phase::StepEnd,
            Moment::RunEnd { .. } => Phase::RunEnd,
        }
    }
}

/// How a run ends, or why it waits.
#[derive(Debug, Clone, PartialEq)]
pub enum TerminationReason {
    /// The model had said all.
    NaturalEnd,
    /// A stop condition was met.
    Stopped {
        /// Which, as a word: `max_rounds`, say.
        code: String,
        /// More about it.
        detail: Option<String>,
    },
    /// Whoever started it does not want it any more.
    Cancelled,
    /// A gate ended it.
    Blocked {
        /// Why.
        reason: String,
    },
    /// A call waits for an answer. The run goes on when it comes.
    Suspended,
    /// It failed.
    Failed {
        /// The row of the error table.
        code: Code,
        /// What happened.
        message: String,
    },
}
