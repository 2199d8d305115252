//! A server that is stopped and killed while many runs write: what was acknowledged is there, in order, once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail like tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use runyard_domain::RunId;
use runyard_store::conformance::{append, event, fresh_append, start};
use runyard_store::{
    Appended, Change, EventLog, FeedCursor, FeedTail, Place, Runs, StorageError, Tail, Writes, verify,
};
use runyard_store_postgres::{ConnectOptions, PostgresStore};
use runyard_testkit_postgres::Postgres;
use serde_json::json;

const RUNS: usize = 32;

/// How often the server goes down.
fn outages() -> u64 {
    match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => 3,
        Ok("soak") => 200,
        _ => 20,
    }
}

/// Writes until it is told to stop; every change is repeated until its outcome is known. Gives the last place.
async fn write(store: Arc<PostgresStore>, run: RunId, done: Arc<AtomicBool>, written: Arc<AtomicU64>) -> u64 {
    let mut last: u64 = 1;
    while !done.load(Ordering::SeqCst) {
        let events = (0..1 + last % 3).map(|n| event(json!({"n": last + 1 + n}))).collect();
        let writes = Writes { events, ..Writes::default() };
        let append = fresh_append();
        let appended = loop {
            // Every third one at the head.
            let place = if last.is_multiple_of(3) {
                let writes = writes.clone();
                Place::Head(Box::new(move |_| Ok(writes.clone())))
            } else {
                Place::At(last, writes.clone())
            };
            match store.append(Change { run, append, generation: None, place }).await {
                Ok(appended) => break appended,
                Err(StorageError::CommitUnknown(told)) => assert_eq!(told, append.to_string()),
                Err(StorageError::Io(..)) => {}
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(appended, Appended { first: last + 1, last: last + writes.events.len() as u64 });
        last = appended.last;
        written.fetch_add(1, Ordering::SeqCst);
    }
    last
}

async fn check_whole(store: &PostgresStore, run: RunId, last: u64) {
    let mut after = 1;
    while after < last {
        let events = store.read(run, after, 1_000).await.unwrap();
        assert!(!events.is_empty(), "{run} ends at {after} instead of {last}");
        for event in events {
            after += 1;
            assert_eq!((event.sequence, event.envelope().unwrap().payload), (after, json!({"n": after})));
        }
    }
    assert_eq!(store.run(run).await.unwrap().unwrap().sequence, last);
    assert_eq!(verify(store, run).await.unwrap().unwrap().events, last);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_what_was_acknowledged_is_there_after_every_stop_and_kill_of_the_server() {
    let mut postgres = Postgres::start().unwrap();
    let url = postgres.database().unwrap();
    let store = Arc::new(PostgresStore::connect(&url).await.unwrap());
    let (done, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut writers = Vec::new();
    for _ in 0..RUNS {
        let run = start(&*store).await;
        writers.push((run, tokio::spawn(write(store.clone(), run, done.clone(), written.clone()))));
    }
    for outage in 0..outages() {
        let before = written.load(Ordering::SeqCst);
        while written.load(Ordering::SeqCst) < before + RUNS as u64 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Never at the same point of a transaction: a little later each time.
        tokio::time::sleep(Duration::from_millis(outage % 17)).await;
        postgres = tokio::task::spawn_blocking(move || {
            if outage.is_multiple_of(4) { postgres.kill_hard() } else { postgres.stop_immediately() }
                .unwrap();
            postgres.start_again().unwrap();
            postgres
        })
        .await
        .unwrap();
    }
    done.store(true, Ordering::SeqCst);
    let mut total = 0;
    let mut lasts = Vec::new();
    for (run, writer) in writers {
        let last = writer.await.unwrap();
        total += last;
        lasts.push((run, last));
    }
    // By another store, which knows nothing of what the first one remembers.
    let other = PostgresStore::connect(&url).await.unwrap();
    for (run, last) in lasts {
        check_whole(&other, run, last).await;
    }
    let counted = postgres.sql(&url, "SELECT count(*) FROM runyard.events").unwrap();
    assert_eq!(counted, total.to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_tails_go_on_after_the_server_was_restarted() {
    const LAST: u64 = 60;
    let mut postgres = Postgres::start().unwrap();
    let url = postgres.database().unwrap();
    let (writer, reader) = (
        Arc::new(PostgresStore::connect(&url).await.unwrap()),
        Arc::new(PostgresStore::connect(&url).await.unwrap()),
    );
    let run = start(&*writer).await;
    let mut tail = Tail::open(reader.clone(), run, 0).await.unwrap();
    let mut feed = FeedTail::open(reader.clone(), FeedCursor::start());
    let following = tokio::spawn(async move {
        let (mut seen, mut fed) = (Vec::new(), Vec::new());
        while tail.after() < LAST {
            seen.extend(tail.next().await.unwrap());
        }
        while (fed.len() as u64) < LAST {
            fed.extend(feed.next().await.unwrap().into_iter().map(|entry| entry.event));
        }
        (seen, fed)
    });
    for after in 1..LAST {
        if after.is_multiple_of(20) {
            postgres = tokio::task::spawn_blocking(move || {
                postgres.stop_immediately().unwrap();
                postgres.start_again().unwrap();
                postgres
            })
            .await
            .unwrap();
        }
        append(&*writer, run, after, json!({"n": after + 1})).await.unwrap();
    }
    let (seen, fed) = following.await.unwrap();
    let whole = writer.read(run, 0, 5_000).await.unwrap();
    assert_eq!(whole.len() as u64, LAST);
    assert!(seen == whole && fed == whole);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_server_that_stays_away_is_told_in_bounded_time_and_found_again() {
    let mut postgres = Postgres::start().unwrap();
    let url = postgres.database().unwrap();
    let options = ConnectOptions::default().outage_patience(Duration::from_millis(200));
    let store = PostgresStore::connect_with(&url, options).await.unwrap();
    let run = start(&store).await;
    postgres.stop_immediately().unwrap();
    for _ in 0..3 {
        let error = append(&store, run, 1, json!({})).await.unwrap_err();
        assert!(matches!(error, StorageError::Io(..)), "{error:?}");
        let error = store.run(run).await.unwrap_err();
        assert!(matches!(error, StorageError::Io(..)), "{error:?}");
    }
    postgres.start_again().unwrap();
    append(&store, run, 1, json!({})).await.unwrap();
    assert_eq!(verify(&store, run).await.unwrap().unwrap().events, 2);
}
