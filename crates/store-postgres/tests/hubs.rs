//! Two stores on one database, as two hubs have: they write side by side, tell each other, and fence each other.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail like tests")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use runyard_domain::{Code, RunId};
use runyard_store::conformance::{append, at, fresh_append, fresh_approval, one, safe, start};
use runyard_store::{
    Acquired, ApprovalWrite, Change, EventLog, FeedCursor, FeedTail, Idempotency, KeyDigest, KeyedResult,
    Leases, LoggedEvent, Place, StorageError, Tail, Timers, Writes, verify,
};
use runyard_store_postgres::PostgresStore;
use runyard_testkit_postgres::Postgres;
use serde_json::json;

const MINUTE: Duration = Duration::from_secs(60);

async fn two() -> (Arc<PostgresStore>, Arc<PostgresStore>, String) {
    let url = Postgres::shared().unwrap().database().unwrap();
    // Together, as hubs start after an upgrade: one of them makes the tables.
    let (one, other) = tokio::join!(PostgresStore::connect(&url), PostgresStore::connect(&url));
    (Arc::new(one.unwrap()), Arc::new(other.unwrap()), url)
}

/// Writes so many events to runs in turn, at the head.
async fn write(store: Arc<PostgresStore>, runs: Vec<RunId>, count: usize) {
    for n in 0..count {
        let place = Place::Head(Box::new(move |_| Ok(one(json!({"n": n})))));
        let change = Change { run: runs[n % runs.len()], append: fresh_append(), generation: None, place };
        store.append(change).await.unwrap();
    }
}

