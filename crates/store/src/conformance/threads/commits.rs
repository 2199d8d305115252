//! Commits: whole or not at all, once, and exactly as they were made.

use std::sync::Arc;
use std::time::Duration;

use runyard_domain::Code;
use serde_json::{Value, json};

use super::super::fixtures::{fresh_append, safe, safe_text};
use super::steps::{
    MINUTE, began, commit_of, fresh_agent_run, granted, message, record, set, start_thread, whole,
};
use crate::{
    COMMIT_BYTES_MAX, COMMIT_MESSAGES_MAX, COMMIT_ROWS_MAX, ClaimAfter, Committed, JournalWrite,
    KEY_BYTES_MAX, KeyDigest, MESSAGE_BYTES_MAX, RunWrite, Scope, StateValue, StorageError, ThreadRunStore,
    ThreadWrites, ValueWrite, commit_until_known, stored_json,
};

pub async fn d12_messages_come_back_byte_for_byte_in_pages(store: Arc<dyn ThreadRunStore>) {
    let (thread, run, claim) = began(&*store).await;
    let texts = ["", "é\u{1F600}\u{0}\"\\/\u{2028}", "1e400", "plain"];
    let payloads: Vec<Value> =
        (0..20).map(|n| json!({"n": n, "text": texts[n % 4], "z": 1, "a": [null, -0.0, 1e-7]})).collect();
    let mut version = 0;
    for (chunk, payloads) in payloads.chunks(3).enumerate() {
        let messages = payloads.iter().cloned().map(safe).collect();
        let writes = ThreadWrites { messages, ..ThreadWrites::default() };
        let committed = store.commit(commit_of(&thread, &run, &claim, version, writes)).await.unwrap();
        version = committed.version;
        assert_eq!(version, ((chunk + 1) * 3).min(20) as u64);
    }
    let (mut seen, mut after) = (Vec::new(), 0);
    loop {
        let page = store.messages(&thread, after, 7).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.position;
        assert!(page.len() <= 7);
        seen.extend(page);
    }
    assert_eq!(seen.len(), payloads.len());
    for ((message, payload), position) in seen.iter().zip(&payloads).zip(1..) {
        assert_eq!(message.position, position);
        assert_eq!(&message.body[..], payload.to_string().as_bytes());
        assert_eq!(&message.payload().unwrap(), payload);
    }
    assert_eq!(store.messages(&thread, 0, 0).await.unwrap(), []);
    assert_eq!(store.messages(&thread, u64::MAX, 9).await.unwrap(), []);
    assert_eq!(store.messages(&super::fresh_thread(), 0, 9).await.unwrap(), []);
    // What is stored and cannot be read is said so.
    let error = stored_json("message 1", b"{").unwrap_err();
    assert!(matches!(error, StorageError::Serialization(..)), "{error}");
    assert_eq!(error.code(), Code::StorageSerialization);
}

pub async fn d12_values_are_set_and_removed_by_key_each_in_its_scope(store: Arc<dyn ThreadRunStore>) {
    let (thread, run, claim) = began(&*store).await;
    let commit = async |values: Vec<ValueWrite>| {
        let writes = ThreadWrites { values, ..ThreadWrites::default() };
        store.commit(commit_of(&thread, &run, &claim, 0, writes)).await.unwrap();
    };
    let remove = |scope, key: &str| ValueWrite::Remove { scope, key: safe_text(key) };
    let value = |key: &str, value: Value| StateValue { key: key.to_owned(), value: value.to_string().into() };
    commit(vec![
        set(Scope::Thread, "b", json!(1)),
        set(Scope::Thread, "a", json!({"x": [1]})),
        set(Scope::Run, "b", json!("of the run")),
        set(Scope::Thread, "Z", json!(null)),
        set(Scope::Thread, "é", json!(true)),
    ])
    .await;
    let all = store.thread_values(&thread, None, 9).await.unwrap();
    let expected = [
        value("Z", json!(null)),
        value("a", json!({"x": [1]})),
        value("b", json!(1)),
        value("é", json!(true)),
    ];
    assert_eq!(all, expected);
    assert_eq!(store.thread_values(&thread, Some("Z"), 2).await.unwrap(), expected[1..3]);
    assert_eq!(store.run_values(&run, None, 9).await.unwrap(), [value("b", json!("of the run"))]);
    // The last write of a key counts, and what is not there can be removed.
    commit(vec![
        set(Scope::Thread, "a", json!(2)),
        remove(Scope::Thread, "b"),
        set(Scope::Thread, "c", json!(3)),
        remove(Scope::Thread, "c"),
        remove(Scope::Thread, "never"),
        remove(Scope::Run, "a"),
        set(Scope::Run, "c", json!(4)),
        set(Scope::Run, "c", json!(5)),
    ])
    .await;
    let all = store.thread_values(&thread, None, 9).await.unwrap();
    assert_eq!(all, [value("Z", json!(null)), value("a", json!(2)), value("é", json!(true))]);
    let all = store.run_values(&run, None, 9).await.unwrap();
    assert_eq!(all, [value("b", json!("of the run")), value("c", json!(5))]);
    assert_eq!(store.run_values(&run, Some("b"), 9).await.unwrap(), [value("c", json!(5))]);
    assert_eq!(store.run_values(&fresh_agent_run(), None, 9).await.unwrap(), []);
    // The next run sees the thread's and has none of its own.
    let mut last = commit_of(&thread, &run, &claim, 0, record("done"));
    last.claim = ClaimAfter::Released;
    store.commit(last).await.unwrap();
    let next = fresh_agent_run();
    let claim = granted(store.claim(&thread, &next, "the suite".into(), MINUTE).await.unwrap());
    store.commit(commit_of(&thread, &next, &claim, 0, record("running"))).await.unwrap();
    assert_eq!(store.run_values(&next, None, 9).await.unwrap(), []);
    assert_eq!(store.thread_values(&thread, None, 9).await.unwrap().len(), 3);
    assert_eq!(store.run_values(&run, None, 9).await.unwrap().len(), 2);
}

