//! The store in PostgreSQL keeps every promise, on a real server.
#![allow(clippy::unwrap_used, reason = "the helpers of tests fail like tests")]

use std::sync::Arc;

use runyard_store::{Store, ThreadRunStore, conformance_tests, thread_conformance_tests};
use runyard_store_postgres::PostgresStore;
use runyard_testkit_postgres::Postgres;

async fn postgres() -> (Arc<dyn Store>, ()) {
    // One server for all tests of this process, a database for each.
    let url = Postgres::shared().unwrap().database().unwrap();
    (Arc::new(PostgresStore::connect(&url).await.unwrap()), ())
}

conformance_tests!(postgres);

async fn threads() -> (Arc<dyn ThreadRunStore>, ()) {
    let url = Postgres::shared().unwrap().database().unwrap();
    (Arc::new(PostgresStore::connect(&url).await.unwrap()), ())
}

thread_conformance_tests!(threads);
