//! A future whose panics become values.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

/// What a panic said.
#[derive(Debug)]
pub(crate) struct Panicked(pub(crate) String);

/// Runs a future; a panic in it ends it with [`Panicked`].
///
/// The future is not polled again after it panicked, so whatever it left half done inside is only dropped.
pub(crate) async fn caught<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(move |task| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(task))) {
        Ok(poll) => poll.map(Ok),
        Err(payload) => Poll::Ready(Err(said(payload))),
    })
    .await
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
