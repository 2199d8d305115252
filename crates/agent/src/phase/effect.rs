//! Effects: what goes out after a commit.
//!
//! They are not stored. A run that dies goes on from its last checkpoint, and what was committed after that is done anew,
//! with its effects: a handler must bear to be told twice. That goes for the hooks after a call, too, though its result is
//! durable before they hear of it. Two things are not done anew. What a tool sends goes out when its call's result is durable, so
//! a process that dies in between never sends it; and the end of a step all of whose calls have their results is not come to
//! again where the process died behind the last of them.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;

use super::{Fault, PhaseContext};
use crate::budget::Budget;
use crate::caught::caught;

/// How long an effect's handler may take. What is committed is told, also when the run is cancelled.
pub const EFFECT_TIME_MAX: Duration = Duration::from_secs(30);
/// So long the effects of a run may take in all from when it is cancelled. After that those go out that take no time.
pub const EFFECTS_CANCELLED_MAX: Duration = Duration::from_secs(5);

/// A kind of effect.
pub trait StateEffect: Send + Sync + 'static {
    /// Its name, unique in an environment.
    const KEY: &'static str;
    /// What it says.
    type Payload: Send + 'static;
}

/// Carries one kind of effect out.
#[async_trait]
pub trait EffectHandler<E: StateEffect>: Send + Sync + 'static {
    /// Carries it out. The revision is the one that its commit made, or after a tool a later one. A failure is reported and
    /// changes nothing.
    async fn handle(&self, payload: E::Payload, context: &PhaseContext<'_>) -> Result<(), Fault>;
}

/// An effect that goes out after the commit.
pub struct Emitted {
    key: &'static str,
    payload: Box<dyn Any + Send>,
}

impl Emitted {
    /// An effect of this kind.
    pub fn new<E: StateEffect>(payload: E::Payload) -> Self {
        Emitted { key: E::KEY, payload: Box::new(payload) }
    }

    /// Its kind.
    pub fn key(&self) -> &'static str {
        self.key
    }
}

impl std::fmt::Debug for Emitted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Emitted({})", self.key)
    }
}

/// What became of effects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EffectReport {
    /// How many went out, those that failed included.
    pub dispatched: usize,
    /// Those that failed.
    pub failed: Vec<EffectFailure>,
}

/// An effect that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectFailure {
    /// Its kind.
    pub key: &'static str,
    /// Why.
    pub message: String,
}

impl EffectReport {
    pub(super) async fn dispatch(
        &mut self,
        handler: Option<&Arc<dyn AnyEffectHandler>>,
        effect: Emitted,
        context: &PhaseContext<'_>,
        when_cancelled: Option<&Budget>,
    ) {
        let key = effect.key;
        self.dispatched += 1;
        let outcome = match handler {
            None => Err("it has no handler".to_owned()),
            Some(handler) => {
                let told = caught(async { handler.handle(effect.payload, context).await });
                let told = timeout(EFFECT_TIME_MAX, told);
                let told = match when_cancelled {
                    Some(budget) => budget.within(told).await,
                    None => Some(told.await),
                };
                match told {
                    Some(Ok(Ok(told))) => told.map_err(|fault| fault.to_string()),
                    Some(Ok(Err(panicked))) => Err(panicked),
                    Some(Err(_)) => Err(format!("not done after {} s", EFFECT_TIME_MAX.as_secs())),
                    None => {
                        let max = EFFECTS_CANCELLED_MAX.as_secs();
                        Err(format!("the run is cancelled, and its effects have had {max} s"))
                    }
                }
            }
        };
        if let Err(message) = outcome {
            tracing::warn!(effect = key, "an effect failed: {message}");
            self.failed.push(EffectFailure { key, message });
        }
    }
}

/// A handler whose kind of effect is not known here.
#[async_trait]
pub(crate) trait AnyEffectHandler: Send + Sync {
    async fn handle(&self, payload: Box<dyn Any + Send>, context: &PhaseContext<'_>) -> Result<(), Fault>;
}

struct Erased<E, H>(H, PhantomData<fn() -> E>);

#[async_trait]
impl<E: StateEffect, H: EffectHandler<E>> AnyEffectHandler for Erased<E, H> {
    async fn handle(&self, payload: Box<dyn Any + Send>, context: &PhaseContext<'_>) -> Result<(), Fault> {
        match payload.downcast::<E::Payload>() {
            Ok(payload) => self.0.handle(*payload, context).await,
            Err(_) => Err("another effect has the same name".into()),
        }
    }
}

pub(crate) fn erase_effect<E: StateEffect>(handler: impl EffectHandler<E>) -> Arc<dyn AnyEffectHandler> {
    Arc::new(Erased::<E, _>(handler, PhantomData))
}
