//! What ends a wait: time that is up, and whoever asked not wanting it any more.
//!
//! Neither costs anything until something has to be waited for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Time that is up some time after it is first asked for.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
    armed: bool,
}

impl Alarm {
    /// Ready when `limit` has passed since it was first asked for.
    pub(super) fn poll(&mut self, limit: Duration, context: &mut Context<'_>) -> Poll<()> {
        let sleep = match &mut self.sleep {
            Some(sleep) => {
                if !self.armed {
                    sleep.as_mut().reset(Instant::now() + limit);
                }
                sleep
            }
            none => none.insert(Box::pin(sleep(limit))),
        };
        self.armed = true;
        sleep.as_mut().poll(context)
    }

    /// The next time it is asked for is the first.
    pub(super) fn reset(&mut self) {
        self.armed = false;
    }
}

/// Whether whoever asked does not want it any more.
pub(super) struct Cancel {
    token: CancellationToken,
    waiting: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl Cancel {
    pub(super) fn new(token: CancellationToken) -> Self {
        Cancel { token, waiting: None }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Ready when it is cancelled.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let token = &self.token;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(token.clone().cancelled_owned()));
        waiting.as_mut().poll(context)
    }
}
