//! Making and deleting threads, and who may write to them.

use std::sync::Arc;
use std::time::Duration;

use runyard_domain::Code;
use serde_json::json;

use super::super::fixtures::safe;
use super::steps::{
    MINUTE, began, commit_of, fresh_agent_run, fresh_thread, granted, message, record, set, start_thread,
    whole,
};
use crate::{ClaimAfter, Claimed, Committed, Scope, StorageError, ThreadRunStore, ThreadWrites};

pub async fn d12_a_thread_is_made_once_and_threads_are_listed_in_order(store: Arc<dyn ThreadRunStore>) {
    let thread = fresh_thread();
    assert_eq!(store.thread(&thread).await.unwrap(), None);
    store.create_thread(&thread, safe(json!({"title": "first"}))).await.unwrap();
    let row = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!((&row.id, row.version, row.runs), (&thread, 0, 0));
    assert_eq!((row.holder.clone(), row.unfinished.clone()), (None, None));
    assert_eq!(row.metadata, br#"{"title":"first"}"#);
    assert_eq!(row.created, row.updated);
    let error = store.create_thread(&thread, safe(json!({"title": "second"}))).await.unwrap_err();
    assert!(matches!(error, StorageError::AlreadyExists(..)), "{error}");
    assert_eq!(error.code(), Code::StorageAlreadyExists);
    assert_eq!(store.thread(&thread).await.unwrap(), Some(row));

    let mut mine = vec![thread];
    for _ in 0..6 {
        mine.push(start_thread(&*store).await);
    }
    mine.sort();
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = store.threads(after.as_ref(), 2).await.unwrap();
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        listed.extend(page.into_iter().map(|row| row.id));
    }
    assert!(listed.windows(2).all(|pair| pair[0].as_str().as_bytes() < pair[1].as_str().as_bytes()));
    listed.retain(|id| mine.contains(id));
    assert_eq!(listed, mine);
}

