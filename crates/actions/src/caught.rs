//! A future whose panics become values.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::ActionError;

/// What a panic said.
#[derive(Debug)]
pub(crate) struct Panicked(pub(crate) String);

impl From<Panicked> for ActionError {
    fn from(panicked: Panicked) -> Self {
        ActionError::internal(format!("panicked: {}", panicked.0))
    }
}

/// Runs a future; a panic in it ends it with [`Panicked`].
///
/// The future is not polled again after it panicked, so whatever it left half done inside is only dropped.
pub(crate) fn caught<F: Future>(future: F) -> Caught<F> {
    Caught { future }
}

pin_project! {
    /// The future of [`caught`]. Not an async function: its future would hold the inner one twice.
    pub(crate) struct Caught<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.project().future;
        match catch_unwind(AssertUnwindSafe(|| future.poll(task))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(said(payload))),
        }
    }
}

fn said(payload: Box<dyn Any + Send>) -> Panicked {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    // A payload whose own drop panics must not end the process.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(payload)));
    Panicked(text)
}
