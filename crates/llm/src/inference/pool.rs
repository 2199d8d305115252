//! The models that an agent may ask, best first.
//!
//! A pool only knows who is next and who may be asked now. When to go on to the next is the turn's to decide.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Model;
use super::permit::{Breakers, Permit, SharedBreaker};

/// Models in the order in which they are asked, each with its circuit breaker.
#[derive(Debug, Clone)]
pub struct Pool {
    members: Arc<[Member]>,
}

/// One model of a pool.
#[derive(Clone)]
pub struct Member {
    model: Arc<dyn Model>,
    breaker: SharedBreaker,
}

/// Who can be asked now.
#[derive(Debug)]
pub(super) enum Choice {
    /// This one.
    Member { at: usize, permit: Permit },
    /// Nobody. The first who may let somebody through does so after this time, where that is known.
    Nobody { left: Option<Duration> },
}

impl Pool {
    /// A pool of models, best first.
    pub fn new(models: impl IntoIterator<Item = Arc<dyn Model>>, breakers: &Breakers) -> Self {
        let members = models.into_iter().map(|model| {
            let breaker = breakers.of(model.as_ref());
            Member { model, breaker }
        });
        Pool { members: members.collect() }
    }

    /// Its models, best first.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The first from `from` on who may be asked.
    pub(super) fn choose(&self, from: usize) -> Choice {
        let mut soonest: Option<Duration> = None;
        for (at, member) in self.members.iter().enumerate().skip(from) {
            match member.breaker.permit() {
                Ok(permit) => return Choice::Member { at, permit },
                Err(refused) => soonest = soonest.into_iter().chain(refused.left).min(),
            }
        }
        Choice::Nobody { left: soonest }
    }

    /// Whether somebody after `at` may be asked.
    pub(super) fn has_other(&self, at: usize) -> bool {
        self.members.iter().skip(at + 1).any(|member| member.breaker.refuses().is_none())
    }
}

impl Member {
    /// The model.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// Its circuit breaker.
    pub fn breaker(&self) -> &SharedBreaker {
        &self.breaker
    }

    /// What its events go by.
    pub fn name(&self) -> &str {
        self.model.name()
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("model", &self.name()).field("breaker", &self.breaker).finish()
    }
}
