//! Group commit: many callers, one transaction, and each is answered for itself.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use runyard_domain::Code;
use runyard_redact::Safe;
use runyard_store::conformance::{
    assert_holds_none, event, fresh_append, fresh_approval, one, plant_secrets, start,
};
use runyard_store::{
    ApprovalWrite, Approvals, Blobs, Change, EventLog, Place, Refusal, Runs, StorageError, Tail, verify,
};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::json;
use support::{change, marked, markers, open, place, proof, run_number, runtime};

/// A change that keeps the writer busy while others come to wait.
fn slow(run: runyard_domain::RunId) -> Change {
    let place = Place::Head(Box::new(|_| {
        std::thread::sleep(Duration::from_millis(100));
        Ok(one(json!({ "marker": 1 })))
    }));
    Change { run, append: fresh_append(), generation: None, place }
}

#[test]
fn d11_a_refused_change_in_a_group_takes_nothing_else_with_it() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let busy = start(&*store).await;
        let id = fresh_approval();
        let asks = |run: u64| {
            let expires = runyard_domain::Timestamp::from_unix_ms(1);
            let mut change = marked(run_number(run), 0, 0);
            if let Place::At(_, writes) = &mut change.place {
                writes.approvals = vec![ApprovalWrite::Open { id, expires, request: Safe::NULL }];
                writes.timers = Vec::new();
            }
            change
        };
        let before = store.commits();
        let waiting = {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.append(slow(busy)).await })
        };
        tokio::time::sleep(Duration::from_millis(20)).await;
        // While the writer is busy these come to wait, and then make one group: two of them want the same approval, one comes
        // too late for its place, one has nothing to say against it.
        let (first, second, conflict, fine) = tokio::join!(
            store.append(asks(1)),
            store.append(asks(2)),
            store.append(marked(busy, 1, 9)),
            store.append(marked(run_number(3), 0, 0)),
        );
        waiting.await.unwrap().unwrap();
        first.unwrap();
        assert!(matches!(second, Err(StorageError::AlreadyExists(..))), "{second:?}");
        assert!(matches!(conflict, Err(StorageError::VersionConflict { expected: 1, actual: 2 })));
        fine.unwrap();
        assert_eq!(store.commits() - before, 2, "they were not committed together");
        // Of the refused one nothing is there: no event, no run.
        assert_eq!(store.run(run_number(2)).await.unwrap(), None);
        assert_eq!(store.approval(id).await.unwrap().unwrap().run, run_number(1));
        assert_eq!(store.check().await.unwrap(), []);
        // And the place where it would have been goes on as if it had never come.
        store.append(marked(run_number(2), 0, 0)).await.unwrap();
        assert_eq!(markers(&store, run_number(2)).await, [0]);
    });
}

#[test]
fn d11_a_caller_that_goes_away_does_not_undo_its_change() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let busy = start(&*store).await;
        let slow = {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.append(slow(busy)).await })
        };
        tokio::time::sleep(Duration::from_millis(20)).await;
        let gone = tokio::time::timeout(Duration::from_millis(20), store.append(marked(run_number(1), 0, 7)));
        assert!(gone.await.is_err());
        slow.await.unwrap().unwrap();
        store.append(marked(run_number(2), 0, 0)).await.unwrap();
        assert_eq!(markers(&store, run_number(1)).await, [7]);
    });
}

#[test]
fn d11_a_function_that_panics_is_refused_and_the_writer_goes_on() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let run = start(&*store).await;
        let place = Place::Head(Box::new(|_| panic!("in the middle of the writer")));
        let panicked = store.append(Change { run, append: fresh_append(), generation: None, place }).await;
        assert_eq!(panicked.unwrap_err().code(), Code::InternalError);
        let refuses = Place::Head(Box::new(|_| Err(Refusal { code: Code::Cancelled, source: "no".into() })));
        let refused =
            store.append(Change { run, append: fresh_append(), generation: None, place: refuses }).await;
        assert!(matches!(refused, Err(StorageError::Refused { .. })));
        store.append(marked(run, 1, 1)).await.unwrap();
    });
}

