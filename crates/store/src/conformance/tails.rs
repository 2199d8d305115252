//! Following: what is there, then what comes, once and in order.

use std::collections::HashMap;
use std::sync::Arc;

use runyard_domain::RunId;
use serde_json::json;

use super::fixtures::{append, at, event, fresh_run, start};
use crate::{
    EventLog, FeedCursor, FeedTail, LoggedEvent, RING_EVENTS_MAX, StorageError, Store, Tail, Writes,
};

fn log(store: &Arc<dyn Store>) -> Arc<dyn EventLog> {
    store.clone()
}

/// Reads until the place `last`.
async fn follow(mut tail: Tail<dyn EventLog>, last: u64) -> Vec<LoggedEvent> {
    let mut seen = Vec::new();
    while tail.after() < last {
        let events = tail.next().await.unwrap();
        assert!(!events.is_empty());
        seen.extend(events);
    }
    seen
}

async fn write(store: &dyn Store, run: RunId, from: u64, to: u64) {
    let mut after = from;
    while after < to {
        let batch = (to - after).min(1 + after % 5);
        let events = (0..batch).map(|n| event(json!({"n": after + n}))).collect();
        after = store.append(at(run, after, Writes { events, ..Writes::default() })).await.unwrap().last;
    }
}

pub async fn c08_a_tail_that_joins_anywhere_sees_every_event_once_while_writers_write(store: Arc<dyn Store>) {
    const LAST: u64 = 400;
    let run = start(&*store).await;
    write(&*store, run, 1, 50).await;
    let mut tails = Vec::new();
    for after in [0, 1, 25, 49, 50] {
        let tail = Tail::open(log(&store), run, after).await.unwrap();
        tails.push((after, tokio::spawn(follow(tail, LAST))));
    }
    let writer = tokio::spawn({
        let store = store.clone();
        async move { write(&*store, run, 50, LAST).await }
    });
    // More join while it writes, and leave and come back where they were.
    for _ in 0..20 {
        let after = store.head(run).await.unwrap().unwrap();
        let mut tail = Tail::open(log(&store), run, after / 2).await.unwrap();
        let begun = tail.next().await.unwrap();
        let rest = Tail::open(log(&store), run, tail.after()).await.unwrap();
        drop(tail);
        tails.push((after / 2, tokio::spawn(async move { [begun, follow(rest, LAST).await].concat() })));
    }
    writer.await.unwrap();
    let whole = store.read(run, 0, 5000).await.unwrap();
    assert_eq!(whole.len() as u64, LAST);
    for (after, tail) in tails {
        let seen = tail.await.unwrap();
        assert!(seen == whole[after as usize..], "the tail after {after} differs");
    }
}

pub async fn c08_a_slow_tail_loses_nothing(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let mut tail = Tail::open(log(&store), run, 0).await.unwrap();
    let first = tail.next().await.unwrap();
    // More than is kept in memory for those who are up to date.
    let last = 1 + RING_EVENTS_MAX as u64 * 2;
    let mut after = 1;
    while after < last {
        let events = (0..(last - after).min(100)).map(|n| event(json!({"n": n}))).collect();
        after = store.append(at(run, after, Writes { events, ..Writes::default() })).await.unwrap().last;
    }
    let seen = [first, follow(tail, last).await].concat();
    assert!(seen == store.read(run, 0, 5000).await.unwrap());
}

pub async fn c08_a_tail_ahead_of_its_log_is_told(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let Err(error) = Tail::open(log(&store), run, 2).await else { panic!("it opened") };
    assert!(matches!(error, StorageError::VersionConflict { expected: 2, actual: 1 }), "{error}");
    let Err(error) = Tail::open(log(&store), fresh_run(), 0).await else { panic!("it opened") };
    assert!(matches!(error, StorageError::NotFound(..)), "{error}");
}

pub async fn c08_the_feed_shows_every_event_once_and_each_run_in_order(store: Arc<dyn Store>) {
    const EVENTS: u64 = 60;
    let runs = super::ManyRuns::start(&*store, 6).await.0;
    let mut feed = FeedTail::open(log(&store), FeedCursor::start());
    let writers = runs.iter().map(|run| {
        let (store, run) = (store.clone(), *run);
        tokio::spawn(async move { write(&*store, run, 1, EVENTS).await })
    });
    let writers: Vec<_> = writers.collect();
    let mut seen: HashMap<RunId, Vec<LoggedEvent>> = runs.iter().map(|run| (*run, Vec::new())).collect();
    while seen.values().any(|events| (events.len() as u64) < EVENTS) {
        for entry in feed.next().await.unwrap() {
            if let Some(events) = seen.get_mut(&entry.run) {
                assert_eq!(entry.event.sequence, events.len() as u64 + 1, "out of order or twice");
                events.push(entry.event);
            }
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    for (run, events) in seen {
        assert!(events == store.read(run, 0, 5000).await.unwrap());
    }
}

pub async fn c08_the_feed_goes_on_where_its_cursor_says(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    for after in 1..10 {
        append(&*store, run, after, json!({"n": after})).await.unwrap();
    }
    // Read one by one, each time from a cursor that travelled as text.
    let mut cursor = FeedCursor::start();
    let mut seen = Vec::new();
    while seen.last() != Some(&10) {
        let page = store.feed(&FeedCursor::from_text(cursor.as_str()), 1).await.unwrap();
        assert!(page.entries.len() <= 1);
        seen.extend(page.entries.iter().filter(|entry| entry.run == run).map(|entry| entry.event.sequence));
        if let Some(entry) = page.entries.last() {
            assert_eq!(entry.cursor, page.next);
        }
        cursor = page.next;
    }
    assert_eq!(seen, (1..=10).collect::<Vec<u64>>());
    for nonsense in ["", "x", "-1", "1;drop", "9999999999999999999999", "\u{0}"] {
        let error = store.feed(&FeedCursor::from_text(nonsense), 1).await.unwrap_err();
        assert!(matches!(error, StorageError::Validation(..)), "{nonsense}: {error}");
    }
}
