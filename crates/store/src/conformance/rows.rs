//! Leases, approvals, timers, outbox, results, blobs and the list of runs.

use std::sync::Arc;
use std::time::Duration;

use runyard_domain::{Code, Timestamp};
use serde_json::json;

use super::fixtures::{
    append, at, event, fresh_append, fresh_approval, fresh_run, one, safe, safe_text, start,
};
use crate::{
    Acquired, Approval, ApprovalWrite, Change, KeptResult, KeyDigest, KeyedResult, Lease, Place, RunsQuery,
    StorageError, Store, TimerWrite, Writes,
};

const MINUTE: Duration = Duration::from_secs(60);

#[track_caller]
fn granted(acquired: Acquired) -> Lease {
    match acquired {
        Acquired::Granted(lease) => lease,
        Acquired::Held { owner, .. } => panic!("held by {owner}"),
    }
}

fn under(generation: u64, run: runyard_domain::RunId, after: u64) -> Change {
    let place = Place::At(after, one(json!({"generation": generation})));
    Change { run, append: fresh_append(), generation: Some(generation), place }
}

pub async fn d11_a_stale_generation_is_refused(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let first = granted(store.acquire(run, "one".into(), Duration::ZERO).await.unwrap());
    store.append(under(first.generation, run, 1)).await.unwrap();
    let second = granted(store.acquire(run, "two".into(), MINUTE).await.unwrap());
    assert_eq!(second.generation, first.generation + 1);
    // Also when the place is right, and at the head.
    let head = Place::Head(Box::new(|_| Ok(one(json!({})))));
    let at_head = Change { run, append: fresh_append(), generation: Some(first.generation), place: head };
    for stale in [under(first.generation, run, 2), at_head] {
        let error = store.append(stale).await.unwrap_err();
        assert!(
            matches!(error, StorageError::StaleGeneration { held, current }
                if held == first.generation && current == second.generation),
            "{error}"
        );
        assert_eq!(error.code(), Code::StorageStaleGeneration);
    }
    for error in [
        store.renew(run, first.generation, MINUTE).await.unwrap_err(),
        store.release(run, first.generation).await.unwrap_err(),
    ] {
        assert!(matches!(error, StorageError::StaleGeneration { .. }), "{error}");
    }
    store.append(under(second.generation, run, 2)).await.unwrap();
    // Somebody who is no runner, such as a person, needs no lease.
    append(&*store, run, 3, json!({})).await.unwrap();
    assert_eq!(store.head(run).await.unwrap(), Some(4));
}

pub async fn d11_a_lease_is_taken_when_it_is_free_over_or_ones_own(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let first = granted(store.acquire(run, "one".into(), MINUTE).await.unwrap());
    let held = store.acquire(run, "two".into(), MINUTE).await.unwrap();
    assert_eq!(held, Acquired::Held { owner: "one".to_owned(), expires: first.expires });
    // A restarted owner does not wait for itself.
    let again = granted(store.acquire(run, "one".into(), MINUTE).await.unwrap());
    assert_eq!(again.generation, first.generation + 1);
    store.release(run, again.generation).await.unwrap();
    let after_release = granted(store.acquire(run, "two".into(), Duration::ZERO).await.unwrap());
    assert_eq!(after_release.generation, first.generation + 2);
    let after_expiry = granted(store.acquire(run, "three".into(), MINUTE).await.unwrap());
    assert_eq!(after_expiry.generation, first.generation + 3);
    let row = store.run(run).await.unwrap().unwrap();
    let lease = row.lease.unwrap();
    assert_eq!((row.generation, lease.owner.as_str()), (after_expiry.generation, "three"));
    assert_eq!(lease.expires, after_expiry.expires);
    assert_eq!(lease.expires.unix_ms() - lease.granted.unix_ms(), 60_000);
    let error = store.acquire(fresh_run(), "one".into(), MINUTE).await.unwrap_err();
    assert!(matches!(error, StorageError::NotFound(..)), "{error}");
}

pub async fn d11_an_expired_lease_that_nobody_took_can_be_renewed(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let lease = granted(store.acquire(run, "one".into(), Duration::ZERO).await.unwrap());
    let renewed = store.renew(run, lease.generation, MINUTE).await.unwrap();
    assert_eq!(renewed.generation, lease.generation);
    assert!(renewed.expires > lease.expires);
    store.append(under(lease.generation, run, 1)).await.unwrap();
    assert!(matches!(store.acquire(run, "two".into(), MINUTE).await.unwrap(), Acquired::Held { .. }));
}

