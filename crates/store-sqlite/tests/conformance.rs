//! The suite that every store must pass, on a real file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests fail like tests"
)]

use std::sync::Arc;

use runyard_store::{Store, ThreadRunStore};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use tempfile::TempDir;

async fn open() -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(OpenOptions::new(folder.path().join("runyard.db"), "the suite")).unwrap();
    (Arc::new(store), folder)
}

runyard_store::conformance_tests!(open);

async fn threads() -> (Arc<dyn ThreadRunStore>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(OpenOptions::new(folder.path().join("runyard.db"), "the suite")).unwrap();
    (Arc::new(store), folder)
}

runyard_store::thread_conformance_tests!(threads);
