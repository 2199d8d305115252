//! What a store gives back.

use std::fmt;

use runyard_domain::{ApprovalId, RunId, Timestamp};

use crate::{Hash, LoggedEvent};

/// The most that one page of anything holds; a larger limit is taken as this one.
pub const PAGE_MAX: u32 = 5_000;

/// A run, as its row shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// The run.
    pub run: RunId,
    /// The last event's place; 0 before the first.
    pub sequence: u64,
    /// The last event's hash; none before the first.
    pub head: Option<Hash>,
    /// The state's name.
    pub status: String,
    /// The folded state, as JSON.
    pub state: Vec<u8>,
    /// How often its lease was taken; what a runner's writes must carry.
    pub generation: u64,
    /// Who holds the lease, if somebody does; it may have run out.
    pub lease: Option<LeaseRow>,
    /// When it was made.
    pub created: Timestamp,
    /// When it was last changed.
    pub updated: Timestamp,
}

/// A lease, as the run's row holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRow {
    /// Who holds it.
    pub owner: String,
    /// When it was granted or last renewed.
    pub granted: Timestamp,
    /// When it runs out.
    pub expires: Timestamp,
}

impl LeaseRow {
    /// Whether somebody else may take it. A clock that stands before the granting was set back, and then nothing can be
    /// said about the rest of the term: the lease is over too. That is safe, since an old owner's writes are refused.
    pub fn is_over(&self, now: Timestamp) -> bool {
        now >= self.expires || now < self.granted
    }
}

/// A change that is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The place of its first event.
    pub first: u64,
    /// The place of its last event.
    pub last: u64,
}

/// A lease that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What every write under it must carry.
    pub generation: u64,
    /// When it runs out, by the database's clock.
    pub expires: Timestamp,
}

/// The answer to who asks for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// It is theirs.
    Granted(Lease),
    /// Somebody else holds it.
    Held {
        /// Who.
        owner: String,
        /// Until when, unless renewed.
        expires: Timestamp,
    },
}

/// Which runs to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct RunsQuery {
    /// Only runs of this status.
    pub status: Option<String>,
    /// Only runs made before this one: the last of the page before.
    pub before: Option<RunId>,
    /// How many at most.
    pub limit: u32,
}

/// A page of runs.
#[derive(Clone, Debug)]
pub struct RunPage {
    /// The runs, newest first.
    pub runs: Vec<RunRow>,
    /// Whether there are more.
    pub more: bool,
}

/// An approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// The run that waits for it.
    pub run: RunId,
    /// When it counts as rejected.
    pub expires: Timestamp,
    /// What is asked, as JSON.
    pub request: Vec<u8>,
    /// The answer, as JSON, once there is one.
    pub decision: Option<Vec<u8>>,
}

/// A timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The run.
    pub run: RunId,
    /// Its name within the run.
    pub name: String,
    /// When it is due.
    pub due: Timestamp,
    /// What is to be done then, as JSON.
    pub payload: Vec<u8>,
}

/// The result kept for an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptResult {
    /// Stands for the input.
    pub fingerprint: [u8; 32],
    /// The result, as JSON.
    pub result: Vec<u8>,
}

/// A message to others that is not delivered yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxItem {
    /// Its place in the outbox.
    pub id: u64,
    /// The run.
    pub run: RunId,
    /// The message, as JSON.
    pub payload: Vec<u8>,
}

/// A place in the feed of all runs. Only the store that gave it knows what it says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FeedCursor(pub(crate) String);

impl FeedCursor {
    /// Before the first event.
    pub fn start() -> Self {
        FeedCursor("0".to_owned())
    }

    /// The cursor of a text that a client brought back; whether it is one is for the store to say.
    pub fn from_text(text: impl Into<String>) -> Self {
        FeedCursor(text.into())
    }

    /// The text that it travels as.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FeedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An event of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedEntry {
    /// The place after it.
    pub cursor: FeedCursor,
    /// The run.
    pub run: RunId,
    /// The event.
    pub event: LoggedEvent,
}

/// A page of the feed.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// The events. Those of one run are in order.
    pub entries: Vec<FeedEntry>,
    /// Where the next page begins.
    pub next: FeedCursor,
}

/// What collecting blobs took away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Collected {
    /// How many blobs.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
}
