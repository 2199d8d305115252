//! Reading: a store that only reads, pages that are bounded, and rows that were damaged.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail like tests")]

use std::sync::Arc;
use std::time::Duration;

use runyard_domain::{RunId, Timestamp};
use runyard_redact::Safe;
use runyard_store::conformance::{append, at, event, one, safe, start};
use runyard_store::{
    Blobs, EventLog, FeedCursor, Idempotency, KeyDigest, KeyedResult, Leases, Outbox, Runs, RunsQuery,
    StorageError, Tail, Timers, Writes, verify,
};
use runyard_store_postgres::PostgresStore;
use runyard_testkit_postgres::{PASSWORD, Postgres, USER};
use serde_json::json;

const MINUTE: Duration = Duration::from_secs(60);

async fn store() -> (Arc<PostgresStore>, String) {
    let url = Postgres::shared().unwrap().database().unwrap();
    (Arc::new(PostgresStore::connect(&url).await.unwrap()), url)
}

fn sql(url: &str, sql: &str) -> String {
    Postgres::shared().unwrap().sql(url, sql).unwrap()
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

fn far(seconds: i64) -> Timestamp {
    Timestamp::from_unix_ms(4_000_000_000_000 + 1_000 * seconds)
}

fn keyed(key: KeyDigest, expires: Timestamp) -> KeyedResult {
    KeyedResult { key, fingerprint: [1; 32], result: safe(json!("first")), expires }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b09_a_page_is_bounded_in_bytes_and_only_an_empty_one_is_the_end() {
    const EVENTS: usize = 21;
    const PAGE: usize = 17; // The first whose events have 16 MiB and more.
    let (store, url) = store().await;
    let run = start(&*store).await;
    let large = "x".repeat(1_000_000);
    for first in (1..EVENTS as u64).step_by(5) {
        let events = (0..5).map(|n| event(json!({"n": first + n, "text": large}))).collect();
        store.append(at(run, first, Writes { events, ..Writes::default() })).await.unwrap();
    }
    let mut pages = Vec::new();
    let mut after = 0;
    loop {
        let page = store.read(run, after, 500).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.iter().zip(after + 1..).all(|(event, place)| event.sequence == place));
        after = last.sequence;
        pages.push(page.len());
    }
    // The first event is small.
    assert_eq!((pages, after), (vec![PAGE + 1, EVENTS - PAGE - 1], EVENTS as u64));
    settled(&url).await;
    let (mut pages, mut seen) = (Vec::new(), Vec::new());
    let mut cursor = FeedCursor::start();
    loop {
        let page = store.feed(&cursor, 500).await.unwrap();
        cursor = page.next;
        if page.entries.is_empty() {
            break;
        }
        pages.push(page.entries.len());
        seen.extend(page.entries.iter().map(|entry| entry.event.sequence));
    }
    assert_eq!(pages, [PAGE + 1, EVENTS - PAGE - 1]);
    assert_eq!(seen, (1..=EVENTS as u64).collect::<Vec<_>>());
    assert_eq!(store.read(run, 3, 2).await.unwrap().len(), 2);
    assert_eq!(verify(&*store, run).await.unwrap().unwrap().events, EVENTS as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_looking_at_a_database_where_nothing_is_recorded_makes_nothing() {
    let url = Postgres::shared().unwrap().database().unwrap();
    let error = PostgresStore::connect_to_read(&url).await.unwrap_err();
    assert!(matches!(error, StorageError::NotFound(..)), "{error:?}");
    assert_eq!(error.to_string(), "there is no database: nothing is recorded yet");
    assert_eq!(sql(&url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'runyard'"), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_another_schema_is_not_read_and_not_changed() {
    let (store, url) = store().await;
    start(&*store).await;
    drop(store);
    for (version, part) in [(0, "start the hub once"), (77, "schema 77")] {
        sql(&url, &format!("UPDATE runyard.meta SET version = {version}"));
        let error = PostgresStore::connect_to_read(&url).await.unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(matches!(error, StorageError::NewerSchema { found: 77, .. }), version == 77);
        assert_eq!(sql(&url, "SELECT version FROM runyard.meta"), version.to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_store_for_reading_sees_what_others_write_and_writes_nothing() {
    let (store, url) = store().await;
    let run = start(&*store).await;
    let kept = KeyDigest::of(&["reading"]);
    store.keep(keyed(kept, far(0))).await.unwrap();
    // By somebody who may do nothing else.
    sql(
        &url,
        "CREATE ROLE reader LOGIN PASSWORD 'reader-0pens'; GRANT USAGE ON SCHEMA runyard TO reader;
         GRANT SELECT ON ALL TABLES IN SCHEMA runyard TO reader",
    );
    let as_reader = url.replace(&format!("{USER}:{PASSWORD}"), "reader:reader-0pens");
    let mut tail = None;
    for url in [&url, &as_reader] {
        let reader = Arc::new(PostgresStore::connect_to_read(url).await.unwrap());
        let content: Safe<String> = run.into();
        let result = keyed(KeyDigest::of(&["another"]), far(0));
        let refused = [
            reader.append(at(run, 1, one(json!({})))).await.err(),
            reader.acquire(run, "one".into(), MINUTE).await.err(),
            reader.renew(run, 1, MINUTE).await.err(),
            reader.release(run, 0).await.err(),
            reader.keep(result).await.err(),
            reader.forget_expired(10).await.err(),
            reader.delivered(&[1]).await.err(),
            reader.put(content.into()).await.err(),
            reader.collect(Duration::ZERO).await.err(),
        ];
        for (n, error) in refused.into_iter().enumerate() {
            assert!(matches!(error, Some(StorageError::ReadOnly { .. })), "{n}: {error:?}");
        }
        assert_eq!(verify(&*reader, run).await.unwrap().unwrap().events, 1);
        assert!(reader.kept(kept).await.unwrap().is_some());
        assert!(reader.next_timer().await.unwrap().is_none());
        let listed = RunsQuery { limit: 10, ..RunsQuery::default() };
        assert_eq!(reader.runs(listed).await.unwrap().runs.len(), 1);
        tail = Some(Tail::open(reader, run, 1).await.unwrap());
    }
    append(&*store, run, 1, json!({})).await.unwrap();
    let seen = tokio::time::timeout(MINUTE, tail.unwrap().next()).await.unwrap().unwrap();
    assert_eq!(seen[0].sequence, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_keeping_the_same_result_again_does_not_prolong_it() {
    let (store, url) = store().await;
    let key = KeyDigest::of(&["expiry"]);
    let expires = || sql(&url, "SELECT expires FROM runyard.results").parse::<i64>().unwrap();
    for seconds in [0, 60, -60] {
        store.keep(keyed(key, far(seconds))).await.unwrap();
        assert_eq!(expires(), far(0).unix_ms());
    }
    // One that has expired is as good as none.
    sql(&url, "UPDATE runyard.results SET expires = 1");
    store.keep(keyed(key, far(60))).await.unwrap();
    assert_eq!(expires(), far(60).unix_ms());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c07_a_number_below_zero_is_damage_and_not_zero() {
    let (store, url) = store().await;
    let (damaged, whole) = (start(&*store).await, start(&*store).await);
    let assert_damage = |error: StorageError| {
        assert!(matches!(error, StorageError::Corrupt { .. }), "{error:?}");
        assert!(error.to_string().contains("-7"), "{error}");
    };
    let of = |run: RunId| run.to_string().replace("run_", "");
    sql(&url, &format!("UPDATE runyard.runs SET sequence = -7 WHERE run_id = '{}'", of(damaged)));
    assert_damage(store.head(damaged).await.unwrap_err());
    assert_damage(store.run(damaged).await.unwrap_err());
    assert_damage(append(&*store, damaged, 1, json!({})).await.unwrap_err());
    append(&*store, whole, 1, json!({})).await.unwrap();
    sql(
        &url,
        &format!("UPDATE runyard.runs SET sequence = 1, generation = -7 WHERE run_id = '{}'", of(damaged)),
    );
    assert_damage(store.acquire(damaged, "one".into(), MINUTE).await.unwrap_err());
}
