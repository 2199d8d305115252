//! A connection that is lost in a commit: the outcome is unknown, and repeating the change makes it exactly once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail like tests")]

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use runyard_domain::{AppendId, RunId};
use runyard_store::conformance::{append, at, event, fresh_append, fresh_run, one, safe, start};
use runyard_store::{
    Acquired, Appended, Blobs, Change, EventLog, Leases, Place, Projection, Runs, StorageError, Store,
    Writes, append_until_known, verify,
};
use runyard_store_postgres::{ConnectOptions, PostgresStore};
use runyard_testkit_postgres::{Cut, CuttingProxy, Postgres};
use serde_json::json;
use tokio_postgres::{Client, NoTls};

/// `Q`, a length of four bytes, `COMMIT`, a zero.
const COMMIT_MESSAGE_BYTES: usize = 12;

/// A store behind a proxy, and the way past it.
struct Bench {
    store: Arc<PostgresStore>,
    proxy: CuttingProxy,
    direct: String,
}

impl Bench {
    async fn start() -> Self {
        Self::start_with(ConnectOptions::default()).await
    }

    async fn start_with(options: ConnectOptions) -> Self {
        let postgres = Postgres::shared().unwrap();
        let proxy = CuttingProxy::start(postgres.address()).unwrap();
        let direct = postgres.database().unwrap();
        let store = PostgresStore::connect_with(&proxy.through(&direct), options).await.unwrap();
        Bench { store: Arc::new(store), proxy, direct }
    }

    /// A connection that nobody cuts.
    async fn raw(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.direct, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("SET search_path = runyard").await.unwrap();
        client
    }
}

/// A change that can be made again, exactly as it was.
#[derive(Clone)]
struct Repeatable {
    run: RunId,
    append: AppendId,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    At(u64, Writes),
    Head(Writes),
}

impl Repeatable {
    fn change(&self) -> Change {
        let place = match self.kind.clone() {
            Kind::At(after, writes) => Place::At(after, writes),
            Kind::Head(writes) => Place::Head(Box::new(move |_| Ok(writes.clone()))),
        };
        Change { run: self.run, append: self.append, generation: None, place }
    }
}

fn two_events() -> Writes {
    let projection = Some(Projection { status: "running", state: safe(json!({"count": 0})) });
    Writes { events: vec![event(json!({"a": 1})), event(json!({"a": 2}))], projection, ..Writes::default() }
}

/// A first change, one at a place, and one at the head, each of two events; with the place where it must end up.
async fn one_of_each(store: &dyn Store) -> Vec<(Repeatable, Appended)> {
    let (first, second, third) = (fresh_run(), start(store).await, start(store).await);
    let change = |run, kind| Repeatable { run, append: fresh_append(), kind };
    vec![
        (change(first, Kind::At(0, two_events())), Appended { first: 1, last: 2 }),
        (change(second, Kind::At(1, two_events())), Appended { first: 2, last: 3 }),
        (change(third, Kind::Head(two_events())), Appended { first: 2, last: 3 }),
    ]
}

async fn check_made_once(store: &PostgresStore, change: &Repeatable, expected: Appended) {
    let events = store.read(change.run, expected.first - 1, 100).await.unwrap();
    let payloads: Vec<_> = events.iter().map(|event| event.envelope().unwrap().payload).collect();
    assert_eq!(payloads, [json!({"a": 1}), json!({"a": 2})]);
    assert_eq!(store.head(change.run).await.unwrap(), Some(expected.last));
    assert_eq!(verify(store, change.run).await.unwrap().unwrap().events, expected.last);
}

#[track_caller]
fn assert_unknown(answer: Result<Appended, StorageError>, append: AppendId) {
    match answer {
        Err(StorageError::CommitUnknown(told)) => assert_eq!(told, append.to_string()),
        other => panic!("{other:?}"),
    }
}

