//! Threads on a real server: connections that are lost in a commit, several processes, older databases.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail like tests")]

use std::sync::Arc;
use std::time::Duration;

use runyard_store::conformance::{
    append, assert_holds_none, began, commit_of, fresh_agent_run, granted, message, plant_thread_secrets,
    record, set, start, start_thread, whole,
};
use runyard_store::{
    ClaimAfter, Claimed, Committed, JournalWrite, KeyDigest, RunStore, Scope, StorageError, ThreadCommit,
    ThreadRunStore, ThreadStore, ThreadWrites, commit_until_known, verify,
};
use runyard_store_postgres::{ConnectOptions, PostgresStore};
use runyard_testkit_postgres::{Cut, CuttingProxy, Postgres};
use serde_json::json;
use tokio_postgres::{Client, NoTls};

const MINUTE: Duration = Duration::from_secs(60);

/// A store behind a proxy, and the way past it.
async fn bench(options: ConnectOptions) -> (Arc<PostgresStore>, CuttingProxy, String) {
    let postgres = Postgres::shared().unwrap();
    let proxy = CuttingProxy::start(postgres.address()).unwrap();
    let direct = postgres.database().unwrap();
    let store = PostgresStore::connect_with(&proxy.through(&direct), options).await.unwrap();
    (Arc::new(store), proxy, direct)
}

async fn raw(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("SET search_path = runyard").await.unwrap();
    client
}

/// Commits of every kind, each to a thread of its own, with the version that it makes.
async fn one_of_each(store: &PostgresStore) -> Vec<(ThreadCommit, u64)> {
    let (first, run) = (start_thread(store).await, fresh_agent_run());
    let claim = granted(store.claim(&first, &run, "one".into(), MINUTE).await.unwrap());
    let begins = commit_of(&first, &run, &claim, 0, record("running"));
    let (thread, run, claim) = began(store).await;
    let says = ThreadWrites { values: vec![set(Scope::Thread, "k", json!(1))], ..message(json!("said")) };
    let says = commit_of(&thread, &run, &claim, 0, says);
    let (thread, run, claim) = began(store).await;
    let quiet = ThreadWrites { values: vec![set(Scope::Run, "k", json!(1))], ..ThreadWrites::default() };
    let quiet = commit_of(&thread, &run, &claim, 0, quiet);
    let (thread, run, claim) = began(store).await;
    let ends = ThreadWrites { messages: message(json!("last")).messages, ..record("done") };
    let mut ends = commit_of(&thread, &run, &claim, 0, ends);
    ends.claim = ClaimAfter::Released;
    vec![(begins, 0), (says, 1), (quiet, 0), (ends, 1)]
}

