//! How long a run has taken, without the time in which it waits for people.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// Counts the time of a run, but for its pauses.
#[derive(Debug)]
pub(super) struct Clock(watch::Sender<Reading>);

#[derive(Debug, Clone, Copy)]
struct Reading {
    /// What was counted before.
    counted: Duration,
    /// Since when it counts. It does not, while something waits for people.
    since: Option<Instant>,
}

impl Reading {
    fn elapsed(self) -> Duration {
        self.counted.saturating_add(self.since.map_or(Duration::ZERO, |since| since.elapsed()))
    }
}

/// A pause. It is over when this is dropped, however that comes about.
pub(super) struct Pause(Arc<Clock>);

impl Clock {
    /// Counts from now on, behind what was counted before.
    pub(super) fn new(counted: Duration) -> Arc<Self> {
        Arc::new(Clock(watch::Sender::new(Reading { counted, since: Some(Instant::now()) })))
    }

    /// What it has counted.
    pub(super) fn elapsed(&self) -> Duration {
        self.0.borrow().elapsed()
    }

    /// Counts nothing until the pause is over. One at a time.
    pub(super) fn pause(self: &Arc<Self>) -> Pause {
        self.0.send_modify(|reading| *reading = Reading { counted: reading.elapsed(), since: None });
        Pause(Arc::clone(self))
    }

    /// Waits until it has counted so much.
    pub(super) async fn reaches(&self, max: Duration) {
        let mut changes = self.0.subscribe();
        loop {
            let reading = *changes.borrow_and_update();
            let left = async {
                match reading.since {
                    Some(_) => sleep(max.saturating_sub(reading.elapsed())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // The other end is this clock's own, and so it is there.
                _ = changes.changed() => {}
                () = left => return,
            }
        }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        let Pause(clock) = self;
        clock.0.send_modify(|reading| reading.since = Some(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pause_does_not_count_and_what_was_before_does() {
        let clock = Clock::new(Duration::from_secs(2));
        let begun = Instant::now();
        let reached = tokio::spawn({
            let clock = Arc::clone(&clock);
            async move {
                clock.reaches(Duration::from_secs(5)).await;
                begun.elapsed()
            }
        });
        sleep(Duration::from_secs(1)).await;
        let pause = clock.pause();
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(clock.elapsed(), Duration::from_secs(3));
        drop(pause);
        assert_eq!(reached.await.unwrap(), Duration::from_secs(3603));
        assert_eq!(clock.elapsed(), Duration::from_secs(5));
    }
}
