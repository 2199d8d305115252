//! Runs of a thread, and their journals of tool calls.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::fixtures::{safe, safe_text};
use super::steps::{
    MINUTE, began, commit_of, fresh_agent_run, granted, message, record, start_thread, whole,
};
use crate::{ClaimAfter, JournalWrite, KeyDigest, StorageError, ThreadRunStore, ThreadWrites, ToolCallRow};

fn intent(call: &str, payload: Value) -> JournalWrite {
    JournalWrite::Intent { call: safe_text(call), key: KeyDigest::of(&["key", call]), payload: safe(payload) }
}

fn result(call: &str, payload: Value) -> JournalWrite {
    JournalWrite::Result { call: safe_text(call), payload: safe(payload) }
}

fn journal(journal: Vec<JournalWrite>) -> ThreadWrites {
    ThreadWrites { journal, ..ThreadWrites::default() }
}

/// The calls without their places, which only say their order.
fn shown(calls: &[ToolCallRow]) -> Vec<(&str, Value, Option<Value>)> {
    assert!(calls.windows(2).all(|pair| pair[0].place < pair[1].place));
    let read = |bytes: &Vec<u8>| serde_json::from_slice(bytes).unwrap();
    calls.iter().map(|row| (row.call.as_str(), read(&row.intent), row.result.as_ref().map(read))).collect()
}

pub async fn d12_a_tool_call_is_announced_once_and_answered_once(store: Arc<dyn ThreadRunStore>) {
    let (thread, run, claim) = began(&*store).await;
    let commit = async |entries| store.commit(commit_of(&thread, &run, &claim, 0, journal(entries))).await;
    commit(vec![intent("z", json!({"tool": "write"})), intent("a", json!({"tool": "read"}))]).await.unwrap();
    let open = store.tool_calls(&run, 0, 9).await.unwrap();
    assert_eq!(open[0].key, KeyDigest::of(&["key", "z"]));
    assert_eq!(open[0].key.to_string().len(), 64);
    // In the order in which they were announced, with what is known of each.
    commit(vec![result("a", json!("content")), intent("m", json!(3)), result("m", json!(null))])
        .await
        .unwrap();
    let expected = [
        ("z", json!({"tool": "write"}), None),
        ("a", json!({"tool": "read"}), Some(json!("content"))),
        ("m", json!(3), Some(json!(null))),
    ];
    let calls = store.tool_calls(&run, 0, 9).await.unwrap();
    assert_eq!(shown(&calls), expected);
    assert_eq!(store.tool_calls(&run, calls[0].place, 1).await.unwrap(), calls[1..2]);
    assert_eq!(store.tool_calls(&run, calls[2].place, 9).await.unwrap(), []);
    for entry in [intent("z", json!(1)), intent("a", json!({"tool": "read"})), result("a", json!("content"))]
    {
        let error = commit(vec![entry]).await.unwrap_err();
        assert!(matches!(error, StorageError::AlreadyExists(..)), "{error}");
    }
    for entries in [vec![result("never", json!(1))], vec![result("n", json!(1)), intent("n", json!(1))]] {
        let error = commit(entries).await.unwrap_err();
        assert!(matches!(error, StorageError::NotFound(..)), "{error}");
    }
    let error = commit(vec![result("z", json!(1)), result("z", json!(1))]).await.unwrap_err();
    assert!(matches!(error, StorageError::AlreadyExists(..)), "{error}");
    assert_eq!(store.tool_calls(&run, 0, 9).await.unwrap(), calls);
    commit(vec![result("z", json!("written"))]).await.unwrap();
    assert_eq!(store.tool_calls(&run, 0, 9).await.unwrap()[0].result.as_deref(), Some(&b"\"written\""[..]));
    // Another run has a journal of its own, where the same ids are free.
    let (thread, other, claim) = began(&*store).await;
    store.commit(commit_of(&thread, &other, &claim, 0, journal(vec![intent("z", json!(9))]))).await.unwrap();
    assert_eq!(shown(&store.tool_calls(&other, 0, 9).await.unwrap()), [("z", json!(9), None)]);
    assert_eq!(store.tool_calls(&run, 0, 9).await.unwrap().len(), 3);
    assert_eq!(store.tool_calls(&fresh_agent_run(), 0, 9).await.unwrap(), []);
}

