//! Gates: whether a call is made.

use std::sync::Arc;

use async_trait::async_trait;
use runyard_llm::inference::ToolCall;

use super::engine::unless_cancelled;
use super::join::join_all;
use super::{Fault, Occasion, Phase, PhaseContext, PhaseError};
use crate::caught::caught;
use crate::plugin::Environment;
use crate::state::{StateError, StateStore};
use crate::tool::{SuspendTicket, ToolResult};

/// What a gate decides on a call, the weakest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum GateDecision {
    /// The call is made.
    #[default]
    Allow,
    /// The call is not made, and this is its result.
    SetResult(ToolResult),
    /// The call waits for an answer.
    Suspend(Box<SuspendTicket>),
    /// The call fails. The model is told why, and the run goes on.
    Deny(String),
    /// The call fails, and the run ends.
    Block(String),
}

impl GateDecision {
    const fn strength(&self) -> u8 {
        match self {
            GateDecision::Allow => 0,
            GateDecision::SetResult(_) => 1,
            GateDecision::Suspend(_) => 2,
            GateDecision::Deny(_) => 3,
            GateDecision::Block(_) => 4,
        }
    }
}

/// Decides whether a call is made.
///
/// A gate is pure: it may be asked again about the same call, after others changed the state. It is dropped where it waits
/// when the run is cancelled.
#[async_trait]
pub trait ToolGate: Send + Sync {
    /// Decides. A failure lets no call through: it ends the run.
    async fn decide(&self, call: &ToolCall, context: &PhaseContext<'_>) -> Result<GateDecision, Fault>;
}

impl Environment {
    /// Asks every gate about a call, side by side, on one frozen revision. The strongest decision counts; of equal ones that
    /// of the gate that was registered first.
    pub async fn decide(
        &self,
        store: &StateStore,
        call: &ToolCall,
        at: Occasion<'_>,
    ) -> Result<GateDecision, PhaseError> {
        if at.cancellation.is_cancelled() {
            return Err(StateError::Cancelled.into());
        }
        if self.gates().is_empty() {
            return Ok(GateDecision::Allow);
        }
        let context = PhaseContext { at, snapshot: store.snapshot() };
        let ask = |gate: &Arc<dyn ToolGate>| {
            let (gate, context) = (Arc::clone(gate), &context);
            caught(async move { gate.decide(call, context).await })
        };
        let asked = self.gates().iter().map(|gate| ask(&gate.part));
        let decisions = unless_cancelled(at.cancellation, join_all(asked)).await?;
        let mut strongest = GateDecision::Allow;
        for (gate, decision) in self.gates().iter().zip(decisions) {
            let (plugin, phase) = (|| gate.owner.to_string(), Phase::ToolGate);
            let decision = match decision {
                Ok(Ok(decision)) => decision,
                Ok(Err(fault)) => return Err(PhaseError::of(plugin(), phase, fault)),
                Err(message) => return Err(PhaseError::Panicked { plugin: plugin(), phase, message }),
            };
            if decision.strength() > strongest.strength() {
                strongest = decision;
            }
        }
        Ok(strongest)
    }
}