async fn check_cut(cut: Cut, options: ConnectOptions, is_committed: bool) {
    let (store, proxy, direct) = bench(options).await;
    let other = PostgresStore::connect(&direct).await.unwrap();
    for (commit, version) in one_of_each(&store).await {
        let before = whole(&other, &commit.thread, &commit.run).await;
        let cuts = proxy.cuts();
        proxy.cut_next_commit(cut);
        match store.commit(commit.clone()).await {
            Err(StorageError::CommitUnknown(told)) => assert_eq!(told, commit.append.to_string()),
            other => panic!("{cut:?}: {other:?}"),
        }
        assert_eq!(proxy.cuts(), cuts + 1, "{cut:?}");
        let after = whole(&other, &commit.thread, &commit.run).await;
        assert_eq!(after != before, is_committed, "{cut:?}");
        for _ in 0..2 {
            let made = commit_until_known(&*store, &commit).await.unwrap();
            assert_eq!(made, Committed { version }, "{cut:?}");
        }
        let made = whole(&other, &commit.thread, &commit.run).await;
        assert_eq!(made.messages.len() as u64, version);
        if is_committed {
            assert_eq!(made, after, "{cut:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_a_commit_that_never_reached_the_server_is_unknown_and_made_once_when_repeated() {
    check_cut(Cut::BeforeCommit, ConnectOptions::default(), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_a_commit_whose_answer_is_lost_is_unknown_and_not_made_twice_when_repeated() {
    check_cut(Cut::AfterCommitBeforeAnswer, ConnectOptions::default(), true).await;
    let options = ConnectOptions::default().commit_timeout(Duration::from_millis(300));
    check_cut(Cut::SilenceAfterCommit, options, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_every_commit_of_a_group_is_unknown_and_each_is_made_once_when_repeated() {
    let (store, proxy, _) = bench(ConnectOptions::default()).await;
    let mut threads = Vec::new();
    for _ in 0..24 {
        threads.push(began(&*store).await);
    }
    for (cut, version) in [(Cut::BeforeCommit, 0), (Cut::AfterCommitBeforeAnswer, 1)] {
        proxy.cut_every_commit(cut);
        let commits: Vec<ThreadCommit> = threads
            .iter()
            .map(|(thread, run, claim)| commit_of(thread, run, claim, version, message(json!(version))))
            .collect();
        let sent = commits.iter().map(|commit| {
            let (store, commit) = (store.clone(), commit.clone());
            tokio::spawn(async move { store.commit(commit).await })
        });
        for sent in sent.collect::<Vec<_>>() {
            let answer = sent.await.unwrap();
            assert!(matches!(answer, Err(StorageError::CommitUnknown(..))), "{answer:?}");
        }
        proxy.cut_no_commit();
        for commit in &commits {
            let made = commit_until_known(&*store, commit).await.unwrap();
            assert_eq!(made, Committed { version: version + 1 });
        }
    }
    for (thread, run, _) in threads {
        assert_eq!(whole(&*store, &thread, &run).await.messages.len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_claim_holds_across_processes_and_is_taken_over_when_it_is_over() {
    let url = Postgres::shared().unwrap().database().unwrap();
    let (one, two) =
        (PostgresStore::connect(&url).await.unwrap(), PostgresStore::connect(&url).await.unwrap());
    let (thread, run) = (start_thread(&one).await, fresh_agent_run());
    let first = granted(one.claim(&thread, &run, "one".into(), MINUTE).await.unwrap());
    one.commit(commit_of(&thread, &run, &first, 0, record("running"))).await.unwrap();
    let held = two.claim(&thread, &run, "two".into(), MINUTE).await.unwrap();
    let expires = first.expires;
    assert_eq!(held, Claimed::Held { run: run.clone(), owner: "one".to_owned(), expires });
    // The first falls behind: its time is over by the database's clock, which nobody's own clock matters to.
    raw(&url).await.batch_execute("UPDATE threads SET held_until = held_since").await.unwrap();
    let second = granted(two.claim(&thread, &run, "two".into(), MINUTE).await.unwrap());
    assert_eq!((second.generation, second.unfinished.as_ref()), (first.generation + 1, Some(&run)));
    let late = one.commit(commit_of(&thread, &run, &first, 0, message(json!("late")))).await;
    assert!(matches!(late, Err(StorageError::StaleGeneration { .. })), "{late:?}");
    two.commit(commit_of(&thread, &run, &second, 0, message(json!("in time")))).await.unwrap();
    assert_eq!(one.messages(&thread, 0, 9).await.unwrap().len(), 1);
    assert_eq!(one.unfinished_run(&thread).await.unwrap().unwrap().id, run);
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_of_two_processes_exactly_one_gets_a_thread() {
    let url = Postgres::shared().unwrap().database().unwrap();
    let one = Arc::new(PostgresStore::connect(&url).await.unwrap());
    let two = Arc::new(PostgresStore::connect(&url).await.unwrap());
    for _ in 0..50 {
        let thread = start_thread(&*one).await;
        let claimant = |store: &Arc<PostgresStore>, owner: &'static str| {
            let (store, thread, run) = (store.clone(), thread.clone(), fresh_agent_run());
            tokio::spawn(async move { store.claim(&thread, &run, owner.into(), MINUTE).await.unwrap() })
        };
        let (first, second) = (claimant(&one, "one"), claimant(&two, "two"));
        let claims = [first.await.unwrap(), second.await.unwrap()];
        assert_eq!(claims.iter().filter(|claim| matches!(claim, Claimed::Granted(_))).count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_a_database_without_threads_is_brought_forward_and_keeps_its_runs() {
    let url = Postgres::shared().unwrap().database().unwrap();
    let store = PostgresStore::connect(&url).await.unwrap();
    let run = start(&store).await;
    append(&store, run, 1, json!({"before": true})).await.unwrap();
    drop(store);
    let older = "DROP TABLE threads, thread_messages, thread_commits, agent_runs, thread_values, tool_calls;
        UPDATE meta SET version = 1";
    raw(&url).await.batch_execute(older).await.unwrap();
    let refused = PostgresStore::connect_to_read(&url).await.unwrap_err();
    assert!(matches!(refused, StorageError::Validation(..)), "{refused}");
    let store = PostgresStore::connect(&url).await.unwrap();
    assert_eq!(verify(&store, run).await.unwrap().unwrap().events, 2);
    append(&store, run, 2, json!({"after": true})).await.unwrap();
    let (thread, ..) = began(&store).await;
    // Whoever only reads sees everything and writes nothing.
    let reader = PostgresStore::connect_to_read(&url).await.unwrap();
    let row = reader.thread(&thread).await.unwrap().unwrap();
    assert_eq!(row, store.thread(&thread).await.unwrap().unwrap());
    let holder = row.holder.unwrap();
    for error in [
        reader.create_thread(&thread, runyard_redact::Safe::NULL).await.unwrap_err(),
        reader.release_claim(&thread, row.generation).await.unwrap_err(),
        reader.claim(&thread, &holder.run, "the suite".into(), MINUTE).await.unwrap_err(),
        reader.delete_thread(&thread).await.unwrap_err(),
    ] {
        assert!(matches!(error, StorageError::ReadOnly { .. }), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_of_a_deleted_thread_no_row_is_left() {
    let url = Postgres::shared().unwrap().database().unwrap();
    let store = PostgresStore::connect(&url).await.unwrap();
    let (thread, run, claim) = began(&store).await;
    let writes = ThreadWrites {
        values: vec![set(Scope::Thread, "t", json!(1)), set(Scope::Run, "r", json!(1))],
        journal: vec![JournalWrite::Intent {
            call: "call".into(),
            key: KeyDigest::of(&["call"]),
            payload: runyard_redact::Safe::NULL,
        }],
        ..message(json!("gone"))
    };
    store.commit(commit_of(&thread, &run, &claim, 0, writes)).await.unwrap();
    store.release_claim(&thread, claim.generation).await.unwrap();
    store.delete_thread(&thread).await.unwrap();
    let raw = raw(&url).await;
    for table in ["threads", "thread_messages", "thread_commits", "agent_runs", "thread_values", "tool_calls"]
    {
        let left: i64 = raw.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0);
        assert_eq!(left, 0, "{table}");
    }
}

// clause: B11
#[tokio::test(flavor = "multi_thread")]
async fn no_planted_secret_of_a_thread_is_in_any_column() {
    let url = Postgres::shared().unwrap().database().unwrap();
    let store = Arc::new(PostgresStore::connect(&url).await.unwrap());
    let needles = plant_thread_secrets(store).await;
    let raw = raw(&url).await;
    let columns =
        "SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns
        WHERE table_schema = 'runyard' AND data_type IN ('text', 'bytea')";
    let mut looked_at = 0;
    for column in raw.query(columns, &[]).await.unwrap() {
        let (table, name, kind): (String, String, String) = (column.get(0), column.get(1), column.get(2));
        let bytes = if kind == "text" { format!("convert_to({name}, 'UTF8')") } else { name.clone() };
        let sql = format!("SELECT string_agg({bytes}, '\\x0a'::bytea) FROM {table}");
        let content: Option<Vec<u8>> = raw.query_one(&sql, &[]).await.unwrap().get(0);
        looked_at += usize::from(content.is_some());
        assert_holds_none(&format!("{table}.{name}"), &content.unwrap_or_default(), &needles);
    }
    assert!(looked_at > 10, "{looked_at}");
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_a_server_that_went_away_is_an_io_error_and_the_commit_is_made_when_it_is_back() {
    let mut postgres = Postgres::start().unwrap();
    let options = ConnectOptions::default().outage_patience(Duration::from_millis(200));
    let store = PostgresStore::connect_with(&postgres.database().unwrap(), options).await.unwrap();
    let (thread, run, claim) = began(&store).await;
    postgres.stop_immediately().unwrap();
    let commit = commit_of(&thread, &run, &claim, 0, message(json!("x")));
    let error = store.commit(commit.clone()).await.unwrap_err();
    assert!(matches!(error, StorageError::Io(..)), "{error}");
    let error = store.messages(&thread, 0, 9).await.unwrap_err();
    assert!(matches!(error, StorageError::Io(..)), "{error}");
    postgres.start_again().unwrap();
    assert_eq!(store.commit(commit).await.unwrap(), Committed { version: 1 });
}
