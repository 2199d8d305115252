//! The port to one model of one provider.

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;

use super::{InferenceExecutionError, InferenceRequest, InterruptCause, ModelEvent};

/// One model of one provider.
#[async_trait]
pub trait Model: Send + Sync {
    /// What its circuit breaker and its events go by: the provider and the model's name there.
    fn name(&self) -> &str;

    /// Asks once. Returns when the answer has begun, or why it has not; nothing here is tried again.
    ///
    /// Dropping the future or the stream ends the request. The stream ends after
    /// [`Stopped`](ModelEvent::Stopped) or its first error; an end without either counts as [`InterruptCause::ConnectionReset`].
    /// Whatever shows that the model is still at it is an event, if need be [`Alive`](ModelEvent::Alive): what gives none for
    /// longer than an agent allows has stalled.
    async fn open(&self, request: &InferenceRequest) -> Result<ModelStream, Refusal>;
}

/// An answer, piece by piece.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, Fault>> + Send>>;

/// Why an answer did not begin.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Why.
    pub error: InferenceExecutionError,
    /// When the provider says to come back, also where the error has no place for it.
    pub retry_after: Option<Duration>,
}

impl From<InferenceExecutionError> for Refusal {
    fn from(error: InferenceExecutionError) -> Self {
        let retry_after = error.retry_after();
        Refusal { error, retry_after }
    }
}

/// Why an answer that had begun does not go on.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// It broke off. What had come by then is known to whoever gathered it.
    Interrupted(InterruptCause),
    /// The same, and the provider says when to come back.
    BackLater {
        /// How it broke off.
        cause: InterruptCause,
        /// When to come back.
        retry_after: Duration,
    },
    /// It is over a limit of ours, for this reason. Nothing of it may be used, also no call that is whole.
    Endless(&'static str),
    /// The provider said in its place what is wrong.
    Failed(InferenceExecutionError),
}
