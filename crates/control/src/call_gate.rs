//! The calls of agents: judged by the gate of their run, asked about as an approval of it, and told to its log.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use runyard_actions::{Action, ActionError, CallGate, Context, Envelope, Hook, Idempotency, SideEffects};
use runyard_domain::run::ToolOutcome;
use runyard_domain::{InvocationId, RunId, gate};
use runyard_engine::{AgentCall, Engine};
use serde_json::Value;

use crate::artifacts;
use crate::failed::failed;
use crate::scope::bound_to;

/// So many calls of agents run at a time. Further ones are refused.
const CALLS_MAX: usize = 10_000;

/// The gate of every run, for the actions of the hub.
#[derive(Clone)]
pub(crate) struct RunGate {
    engine: Engine,
    /// The hub's own actions.
    own: std::sync::Arc<BTreeSet<String>>,
    /// The calls that passed and run.
    calls: std::sync::Arc<Mutex<HashMap<InvocationId, RunId>>>,
}

impl RunGate {
    pub(crate) fn new(engine: Engine) -> Self {
        let own = crate::actions().into_iter().flatten().map(|action| action.name().to_owned());
        RunGate { engine, own: std::sync::Arc::new(own.collect()), calls: std::sync::Arc::default() }
    }
}

#[async_trait]
impl CallGate for RunGate {
    async fn pass(&self, action: &Action, input: &Value, context: &Context) -> Result<(), ActionError> {
        let Some(run) = bound_to(context.actor()) else { return Ok(()) };
        let spec = action.spec();
        let note = artifacts::as_note(action.name(), input);
        let side_effects = match spec.side_effects {
            SideEffects::Write if note.is_some() => gate::SideEffects::Read,
            SideEffects::Read => gate::SideEffects::Read,
            SideEffects::Write => gate::SideEffects::Write,
            SideEffects::Destructive => gate::SideEffects::Destructive,
        };
        let call = AgentCall {
            run,
            call: context.invocation_id().to_string(),
            action: action.name().to_owned(),
            side_effects,
            is_of_the_hub: self.own.contains(action.name()),
            idempotent: spec.idempotency == Idempotency::Idempotent,
            input: note.unwrap_or_else(|| input.clone()),
        };
        if self.calls.lock().unwrap_or_else(PoisonError::into_inner).len() >= CALLS_MAX {
            return Err(ActionError::new(
                runyard_domain::Code::ConcurrencyLimit,
                "Too many calls of agents run.",
            ));
        }
        self.engine.pass_call(call).await.map_err(failed)?;
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(context.invocation_id(), run);
        Ok(())
    }
}

#[async_trait]
impl Hook for RunGate {
    async fn ended(&self, envelope: &Envelope) {
        let id = envelope.meta.invocation_id;
        let run = self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(run) = run {
            let (outcome, summary) = match envelope.error() {
                None => (ToolOutcome::Succeeded, "done".to_owned()),
                Some(failure) => {
                    (ToolOutcome::Failed, format!("{}: {}", failure.code.as_str(), failure.message))
                }
            };
            self.engine.end_call(run, &id.to_string(), outcome, &summary).await;
        }
    }
}
