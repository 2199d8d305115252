//! Threads on a real file: killed writers, older databases, shared commits, and what is in the files.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use runyard_domain::AppendId;
use runyard_redact::Safe;
use runyard_store::conformance::{
    append, assert_holds_none, began, commit_of, granted, message, plant_thread_secrets, record, start,
    start_thread,
};
use runyard_store::{
    AgentRunId, ClaimAfter, Committed, JournalWrite, KeyDigest, RunStore, Scope, StorageError, ThreadCommit,
    ThreadId, ThreadRunStore, ThreadStore, ThreadWrites, ValueWrite, commit_until_known, verify,
};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::json;
use support::{Dice, Player, open, place, play, proof, runtime, say};

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

#[test]
fn child() {
    play(&[("talk", talk)]);
}

fn thread(name: &'static str) -> ThreadId {
    ThreadId::new(name.into()).unwrap()
}

fn run(name: &'static str) -> AgentRunId {
    AgentRunId::new(name.into()).unwrap()
}

/// The same commit every time that it is made: message, value, journal and record all say the version.
fn step(name: &'static str, generation: u64, version: u64) -> ThreadCommit {
    let mut unique = [NAMES.iter().position(|other| *other == name).unwrap() as u8; 10];
    unique[..8].copy_from_slice(&version.to_be_bytes());
    let marker: Safe<serde_json::Value> = version.into();
    let call = runyard_store::conformance::redactor_of_secrets()
        .text(runyard_redact::Kind::Text, &format!("call {version}"));
    let mut writes = record("running");
    writes.messages = vec![marker.clone()];
    writes.values = vec![ValueWrite::Set { scope: Scope::Thread, key: "at".into(), value: marker.clone() }];
    writes.journal = vec![JournalWrite::Intent {
        call,
        key: KeyDigest::of(&[name, &version.to_string()]),
        payload: marker,
    }];
    ThreadCommit {
        thread: thread(name),
        run: run(name),
        append: AppendId::from_parts(1, &unique),
        generation,
        expected: version,
        writes,
        claim: ClaimAfter::Kept,
    }
}

/// Goes on with every thread, saying before each commit what is tried and after it what was acknowledged.
fn talk(database: &Path) {
    let store = open(database);
    runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for name in NAMES {
            let store = Arc::clone(&store);
            tasks.spawn(async move {
                let id = thread(name);
                if store.thread(&id).await.unwrap().is_none() {
                    store.create_thread(&id, Safe::NULL).await.unwrap();
                }
                let term = Duration::from_secs(60);
                // A restarted owner does not wait for itself.
                let claim = granted(store.claim(&id, &run(name), "child".into(), term).await.unwrap());
                let mut version = claim.version;
                loop {
                    say(&format!("try {name} {version} {}", claim.generation));
                    version = store.commit(step(name, claim.generation, version)).await.unwrap().version;
                    say(&format!("made {name} {version} {}", claim.generation));
                }
            });
        }
        // None of them ends by itself.
        drop(tasks.join_next().await);
    });
}

/// What the child said last of each thread: the version and the generation.
type Said = BTreeMap<&'static str, (u64, u64)>;

fn note(tried: &mut Said, made: &mut Said, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let [what, name, version, generation] = words[..] else { return };
    let (Ok(version), Ok(generation)) = (version.parse(), generation.parse()) else { return };
    let name = NAMES.into_iter().find(|known| *known == name).unwrap();
    let said = if what == "try" { tried } else { made };
    said.insert(name, (version, generation));
}

/// Message, value, journal and record of the thread all stand at the same version.
async fn check_whole(store: &SqliteStore, name: &'static str, version: u64) {
    let id = thread(name);
    let mut seen = 0;
    while seen < version {
        for message in store.messages(&id, seen, 5_000).await.unwrap() {
            assert_eq!((message.position, message.payload().unwrap()), (seen + 1, json!(seen)));
            seen += 1;
        }
    }
    assert_eq!(store.messages(&id, version, 1).await.unwrap(), []);
    let values = store.thread_values(&id, None, 9).await.unwrap();
    assert_eq!(values[0].value, (version - 1).to_string().into_bytes());
    let (mut calls, mut after) = (0, 0);
    loop {
        let page = store.tool_calls(&run(name), after, 5_000).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.place;
        calls += page.len() as u64;
    }
    assert_eq!(calls, version);
    assert_eq!(store.unfinished_run(&id).await.unwrap().unwrap().id, run(name));
}