pub async fn d11_an_approval_is_asked_and_answered_once(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let (first, second) = (fresh_approval(), fresh_approval());
    let expires = Timestamp::from_unix_ms(4_000_000_000_123);
    let open = |id| ApprovalWrite::Open { id, expires, request: safe(json!({"verb": "write"})) };
    let resolve = |id, decision| ApprovalWrite::Resolve { id, decision: safe(json!(decision)) };
    let with = |approvals| Writes { approvals, ..one(json!({})) };
    store.append(at(run, 1, with(vec![open(first), open(second)]))).await.unwrap();
    let asked =
        Approval { id: first, run, expires, request: br#"{"verb":"write"}"#.to_vec(), decision: None };
    assert_eq!(store.approval(first).await.unwrap(), Some(asked.clone()));
    let ids = |found: Vec<Approval>| found.into_iter().map(|approval| approval.id).collect::<Vec<_>>();
    assert_eq!(ids(store.open_approvals(Some(run), None, 10).await.unwrap()), [first, second]);
    assert_eq!(ids(store.open_approvals(Some(run), Some(first), 10).await.unwrap()), [second]);
    assert_eq!(ids(store.open_approvals(Some(run), None, 1).await.unwrap()), [first]);
    assert!(ids(store.open_approvals(None, None, 5000).await.unwrap()).contains(&second));

    store.append(at(run, 2, with(vec![resolve(first, "approved")]))).await.unwrap();
    let error = store.append(at(run, 3, with(vec![resolve(first, "rejected")]))).await.unwrap_err();
    assert!(matches!(error, StorageError::AlreadyExists(..)), "{error}");
    let answered = Approval { decision: Some(br#""approved""#.to_vec()), ..asked };
    assert_eq!(store.approval(first).await.unwrap(), Some(answered));
    assert_eq!(ids(store.open_approvals(Some(run), None, 10).await.unwrap()), [second]);

    let other = start(&*store).await;
    for (run, after, id) in [(run, 3, fresh_approval()), (other, 1, second)] {
        let error = store.append(at(run, after, with(vec![resolve(id, "approved")]))).await.unwrap_err();
        assert!(matches!(error, StorageError::NotFound(..)), "{error}");
    }
    assert_eq!(store.head(run).await.unwrap(), Some(3));
}

pub async fn d11_timers_are_due_by_the_databases_clock(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let now = store.now().await.unwrap().unix_ms();
    let set = |name: &'static str, due_ms| TimerWrite::Set {
        name: name.into(),
        due: Timestamp::from_unix_ms(due_ms),
        payload: safe(json!({"timer": name})),
    };
    let with = |timers| Writes { timers, ..one(json!({})) };
    let timers = vec![set("late", now - 1_000), set("later", now - 500), set("tomorrow", now + 86_400_000)];
    store.append(at(run, 1, with(timers))).await.unwrap();
    let due = async || {
        let due = store.due_timers(5000).await.unwrap().into_iter().filter(|timer| timer.run == run);
        due.map(|timer| timer.name).collect::<Vec<_>>()
    };
    assert_eq!(due().await, ["late", "later"]);
    assert!(store.next_timer().await.unwrap().unwrap().unix_ms() <= now - 1_000);
    // Firing one is a change that cancels it; setting one again moves it.
    let timers = vec![TimerWrite::Cancel { name: "late".into() }, set("tomorrow", now - 2_000)];
    store.append(at(run, 2, with(timers))).await.unwrap();
    assert_eq!(due().await, ["tomorrow", "later"]);
    let timers = vec![
        TimerWrite::Cancel { name: "tomorrow".into() },
        TimerWrite::Cancel { name: "later".into() },
        TimerWrite::Cancel { name: "never set".into() },
    ];
    store.append(at(run, 3, with(timers))).await.unwrap();
    assert_eq!(due().await, [""; 0]);
}

pub async fn d11_outbox_messages_stay_until_they_are_delivered(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let outbox = vec![safe(json!({"n": 1})), safe(json!({"n": 2})), safe(json!({"n": 3}))];
    store.append(at(run, 1, Writes { outbox, ..one(json!({})) })).await.unwrap();
    let mine = async || {
        let all = store.undelivered(0, 5000).await.unwrap();
        all.into_iter().filter(|item| item.run == run).collect::<Vec<_>>()
    };
    let waiting = mine().await;
    let payloads: Vec<&[u8]> = waiting.iter().map(|item| item.payload.as_slice()).collect();
    assert_eq!(payloads, [br#"{"n":1}"#, br#"{"n":2}"#, br#"{"n":3}"#]);
    assert!(waiting.windows(2).all(|pair| pair[0].id < pair[1].id));
    let after = store.undelivered(waiting[0].id, 1).await.unwrap();
    assert_eq!(after, [waiting[1].clone()]);
    store.delivered(&[waiting[0].id, waiting[2].id]).await.unwrap();
    store.delivered(&[waiting[0].id]).await.unwrap();
    assert_eq!(mine().await, [waiting[1].clone()]);
    store.delivered(&[waiting[1].id]).await.unwrap();
    store.delivered(&[]).await.unwrap();
    assert_eq!(mine().await, []);
}

pub async fn d11_a_result_is_kept_once_for_its_key(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let key = KeyDigest::of(&["task_create", "person:ada", &run.to_string()]);
    let far = Timestamp::from_unix_ms(4_000_000_000_000);
    let result = KeyedResult { key, fingerprint: [5; 32], result: safe(json!({"ok": 1})), expires: far };
    assert_eq!(store.kept(key).await.unwrap(), None);
    let writes = Writes { result: Some(result.clone()), ..one(json!({})) };
    store.append(at(run, 1, writes)).await.unwrap();
    let kept = KeptResult { fingerprint: [5; 32], result: br#"{"ok":1}"#.to_vec() };
    assert_eq!(store.kept(key).await.unwrap(), Some(kept.clone()));
    store.keep(result.clone()).await.unwrap();
    for other in [
        KeyedResult { fingerprint: [6; 32], ..result.clone() },
        KeyedResult { result: safe(json!({"ok": 2})), ..result.clone() },
    ] {
        let error = store.keep(other).await.unwrap_err();
        assert!(matches!(error, StorageError::AlreadyExists(..)), "{error}");
    }
    assert_eq!(store.kept(key).await.unwrap(), Some(kept));

    let gone = KeyDigest::of(&["gone", &run.to_string()]);
    let expires = Timestamp::from_unix_ms(1);
    store.keep(KeyedResult { key: gone, expires, ..result.clone() }).await.unwrap();
    assert_eq!(store.kept(gone).await.unwrap(), None);
    // An expired key is free.
    store.keep(KeyedResult { key: gone, expires, fingerprint: [9; 32], ..result.clone() }).await.unwrap();
    assert!(store.forget_expired(5000).await.unwrap() >= 1);
    assert!(store.kept(key).await.unwrap().is_some());
    // Parts cannot be shifted into each other.
    assert_ne!(KeyDigest::of(&["ab", "c"]), KeyDigest::of(&["a", "bc"]));
}

pub async fn b09_blobs_are_kept_once_and_collected_only_when_nothing_refers_to_them(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let text = |what: &str| safe_text(&format!("{what} of {run} {}", "content ".repeat(50_000)));
    let kept = store.put(text("kept").into()).await.unwrap();
    assert_eq!(store.put(text("kept").into()).await.unwrap(), kept);
    let loose = store.put(text("loose").into()).await.unwrap();
    assert_ne!(kept, loose);
    let mut referring = event(json!({"blob": kept}));
    referring.blobs.push(kept);
    store.append(at(run, 1, Writes { events: vec![referring], ..Writes::default() })).await.unwrap();
    // There is time to refer to a fresh one.
    store.collect(Duration::from_secs(3600)).await.unwrap();
    assert_eq!(store.get(loose).await.unwrap(), text("loose").as_bytes());
    let collected = store.collect(Duration::ZERO).await.unwrap();
    assert!(collected.blobs >= 1 && collected.bytes >= text("loose").len() as u64, "{collected:?}");
    let error = store.get(loose).await.unwrap_err();
    assert!(matches!(error, StorageError::NotFound(..)), "{error}");
    assert_eq!(store.get(kept).await.unwrap(), text("kept").as_bytes());
    // What was collected can be put again.
    assert_eq!(store.put(text("loose").into()).await.unwrap(), loose);
    assert_eq!(store.get(loose).await.unwrap(), text("loose").as_bytes());
    let empty = store.put(safe_text("").into()).await.unwrap();
    assert_eq!(store.get(empty).await.unwrap(), b"");
}

pub async fn d11_runs_are_listed_newest_first_in_pages(store: Arc<dyn Store>) {
    let mut runs = super::ManyRuns::start(&*store, 7).await.0;
    let done = runs[3];
    let mut writes = one(json!({}));
    writes.projection = Some(crate::Projection { status: "done by test", state: safe(json!({})) });
    store.append(at(done, 1, writes)).await.unwrap();
    runs.sort();
    runs.reverse();
    let mut listed = Vec::new();
    let mut before = None;
    loop {
        let page = store.runs(RunsQuery { status: None, before, limit: 2 }).await.unwrap();
        assert!(page.runs.len() <= 2);
        before = page.runs.last().map(|row| row.run);
        listed.extend(page.runs.into_iter().map(|row| row.run));
        if !page.more {
            break;
        }
    }
    assert!(listed.windows(2).all(|pair| pair[0] > pair[1]));
    let mine: Vec<_> = listed.into_iter().filter(|run| runs.contains(run)).collect();
    assert_eq!(mine, runs);
    let query = RunsQuery { status: Some("done by test".to_owned()), before: None, limit: 10 };
    let page = store.runs(query).await.unwrap();
    assert!(
        page.runs.iter().any(|row| row.run == done)
            && page.runs.iter().all(|row| row.status == "done by test")
    );
    let row = store.run(done).await.unwrap().unwrap();
    assert_eq!((row.sequence, row.status.as_str()), (2, "done by test"));
    assert!(row.created <= row.updated);
}
