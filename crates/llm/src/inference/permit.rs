//! Circuit breakers that are shared: one for each model of a process, and the leave to ask one.
//!
//! A [`Permit`] cannot leak: dropped without a verdict, by a cancelled or forgotten request, it gives its place back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runyard_domain::Code;

use super::breaker::{Breaker, BreakerPolicy, Health, Refused, Standing, Ticket};
use super::clock::{Clock, SystemClock};
use super::{InferenceExecutionError, Model};

/// The circuit breakers of a process, by the name of the model.
///
/// Agents that use the same model share its breaker. There are as many as models are configured.
#[derive(Debug, Clone)]
pub struct Breakers {
    policy: BreakerPolicy,
    clock: Arc<dyn Clock>,
    by_model: Arc<Mutex<BTreeMap<String, SharedBreaker>>>,
}

impl Breakers {
    /// None yet; each model's breaker will follow the policy and the clock.
    pub fn new(policy: BreakerPolicy, clock: Arc<dyn Clock>) -> Self {
        Breakers { policy, clock, by_model: Arc::default() }
    }

    /// The breaker of a model: always the same for the same name.
    pub fn of(&self, model: &dyn Model) -> SharedBreaker {
        let mut by_model = self.by_model.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(breaker) = by_model.get(model.name()) {
            return breaker.clone();
        }
        let breaker = SharedBreaker::new(&self.policy, Arc::clone(&self.clock));
        by_model.insert(model.name().to_owned(), breaker.clone());
        breaker
    }
}

impl Default for Breakers {
    fn default() -> Self {
        Self::new(BreakerPolicy::default(), Arc::new(SystemClock::new()))
    }
}

/// One model's circuit breaker, for all who ask it.
#[derive(Debug, Clone)]
pub struct SharedBreaker {
    breaker: Arc<Mutex<Breaker>>,
    clock: Arc<dyn Clock>,
    /// What the last failure that counted was, whoever's it was.
    failed: Arc<Mutex<Option<Code>>>,
}

impl SharedBreaker {
    /// A closed breaker.
    pub fn new(policy: &BreakerPolicy, clock: Arc<dyn Clock>) -> Self {
        SharedBreaker { breaker: Arc::new(Mutex::new(Breaker::new(policy))), clock, failed: Arc::default() }
    }

    /// Leave to ask the model once.
    ///
    /// # Errors
    /// [`Refused`] while the model is left alone, and while as many as may are trying it.
    pub fn permit(&self) -> Result<Permit, Refused> {
        let now = self.clock.now();
        let ticket = self.locked().admit(now)?;
        Ok(Permit { breaker: self.clone(), ticket: Some(ticket) })
    }

    /// Why leave would not be given now, if so.
    pub fn refuses(&self) -> Option<Refused> {
        let now = self.clock.now();
        self.locked().refuses(now)
    }

    /// What last failed of all that was asked of the model, by whoever shares this.
    pub fn last_failure(&self) -> Option<Code> {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it stands.
    pub fn standing(&self) -> Standing {
        let now = self.clock.now();
        self.locked().standing(now)
    }

    fn locked(&self) -> MutexGuard<'_, Breaker> {
        // Whoever panicked left a whole state behind: each change is one assignment.
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leave to ask a model once.
#[derive(Debug)]
#[must_use = "a permit that is dropped says nothing about the model"]
pub struct Permit {
    breaker: SharedBreaker,
    ticket: Option<Ticket>,
}

impl Permit {
    /// The model answered to the end.
    pub fn succeeded(mut self) {
        self.settle(Health::Well);
    }

    /// The model did not answer, or not to the end. Whether that counts is the error's to say.
    pub fn failed(mut self, error: &InferenceExecutionError) {
        let health = Health::of(error);
        if health == Health::Ill {
            let mut failed = self.breaker.failed.lock().unwrap_or_else(PoisonError::into_inner);
            *failed = Some(error.code());
        }
        self.settle(health);
    }

    fn settle(&mut self, health: Health) {
        if let Some(ticket) = self.ticket.take() {
            let now = self.breaker.clock.now();
            self.breaker.locked().settle(ticket, health, now);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.settle(Health::Unknown);
    }
}
