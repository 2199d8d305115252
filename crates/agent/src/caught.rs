//! Panics of code that is not the runtime's own, as values.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

/// Runs a future; a panic in it ends it with what the panic said.
///
/// It is not polled again after it panicked, so whatever it left half done is only dropped.
pub(crate) async fn caught<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    poll_fn(|task| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(task))) {
        Ok(poll) => poll.map(Ok),
        Err(payload) => std::task::Poll::Ready(Err(said(payload))),
    })
    .await
}

/// The same for a plain function. What it changes must be as before when it panics.
pub(crate) fn caught_now<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(said)
}

fn said(payload: Box<dyn Any + Send>) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    // A payload whose own drop panics must not end the process.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(payload)));
    format!("panicked: {text}")
}
