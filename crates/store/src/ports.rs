//! The ports: what a store must do. Every implementation passes [`conformance`](crate::conformance).

use std::time::Duration;

use async_trait::async_trait;
use runyard_domain::{ApprovalId, BlobId, RunId, Timestamp};
use runyard_redact::Safe;

use crate::{
    Acquired, Appended, Approval, Change, Collected, FeedCursor, FeedPage, KeptResult, KeyDigest,
    KeyedResult, Lease, Live, LoggedEvent, OutboxItem, RunPage, RunRow, RunsQuery, StorageError, Timer,
};

/// A whole store.
pub trait Store: EventLog + Runs + Approvals + Timers + Leases + Idempotency + Outbox + Blobs {}

impl<T: EventLog + Runs + Approvals + Timers + Leases + Idempotency + Outbox + Blobs> Store for T {}

/// The durable event log, and the one way to change a run.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Makes the change in one transaction, and returns when it is durable.
    ///
    /// Sequences go up by one from 1. A change that was made before under the same append id is not made again: the answer
    /// is the first one, whatever else has happened since. On any error but [`StorageError::CommitUnknown`] nothing of it
    /// was written, now or later. Changes at the head are made in the order in which they came, so a chatty writer cannot
    /// starve them. A caller that goes away does not undo its change.
    async fn append(&self, change: Change) -> Result<Appended, StorageError>;

    /// The run's last place, or nothing when there is no such run.
    async fn head(&self, run: RunId) -> Result<Option<u64>, StorageError>;

    /// At most `limit` events after the place `after`, oldest first: exactly the bytes that were stored. Reading never
    /// holds up a writer.
    async fn read(&self, run: RunId, after: u64, limit: u32) -> Result<Vec<LoggedEvent>, StorageError>;

    /// At most `limit` events of all runs after `after`. Following the cursors shows every event once, also one whose
    /// transaction commits late.
    async fn feed(&self, after: &FeedCursor, limit: u32) -> Result<FeedPage, StorageError>;

    /// Where whoever waits is told of what was committed.
    fn live(&self) -> &Live;
}

/// The runs, as their rows show them.
#[async_trait]
pub trait Runs: Send + Sync {
    /// One run.
    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StorageError>;

    /// Runs, newest first (by id, which begins with the time).
    async fn runs(&self, query: RunsQuery) -> Result<RunPage, StorageError>;
}

/// The approvals.
#[async_trait]
pub trait Approvals: Send + Sync {
    /// One approval.
    async fn approval(&self, id: ApprovalId) -> Result<Option<Approval>, StorageError>;

    /// Open approvals after this one, oldest first, of one run or of all.
    async fn open_approvals(
        &self,
        run: Option<RunId>,
        after: Option<ApprovalId>,
        limit: u32,
    ) -> Result<Vec<Approval>, StorageError>;
}

/// The timers.
#[async_trait]
pub trait Timers: Send + Sync {
    /// Timers that are due by the database's clock, the longest due first. They stay until a change cancels them.
    async fn due_timers(&self, limit: u32) -> Result<Vec<Timer>, StorageError>;

    /// When the next timer is due.
    async fn next_timer(&self) -> Result<Option<Timestamp>, StorageError>;

    /// The database's clock.
    async fn now(&self) -> Result<Timestamp, StorageError>;
}

/// Who may drive a run. All times are the database's.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes the lease, if nobody holds it, it ran out, or `owner` holds it already. Each grant is a new generation, and
    /// from then on writes of an older one are refused.
    async fn acquire(
        &self,
        run: RunId,
        owner: Safe<String>,
        term: Duration,
    ) -> Result<Acquired, StorageError>;

    /// Prolongs it. It may have run out, as long as nobody took it; else the error is [`StorageError::StaleGeneration`].
    async fn renew(&self, run: RunId, generation: u64, term: Duration) -> Result<Lease, StorageError>;

    /// Gives it up. The generation stays, so writes under it go on being told from later ones.
    async fn release(&self, run: RunId, generation: u64) -> Result<(), StorageError>;
}

/// Results kept by idempotency key.
#[async_trait]
pub trait Idempotency: Send + Sync {
    /// What is kept for the key, unless it has expired.
    async fn kept(&self, key: KeyDigest) -> Result<Option<KeptResult>, StorageError>;

    /// Keeps a result outside any change of a run. Keeping the same again is fine; another one for the same key is
    /// [`StorageError::AlreadyExists`], and the first stays.
    async fn keep(&self, result: KeyedResult) -> Result<(), StorageError>;

    /// Forgets at most `limit` expired results; says how many.
    async fn forget_expired(&self, limit: u32) -> Result<u64, StorageError>;
}

/// Messages to others, written with the change that justifies them.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// The oldest messages after the place `after` that are not delivered yet. Places are for paging: one whose transaction
    /// commits late can come before one that was seen already, so each pass over the outbox begins at 0.
    async fn undelivered(&self, after: u64, limit: u32) -> Result<Vec<OutboxItem>, StorageError>;

    /// Takes delivered ones away. It is no error when one is gone already.
    async fn delivered(&self, ids: &[u64]) -> Result<(), StorageError>;
}

/// Big things, by the digest of their content.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores it durably, once however often it is put, and gives its id. It is kept while an event refers to it, and
    /// for a while after each put, so that there is time to write that event.
    async fn put(&self, content: Safe<Vec<u8>>) -> Result<BlobId, StorageError>;

    /// Its content, checked against its id.
    async fn get(&self, id: BlobId) -> Result<Vec<u8>, StorageError>;

    /// Takes away what no event refers to and nobody has put for `unused_for`.
    async fn collect(&self, unused_for: Duration) -> Result<Collected, StorageError>;
}