pub async fn d12_a_run_claims_a_thread_commits_and_gives_it_up(store: Arc<dyn ThreadRunStore>) {
    let (thread, run) = (start_thread(&*store).await, fresh_agent_run());
    let claim = granted(store.claim(&thread, &run, "one".into(), MINUTE).await.unwrap());
    assert_eq!((claim.version, &claim.unfinished), (0, &None));
    let row = store.thread(&thread).await.unwrap().unwrap();
    let holder = row.holder.unwrap();
    assert_eq!((holder.run, holder.lease.owner.as_str()), (run.clone(), "one"));
    assert_eq!(holder.lease.expires, claim.expires);
    assert_eq!(holder.lease.expires.unix_ms() - holder.lease.granted.unix_ms(), 60_000);

    let first = ThreadWrites { record: record("running").record, ..message(json!({"role": "user"})) };
    let committed = store.commit(commit_of(&thread, &run, &claim, 0, first)).await.unwrap();
    assert_eq!(committed, Committed { version: 1 });
    let second = ThreadWrites {
        messages: vec![safe(json!({"role": "assistant"})), safe(json!({"role": "tool"}))],
        values: vec![set(Scope::Thread, "count", json!(1))],
        ..ThreadWrites::default()
    };
    let committed = store.commit(commit_of(&thread, &run, &claim, 1, second)).await.unwrap();
    assert_eq!(committed, Committed { version: 3 });
    let unfinished = store.unfinished_run(&thread).await.unwrap().unwrap();
    assert_eq!((&unfinished.id, unfinished.status.as_str(), unfinished.finished), (&run, "running", false));

    let last = ThreadWrites { record: record("done").record, ..message(json!({"role": "assistant"})) };
    let mut last = commit_of(&thread, &run, &claim, 3, last);
    last.claim = ClaimAfter::Released;
    assert_eq!(store.commit(last).await.unwrap(), Committed { version: 4 });
    let row = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!((row.version, row.runs, row.holder, row.unfinished), (4, 1, None, None));
    assert!(row.created <= row.updated);
    assert_eq!(store.unfinished_run(&thread).await.unwrap(), None);
    let row = store.agent_run(&run).await.unwrap().unwrap();
    assert_eq!(
        (row.thread, row.number, row.status.as_str(), row.finished),
        (thread.clone(), 1, "done", true)
    );
    assert_eq!(row.payload, br#"{"status":"done"}"#);

    // The thread is free for the next one, which is told where it stands.
    let next = store.claim(&thread, &fresh_agent_run(), "two".into(), MINUTE).await.unwrap();
    assert_eq!(granted(next).version, 4);
    let error = store.claim(&fresh_thread(), &run, "one".into(), MINUTE).await.unwrap_err();
    assert!(matches!(error, StorageError::NotFound(..)), "{error}");
    assert_eq!(error.code(), Code::StorageNotFound);
}

pub async fn d12_a_claim_is_granted_when_the_thread_is_free_or_its_claim_over_or_ones_own(
    store: Arc<dyn ThreadRunStore>,
) {
    let (thread, run, other) = (start_thread(&*store).await, fresh_agent_run(), fresh_agent_run());
    let first = granted(store.claim(&thread, &run, "one".into(), MINUTE).await.unwrap());
    let held = Claimed::Held { run: run.clone(), owner: "one".to_owned(), expires: first.expires };
    // Another process, another run, and another run of the same process.
    assert_eq!(store.claim(&thread, &run, "two".into(), MINUTE).await.unwrap(), held);
    assert_eq!(store.claim(&thread, &other, "two".into(), MINUTE).await.unwrap(), held);
    assert_eq!(store.claim(&thread, &other, "one".into(), MINUTE).await.unwrap(), held);
    // A restarted owner does not wait for itself.
    let again = granted(store.claim(&thread, &run, "one".into(), MINUTE).await.unwrap());
    assert_eq!(again.generation, first.generation + 1);
    store.release_claim(&thread, again.generation).await.unwrap();
    store.release_claim(&thread, again.generation).await.unwrap();
    let released = granted(store.claim(&thread, &other, "two".into(), Duration::ZERO).await.unwrap());
    assert_eq!(released.generation, first.generation + 2);
    // Its time is over at once, so it is taken over.
    let over = granted(store.claim(&thread, &run, "three".into(), MINUTE).await.unwrap());
    assert_eq!(over.generation, first.generation + 3);
    for owner in ["", "a\0b"] {
        let error = store.claim(&thread, &run, owner.into(), MINUTE).await.unwrap_err();
        assert!(matches!(error, StorageError::Validation(..)), "{error}");
    }
}

pub async fn d12_a_claim_that_ran_out_and_nobody_took_goes_on(store: Arc<dyn ThreadRunStore>) {
    let (thread, run) = (start_thread(&*store).await, fresh_agent_run());
    let claim = granted(store.claim(&thread, &run, "one".into(), Duration::ZERO).await.unwrap());
    store.commit(commit_of(&thread, &run, &claim, 0, record("running"))).await.unwrap();
    let renewed = store.renew_claim(&thread, claim.generation, MINUTE).await.unwrap();
    assert_eq!(renewed.generation, claim.generation);
    assert!(renewed.expires > claim.expires);
    let held = store.claim(&thread, &fresh_agent_run(), "two".into(), MINUTE).await.unwrap();
    assert_eq!(held, Claimed::Held { run, owner: "one".to_owned(), expires: renewed.expires });
    store.release_claim(&thread, claim.generation).await.unwrap();
    let error = store.renew_claim(&thread, claim.generation, MINUTE).await.unwrap_err();
    assert!(matches!(error, StorageError::StaleGeneration { .. }), "{error}");
    let missing = fresh_thread();
    for error in [
        store.renew_claim(&missing, 1, MINUTE).await.unwrap_err(),
        store.release_claim(&missing, 1).await.unwrap_err(),
    ] {
        assert!(matches!(error, StorageError::NotFound(..)), "{error}");
    }
}

pub async fn d11_a_commit_of_an_older_claim_is_refused(store: Arc<dyn ThreadRunStore>) {
    let (thread, run) = (start_thread(&*store).await, fresh_agent_run());
    let first = granted(store.claim(&thread, &run, "one".into(), Duration::ZERO).await.unwrap());
    store.commit(commit_of(&thread, &run, &first, 0, record("running"))).await.unwrap();
    // Its time was over, and another process took the run over.
    let second = granted(store.claim(&thread, &run, "two".into(), MINUTE).await.unwrap());
    assert_eq!(second.unfinished.as_ref(), Some(&run));
    let error = store.commit(commit_of(&thread, &run, &first, 0, message(json!("late")))).await.unwrap_err();
    assert!(
        matches!(error, StorageError::StaleGeneration { held, current }
            if held == first.generation && current == second.generation),
        "{error}"
    );
    assert_eq!(error.code(), Code::StorageStaleGeneration);
    for error in [
        store.renew_claim(&thread, first.generation, MINUTE).await.unwrap_err(),
        store.release_claim(&thread, first.generation).await.unwrap_err(),
    ] {
        assert!(matches!(error, StorageError::StaleGeneration { .. }), "{error}");
    }
    store.commit(commit_of(&thread, &run, &second, 0, message(json!("in time")))).await.unwrap();
    // Nor does anybody write who gave the claim up.
    store.release_claim(&thread, second.generation).await.unwrap();
    let error = store.commit(commit_of(&thread, &run, &second, 1, message(json!("late")))).await.unwrap_err();
    assert!(matches!(error, StorageError::StaleGeneration { .. }), "{error}");
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().version, 1);
}

