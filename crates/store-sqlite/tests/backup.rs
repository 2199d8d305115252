//! Backups made while writing goes on.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use runyard_redact::Safe;
use runyard_store::conformance::event;
use runyard_store::{Blobs, EventLog, StorageError};
use runyard_store_sqlite::BackupProgress;
use serde_json::json;
use support::{change, markers, open, place, proof, run_number, runtime};

const RUNS: u64 = 8;

#[test]
fn c08_a_backup_made_while_writing_is_a_prefix_that_verifies() {
    let (folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = tokio::task::JoinSet::new();
        let heads: Arc<Vec<AtomicU64>> = Arc::new((0..RUNS).map(|_| AtomicU64::new(0)).collect());
        for run in 0..RUNS {
            let (store, stop, heads) = (Arc::clone(&store), Arc::clone(&stop), Arc::clone(&heads));
            writers.spawn(async move {
                for marker in 0.. {
                    let mut said = event(json!({ "marker": marker, "text": "x".repeat(500) }));
                    if marker % 5 == 0 {
                        let text = format!("blob {run} {marker}").leak();
                        said.blobs = vec![store.put(Safe::<String>::from(&*text).into()).await.unwrap()];
                    }
                    store.append(change(run_number(run), marker, vec![said])).await.unwrap();
                    heads[run as usize].store(marker + 1, Ordering::SeqCst);
                    if stop.load(Ordering::SeqCst) && marker > 50 {
                        return marker + 1;
                    }
                }
                unreachable!()
            });
        }
        while heads.iter().any(|head| head.load(Ordering::SeqCst) < 20) {
            tokio::task::yield_now().await;
        }
        for round in 0..proof(2, 4, 40) {
            let target = folder.path().join(format!("backup-{round}/copy.db"));
            std::fs::create_dir(target.parent().unwrap()).unwrap();
            let before: Vec<u64> = heads.iter().map(|head| head.load(Ordering::SeqCst)).collect();
            let steps = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&steps);
            store.backup_to(&target, move |progress| seen.lock().unwrap().push(progress)).await.unwrap();
            let after: Vec<u64> = heads.iter().map(|head| head.load(Ordering::SeqCst)).collect();
            let last: BackupProgress = *steps.lock().unwrap().last().unwrap();
            assert_eq!(last.done, last.pages);

            let copy = open(&target);
            assert_eq!(copy.check().await.unwrap(), []);
            for run in 0..RUNS {
                let markers = markers(&copy, run_number(run)).await;
                let count = markers.len() as u64;
                assert_eq!(markers, (0..count).collect::<Vec<_>>());
                // What was acknowledged before it began is in it, and what began after it ended is not.
                assert!((before[run as usize]..=after[run as usize] + 1).contains(&count));
            }
            // It is a database like any other.
            copy.append(change(run_number(99), 0, vec![event(json!({ "marker": 0 }))])).await.unwrap();
        }
        stop.store(true, Ordering::SeqCst);
        while let Some(done) = writers.join_next().await {
            assert!(done.unwrap() > 50);
        }
    });
}

#[test]
fn d11_a_backup_overwrites_nothing_and_leaves_nothing_unfinished() {
    let (folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        store.append(change(run_number(1), 0, vec![event(json!({ "marker": 0 }))])).await.unwrap();
        let target = folder.path().join("copy.db");
        std::fs::write(&target, "something of value").unwrap();
        let refused = store.backup_to(&target, |_| {}).await;
        assert!(matches!(refused, Err(StorageError::AlreadyExists(..))), "{refused:?}");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "something of value");
        let itself = store.backup_to(&database, |_| {}).await;
        assert!(matches!(itself, Err(StorageError::AlreadyExists(..))), "{itself:?}");

        std::fs::remove_file(&target).unwrap();
        // What an interrupted one left behind is no hindrance.
        std::fs::write(folder.path().join("copy.db.unfinished"), "half a backup").unwrap();
        store.backup_to(&target, |_| {}).await.unwrap();
        let left: Vec<String> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("copy"))
            .collect();
        assert_eq!(left, ["copy.db"]);
        assert_eq!(markers(&open(&target), run_number(1)).await, [0]);
    });
}