#[test]
fn c08_who_waits_for_a_run_is_told_of_each_event_by_the_time_its_writer_is_answered() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let run = start(&*store).await;
        let mut tail = Tail::open(Arc::clone(&store), run, 1).await.unwrap();
        let subscription = store.live().subscribe(run);
        let mut told = tokio::spawn(async move { (tail.next().await.unwrap(), tail) });
        for after in 1..proof(50, 300, 3_000) as u64 {
            store.append(marked(run, after, after)).await.unwrap();
            // In the ring already: nobody has to go to the disk for it.
            assert_eq!(subscription.recent(after, 10).len(), 1);
            let waited = tokio::time::timeout(Duration::from_secs(5), told).await;
            let (events, mut tail) = waited.expect("it was not told").unwrap();
            assert_eq!(events.iter().map(|event| event.sequence).collect::<Vec<_>>(), [after + 1]);
            // And it is told of nothing that is not there for everybody.
            assert_eq!(store.head(run).await.unwrap(), Some(after + 1));
            told = tokio::spawn(async move { (tail.next().await.unwrap(), tail) });
        }
    });
}

#[test]
fn c07_runs_that_were_forgotten_by_the_writer_go_on_where_they_were() {
    let (_folder, database) = place();
    let store = open(&database);
    // More runs than the writer remembers, each three times, with lengths around a full row of places.
    let runs = proof(500, 9_000, 20_000) as u64;
    runtime().block_on(async {
        let mut after = vec![0_u64; runs as usize];
        for turn in 0..3 {
            let mut tasks = tokio::task::JoinSet::new();
            for lane in 0..32 {
                let store = Arc::clone(&store);
                let own: Vec<(u64, u64)> =
                    (lane..runs).step_by(32).map(|run| (run, after[run as usize])).collect();
                tasks.spawn(async move {
                    let mut done = Vec::new();
                    for (run, at) in own {
                        let count = if run % 50 == 0 { 63 + turn } else { 1 };
                        let events =
                            (at..at + count).map(|marker| event(json!({ "marker": marker }))).collect();
                        done.push((
                            run,
                            store.append(change(run_number(run), at, events)).await.unwrap().last,
                        ));
                    }
                    done
                });
            }
            while let Some(done) = tasks.join_next().await {
                done.unwrap().into_iter().for_each(|(run, last)| after[run as usize] = last);
            }
        }
        for run in (0..runs).step_by(97).chain([0, 50, 100]) {
            let verified = verify(&*store, run_number(run)).await.unwrap().unwrap();
            assert_eq!(verified.events, after[run as usize]);
            assert_eq!(markers(&store, run_number(run)).await, (0..verified.events).collect::<Vec<_>>());
        }
        assert_eq!(store.check().await.unwrap(), []);
    });
}

#[test]
fn b09_a_page_of_large_events_is_bounded_and_none_is_left_out() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let text = "x".repeat(900_000);
        for marker in 0..40 {
            let event = event(json!({ "marker": marker, "text": text }));
            store.append(change(run_number(1), marker, vec![event])).await.unwrap();
        }
        let page = store.read(run_number(1), 0, 5_000).await.unwrap();
        assert!((10..30).contains(&page.len()), "{}", page.len());
        assert_eq!(markers(&store, run_number(1)).await, (0..40).collect::<Vec<_>>());
    });
}

#[test]
fn d11_a_disk_that_is_only_in_the_way_poisons_nothing() {
    let (_folder, database) = place();
    let (told, was_told) = std::sync::mpsc::channel();
    let options = OpenOptions::new(&database, "the test").on_poisoned(move || told.send(()).unwrap());
    let store = SqliteStore::open(options).unwrap();
    runtime().block_on(async {
        let run = start(&store).await;
        std::fs::write(database.with_extension("db.blobs"), "in the way").unwrap();
        let refused = store.put(Safe::<String>::from("x").into()).await;
        assert!(matches!(refused, Err(StorageError::Io(..))), "{refused:?}");
        store.append(marked(run, 1, 1)).await.unwrap();
    });
    assert!(was_told.try_recv().is_err());
}

// clause: B11
#[test]
fn no_planted_secret_is_in_any_file() {
    let (folder, database) = place();
    let store = open(&database);
    let needles = runtime().block_on(plant_secrets(Arc::clone(&store) as _));
    let mut looked_at = 0;
    let mut scan = || {
        let mut folders = vec![folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                looked_at += 1;
                assert_holds_none(&path.to_string_lossy(), &std::fs::read(&path).unwrap(), &needles);
            }
        }
    };
    scan();
    drop(store);
    scan();
    assert!(looked_at > 5);
}

#[test]
fn d11_two_stores_beside_each_other_do_not_share_anything() {
    let (folder, first) = place();
    let (first, second) = (open(&first), open(&folder.path().join("other.db")));
    runtime().block_on(async {
        let run = start(&*first).await;
        assert_eq!(second.run(run).await.unwrap(), None);
        let id = first.put(Safe::<String>::from("x").into()).await.unwrap();
        second.collect(Duration::ZERO).await.unwrap();
        first.get(id).await.unwrap();
    });
}