pub async fn d12_a_thread_is_deleted_whole_and_not_while_somebody_holds_it(store: Arc<dyn ThreadRunStore>) {
    let (thread, run, claim) = began(&*store).await;
    let (other, other_run, other_claim) = began(&*store).await;
    for (thread, run, claim) in [(&thread, &run, &claim), (&other, &other_run, &other_claim)] {
        let writes = ThreadWrites {
            values: vec![set(Scope::Thread, "a", json!(1)), set(Scope::Run, "b", json!(2))],
            ..message(json!("kept"))
        };
        store.commit(commit_of(thread, run, claim, 0, writes)).await.unwrap();
    }
    let (before, others) = (whole(&*store, &thread, &run).await, whole(&*store, &other, &other_run).await);
    let error = store.delete_thread(&thread).await.unwrap_err();
    assert!(matches!(error, StorageError::Refused { .. }), "{error}");
    assert_eq!(error.code(), Code::RuntimeThreadAlreadyRunning);
    assert_eq!(whole(&*store, &thread, &run).await, before);
    store.release_claim(&thread, claim.generation).await.unwrap();
    store.delete_thread(&thread).await.unwrap();
    store.delete_thread(&thread).await.unwrap();
    let gone = whole(&*store, &thread, &run).await;
    assert_eq!((&gone.thread, &gone.run), (&None, &None));
    assert!(gone.messages.is_empty() && gone.values.is_empty() && gone.runs.is_empty());
    assert!(gone.run_values.is_empty() && gone.calls.is_empty());
    assert_eq!(whole(&*store, &other, &other_run).await, others);
    let error = store.commit(commit_of(&thread, &run, &claim, 1, message(json!(1)))).await.unwrap_err();
    assert!(matches!(error, StorageError::NotFound(..)), "{error}");

    // A later one of the same name is another thread: whoever held the first cannot write to it.
    store.create_thread(&thread, safe(json!({}))).await.unwrap();
    let anew = granted(store.claim(&thread, &run, "the suite".into(), MINUTE).await.unwrap());
    assert!(anew.generation > claim.generation);
    assert_eq!((anew.version, &anew.unfinished), (0, &None));
    let error = store.commit(commit_of(&thread, &run, &claim, 0, record("running"))).await.unwrap_err();
    assert!(matches!(error, StorageError::StaleGeneration { .. }), "{error}");
    store.commit(commit_of(&thread, &run, &anew, 0, record("running"))).await.unwrap();
    assert_eq!(whole(&*store, &thread, &run).await.values, []);
}
