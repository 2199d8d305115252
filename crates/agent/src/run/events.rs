//! What a run tells while it goes on.

use async_trait::async_trait;
use runyard_llm::inference::{Message, ToolCall, Update};
use runyard_llm::usage::Usage;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::budget::Budget;
use crate::caught::caught;
use crate::checkpoint::CallPlace;
use crate::phase::TerminationReason;
use crate::tool::{Report, SuspendTicket, ToolError, ToolResult};

/// What a run tells while it goes on.
///
/// What is told is a preview until its step is durable; a client that reads it again reads what is stored.
///
/// It is told raw: pieces of an answer, calls, what tools report and give may hold secrets that a redactor takes out of what is stored.
/// Only [`Answered`](Self::Answered) is as it is stored. Whoever shows or keeps the others redacts them first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AgentEvent {
    /// It begins, or goes on.
    RunStarted {
        /// Whether it goes on after a wait or a crash.
        resumed: bool,
    },
    /// A step begins.
    StepStarted {
        /// Counted from 1.
        step: u32,
    },
    /// What comes of the question to the model, piece by piece.
    Inference(Update),
    /// The model's answer is whole.
    Answered {
        /// As it is stored.
        message: Arc<Message>,
        /// What it cost.
        usage: Usage,
        /// Who gave it.
        model: String,
    },
    /// A call is made.
    ToolStarted {
        /// Which.
        place: CallPlace,
        /// The call.
        call: ToolCall,
        /// Whether making it twice is as good as once.
        idempotent: bool,
    },
    /// A tool says how far it is.
    ToolReported {
        /// Which call.
        place: CallPlace,
        /// What it says.
        report: Report,
    },
    /// A tool said more at once than could be told.
    ReportsLost {
        /// Which call.
        place: CallPlace,
        /// So many reports are left out.
        count: u64,
    },
    /// A call ended.
    ToolEnded {
        /// Which.
        place: CallPlace,
        /// The call.
        call: ToolCall,
        /// How.
        outcome: Result<ToolResult, ToolError>,
    },
    /// A call waits for an answer.
    Suspended {
        /// Which.
        place: CallPlace,
        /// For what.
        ticket: SuspendTicket,
    },
    /// The older part of the conversation is summarised from now on in what the model reads.
    Summarised {
        /// So many messages are left out.
        messages: u64,
    },
    /// An effect failed. What it belongs to is committed all the same.
    EffectFailed {
        /// Its kind.
        key: String,
        /// Why.
        message: String,
    },
    /// A scheduled action failed, and is kept aside.
    ActionFailed {
        /// Its kind.
        key: String,
        /// Why.
        message: String,
    },
    /// It ends, or waits.
    RunEnded {
        /// How.
        reason: TerminationReason,
        /// What it cost.
        usage: Usage,
    },
}

/// So long a run that is cancelled waits for whoever hears of it, for all that it tells from then on.
pub const OBSERVED_MAX: Duration = Duration::from_secs(5);

/// Hears what a run tells. Whoever takes long holds the run up: that is the back-pressure. A run that is cancelled waits no
/// longer than [`OBSERVED_MAX`] in all, and then tells only what is heard at once. A panic here is not the run's.
#[async_trait]
pub trait Observer: Send + Sync {
    /// Hears it.
    async fn observe(&self, event: AgentEvent);
}

/// Tells what a run does. Whoever does not listen holds the run up, but not its end.
#[derive(Clone)]
pub(crate) struct Teller {
    observer: Arc<dyn Observer>,
    patience: Budget,
}

impl Teller {
    pub(crate) fn new(observer: Arc<dyn Observer>, cancellation: CancellationToken) -> Self {
        Teller { observer, patience: Budget::new(cancellation, OBSERVED_MAX) }
    }

    /// Tells an event. A panic of whoever listens is told to nobody.
    pub(crate) async fn tell(&self, event: AgentEvent) {
        let told = self.patience.within(caught(self.observer.observe(event))).await;
        if let Some(Err(panicked)) = told {
            tracing::warn!("an observer {panicked}");
        }
    }
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

#[async_trait]
impl Observer for Unobserved {
    async fn observe(&self, _event: AgentEvent) {}
}

/// Passes everything on to a channel. When nobody reads it any more the run goes on unheard.
#[async_trait]
impl Observer for tokio::sync::mpsc::Sender<AgentEvent> {
    async fn observe(&self, event: AgentEvent) {
        let _ = self.send(event).await;
    }
}
