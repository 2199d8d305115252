//! When to ask again after an error: what an agent allows, and one step from an error to a wait.
//!
//! It is pure: it neither sleeps nor rolls. Which model is asked next is not decided here.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{InferenceExecutionError, InterruptCause};

/// The most that [`RetryPolicy::retries_max`] and [`RetryPolicy::stream_retries_max`] can be.
pub const RETRIES_MAX: u32 = 32;

/// The longest that any one wait can be, whatever a policy says.
pub const WAIT_MAX: Duration = Duration::from_millis(WAIT_MAX_MS);
const WAIT_MAX_MS: u64 = 60 * 60 * 1000;

/// How an agent's requests are tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryPolicy {
    /// How often a model is asked again when it did not begin to answer.
    pub retries_max: u32,
    /// How often a model is asked again when its answer broke off.
    pub stream_retries_max: u32,
    /// The shortest wait.
    pub base_ms: u64,
    /// The shortest wait when the provider has too much to do.
    pub overloaded_base_ms: u64,
    /// The longest wait that is chosen here.
    pub cap_ms: u64,
    /// The longest wait that a provider's `Retry-After` can ask for.
    pub retry_after_cap_ms: u64,
    /// With a longer `Retry-After` the next model is asked at once, where there is one.
    pub patience_ms: u64,
    /// How long a model may take to begin to answer, where its provider's own limit is not shorter.
    pub open_limit_ms: u64,
    /// How long an answer may pause, where its provider's own limit is not shorter.
    pub idle_limit_ms: u64,
    /// How long a request may wait, in all, for a circuit breaker to let it through; `0` for not at all.
    pub breaker_wait_max_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            retries_max: 2,
            stream_retries_max: 2,
            base_ms: 500,
            overloaded_base_ms: 2_000,
            cap_ms: 8_000,
            retry_after_cap_ms: 120_000,
            patience_ms: 10_000,
            // Providers have limits of their own, and how long one may take is for whoever set it up to say.
            open_limit_ms: WAIT_MAX_MS,
            idle_limit_ms: WAIT_MAX_MS,
            breaker_wait_max_ms: 0,
        }
    }
}

impl RetryPolicy {
    /// A policy that asks each model once.
    pub fn never() -> Self {
        RetryPolicy { retries_max: 0, stream_retries_max: 0, ..Self::default() }
    }

    /// How long a model may take to begin to answer.
    pub fn open_limit(&self) -> Duration {
        bounded(self.open_limit_ms)
    }

    /// How long an answer may pause.
    pub fn idle_limit(&self) -> Duration {
        bounded(self.idle_limit_ms)
    }

    /// How long a request may wait for circuit breakers, in all.
    pub fn breaker_wait_max(&self) -> Duration {
        bounded(self.breaker_wait_max_ms)
    }

    fn base(&self, error: &InferenceExecutionError) -> Duration {
        match error {
            InferenceExecutionError::Overloaded { .. }
            | InferenceExecutionError::StreamInterrupted {
                cause: InterruptCause::Provider5xxMidStream(503 | 529) | InterruptCause::GoAway,
                ..
            } => bounded(self.overloaded_base_ms),
            _ => bounded(self.base_ms),
        }
    }
}

/// Whether another model could be asked instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// One could.
    Ready,
    /// This is the last.
    None,
}

/// What to do after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Ask the same model again after this time.
    Wait(Duration),
    /// Do not ask this model again.
    GiveUp,
}

/// How often a model was asked again, and how long the last wait was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    retries: u32,
    retries_max: u32,
    last_wait: Duration,
}

impl Backoff {
    /// At the beginning, for a model that should begin to answer.
    pub fn opening(policy: &RetryPolicy) -> Self {
        Self::new(policy.retries_max)
    }

    /// At the beginning, for an answer that should not break off.
    pub fn streaming(policy: &RetryPolicy) -> Self {
        Self::new(policy.stream_retries_max)
    }

    fn new(retries_max: u32) -> Self {
        Backoff { retries: 0, retries_max: retries_max.min(RETRIES_MAX), last_wait: Duration::ZERO }
    }

    /// How often the model was asked again.
    pub const fn retries(&self) -> u32 {
        self.retries
    }

    /// What to do after `error`, with `roll` as chance.
    ///
    /// The provider's `Retry-After` comes first, with a little on top so that not all come back at once. Without one, each
    /// wait is chosen between the base and three times the last wait, so that waits grow and spread.
    pub fn after(
        &mut self,
        error: &InferenceExecutionError,
        policy: &RetryPolicy,
        others: Others,
        roll: u64,
    ) -> Verdict {
        self.after_asked(error, error.retry_after(), policy, others, roll)
    }

    /// The same, with when the provider says to come back where the error has no place for it.
    pub(super) fn after_asked(
        &mut self,
        error: &InferenceExecutionError,
        asked: Option<Duration>,
        policy: &RetryPolicy,
        others: Others,
        roll: u64,
    ) -> Verdict {
        if !error.is_retryable() || self.retries >= self.retries_max {
            return Verdict::GiveUp;
        }
        let base = policy.base(error);
        let wait = match asked {
            Some(asked) if others == Others::Ready && asked > bounded(policy.patience_ms) => {
                return Verdict::GiveUp;
            }
            Some(asked) => {
                let cap = bounded(policy.retry_after_cap_ms);
                asked.saturating_add(part(base, roll)).min(cap)
            }
            None => {
                // The cap bounds what is chosen from, not what was chosen: many who are at it still spread.
                let cap = bounded(policy.cap_ms);
                let most = self.last_wait.max(base).saturating_mul(3).min(cap);
                base.min(cap).saturating_add(part(most.saturating_sub(base), roll))
            }
        };
        self.retries += 1;
        self.last_wait = wait;
        Verdict::Wait(wait)
    }
}

fn bounded(ms: u64) -> Duration {
    Duration::from_millis(ms).min(WAIT_MAX)
}

/// The part of `whole` that `roll` stands for, from none to nearly all.
fn part(whole: Duration, roll: u64) -> Duration {
    let nanos = whole.as_nanos().saturating_mul(u128::from(roll)) >> 64;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
