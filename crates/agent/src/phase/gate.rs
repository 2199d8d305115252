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
/// A gate is pure: it may be asked again about the same call, after others changed the state. A question that it asks again
/// has the same ticket: what was answered is not asked twice, and any other ticket is another question. It is dropped where
/// it waits when the run is cancelled.
#[async_trait]
pub trait ToolGate: Send + Sync {
    /// Decides. A failure lets no call through: it ends the run.
    async fn decide(&self, call: &ToolCall, context: &PhaseContext<'_>) -> Result<GateDecision, Fault>;

    /// Whether it waits for a person while it decides. That time is not the run's: it counts toward no limit.
    fn waits_for_people(&self) -> bool {
        false
    }
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
        let decisions = self.decide_each(store, call, at).await?;
        Ok(strongest(decisions).map_or(GateDecision::Allow, |(_, decision)| decision))
    }

    /// The same, with what each gate decided, in the order of registration. A gate goes by its plugin and its place among the
    /// gates of that: so it has the same name in another process.
    pub(crate) async fn decide_each(
        &self,
        store: &StateStore,
        call: &ToolCall,
        at: Occasion<'_>,
    ) -> Result<Vec<(String, GateDecision)>, PhaseError> {
        if at.cancellation.is_cancelled() {
            return Err(StateError::Cancelled.into());
        }
        if self.gates().is_empty() {
            return Ok(Vec::new());
        }
        let context = PhaseContext { at, snapshot: store.snapshot() };
        let ask = |gate: &Arc<dyn ToolGate>| {
            let (gate, context) = (Arc::clone(gate), &context);
            caught(async move { gate.decide(call, context).await })
        };
        let asked = self.gates().iter().map(|gate| ask(&gate.part));
        let answers = unless_cancelled(at.cancellation, join_all(asked)).await?;
        let mut decisions = Vec::with_capacity(answers.len());
        for (place, (gate, answer)) in self.gates().iter().zip(answers).enumerate() {
            let (plugin, phase) = (|| gate.owner.to_string(), Phase::ToolGate);
            let decision = match answer {
                Ok(Ok(decision)) => decision,
                Ok(Err(fault)) => return Err(PhaseError::of(plugin(), phase, fault)),
                Err(message) => return Err(PhaseError::Panicked { plugin: plugin(), phase, message }),
            };
            let before = self.gates()[..place].iter().filter(|other| other.owner == gate.owner).count();
            decisions.push((format!("{}.{before}", gate.owner), decision));
        }
        Ok(decisions)
    }
}

/// The strongest decision, and of equal ones the first. None where all allow the call.
pub(crate) fn strongest(
    decisions: impl IntoIterator<Item = (String, GateDecision)>,
) -> Option<(String, GateDecision)> {
    let mut strongest: Option<(String, GateDecision)> = None;
    for (gate, decision) in decisions {
        let than = strongest.as_ref().map_or(0, |(_, strongest)| strongest.strength());
        if decision.strength() > than {
            strongest = Some((gate, decision));
        }
    }
    strongest
}
