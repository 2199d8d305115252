//! What a turn tells while it goes on, and what it ends with.

use std::time::Duration;

use runyard_domain::Code;

use super::{InterruptSnapshot, Message, StopReason, ToolCall};
use crate::usage::Usage;

/// What a turn tells while it goes on.
///
/// All [`Text`](Self::Text) since the last [`Reset`](Self::Reset), as one, is the text of the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// More of the text.
    Text(String),
    /// More of what the model thinks.
    Reasoning(String),
    /// A call begins. It ends with [`ToolCallReady`](Self::ToolCallReady), [`ToolCallCancelled`](Self::ToolCallCancelled),
    /// or with the turn's error.
    ToolCallStarted {
        /// Which call; another may have it after this one was cancelled.
        index: u32,
        /// By what its result is found.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of a call's arguments, as JSON in a text.
    ToolCallArguments {
        /// Which call.
        index: u32,
        /// The piece.
        text: String,
    },
    /// A call is whole. It may only be made when the turn has its answer: that is where it is in for good.
    ToolCallReady(ToolCall),
    /// A call that had begun will not be made.
    ToolCallCancelled {
        /// By what its result would have been found.
        id: String,
        /// The tool.
        name: String,
    },
    /// All that was said, thought and called so far is void. The model begins anew.
    Reset,
    /// What the turn cost so far, all attempts together.
    Usage(Usage),
    /// The same model is asked again after a wait.
    Retrying {
        /// The model.
        model: String,
        /// Which attempt at it will be next; the first was 1.
        attempt: u32,
        /// How long until then.
        wait: Duration,
        /// What went wrong.
        code: Code,
    },
    /// Nobody may be asked now: the turn waits until a circuit breaker lets it through.
    Held {
        /// How long until it tries.
        wait: Duration,
    },
    /// Another model is asked.
    Fallback {
        /// Instead of this one.
        from: String,
        /// This one.
        to: String,
        /// What went wrong; nothing in this turn, when a circuit breaker was open already.
        code: Option<Code>,
    },
}

/// What a turn ends with.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What the model said, thought and calls.
    pub message: Message,
    /// Why it ended. [`StopReason::ToolUse`] exactly when there are calls, unless it was cut at
    /// [`StopReason::MaxTokens`].
    pub stop: StopReason,
    /// What it cost, all attempts together.
    pub usage: Usage,
    /// Who ended it.
    pub model: String,
}

/// What there is of an answer that is not whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Partial {
    /// What the model said and thought so far. It holds no calls, and so can be kept in a conversation as it is.
    pub message: Message,
    /// The same with the calls, whole and begun.
    pub snapshot: InterruptSnapshot,
    /// What it cost so far, all attempts together.
    pub usage: Usage,
}
