//! The durable record: the ports of a store, a store in memory, and the suite that every store must pass.
//!
//! A run's change is one transaction ([`EventLog::append`]): its events, the run's row, approvals, timers, outbox and kept
//! results commit together or not at all. What is legal is decided once, in [`plan`], for every store; a store only reads
//! rows, writes rows and makes them durable. Everything that is written is [`Safe`](runyard_redact::Safe).
//!
//! Beside the runs stand [`threads`]: the conversations of an agent loop that is used as a library.
//!
//! It knows no particular database, and nothing about what a run's states or events mean.

mod append;
mod blobs;
mod change;
mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod deltas;
mod error;
mod event;
mod live;
mod memory;
pub mod plan;
mod ports;
mod rows;
mod tail;
pub mod threads;
mod verify;

pub use append::append_until_known;
pub use blobs::{BLOB_BYTES_MAX, INLINE_BYTES_MAX, blob_id, bounded_text};
pub use change::{
    ApprovalWrite, Change, Decide, KeyDigest, KeyedResult, Place, Projection, Refusal, TimerWrite, Writes,
};
pub use clock::{Clock, ManualClock, SystemClock};
pub use deltas::{DELTA_AGE_MAX_MS, DELTA_BYTES_MAX, Deltas};
pub use error::{Cause, StorageError};
pub use event::{Hash, LoggedEvent, NewEvent, PAYLOAD_BYTES_MAX};
pub use live::{Live, RING_EVENTS_MAX, Subscription};
pub use memory::MemoryStore;
pub use ports::{Approvals, Blobs, EventLog, Idempotency, Leases, Outbox, Runs, Store, Timers};
pub use rows::{
    Acquired, Appended, Approval, Collected, FeedCursor, FeedEntry, FeedPage, KeptResult, Lease, LeaseRow,
    OutboxItem, PAGE_MAX, RunPage, RunRow, RunsQuery, Timer,
};
pub use tail::{FeedTail, Tail};
pub use threads::{
    AgentRunId, AgentRunRow, COMMIT_BYTES_MAX, COMMIT_MESSAGES_MAX, COMMIT_ROWS_MAX, Claim, ClaimAfter,
    Claimed, Committed, ID_CHARS_MAX, JournalWrite, KEY_BYTES_MAX, MESSAGE_BYTES_MAX, PAGE_BYTES_MAX,
    RunStore, RunWrite, Scope, StateValue, StoredMessage, ThreadCommit, ThreadHolder, ThreadId, ThreadRow,
    ThreadRunStore, ThreadStore, ThreadWrites, ToolCallRow, ValueWrite, commit_until_known, stored_json,
};
pub use verify::{Break, BreakKind, Chain, Verified, verify};
