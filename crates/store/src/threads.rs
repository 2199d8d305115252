//! Threads: the conversations of an agent loop that is used as a library, with what it needs to go on after a crash.
//!
//! A thread has messages and values by key; its runs have values, a journal of tool calls and a record. One run at a time
//! writes to a thread, under a claim that runs out ([`ThreadRunStore::claim`]), and each of its steps is one transaction
//! ([`ThreadRunStore::commit`]). What is legal is decided once, in [`plan`], for every store.
//!
//! It knows nothing of what messages, values or records mean, and it has no followers and no feed: whoever runs an agent
//! knows what it writes. The runs of the hub are another thing (see [`EventLog`](crate::EventLog)).

mod claims;
mod commit;
mod ids;
pub mod plan;
mod ports;
mod prepared;
mod rows;

pub use commit::{
    COMMIT_BYTES_MAX, COMMIT_MESSAGES_MAX, COMMIT_ROWS_MAX, ClaimAfter, JournalWrite, KEY_BYTES_MAX,
    MESSAGE_BYTES_MAX, RunWrite, Scope, ThreadCommit, ThreadWrites, ValueWrite, commit_until_known,
};
pub use ids::{AgentRunId, ID_CHARS_MAX, ThreadId};
pub use ports::{RunStore, ThreadRunStore, ThreadStore};
pub use rows::{
    AgentRunRow, Claim, Claimed, Committed, PAGE_BYTES_MAX, StateValue, StoredMessage, ThreadHolder,
    ThreadRow, ToolCallRow, stored_json,
};
