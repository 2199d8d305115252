//! How an agent asks: which models, and how patiently.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::clock::{Jitter, SeededJitter};
use super::permit::Breakers;
use super::pool::Pool;
use super::retry::RetryPolicy;
use super::turn::Turn;
use super::{InferenceRequest, Model};

/// How an agent asks its models. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Inference(Arc<Parts>);

#[derive(Debug, Clone)]
struct Parts {
    pool: Pool,
    policy: RetryPolicy,
    jitter: Arc<dyn Jitter>,
}

impl Inference {
    /// Asks the models of `pool`, with the policy.
    pub fn new(pool: Pool, policy: RetryPolicy) -> Self {
        Self::with_jitter(pool, policy, Arc::new(SeededJitter::from_chance()))
    }

    /// The same with chance of one's own.
    pub fn with_jitter(pool: Pool, policy: RetryPolicy, jitter: Arc<dyn Jitter>) -> Self {
        Inference(Arc::new(Parts { pool, policy, jitter }))
    }

    /// Asks one model, with a circuit breaker of its own and the usual policy.
    pub fn of(model: Arc<dyn Model>) -> Self {
        Self::new(Pool::new([model], &Breakers::default()), RetryPolicy::default())
    }

    /// Begins to ask. Nothing happens until the turn is asked for what is next.
    ///
    /// A cancelled `cancel` ends it wherever it is: while a model is being asked, while it waits, while an answer comes.
    pub fn start(&self, request: InferenceRequest, cancel: CancellationToken) -> Turn {
        Turn::new(self.clone(), request, cancel)
    }

    /// The models it asks.
    pub fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// How patiently it asks.
    pub fn policy(&self) -> &RetryPolicy {
        &self.0.policy
    }

    pub(super) fn jitter(&self) -> &dyn Jitter {
        self.0.jitter.as_ref()
    }
}