pub async fn d11_a_commit_at_another_version_names_both(store: Arc<dyn ThreadRunStore>) {
    let (thread, run, claim) = began(&*store).await;
    store.commit(commit_of(&thread, &run, &claim, 0, message(json!(1)))).await.unwrap();
    let before = whole(&*store, &thread, &run).await;
    for expected in [0, 2, u64::MAX] {
        for writes in [message(json!(2)), record("waiting")] {
            let error = store.commit(commit_of(&thread, &run, &claim, expected, writes)).await.unwrap_err();
            assert!(
                matches!(error, StorageError::VersionConflict { expected: told, actual: 1 } if told == expected),
                "{error}"
            );
            assert_eq!(error.code(), Code::StorageVersionConflict);
        }
    }
    assert_eq!(whole(&*store, &thread, &run).await, before);
}

pub async fn d11_a_commit_is_made_once_however_often_it_is_sent(store: Arc<dyn ThreadRunStore>) {
    let (thread, run) = (start_thread(&*store).await, fresh_agent_run());
    let claim = granted(store.claim(&thread, &run, "one".into(), Duration::ZERO).await.unwrap());
    let first = commit_of(&thread, &run, &claim, 0, record("running"));
    let second = commit_of(&thread, &run, &claim, 0, message(json!("second")));
    let quiet = ThreadWrites { values: vec![set(Scope::Run, "n", json!(1))], ..ThreadWrites::default() };
    let third = commit_of(&thread, &run, &claim, 1, quiet);
    let mut last = commit_of(&thread, &run, &claim, 1, record("done"));
    last.writes.messages = vec![safe(json!("x")), safe(json!("y"))];
    last.claim = ClaimAfter::Released;
    let all = [(first, 0), (second, 1), (third, 1), (last, 3)];
    for (commit, version) in &all {
        for _ in 0..2 {
            let committed = commit_until_known(&*store, commit).await.unwrap();
            assert_eq!(committed, Committed { version: *version });
        }
    }
    let before = whole(&*store, &thread, &run).await;
    assert_eq!((before.messages.len(), before.run_values.len()), (3, 1));
    // Also long afterwards, when the run has finished and another has the thread.
    let next = fresh_agent_run();
    let taken = granted(store.claim(&thread, &next, "two".into(), MINUTE).await.unwrap());
    let before = whole(&*store, &thread, &run).await;
    for (commit, version) in &all {
        assert_eq!(store.commit(commit.clone()).await.unwrap(), Committed { version: *version });
    }
    assert_eq!(whole(&*store, &thread, &run).await, before);
    // The same id with another content is another commit, and refused.
    let mut other = all[1].0.clone();
    other.writes = message(json!("other"));
    let mut elsewhere = all[2].0.clone();
    elsewhere.expected = 3;
    for commit in [other, elsewhere] {
        let error = store.commit(commit).await.unwrap_err();
        assert!(matches!(error, StorageError::AlreadyExists(..)), "{error}");
    }
    // At the same place with another id it is none of them.
    let mut late = all[1].0.clone();
    late.append = fresh_append();
    let error = store.commit(late.clone()).await.unwrap_err();
    assert!(matches!(error, StorageError::StaleGeneration { .. }), "{error}");
    (late.run, late.generation) = (next, taken.generation);
    let error = store.commit(late).await.unwrap_err();
    assert!(matches!(error, StorageError::VersionConflict { expected: 0, actual: 3 }), "{error}");
    assert_eq!(whole(&*store, &thread, &run).await, before);
}

/// Writes of every kind, fine by themselves.
fn everything(call: &str) -> ThreadWrites {
    ThreadWrites {
        messages: vec![safe(json!("m"))],
        values: vec![
            set(Scope::Thread, "t", json!(call)),
            set(Scope::Run, "r", json!(call)),
            ValueWrite::Remove { scope: Scope::Thread, key: "kept".into() },
        ],
        journal: vec![
            JournalWrite::Intent {
                call: safe_text(call),
                key: KeyDigest::of(&[call]),
                payload: safe(json!(1)),
            },
            JournalWrite::Result { call: safe_text(call), payload: safe(json!(2)) },
        ],
        record: record("waiting").record,
    }
}

