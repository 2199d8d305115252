//! Following a run, or everything: what is stored after a cursor, then what comes, without a gap or a duplicate.

use std::sync::Arc;

use runyard_domain::RunId;
use tokio::sync::watch;

use crate::{EventLog, FeedCursor, FeedEntry, LoggedEvent, StorageError, Subscription};

/// How many events one step gives at most.
const STEP_EVENTS_MAX: u32 = 500;

/// Follows one run.
pub struct Tail<L: EventLog + ?Sized> {
    log: Arc<L>,
    run: RunId,
    after: u64,
    subscription: Subscription,
}

impl<L: EventLog + ?Sized> Tail<L> {
    /// Everything of `run` after the place `after`.
    ///
    /// A cursor ahead of the log (a backup was restored, say) is a [`StorageError::VersionConflict`]: waiting there for the
    /// log to catch up would skip what others wrote in between.
    pub async fn open(log: Arc<L>, run: RunId, after: u64) -> Result<Self, StorageError> {
        // First subscribe, then read: what commits in between is seen twice here and given once.
        let subscription = log.live().subscribe(run);
        let head = log.head(run).await?.ok_or_else(|| StorageError::not_found(format!("run {run}")))?;
        if after > head {
            return Err(StorageError::VersionConflict { expected: after, actual: head });
        }
        Ok(Tail { log, run, after, subscription })
    }

    /// The next events, at least one; waits for them. Whoever takes them slowly is served from the store and loses nothing.
    /// Dropping the future loses nothing either.
    pub async fn next(&mut self) -> Result<Vec<LoggedEvent>, StorageError> {
        loop {
            self.subscription.listen();
            let mut events = self.subscription.recent(self.after, STEP_EVENTS_MAX as usize);
            if events.is_empty() {
                events = self.log.read(self.run, self.after, STEP_EVENTS_MAX).await?;
            }
            match (events.first(), events.last()) {
                (Some(first), Some(last)) if first.sequence == self.after + 1 => {
                    self.after = last.sequence;
                    return Ok(events);
                }
                // Nothing yet; or it came right after that look, and then there is news.
                (None, _) if !self.is_behind().await? => self.subscription.news().await,
                // What comes next was written and is not there: going on would pass over it without a word.
                _ => return Err(self.gap()),
            }
        }
    }

    /// Whether there must be an event that reading did not give.
    async fn is_behind(&self) -> Result<bool, StorageError> {
        let head = self.log.head(self.run).await?.unwrap_or_default();
        Ok(head > self.after && self.log.read(self.run, self.after, 1).await?.is_empty())
    }

    fn gap(&self) -> StorageError {
        let detail = format!("event {} of {} is missing", self.after + 1, self.run);
        StorageError::Corrupt { doing: "following a run", detail }
    }

    /// The place of the last event that was given.
    pub fn after(&self) -> u64 {
        self.after
    }
}

/// Follows all runs.
pub struct FeedTail<L: EventLog + ?Sized> {
    log: Arc<L>,
    after: FeedCursor,
    woken: watch::Receiver<u64>,
}

impl<L: EventLog + ?Sized> FeedTail<L> {
    /// Everything after a cursor.
    pub fn open(log: Arc<L>, after: FeedCursor) -> Self {
        let woken = log.live().subscribe_feed();
        FeedTail { log, after, woken }
    }

    /// The next events, at least one; waits for them.
    pub async fn next(&mut self) -> Result<Vec<FeedEntry>, StorageError> {
        loop {
            self.woken.mark_unchanged();
            let page = self.log.feed(&self.after, STEP_EVENTS_MAX).await?;
            self.after = page.next;
            if !page.entries.is_empty() {
                return Ok(page.entries);
            }
            // The store keeps its end as long as this tail keeps the store.
            let _ = self.woken.changed().await;
        }
    }

    /// The place after the last event that was given.
    pub fn after(&self) -> &FeedCursor {
        &self.after
    }
}