async fn follow(store: Arc<PostgresStore>, run: RunId, last: u64) -> Vec<LoggedEvent> {
    let mut tail = Tail::open(store, run, 0).await.unwrap();
    let mut seen = Vec::new();
    while tail.after() < last {
        seen.extend(tail.next().await.unwrap());
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_two_hubs_write_the_same_runs_and_each_follows_both() {
    const EACH: usize = 120;
    let (first, second, _) = two().await;
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(start(&*first).await);
    }
    let last = 1 + 2 * (EACH / runs.len()) as u64;
    let mut followers = Vec::new();
    for store in [&first, &second] {
        for run in &runs {
            followers.push((*run, tokio::spawn(follow(store.clone(), *run, last))));
        }
    }
    let feeds = [&first, &second].map(|store| {
        let mut feed = FeedTail::open(store.clone() as Arc<dyn EventLog>, FeedCursor::start());
        let total = runs.len() as u64 * last;
        tokio::spawn(async move {
            let mut seen: BTreeMap<RunId, Vec<LoggedEvent>> = BTreeMap::new();
            let mut count = 0;
            while count < total {
                for entry in feed.next().await.unwrap() {
                    seen.entry(entry.run).or_default().push(entry.event);
                    count += 1;
                }
            }
            seen
        })
    });
    let writers = [&first, &second].map(|store| tokio::spawn(write(store.clone(), runs.clone(), EACH)));
    for writer in writers {
        writer.await.unwrap();
    }
    let mut whole = BTreeMap::new();
    for run in &runs {
        assert_eq!(verify(&*first, *run).await.unwrap().unwrap().events, last);
        whole.insert(*run, second.read(*run, 0, 5_000).await.unwrap());
    }
    for (run, follower) in followers {
        assert!(follower.await.unwrap() == whole[&run]);
    }
    for feed in feeds {
        assert!(feed.await.unwrap() == whole);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_a_lost_wake_up_costs_time_and_no_event() {
    let (writer, reader, url) = two().await;
    let run = start(&*writer).await;
    let mut tail = Tail::open(reader.clone(), run, 0).await.unwrap();
    assert_eq!(tail.next().await.unwrap().len(), 1);
    // Nobody hears: every connection that listens is ended, and what moves then is told to none.
    let before = listening(&url).await;
    let ended = "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'runyard notices'";
    assert_eq!(Postgres::shared().unwrap().sql(&url, ended).unwrap(), "2");
    append(&*writer, run, 1, json!({"n": 2})).await.unwrap();
    let seen = tokio::time::timeout(MINUTE, tail.next()).await.unwrap().unwrap();
    assert_eq!(seen[0].sequence, 2);
    // Both listen again, by other connections.
    let after = listening(&url).await;
    assert!(before.iter().all(|pid| !after.contains(pid)), "{before:?} {after:?}");
    append(&*writer, run, 2, json!({"n": 3})).await.unwrap();
    assert_eq!(tail.next().await.unwrap()[0].sequence, 3);
}

/// The processes of the server that serve the two hubs' connections for notices, once both are there.
async fn listening(url: &str) -> Vec<String> {
    let listening = "SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'runyard notices'";
    let waited = std::time::Instant::now();
    loop {
        let pids = Postgres::shared().unwrap().sql(url, listening).unwrap();
        let pids: Vec<String> = pids.lines().map(str::to_owned).collect();
        if pids.len() == 2 {
            return pids;
        }
        assert!(waited.elapsed() < MINUTE, "{pids:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_a_wrong_notice_costs_a_look_and_nothing_else() {
    let (writer, reader, url) = two().await;
    let run = start(&*writer).await;
    let mut tail = Tail::open(reader.clone(), run, 0).await.unwrap();
    assert_eq!(tail.next().await.unwrap().len(), 1);
    let named = run.to_string().replace("run_", "");
    for text in
        ["", " ", "nobody", "nobody *", "nobody %$ 1:2 ä", &format!("nobody {named}"), &"x ".repeat(3_000)]
    {
        Postgres::shared()
            .unwrap()
            .sql(&url, &format!("SELECT pg_notify('runyard_moved', '{text}')"))
            .unwrap();
    }
    for after in 1..20 {
        append(&*writer, run, after, json!({"n": after + 1})).await.unwrap();
    }
    let mut seen = 1;
    while seen < 20 {
        for event in tail.next().await.unwrap() {
            seen += 1;
            assert_eq!(event.sequence, seen);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_hub_whose_lease_was_taken_over_can_write_no_more() {
    let (old, new, _) = two().await;
    let run = start(&*old).await;
    let Acquired::Granted(first) = old.acquire(run, "old".into(), Duration::ZERO).await.unwrap() else {
        panic!("held")
    };
    let under = |generation, after| Change { generation: Some(generation), ..at(run, after, one(json!({}))) };
    old.append(under(first.generation, 1)).await.unwrap();
    let Acquired::Granted(second) = new.acquire(run, "new".into(), MINUTE).await.unwrap() else {
        panic!("held")
    };
    assert_eq!(second.generation, first.generation + 1);
    // At every place, also while the new one writes.
    let error = old.append(under(first.generation, 2)).await.unwrap_err();
    assert_eq!(error.code(), Code::StorageStaleGeneration);
    new.append(under(second.generation, 2)).await.unwrap();
    for after in [2, 3] {
        let error = old.append(under(first.generation, after)).await.unwrap_err();
        assert!(
            matches!(error, StorageError::StaleGeneration { held, current }
                if held == first.generation && current == second.generation),
            "{error}"
        );
    }
    assert!(matches!(
        old.renew(run, first.generation, MINUTE).await,
        Err(StorageError::StaleGeneration { .. })
    ));
    assert!(matches!(old.acquire(run, "old".into(), MINUTE).await.unwrap(), Acquired::Held { .. }));
    assert_eq!(verify(&*old, run).await.unwrap().unwrap().events, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_of_many_hubs_that_want_a_lease_at_once_one_gets_it() {
    let (first, second, _) = two().await;
    let run = start(&*first).await;
    for round in 0..10 {
        let contenders = (0..8).map(|n| {
            let store = if n % 2 == 0 { first.clone() } else { second.clone() };
            tokio::spawn(async move { store.acquire(run, safe_owner(round, n), MINUTE).await.unwrap() })
        });
        let mut granted = Vec::new();
        for contender in contenders.collect::<Vec<_>>() {
            if let Acquired::Granted(lease) = contender.await.unwrap() {
                granted.push(lease);
            }
        }
        assert_eq!(granted.len(), 1, "{granted:?}");
        assert_eq!(granted[0].generation, round + 1);
        first.release(run, granted[0].generation).await.unwrap();
    }
}

fn safe_owner(round: u64, n: u64) -> runyard_redact::Safe<String> {
    // An id of the program's own is safe as it stands.
    RunId::from_parts(round, &[n as u8; 10]).into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_the_clock_of_leases_and_timers_is_the_databases() {
    let (first, second, url) = two().await;
    let run = start(&*first).await;
    let clock = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let read = || Postgres::shared().unwrap().sql(&url, clock).unwrap().parse::<i64>().unwrap();
    let before = read();
    let now = second.now().await.unwrap().unix_ms();
    let Acquired::Granted(lease) = first.acquire(run, "one".into(), MINUTE).await.unwrap() else {
        panic!("held")
    };
    let after = read();
    assert!(before <= now && now <= after);
    assert!((before + 60_000..=after + 60_000).contains(&lease.expires.unix_ms()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_clock_that_jumps_ends_a_lease_early_and_never_fences_less() {
    let (old, new, url) = two().await;
    let run = start(&*old).await;
    let set = |granted_in: i64, expires_in: i64| {
        let sql = format!(
            "UPDATE runyard.runs SET lease_granted = now.ms + {granted_in}, lease_expires = now.ms + {expires_in}
             FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) AS now"
        );
        Postgres::shared().unwrap().sql(&url, &sql).unwrap();
    };
    let take = async |store: &PostgresStore, owner: &'static str| match store
        .acquire(run, owner.into(), MINUTE)
        .await
        .unwrap()
    {
        Acquired::Granted(lease) => Some(lease.generation),
        Acquired::Held { .. } => None,
    };
    let under = |generation, after| Change { generation: Some(generation), ..at(run, after, one(json!({}))) };
    const HOUR: i64 = 3_600_000;
    assert_eq!(take(&old, "old").await, Some(1));
    assert_eq!(take(&new, "new").await, None);
    // The clock went back behind the granting: what is left of the term is unknown, so the lease is over.
    set(HOUR, 2 * HOUR);
    assert_eq!(take(&new, "new").await, Some(2));
    // It went ahead past the end.
    set(-2 * HOUR, -HOUR);
    assert_eq!(take(&old, "third").await, Some(3));
    assert_eq!(take(&new, "new").await, None);
    for held in [1, 2] {
        let error = old.append(under(held, 1)).await.unwrap_err();
        assert!(matches!(error, StorageError::StaleGeneration { current: 3, .. }), "{error}");
        let error = new.renew(run, held, MINUTE).await.unwrap_err();
        assert!(matches!(error, StorageError::StaleGeneration { current: 3, .. }), "{error}");
    }
    new.append(under(3, 1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_what_two_hubs_write_under_one_id_at_once_is_written_once_and_refused_once() {
    let (first, second, _) = two().await;
    let far = runyard_domain::Timestamp::from_unix_ms(4_000_000_000_000);
    for round in 0..20 {
        let (left, right) = (start(&*first).await, start(&*second).await);
        let (approval, key) = (fresh_approval(), KeyDigest::of(&["race", &round.to_string()]));
        let writes = |n: u64| {
            let request = safe(json!({"n": n}));
            // In one round the approval is contended, in the next the key.
            match round % 2 {
                0 => Writes {
                    approvals: vec![ApprovalWrite::Open { id: approval, expires: far, request }],
                    ..one(json!({}))
                },
                _ => Writes {
                    result: Some(KeyedResult {
                        key,
                        fingerprint: [n as u8; 32],
                        result: request,
                        expires: far,
                    }),
                    ..one(json!({}))
                },
            }
        };
        let (left, right) =
            tokio::join!(first.append(at(left, 1, writes(1))), second.append(at(right, 1, writes(2))));
        let refused = match (left, right) {
            (Ok(_), Err(error)) | (Err(error), Ok(_)) => error,
            other => panic!("{other:?}"),
        };
        assert!(matches!(refused, StorageError::AlreadyExists(..)), "{refused}");
        assert_eq!(first.kept(key).await.unwrap().is_some(), round % 2 == 1);
    }
    // The same run made by both at once.
    for _ in 0..10 {
        let run = runyard_store::conformance::fresh_run();
        let (left, right) = tokio::join!(
            append(&*first, run, 0, json!({"by": "first"})),
            append(&*second, run, 0, json!({"by": "second"}))
        );
        let refused = match (left, right) {
            (Ok(_), Err(error)) | (Err(error), Ok(_)) => error,
            other => panic!("{other:?}"),
        };
        assert!(matches!(refused, StorageError::VersionConflict { expected: 0, actual: 1 }), "{refused}");
        assert_eq!(verify(&*first, run).await.unwrap().unwrap().events, 1);
    }
}
