//! Futures side by side, in one task.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Runs all of them and gives what each gave, in their order. All are dropped with it.
///
/// Each wake looks at every one that is not done: hooks are few.
pub(crate) async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Option<Pin<Box<F>>>> = futures.map(|future| Some(Box::pin(future))).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|task| {
        let mut waiting = false;
        for (future, done) in running.iter_mut().zip(&mut done) {
            if let Some(pending) = future {
                match pending.as_mut().poll(task) {
                    Poll::Ready(output) => {
                        *done = Some(output);
                        *future = None;
                    }
                    Poll::Pending => waiting = true,
                }
            }
        }
        if waiting { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    done.into_iter().flatten().collect()
}