#[test]
fn d11_a_writer_killed_at_any_point_has_lost_no_commit_and_what_was_under_way_is_made_once() {
    let (_folder, database) = place();
    let runtime = runtime();
    let mut dice = Dice::new(u64::from(std::process::id()) * 0x9E37_79B9);
    let (mut landed, mut lost) = (0, 0);
    for _ in 0..proof(5, 30, 300) {
        let mut child = Player::start("talk", &database);
        let (mut tried, mut made) = (Said::new(), Said::new());
        note(&mut tried, &mut made, &child.hear().unwrap());
        std::thread::sleep(Duration::from_micros(dice.roll(30_000)));
        child.kill().iter().for_each(|line| note(&mut tried, &mut made, line));
        let store = open(&database);
        runtime.block_on(async {
            for (name, (version, generation)) in &tried {
                let there = store.thread(&thread(name)).await.unwrap().unwrap().version;
                match there {
                    there if there == version + 1 => landed += 1,
                    there if there == *version => lost += 1,
                    there => panic!("{version} was tried, and the thread is at {there}"),
                }
                if let Some((acknowledged, _)) = made.get(name) {
                    assert!(there >= *acknowledged, "{acknowledged} was acknowledged, and it is at {there}");
                }
                // The caller does not know, and repeats it.
                let commit = step(name, *generation, *version);
                for _ in 0..2 {
                    let made = commit_until_known(&*store, &commit).await.unwrap();
                    assert_eq!(made, Committed { version: version + 1 });
                }
                check_whole(&store, name, version + 1).await;
            }
            assert_eq!(store.check().await.unwrap(), []);
        });
    }
    println!("of the commits under way, {landed} had landed and {lost} had not");
}

#[test]
fn d11_a_database_without_threads_is_brought_forward_and_keeps_its_runs() {
    let (_folder, database) = place();
    let runtime = runtime();
    let store = open(&database);
    let run = runtime.block_on(async {
        let run = start(&*store).await;
        append(&*store, run, 1, json!({"before": true})).await.unwrap();
        run
    });
    drop(store);
    // As the first schema left it.
    let raw = rusqlite::Connection::open(&database).unwrap();
    let later = "DROP TABLE threads; DROP TABLE thread_messages; DROP TABLE thread_commits;
        DROP TABLE agent_runs; DROP TABLE thread_values; DROP TABLE tool_calls; PRAGMA user_version = 1";
    raw.execute_batch(later).unwrap();
    let tables = "SELECT group_concat(sql, ';') FROM
        (SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY name)";
    let left: String = raw.query_row(tables, [], |row| row.get(0)).unwrap();
    let first = rusqlite::Connection::open_in_memory().unwrap();
    first.execute_batch(include_str!("../src/schema/0001.sql")).unwrap();
    let expected: String = first.query_row(tables, [], |row| row.get(0)).unwrap();
    assert_eq!(left, expected);
    raw.close().unwrap();
    let older = SqliteStore::open_read_only(&database).err().unwrap();
    assert!(matches!(older, StorageError::Validation(..)), "{older}");
    let store = open(&database);
    runtime.block_on(async {
        assert_eq!(verify(&*store, run).await.unwrap().unwrap().events, 2);
        append(&*store, run, 2, json!({"after": true})).await.unwrap();
        began(&*store).await;
        assert_eq!(store.check().await.unwrap(), []);
    });
}

#[test]
fn d12_commits_to_many_threads_share_a_commit_of_the_database() {
    const THREADS: usize = 128;
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let mut threads = Vec::new();
        for _ in 0..THREADS {
            threads.push(began(&*store).await);
        }
        let before = store.commits();
        let mut tasks = tokio::task::JoinSet::new();
        for (thread, run, claim) in threads {
            let store = Arc::clone(&store);
            tasks.spawn(async move {
                for version in 0..10 {
                    let commit = commit_of(&thread, &run, &claim, version, message(json!(version)));
                    assert_eq!(store.commit(commit).await.unwrap(), Committed { version: version + 1 });
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        let commits = store.commits() - before;
        println!("{} commits to threads in {commits} of the database", THREADS * 10);
        assert!(commits * 4 < THREADS as u64 * 10, "{commits} commits for {}", THREADS * 10);
    });
}

#[test]
fn d12_a_page_of_large_messages_is_bounded_and_none_is_left_out() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let (thread, run, claim) = began(&*store).await;
        let text = "x".repeat(900_000);
        for version in 0..40 {
            let writes = message(json!({ "version": version, "text": text }));
            store.commit(commit_of(&thread, &run, &claim, version, writes)).await.unwrap();
        }
        let page = store.messages(&thread, 0, 5_000).await.unwrap();
        assert!((10..30).contains(&page.len()), "{}", page.len());
        let mut after = 0;
        while let Some(last) = store.messages(&thread, after, 5_000).await.unwrap().last() {
            assert!(last.position > after);
            after = last.position;
        }
        assert_eq!(after, 40);
    });
}