async fn check_cut(bench: &Bench, cut: Cut, committed: Option<bool>) {
    for (change, expected) in one_of_each(&*bench.store).await {
        let cuts = bench.proxy.cuts();
        bench.proxy.cut_next_commit(cut);
        assert_unknown(bench.store.append(change.change()).await, change.append);
        assert_eq!(bench.proxy.cuts(), cuts + 1, "{cut:?}");
        if let Some(committed) = committed {
            let there = bench.store.head(change.run).await.unwrap() == Some(expected.last);
            assert_eq!(there, committed, "{cut:?}");
        }
        // The repetition says what the first would have said, however often it comes.
        for _ in 0..2 {
            assert_eq!(bench.store.append(change.change()).await.unwrap(), expected, "{cut:?}");
        }
        check_made_once(&bench.store, &change, expected).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_a_commit_that_never_reached_the_server_is_unknown_and_made_once_when_repeated() {
    let bench = Bench::start().await;
    check_cut(&bench, Cut::BeforeCommit, Some(false)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_a_commit_whose_answer_is_lost_is_unknown_and_not_made_twice_when_repeated() {
    let bench = Bench::start().await;
    check_cut(&bench, Cut::AfterCommitBeforeAnswer, Some(true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_a_connection_cut_at_any_byte_of_the_commit_loses_and_doubles_nothing() {
    let bench = Bench::start().await;
    for bytes in 0..=COMMIT_MESSAGE_BYTES {
        // All of it: the server may have seen it before it saw the end.
        let committed = (bytes < COMMIT_MESSAGE_BYTES).then_some(false);
        check_cut(&bench, Cut::AtByte(bytes), committed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_a_server_that_falls_silent_in_a_commit_leaves_it_unknown() {
    let options = ConnectOptions::default().commit_timeout(Duration::from_millis(300));
    let bench = Bench::start_with(options).await;
    check_cut(&bench, Cut::SilenceAfterCommit, Some(true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_every_change_of_a_group_is_unknown_and_each_is_made_once_when_repeated() {
    const RUNS: usize = 24;
    let bench = Bench::start().await;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(start(&*bench.store).await);
    }
    for cut in [Cut::BeforeCommit, Cut::AfterCommitBeforeAnswer] {
        bench.proxy.cut_every_commit(cut);
        let change = |run: &RunId, after| Repeatable {
            run: *run,
            append: fresh_append(),
            kind: Kind::At(after, one(json!({"cut": format!("{cut:?}")}))),
        };
        let mut changes = Vec::new();
        for run in &runs {
            changes.push(change(run, bench.store.head(*run).await.unwrap().unwrap()));
        }
        let sent = changes.iter().map(|change| {
            let (store, change) = (bench.store.clone(), change.clone());
            tokio::spawn(async move { (change.append, store.append(change.change()).await) })
        });
        for sent in sent.collect::<Vec<_>>() {
            let (append, answer) = sent.await.unwrap();
            assert_unknown(answer, append);
        }
        bench.proxy.cut_no_commit();
        for change in &changes {
            let Kind::At(after, _) = &change.kind else { panic!("at a place") };
            let expected = Appended { first: after + 1, last: after + 1 };
            let made = append_until_known(&*bench.store, || change.change()).await.unwrap();
            assert_eq!(made, expected);
        }
    }
    for run in runs {
        assert_eq!(verify(&*bench.store, run).await.unwrap().unwrap().events, 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_what_was_refused_because_of_an_unknown_change_is_judged_anew() {
    for (cut, committed) in [(Cut::BeforeCommit, false), (Cut::AfterCommitBeforeAnswer, true)] {
        let bench = Bench::start().await;
        let run = start(&*bench.store).await;
        // Somebody holds the run, so the lane stands still at the first change while the others queue up behind it.
        let raw = bench.raw().await;
        raw.batch_execute("BEGIN; SELECT 1 FROM runs FOR UPDATE").await.unwrap();
        bench.proxy.cut_commit_after(1, cut);
        let mut holding = Box::pin(bench.store.append(at(run, 1, one(json!("holding")))));
        queue(&mut holding).await;
        wait_until_blocked(&raw).await;
        let mut unknown = Box::pin(bench.store.append(at(run, 2, one(json!("unknown")))));
        queue(&mut unknown).await;
        let mut leaning = Box::pin(bench.store.append(at(run, 2, one(json!("leaning")))));
        queue(&mut leaning).await;
        raw.batch_execute("COMMIT").await.unwrap();
        assert_eq!(holding.await.unwrap(), Appended { first: 2, last: 2 });
        assert!(matches!(unknown.await, Err(StorageError::CommitUnknown(..))));
        match (leaning.await, committed) {
            // What stood in its way was never there.
            (Ok(appended), false) => assert_eq!(appended, Appended { first: 3, last: 3 }),
            (Err(StorageError::VersionConflict { expected: 2, actual: 3 }), true) => {}
            (other, _) => panic!("{other:?}"),
        }
        assert_eq!(verify(&*bench.store, run).await.unwrap().unwrap().events, 3);
    }
}

/// Begins it: from now on it has its place in the queue.
async fn queue(change: &mut (impl Future<Output = Result<Appended, StorageError>> + Unpin)) {
    let begun =
        std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *change).poll(context).is_pending()));
    assert!(begun.await);
}

async fn wait_until_blocked(raw: &Client) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while raw.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_the_repetition_waits_for_a_transaction_that_may_still_commit() {
    let bench = Bench::start().await;
    let run = start(&*bench.store).await;
    let change = Repeatable { run, append: fresh_append(), kind: Kind::At(1, one(json!({"n": 2}))) };
    // The first attempt, as a server would still be making it after its client has given up: written, not committed.
    let raw = bench.raw().await;
    raw.batch_execute("BEGIN; SELECT 1 FROM runs FOR UPDATE").await.unwrap();
    let repeated = tokio::spawn({
        let (store, change) = (bench.store.clone(), change.clone());
        async move { store.append(change.change()).await }
    });
    wait_until_blocked(&raw).await;
    // It commits now, with the same append id.
    let head = bench.store.run(run).await.unwrap().unwrap().head.unwrap();
    let Kind::At(_, writes) = &change.kind else { panic!("at a place") };
    let body = format!(
        "{{\"sequence\":2,\"prevHash\":\"{head}\",\"id\":\"{}\",\"type\":\"run.message.delta\",\"runId\":\"{run}\",\
         \"timestamp\":\"{}\",\"v\":1,\"payload\":{{\"n\":2}}}}",
        writes.events[0].id, writes.events[0].at
    );
    let hash = runyard_store::Hash::of(body.as_bytes());
    let (run_id, append_id) =
        (run.to_string().replace("run_", ""), change.append.to_string().replace("app_", ""));
    let sql = format!(
        "INSERT INTO events (run_id, sequence, feed, append_id, body)
         VALUES ('{run_id}', 2, pg_current_xact_id()::text::bigint, '{append_id}', convert_to('{body}', 'UTF8'));
         UPDATE runs SET sequence = 2, head = '\\x{hash}', feed = pg_current_xact_id()::text::bigint
         WHERE run_id = '{run_id}'; COMMIT"
    );
    raw.batch_execute(&sql).await.unwrap();
    assert_eq!(repeated.await.unwrap().unwrap(), Appended { first: 2, last: 2 });
    assert_eq!(verify(&*bench.store, run).await.unwrap().unwrap().events, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_connections_cut_at_random_lose_and_double_nothing() {
    const WRITERS: usize = 8;
    let cuts = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => 10,
        Ok("soak") => 1_000,
        _ => 60,
    };
    let bench = Bench::start().await;
    let mut writers = Vec::new();
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    for _ in 0..WRITERS {
        let (store, done) = (bench.store.clone(), done.clone());
        let run = start(&*bench.store).await;
        writers.push(tokio::spawn(async move {
            let mut last = 1;
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                let change = Repeatable {
                    run,
                    append: fresh_append(),
                    kind: Kind::At(last, one(json!({"n": last + 1}))),
                };
                // When every attempt's connection is cut, the caller is told, and repeats it when it likes.
                let made = loop {
                    match append_until_known(&*store, || change.change()).await {
                        Ok(made) => break made,
                        Err(StorageError::Io(..) | StorageError::CommitUnknown(..)) => {}
                        Err(error) => panic!("{error}"),
                    }
                };
                assert_eq!(made, Appended { first: last + 1, last: last + 1 });
                last += 1;
            }
            (run, last)
        }));
    }
    for _ in 0..cuts {
        let commits = bench.proxy.commits();
        // Between two cuts something gets through.
        while bench.proxy.commits() < commits + 3 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        bench.proxy.cut_now();
    }
    done.store(true, std::sync::atomic::Ordering::SeqCst);
    for writer in writers {
        let (run, last) = writer.await.unwrap();
        let events = bench.store.read(run, 1, 5_000).await.unwrap();
        for (event, n) in events.iter().zip(2..) {
            assert_eq!(event.envelope().unwrap().payload, json!({"n": n}));
        }
        assert_eq!(verify(&*bench.store, run).await.unwrap().unwrap().events, last);
    }
    assert!(append(&*bench.store, fresh_run(), 0, json!({})).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_a_connection_that_fell_silent_is_not_used_again() {
    let options = ConnectOptions::default()
        .statement_timeout(Duration::from_secs(1))
        .lock_timeout(Duration::from_millis(500))
        .outage_patience(Duration::from_secs(60));
    let bench = Bench::start_with(options).await;
    let run = start(&*bench.store).await;
    let bound = Duration::from_secs(20);
    let silence = || bench.proxy.cut_next_commit(Cut::SilenceAfterCommit);
    // Each is made again, by a connection that answers.
    silence();
    let acquired = tokio::time::timeout(bound, bench.store.acquire(run, "one".into(), bound)).await;
    assert!(matches!(acquired.unwrap().unwrap(), Acquired::Granted(lease) if lease.generation == 2));
    silence();
    let content: runyard_redact::Safe<String> = run.into();
    let put = tokio::time::timeout(bound, bench.store.put(content.into())).await;
    let blob = put.unwrap().unwrap();
    silence();
    tokio::time::timeout(bound, bench.store.collect(Duration::ZERO)).await.unwrap().unwrap();
    let error = bench.store.get(blob).await.unwrap_err();
    assert!(matches!(error, StorageError::NotFound(..)), "{error:?}");
}