pub async fn d11_a_refused_commit_leaves_nothing_of_it(store: Arc<dyn ThreadRunStore>) {
    let (thread, run, claim) = began(&*store).await;
    let (_, elsewhere, _) = began(&*store).await;
    let mut writes = everything("first");
    writes.values.push(set(Scope::Thread, "kept", json!(1)));
    store.commit(commit_of(&thread, &run, &claim, 0, writes)).await.unwrap();
    let before = whole(&*store, &thread, &run).await;
    let intent = |call: &str| JournalWrite::Intent {
        call: safe_text(call),
        key: KeyDigest::of(&[call]),
        payload: safe(json!(3)),
    };
    let result = |call: &str| JournalWrite::Result { call: safe_text(call), payload: safe(json!(4)) };
    let with = |entry: JournalWrite| {
        let mut writes = everything("second");
        writes.journal.push(entry);
        writes
    };
    let fine = || commit_of(&thread, &run, &claim, 1, everything("second"));
    let refused = [
        (commit_of(&thread, &run, &claim, 1, with(intent("first"))), Code::StorageAlreadyExists),
        (commit_of(&thread, &run, &claim, 1, with(intent("second"))), Code::StorageAlreadyExists),
        (commit_of(&thread, &run, &claim, 1, with(result("first"))), Code::StorageAlreadyExists),
        (commit_of(&thread, &run, &claim, 1, with(result("second"))), Code::StorageAlreadyExists),
        (commit_of(&thread, &run, &claim, 1, with(result("third"))), Code::StorageNotFound),
        (commit_of(&thread, &run, &claim, 7, everything("second")), Code::StorageVersionConflict),
        (
            {
                let mut commit = fine();
                commit.generation -= 1;
                commit
            },
            Code::StorageStaleGeneration,
        ),
        // The claim is for one run, and so is the commit.
        (
            {
                let mut commit = fine();
                commit.run = elsewhere;
                commit
            },
            Code::StorageValidation,
        ),
    ];
    for (commit, code) in refused {
        let error = store.commit(commit).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(whole(&*store, &thread, &run).await, before, "after {error}");
    }
    store.commit(fine()).await.unwrap();
    let after = whole(&*store, &thread, &run).await;
    assert_eq!((after.messages.len(), after.calls.len(), after.values.len()), (2, 2, 1));
}

pub async fn d11_a_commit_that_can_never_be_made_is_a_validation_error_of_its_part(
    store: Arc<dyn ThreadRunStore>,
) {
    let (thread, run, claim) = began(&*store).await;
    let before = whole(&*store, &thread, &run).await;
    let text = |bytes: usize| safe(json!("x".repeat(bytes)));
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let values = |key: String| ThreadWrites {
        values: vec![ValueWrite::Set { scope: Scope::Run, key: safe_text(&key), value: safe(json!(1)) }],
        ..ThreadWrites::default()
    };
    let calls = |call: &str| ThreadWrites {
        journal: vec![JournalWrite::Result { call: safe_text(call), payload: safe(json!(1)) }],
        ..ThreadWrites::default()
    };
    let record = RunWrite { status: "running", finished: false, payload: text(MESSAGE_BYTES_MAX) };
    let wrong = [
        message(json!("x".repeat(MESSAGE_BYTES_MAX))),
        message(deep),
        ThreadWrites { messages: vec![safe(json!(1)); COMMIT_MESSAGES_MAX + 1], ..ThreadWrites::default() },
        ThreadWrites {
            messages: vec![text(MESSAGE_BYTES_MAX - 2); COMMIT_BYTES_MAX / MESSAGE_BYTES_MAX + 1],
            ..ThreadWrites::default()
        },
        ThreadWrites {
            values: vec![set(Scope::Run, "k", json!(1)); COMMIT_ROWS_MAX + 1],
            ..ThreadWrites::default()
        },
        values(String::new()),
        values("a\0b".to_owned()),
        values("k".repeat(KEY_BYTES_MAX + 1)),
        calls(""),
        calls("a\0b"),
        ThreadWrites { record: Some(record), ..ThreadWrites::default() },
    ];
    for (writes, which) in wrong.into_iter().zip(0..) {
        let error = store.commit(commit_of(&thread, &run, &claim, 0, writes)).await.unwrap_err();
        assert!(matches!(error, StorageError::Validation(..)), "{which}: {error}");
        assert_eq!(error.code(), Code::StorageValidation);
    }
    assert_eq!(whole(&*store, &thread, &run).await, before);
    // Up to the limits everything is fine.
    let mut writes = values("k".repeat(KEY_BYTES_MAX));
    writes.messages = vec![text(MESSAGE_BYTES_MAX - 2), safe(json!(1))];
    store.commit(commit_of(&thread, &run, &claim, 0, writes)).await.unwrap();
    let writes =
        ThreadWrites { messages: vec![safe(json!(1)); COMMIT_MESSAGES_MAX], ..ThreadWrites::default() };
    store.commit(commit_of(&thread, &run, &claim, 2, writes)).await.unwrap();
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().version, 2 + COMMIT_MESSAGES_MAX as u64);
}
