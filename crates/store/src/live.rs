//! Telling those who wait that something was committed.
//!
//! The store is the truth; this only wakes, and spares a reader who is up to date the way to the store: the last events of
//! a run that somebody follows are kept in a short ring. Losing anything here costs a read and never an event.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use runyard_domain::RunId;
use tokio::sync::watch;

use crate::LoggedEvent;

/// How many of its last events a run's ring holds.
pub const RING_EVENTS_MAX: usize = 512;
/// How many bytes a run's ring holds.
const RING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Who follows which run, and how far each is.
#[derive(Debug)]
pub struct Live {
    runs: Mutex<HashMap<RunId, Weak<Channel>>>,
    /// Counts what was committed, for those who follow everything.
    feed: watch::Sender<u64>,
}

#[derive(Debug)]
struct Channel {
    ring: Mutex<Ring>,
    /// The last place that is known to be committed.
    head: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    /// Without a gap, oldest first.
    events: VecDeque<LoggedEvent>,
    bytes: usize,
}

/// Somebody follows a run.
#[derive(Debug)]
pub struct Subscription {
    channel: Arc<Channel>,
    head: watch::Receiver<u64>,
}

impl Default for Live {
    fn default() -> Self {
        Live { runs: Mutex::default(), feed: watch::Sender::new(0) }
    }
}

impl Live {
    /// Hands on events of a run that were just committed here, in order.
    pub fn publish(&self, run: RunId, events: &[LoggedEvent]) {
        let Some(last) = events.last() else { return };
        if let Some(channel) = self.channel(run) {
            locked(&channel.ring).push(events);
            channel
                .head
                .send_if_modified(|head| std::mem::replace(head, last.sequence.max(*head)) < last.sequence);
        }
        self.feed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Whether somebody follows the run, so that handing events on is worth making them.
    pub fn is_followed(&self, run: RunId) -> bool {
        self.channel(run).is_some()
    }

    /// Says that a run may have moved to `head`, committed elsewhere.
    pub fn wake(&self, run: RunId, head: u64) {
        if let Some(channel) = self.channel(run) {
            channel.head.send_if_modified(|known| std::mem::replace(known, head.max(*known)) < head);
        }
        self.wake_feed();
    }

    /// Says that something may have been committed.
    pub fn wake_feed(&self) {
        self.feed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// The runs that somebody follows.
    pub fn followed(&self) -> Vec<RunId> {
        let runs = locked(&self.runs);
        runs.iter().filter(|(_, channel)| channel.strong_count() > 0).map(|(run, _)| *run).collect()
    }

    /// Follows a run from now on.
    pub fn subscribe(&self, run: RunId) -> Subscription {
        let mut runs = locked(&self.runs);
        let channel = runs.get(&run).and_then(Weak::upgrade).unwrap_or_else(|| {
            // The rest of the runs that nobody follows any more goes when another comes.
            runs.retain(|_, channel| channel.strong_count() > 0);
            let channel = Arc::new(Channel { ring: Mutex::default(), head: watch::Sender::new(0) });
            runs.insert(run, Arc::downgrade(&channel));
            channel
        });
        let head = channel.head.subscribe();
        Subscription { channel, head }
    }

    /// Follows everything from now on.
    pub fn subscribe_feed(&self) -> watch::Receiver<u64> {
        self.feed.subscribe()
    }

    fn channel(&self, run: RunId) -> Option<Arc<Channel>> {
        locked(&self.runs).get(&run).and_then(Weak::upgrade)
    }
}

impl Subscription {
    /// The events right after `after`, if the ring still holds the first of them.
    pub fn recent(&self, after: u64, limit: usize) -> Vec<LoggedEvent> {
        let ring = locked(&self.channel.ring);
        let Some(first) = ring.events.front().map(|event| event.sequence) else { return Vec::new() };
        if after + 1 < first {
            return Vec::new();
        }
        let skipped = usize::try_from(after + 1 - first).unwrap_or(usize::MAX);
        ring.events.iter().skip(skipped).take(limit).cloned().collect()
    }

    /// From here on, whatever is told counts as news.
    pub fn listen(&mut self) {
        self.head.mark_unchanged();
    }

    /// Waits until the run may have moved since [`listen`](Subscription::listen).
    pub async fn news(&mut self) {
        // The sender lives as long as this subscription.
        let _ = self.head.changed().await;
    }
}

impl Ring {
    fn push(&mut self, events: &[LoggedEvent]) {
        for event in events {
            let follows = self.events.back().is_none_or(|last| last.sequence + 1 == event.sequence);
            if !follows {
                *self = Ring::default();
            }
            self.bytes += event.body.len();
            self.events.push_back(event.clone());
        }
        while self.events.len() > RING_EVENTS_MAX || self.bytes > RING_BYTES_MAX {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.body.len();
        }
    }
}

/// What is behind these locks stays whole even if a thread panicked while it held one.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
