//! Futures side by side, in one task.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// Futures side by side, of which each is heard of when it is done. All are dropped with it.
///
/// Each wake looks at every one that is not done: hooks and calls are few.
pub(crate) struct SideBySide<F: Future> {
    running: Vec<Option<Pin<Box<F>>>>,
    /// What nobody has heard of yet.
    done: Vec<(usize, F::Output)>,
}

impl<F: Future> SideBySide<F> {
    pub(crate) fn new(futures: impl Iterator<Item = F>) -> Self {
        SideBySide { running: futures.map(|future| Some(Box::pin(future))).collect(), done: Vec::new() }
    }

    /// What those gave that are done by now, in their order, with their numbers; waits for the first. `None` after all.
    pub(crate) async fn next(&mut self) -> Option<Vec<(usize, F::Output)>> {
        poll_fn(|task| {
            self.poll(task);
            if self.done.is_empty() {
                let is_over = self.running.iter().all(Option::is_none);
                return if is_over { Poll::Ready(None) } else { Poll::Pending };
            }
            let mut done = std::mem::take(&mut self.done);
            done.sort_by_key(|(number, _)| *number);
            Poll::Ready(Some(done))
        })
        .await
    }

    /// Goes on with them while something else is done.
    pub(crate) async fn beside<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = pin!(other);
        poll_fn(|task| {
            self.poll(task);
            other.as_mut().poll(task)
        })
        .await
    }

    fn poll(&mut self, task: &mut Context<'_>) {
        loop {
            let before = self.done.len();
            for (number, running) in self.running.iter_mut().enumerate() {
                let Some(future) = running else { continue };
                if let Poll::Ready(output) = future.as_mut().poll(task) {
                    self.done.push((number, output));
                    *running = None;
                }
            }
            // One that is done may be what others waited for.
            if self.done.len() == before {
                return;
            }
        }
    }
}

/// Runs all of them and gives what each gave, in their order.
pub(crate) async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut all = SideBySide::new(futures);
    let mut outputs = Vec::with_capacity(all.running.len());
    while let Some(done) = all.next().await {
        outputs.extend(done);
    }
    outputs.sort_by_key(|(number, _)| *number);
    outputs.into_iter().map(|(_, output)| output).collect()
}