#[test]
fn d11_threads_of_a_closed_a_foreign_and_a_damaged_database_are_told() {
    let (_folder, database) = place();
    let runtime = runtime();
    let store = open(&database);
    let (thread, run, claim) = runtime.block_on(began(&*store));
    runtime.block_on(async {
        store.commit(commit_of(&thread, &run, &claim, 0, message(json!("x")))).await.unwrap();
        // Whoever only reads sees everything and writes nothing.
        let reader = SqliteStore::open_read_only(&database).unwrap();
        assert_eq!(reader.thread(&thread).await.unwrap().unwrap().version, 1);
        let commit = || commit_of(&thread, &run, &claim, 1, message(json!("y")));
        for error in [
            reader.commit(commit()).await.unwrap_err(),
            reader.create_thread(&thread, Safe::NULL).await.unwrap_err(),
            reader.delete_thread(&thread).await.unwrap_err(),
            reader.release_claim(&thread, claim.generation).await.unwrap_err(),
        ] {
            assert!(matches!(error, StorageError::ReadOnly { .. }), "{error}");
        }
        store.close().await;
        let error = store.commit(commit()).await.unwrap_err();
        assert!(matches!(error, StorageError::Io(..)), "{error}");
        let error = store.messages(&thread, 0, 9).await.unwrap_err();
        assert!(matches!(error, StorageError::Io(..)), "{error}");
    });
    drop(store);
    let raw = rusqlite::Connection::open(&database).unwrap();
    raw.execute("UPDATE thread_messages SET body = x'7b'", []).unwrap();
    raw.execute("UPDATE threads SET version = -1", []).unwrap();
    raw.close().unwrap();
    let store = open(&database);
    runtime.block_on(async {
        let page = store.messages(&thread, 0, 9).await.unwrap();
        let error = page[0].payload().unwrap_err();
        assert!(matches!(error, StorageError::Serialization(..)), "{error}");
        let error = store.commit(commit_of(&thread, &run, &claim, 1, message(json!(1)))).await.unwrap_err();
        assert!(matches!(error, StorageError::Corrupt { .. }), "{error}");
        // The damage of one thread is nobody else's.
        let other = start_thread(&*store).await;
        assert_eq!(store.thread(&other).await.unwrap().unwrap().version, 0);
    });
}

#[test]
fn d12_of_a_deleted_thread_no_row_is_left() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let (id, run, claim) = began(&*store).await;
        let mut writes = step("a", 0, 0).writes;
        writes.values.push(ValueWrite::Set { scope: Scope::Run, key: "k".into(), value: Safe::NULL });
        store.commit(commit_of(&id, &run, &claim, 0, writes)).await.unwrap();
        store.release_claim(&id, claim.generation).await.unwrap();
        store.delete_thread(&id).await.unwrap();
        store.close().await;
    });
    let raw = rusqlite::Connection::open(&database).unwrap();
    for table in ["threads", "thread_messages", "thread_commits", "agent_runs", "thread_values", "tool_calls"]
    {
        let left: i64 =
            raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
}

// clause: B11
#[test]
fn no_planted_secret_of_a_thread_is_in_any_file() {
    let (folder, database) = place();
    let store = open(&database);
    let needles = runtime().block_on(plant_thread_secrets(Arc::clone(&store) as _));
    let scan = || {
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> = files.filter(|path| path.is_file()).collect();
        for path in &files {
            assert_holds_none(&path.to_string_lossy(), &std::fs::read(path).unwrap(), &needles);
        }
        files.len()
    };
    assert!(scan() > 2);
    drop(store);
    assert!(scan() > 1);
}

#[test]
fn d11_a_claim_lives_by_the_databases_clock_and_a_jump_lets_no_two_write() {
    let (_folder, database) = place();
    let clock = Arc::new(runyard_store::ManualClock::at(1_000_000));
    let store = SqliteStore::open(OpenOptions::new(&database, "the test").clock(clock.clone())).unwrap();
    runtime().block_on(async {
        let (thread, run) = (start_thread(&store).await, run("a"));
        let term = Duration::from_secs(30);
        let first = granted(store.claim(&thread, &run, "one".into(), term).await.unwrap());
        store.commit(commit_of(&thread, &run, &first, 0, record("running"))).await.unwrap();
        clock.advance_ms(29_999);
        assert!(matches!(
            store.claim(&thread, &run, "two".into(), term).await.unwrap(),
            runyard_store::Claimed::Held { .. }
        ));
        clock.advance_ms(1);
        let second = granted(store.claim(&thread, &run, "two".into(), term).await.unwrap());
        // Backwards, by a day: nobody waits for a day.
        clock.advance_ms(-86_400_000);
        let third = granted(store.claim(&thread, &run, "three".into(), term).await.unwrap());
        for stale in [first, second] {
            let error = store.commit(commit_of(&thread, &run, &stale, 0, ThreadWrites::default())).await;
            assert!(matches!(error, Err(StorageError::StaleGeneration { .. })), "{error:?}");
        }
        store.commit(commit_of(&thread, &run, &third, 0, message(json!(1)))).await.unwrap();
    });
}
