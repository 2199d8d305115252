//! Blobs: stored once, durable before they are acknowledged, and never taken away while something needs them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runyard_domain::BlobId;
use runyard_redact::Safe;
use runyard_store::conformance::event;
use runyard_store::{Blobs, ManualClock, StorageError, blob_id};
use runyard_store::{Collected, EventLog};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::json;
use support::{change, open, place, proof, run_number, runtime};

fn content(text: &'static str) -> Safe<Vec<u8>> {
    Safe::<String>::from(text).into()
}

fn files(database: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![database.with_extension("db.blobs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found
}

#[test]
fn b09_the_same_content_is_stored_once() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let first = store.put(content("the same")).await.unwrap();
        let file = files(&database).pop().unwrap();
        let modified = std::fs::metadata(&file).unwrap().modified().unwrap();
        for _ in 0..5 {
            assert_eq!(store.put(content("the same")).await.unwrap(), first);
        }
        assert_eq!(files(&database), std::slice::from_ref(&file));
        assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), modified);
    });
}

#[test]
fn b09_an_event_cannot_refer_to_a_blob_that_is_not_there() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let mut refers = event(json!({ "marker": 0 }));
        refers.blobs = vec![blob_id(b"nowhere")];
        let refused = store.append(change(run_number(1), 0, vec![refers])).await;
        assert!(matches!(refused, Err(StorageError::NotFound(..))), "{refused:?}");
        assert_eq!(store.head(run_number(1)).await.unwrap(), None);
    });
}

#[test]
fn b09_what_a_crash_left_behind_is_swept() {
    let (_folder, database) = place();
    drop(open(&database));
    let blobs = database.with_extension("db.blobs");
    // A file without a row, and one that was not finished.
    let digits = blob_id(b"orphan").to_string().replace("sha256:", "");
    std::fs::create_dir_all(blobs.join(&digits[..2])).unwrap();
    std::fs::create_dir_all(blobs.join("unfinished")).unwrap();
    std::fs::write(blobs.join(&digits[..2]).join(&digits), "orphan").unwrap();
    std::fs::write(blobs.join("unfinished/7"), "hal").unwrap();
    let store = open(&database);
    assert_eq!(files(&database).len(), 1, "the unfinished one is swept at the start");
    runtime().block_on(async {
        store.collect(Duration::from_secs(3_600)).await.unwrap();
        assert_eq!(files(&database).len(), 1, "the orphan is not old enough yet");
        assert_eq!(store.collect(Duration::ZERO).await.unwrap(), Collected::default());
        assert_eq!(files(&database), [] as [PathBuf; 0]);
    });
}

#[test]
fn b09_only_what_is_unused_for_so_long_is_collected() {
    let (_folder, database) = place();
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let options = OpenOptions::new(&database, "the test").clock(Arc::clone(&clock) as _);
    let store = SqliteStore::open(options).unwrap();
    runtime().block_on(async {
        let used = store.put(content("used")).await.unwrap();
        let mut refers = event(json!({ "marker": 0 }));
        refers.blobs = vec![used];
        store.append(change(run_number(1), 0, vec![refers])).await.unwrap();
        let unused = store.put(content("unused")).await.unwrap();
        clock.advance_ms(9_000);
        let fresh = store.put(content("fresh")).await.unwrap();
        assert_eq!(store.collect(Duration::from_secs(10)).await.unwrap(), Collected::default());
        // A put counts anew, however often the content was put before.
        clock.advance_ms(2_000);
        assert_eq!(
            store.collect(Duration::from_secs(10)).await.unwrap(),
            Collected { blobs: 1, bytes: "unused".len() as u64 }
        );
        assert!(matches!(store.get(unused).await, Err(StorageError::NotFound(..))));
        clock.advance_ms(7_000);
        store.put(content("fresh")).await.unwrap();
        clock.advance_ms(9_000);
        assert_eq!(store.collect(Duration::from_secs(10)).await.unwrap(), Collected::default());
        for id in [used, fresh] {
            store.get(id).await.unwrap();
        }
        assert_eq!(store.check().await.unwrap(), []);
    });
}

// Putters that refer to what they put race with a collector that takes everything it may.
#[test]
fn b09_collecting_never_takes_what_somebody_has_just_put_and_refers_to() {
    let (_folder, database) = place();
    let store = open(&database);
    let rounds = proof(20, 150, 3_000) as u64;
    let referred = Arc::new(AtomicU64::new(0));
    runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for putter in 0..6_u64 {
            let (store, referred) = (Arc::clone(&store), Arc::clone(&referred));
            tasks.spawn(async move {
                for round in 0..rounds {
                    // Each content is put by two of them at about the same time, and by nobody later.
                    let text = format!("content {} {round}", putter / 2);
                    let id: BlobId = store.put(content(text.leak())).await.unwrap();
                    let mut refers = event(json!({ "marker": 0 }));
                    refers.blobs = vec![id];
                    let run = run_number(putter * 1_000_000 + round);
                    match store.append(change(run, 0, vec![refers])).await {
                        // From here on it must stay.
                        Ok(_) => {
                            tokio::task::yield_now().await;
                            store.get(id).await.unwrap();
                            referred.fetch_add(1, Ordering::Relaxed);
                        }
                        // It was collected in between, since nothing referred to it: told, and nothing written.
                        Err(StorageError::NotFound(..)) => {
                            assert_eq!(store.head(run).await.unwrap(), None)
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        let collector = {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut collected = 0;
                loop {
                    collected += store.collect(Duration::ZERO).await.unwrap().blobs;
                    tokio::task::yield_now().await;
                    if Arc::strong_count(&store) == 2 {
                        return collected;
                    }
                }
            })
        };
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        let collected = collector.await.unwrap();
        println!("{} referred to, {collected} collected", referred.load(Ordering::Relaxed));
        assert_eq!(store.check().await.unwrap(), []);
    });
}

// The same, with nothing that refers: puts and collections of one content, which must end with a file for every row.
#[test]
fn b09_a_put_and_a_collection_of_the_same_content_never_leave_a_row_without_a_file() {
    let (_folder, database) = place();
    let store = open(&database);
    let rounds = proof(30, 300, 5_000);
    runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..3 {
            let putting = Arc::clone(&store);
            tasks.spawn(async move {
                for _ in 0..rounds {
                    putting.put(content("contended")).await.unwrap();
                }
            });
            let collecting = Arc::clone(&store);
            tasks.spawn(async move {
                for _ in 0..rounds {
                    collecting.collect(Duration::ZERO).await.unwrap();
                    // There is no moment at which the database says that it is there and it is not.
                    match collecting.get(blob_id(b"contended")).await {
                        Ok(_) | Err(StorageError::NotFound(..)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        store.put(content("contended")).await.unwrap();
        store.get(blob_id(b"contended")).await.unwrap();
        assert_eq!(store.check().await.unwrap(), []);
    });
}
