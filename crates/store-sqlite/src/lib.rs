//! The embedded store: one SQLite file, owned by one process, durable before acknowledged.
//!
//! All writes go through one thread that takes what is waiting, commits it together and answers each caller when its commit
//! is on the disk. Readers have connections of their own and never meet the writer; checkpoints are made beside it. What is
//! legal is decided in [`runyard_store::plan`]; this crate reads rows, writes rows and makes them durable.
//!
//! Beside the database `name` there are `name.lock` (who owns it), `name.blobs/` (big things, by digest), and SQLite's own
//! `name-wal` and `name-shm`.

mod append;
mod backup;
mod blob_files;
mod blobs;
mod check;
mod checkpoint;
mod clock;
mod connection;
mod errand;
mod fault;
mod follow;
mod group;
mod leases;
mod ledger;
mod lock;
mod log;
mod options;
mod paths;
mod places;
mod poison;
mod queries;
mod readers;
mod results;
mod run_cache;
mod run_row;
mod schema;
mod store;
mod thread_claims;
mod thread_commit;
mod thread_row;
mod threads;
mod writer;

pub use backup::BackupProgress;
pub use check::Finding;
pub use options::{OpenOptions, POISONED_EXIT_CODE};
pub use store::SqliteStore;