pub async fn d12_runs_are_listed_newest_first_and_one_at_a_time_is_unfinished(
    store: Arc<dyn ThreadRunStore>,
) {
    let thread = start_thread(&*store).await;
    let mut runs = Vec::new();
    for number in 1..=5_u64 {
        let run = fresh_agent_run();
        let claim = granted(store.claim(&thread, &run, "one".into(), MINUTE).await.unwrap());
        // What writes to a run that is nowhere recorded is refused.
        let error = store.commit(commit_of(&thread, &run, &claim, 0, journal(vec![]))).await.unwrap_err();
        assert!(matches!(error, StorageError::NotFound(..)), "{error}");
        store.commit(commit_of(&thread, &run, &claim, 0, record("running"))).await.unwrap();
        let mut last = commit_of(&thread, &run, &claim, 0, record("done"));
        last.claim = ClaimAfter::Released;
        if number < 5 {
            store.commit(last).await.unwrap();
        } else {
            // The last one waits: it stays unfinished, and nobody holds the thread.
            last.writes = record("waiting");
            store.commit(last).await.unwrap();
        }
        runs.push(run);
    }
    let listed = store.agent_runs(&thread, None, 3).await.unwrap();
    let ids: Vec<_> = listed.iter().map(|row| (&row.id, row.number)).collect();
    assert_eq!(ids, [(&runs[4], 5), (&runs[3], 4), (&runs[2], 3)]);
    let listed = store.agent_runs(&thread, Some(3), 9).await.unwrap();
    assert_eq!(listed.iter().map(|row| row.number).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(store.agent_runs(&thread, Some(1), 9).await.unwrap(), []);
    assert_eq!(store.agent_runs(&thread, Some(0), 9).await.unwrap(), []);
    let waiting = store.unfinished_run(&thread).await.unwrap().unwrap();
    assert_eq!((&waiting.id, waiting.status.as_str()), (&runs[4], "waiting"));
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().holder, None);

    // Another one may look, and is told; but it cannot begin before that one has ended.
    let next = fresh_agent_run();
    let claim = granted(store.claim(&thread, &next, "one".into(), MINUTE).await.unwrap());
    assert_eq!(claim.unfinished.as_ref(), Some(&runs[4]));
    let error = store.commit(commit_of(&thread, &next, &claim, 0, record("running"))).await.unwrap_err();
    assert!(matches!(error, StorageError::AlreadyExists(..)), "{error}");
    store.release_claim(&thread, claim.generation).await.unwrap();
    let claim = granted(store.claim(&thread, &runs[4], "one".into(), MINUTE).await.unwrap());
    let mut last = commit_of(&thread, &runs[4], &claim, 0, record("done"));
    last.claim = ClaimAfter::Released;
    store.commit(last).await.unwrap();
    let claim = granted(store.claim(&thread, &next, "one".into(), MINUTE).await.unwrap());
    assert_eq!(claim.unfinished, None);
    store.commit(commit_of(&thread, &next, &claim, 0, record("running"))).await.unwrap();
    assert_eq!(store.agent_run(&next).await.unwrap().unwrap().number, 6);
}

pub async fn d12_a_run_that_has_finished_stays_so(store: Arc<dyn ThreadRunStore>) {
    let (thread, run, claim) = began(&*store).await;
    store.commit(commit_of(&thread, &run, &claim, 0, record("done"))).await.unwrap();
    let before = whole(&*store, &thread, &run).await;
    for writes in [message(json!("late")), record("running"), journal(vec![intent("a", json!(1))])] {
        let error = store.commit(commit_of(&thread, &run, &claim, 0, writes)).await.unwrap_err();
        assert!(matches!(error, StorageError::AlreadyExists(..)), "{error}");
    }
    store.release_claim(&thread, claim.generation).await.unwrap();
    // Neither here nor on another thread does it begin again.
    let other = start_thread(&*store).await;
    for thread in [&thread, &other] {
        let error = store.claim(thread, &run, "one".into(), MINUTE).await.unwrap_err();
        assert!(matches!(error, StorageError::AlreadyExists(..)), "{error}");
    }
    let after = whole(&*store, &thread, &run).await;
    assert_eq!((after.run, after.calls, after.messages), (before.run, before.calls, before.messages));
    // Nor does one that another thread has recorded meanwhile.
    let shared = fresh_agent_run();
    let here = granted(store.claim(&thread, &shared, "one".into(), MINUTE).await.unwrap());
    let there = granted(store.claim(&other, &shared, "one".into(), MINUTE).await.unwrap());
    store.commit(commit_of(&other, &shared, &there, 0, record("running"))).await.unwrap();
    let error = store.commit(commit_of(&thread, &shared, &here, 0, record("running"))).await.unwrap_err();
    assert!(matches!(error, StorageError::AlreadyExists(..)), "{error}");
    assert_eq!(store.agent_run(&shared).await.unwrap().unwrap().thread, other);
}
