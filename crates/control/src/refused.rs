//! What agents tried and were refused, in the audit. Whether they are refused is decided elsewhere, before this hears of it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use runyard_actions::{Context, Envelope, Hook};
use runyard_domain::run::Who;
use runyard_domain::{Actor, Code, InvocationId, RunId};
use runyard_engine::{ActionRefused, AuditFact, Engine};

use crate::scope::bound_to;

/// So many calls of agents are remembered between their start and their end. A call beyond that is refused all the same, and
/// the process's own log has it.
const CALLS_MAX: usize = 10_000;

/// Records every action that an agent is refused, whatever surface it came by.
pub(crate) struct Refusals {
    engine: Engine,
    /// The calls of agents that run: an envelope does not say whose it is.
    calls: Mutex<HashMap<InvocationId, Actor>>,
}

impl Refusals {
    pub(crate) fn new(engine: Engine) -> Self {
        Refusals { engine, calls: Mutex::default() }
    }
}

#[async_trait]
impl Hook for Refusals {
    async fn started(&self, context: &Context) {
        if context.actor().is_agent() {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            if calls.len() < CALLS_MAX {
                calls.insert(context.invocation_id(), context.actor().clone());
            }
        }
    }

    async fn ended(&self, envelope: &Envelope) {
        let id = envelope.meta.invocation_id;
        let caller = self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let refused = envelope.error().is_some_and(|failure| failure.code == Code::AuthorizationError);
        if let (Some(agent), Some(action), true) = (caller, &envelope.meta.action, refused) {
            record_refusal(&self.engine, &agent, action, bound_to(&agent)).await;
        }
    }
}

/// Records that somebody tried what they may not do.
pub(crate) async fn record_refusal(engine: &Engine, actor: &Actor, action: &str, run: Option<RunId>) {
    let fact = ActionRefused { action: action.to_owned(), run_id: run, repeated: 0 };
    // They are refused, whether or not it can be recorded.
    if let Err(error) = engine.installation().record(&Who::from(actor), AuditFact::Refused(fact)).await {
        tracing::error!(%error, %actor, action, "a refusal could not be recorded");
    }
}
