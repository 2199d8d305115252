//! The write-ahead log stays bounded under load, readers do not hold up the writer, and the database gets everything.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use runyard_store::conformance::event;
use runyard_store::{EventLog, verify};
use runyard_store_sqlite::SqliteStore;
use serde_json::json;
use support::{change, open, place, proof, run_number, runtime};

/// What the log has at most where nobody reads: its limit, and one group with what is written beside the events.
const LOG_BYTES_MAX: u64 = 80 * 1024 * 1024;
/// The same beside readers of single pages: as much again, since on a busy machine one may be held up in the midst of its page.
const READ_LOG_BYTES_MAX: u64 = 128 * 1024 * 1024;
const EVENT_BYTES: usize = 20_000;

fn log_bytes(database: &Path) -> u64 {
    std::fs::metadata(database.with_extension("db-wal")).map_or(0, |found| found.len())
}

/// Writes so many bytes to several runs at once, and gives the largest size that the log had.
async fn write(store: &Arc<SqliteStore>, database: &Path, first_run: u64, bytes: usize) -> u64 {
    const RUNS: u64 = 8;
    let largest = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for run in first_run..first_run + RUNS {
        let (store, largest, database) = (Arc::clone(store), Arc::clone(&largest), database.to_owned());
        tasks.spawn(async move {
            let text = "x".repeat(EVENT_BYTES);
            for marker in 0..(bytes / EVENT_BYTES) as u64 / RUNS {
                let event = event(json!({ "marker": marker, "text": text }));
                store.append(change(run_number(run), marker, vec![event])).await.unwrap();
                largest.fetch_max(log_bytes(&database), Ordering::Relaxed);
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    largest.load(Ordering::Relaxed)
}

#[test]
fn c08_the_log_stays_bounded_under_load_while_others_read() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let stop = Arc::new(AtomicBool::new(false));
        let mut readers = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
            readers.spawn(async move {
                let mut pages = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    for run in 0..8 {
                        store.read(run_number(run), 0, 200).await.unwrap();
                        pages += 1;
                    }
                }
                pages
            });
        }
        let bytes = proof(150, 250, 4_000) * 1_000_000;
        let largest = write(&store, &database, 0, bytes).await;
        stop.store(true, Ordering::Relaxed);
        let mut pages = 0;
        while let Some(read) = readers.join_next().await {
            pages += read.unwrap();
        }
        println!(
            "{bytes} bytes of events, {pages} pages read meanwhile; the log had at most {largest} bytes"
        );
        assert!(largest < READ_LOG_BYTES_MAX, "{largest}");
        assert!(pages > 0);
        verify(&*store, run_number(3)).await.unwrap().unwrap();
        store.close().await;
    });
    assert_eq!(log_bytes(&database), 0);
}

// A transaction that stays open is not ours to end: the log grows meanwhile, nobody waits, and afterwards it is bounded again.
#[test]
fn c08_a_reader_that_never_ends_does_not_hold_up_the_writer() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        write(&store, &database, 0, 2_000_000).await;
        let reader = rusqlite::Connection::open(&database).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM runs;").unwrap();
        let held = write(&store, &database, 10, 120_000_000).await;
        assert!(held > LOG_BYTES_MAX, "the reader held nothing up: {held}");
        for marker in 0..50 {
            let event = event(json!({ "marker": marker }));
            store.append(change(run_number(30), marker, vec![event])).await.unwrap();
        }
        reader.execute_batch("COMMIT").unwrap();
        drop(reader);
        write(&store, &database, 20, 120_000_000).await;
        let after = log_bytes(&database);
        assert!(after < LOG_BYTES_MAX, "{after} after the reader ended");
    });
}

#[test]
fn c08_an_idle_store_brings_its_log_into_the_database() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        write(&store, &database, 0, 1_000_000).await;
        let until = Instant::now() + Duration::from_secs(20);
        // Whoever copies the file without its log now has everything.
        loop {
            let copy = database.with_extension("copy");
            std::fs::copy(&database, &copy).unwrap();
            let raw = rusqlite::Connection::open(&copy).unwrap();
            let count = raw.query_row("SELECT count(*) FROM events", [], |row| row.get::<_, i64>(0));
            if count.is_ok_and(|count| count == 48) {
                break;
            }
            assert!(Instant::now() < until, "the log was not brought into the database");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
}
