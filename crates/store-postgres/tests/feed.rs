//! The feed of all runs never passes an event that commits late, and keeps each run's order.
#![allow(clippy::unwrap_used, reason = "the helpers of tests fail like tests")]

use std::sync::Arc;
use std::time::Duration;

use runyard_domain::RunId;
use runyard_store::conformance::{append, start};
use runyard_store::{EventLog, FeedCursor, FeedTail, Runs, StorageError};
use runyard_store_postgres::PostgresStore;
use runyard_testkit_postgres::Postgres;
use serde_json::json;
use tokio_postgres::{Client, NoTls};

async fn store() -> (Arc<PostgresStore>, String) {
    let url = Postgres::shared().unwrap().database().unwrap();
    (Arc::new(PostgresStore::connect(&url).await.unwrap()), url)
}

async fn raw(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("SET search_path = runyard").await.unwrap();
    client
}

/// Waits until every transaction that is older than the last event has ended. Other tests share the server, and each
/// transaction of theirs holds the feed back.
async fn settled(url: &str) {
    let is_settled = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + feed_offset
        > (SELECT coalesce(max(feed), 0) FROM runyard.events) FROM runyard.meta";
    while Postgres::shared().unwrap().sql(url, is_settled).unwrap() != "t" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Everything up to now, as runs and places.
async fn shown(store: &PostgresStore, after: &FeedCursor) -> (Vec<(RunId, u64)>, FeedCursor) {
    let page = store.feed(after, 5_000).await.unwrap();
    (page.entries.iter().map(|entry| (entry.run, entry.event.sequence)).collect(), page.next)
}

/// Writes the next event of a run by hand, inside whatever transaction the connection is in.
async fn write_by_hand(raw: &Client, store: &PostgresStore, run: RunId) {
    let row = store.run(run).await.unwrap().unwrap();
    let id = run.to_string().replace("run_", "");
    let next = row.sequence + 1;
    let sql = format!(
        "INSERT INTO events (run_id, sequence, feed, append_id, body)
         VALUES ('{id}', {next}, pg_current_xact_id()::text::bigint, '{id}', '{{}}');
         UPDATE runs SET sequence = {next}, feed = pg_current_xact_id()::text::bigint WHERE run_id = '{id}'"
    );
    raw.batch_execute(&sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_an_event_that_commits_late_is_not_skipped() {
    let (store, url) = store().await;
    let (late, other) = (start(&*store).await, start(&*store).await);
    settled(&url).await;
    let (before, cursor) = shown(&store, &FeedCursor::start()).await;
    assert_eq!(before, [(late, 1), (other, 1)]);
    let mut tail = FeedTail::open(store.clone() as Arc<dyn EventLog>, cursor.clone());

    // It has its place before the others have theirs, and commits after them.
    let raw = raw(&url).await;
    raw.batch_execute("BEGIN").await.unwrap();
    write_by_hand(&raw, &store, late).await;
    for after in 1..4 {
        append(&*store, other, after, json!({"n": after + 1})).await.unwrap();
    }
    assert_eq!(store.head(other).await.unwrap(), Some(4));
    // They are there, and the feed waits.
    assert_eq!(shown(&store, &cursor).await, (vec![], cursor.clone()));
    raw.batch_execute("COMMIT").await.unwrap();
    settled(&url).await;
    let expected = vec![(late, 2), (other, 2), (other, 3), (other, 4)];
    assert_eq!(shown(&store, &cursor).await.0, expected);
    // Whoever follows is woken although the late one told nobody.
    let mut followed = Vec::new();
    while followed.len() < expected.len() {
        followed.extend(tail.next().await.unwrap().iter().map(|entry| (entry.run, entry.event.sequence)));
    }
    assert_eq!(followed, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_a_transaction_that_is_rolled_back_holds_the_feed_up_only_until_then() {
    let (store, url) = store().await;
    let run = start(&*store).await;
    settled(&url).await;
    let (_, cursor) = shown(&store, &FeedCursor::start()).await;
    let mut tail = FeedTail::open(store.clone() as Arc<dyn EventLog>, cursor.clone());
    let raw = raw(&url).await;
    raw.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
    append(&*store, run, 1, json!({})).await.unwrap();
    assert_eq!(shown(&store, &cursor).await.0, []);
    raw.batch_execute("ROLLBACK").await.unwrap();
    let followed = tail.next().await.unwrap();
    assert_eq!((followed[0].run, followed[0].event.sequence), (run, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_the_feed_goes_on_after_a_dump_was_restored_into_a_younger_server() {
    let (store, url) = store().await;
    let (first, second) = (start(&*store).await, start(&*store).await);
    append(&*store, first, 1, json!({})).await.unwrap();
    drop(store);
    // As in a database whose events were numbered by a server that has seen more transactions.
    let sql =
        "UPDATE runyard.events SET feed = feed + 1000000; UPDATE runyard.runs SET feed = feed + 1000000";
    Postgres::shared().unwrap().sql(&url, sql).unwrap();
    let store = PostgresStore::connect(&url).await.unwrap();
    settled(&url).await;
    let (before, cursor) = shown(&store, &FeedCursor::start()).await;
    assert_eq!(before, [(first, 1), (second, 1), (first, 2)]);
    append(&store, second, 1, json!({})).await.unwrap();
    let third = start(&store).await;
    append(&store, first, 2, json!({})).await.unwrap();
    settled(&url).await;
    let (after, cursor) = shown(&store, &cursor).await;
    assert_eq!(after, [(second, 2), (third, 1), (first, 3)]);
    // Opening it again changes nothing.
    let again = PostgresStore::connect(&url).await.unwrap();
    append(&again, third, 1, json!({})).await.unwrap();
    settled(&url).await;
    assert_eq!(shown(&again, &cursor).await.0, [(third, 2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_a_cursor_ahead_of_the_feed_is_told() {
    let (store, url) = store().await;
    start(&*store).await;
    settled(&url).await;
    let (_, cursor) = shown(&store, &FeedCursor::start()).await;
    let (feed, pos) = cursor.as_str().split_once('.').unwrap();
    let ahead = format!("{}.{pos}", feed.parse::<u64>().unwrap() + 1_000_000);
    for text in [ahead.as_str(), "1.", ".1", "1.2.3", "+1.1", "1.-1", "00", "1"] {
        let error = store.feed(&FeedCursor::from_text(text), 1).await.unwrap_err();
        assert!(matches!(error, StorageError::Validation(..)), "{text}: {error}");
    }
}
