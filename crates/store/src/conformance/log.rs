//! The log: order, guards, repetition, pages, bytes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use runyard_domain::{Code, SessionId, Timestamp};
use runyard_redact::Safe;
use serde_json::{Value, json};

use super::fixtures::{append, at, event, fresh_append, fresh_approval, fresh_run, one, safe, start};
use crate::{
    Acquired, Appended, ApprovalWrite, Change, KeyDigest, KeyedResult, PAYLOAD_BYTES_MAX, Place, Projection,
    Refusal, StorageError, Store, TimerWrite, Writes, bounded_text, verify,
};

pub async fn c06_an_event_is_stored_as_its_envelope(store: Arc<dyn Store>) {
    let run = fresh_run();
    let session = SessionId::from_parts(1, &[2; 10]);
    let mut first = event(json!({"text": "hello"}));
    first.at = Timestamp::from_unix_ms(1_700_000_000_007);
    first.session = Some(session);
    first.agent = Some(Safe::from("codex"));
    first.v = 3;
    let id = first.id;
    let second = event(json!({"n": 2}));
    let writes = Writes { events: vec![first, second], ..Writes::default() };
    store.append(at(run, 0, writes)).await.unwrap();

    let events = store.read(run, 0, 10).await.unwrap();
    let text = String::from_utf8(events[0].body.to_vec()).unwrap();
    assert_eq!(
        text,
        format!(
            "{{\"sequence\":1,\"id\":\"{id}\",\"type\":\"run.message.delta\",\"runId\":\"{run}\",\"sessionId\":\
             \"{session}\",\"agentId\":\"codex\",\"timestamp\":\"2023-11-14T22:13:20.007Z\",\"v\":3,\
             \"payload\":{{\"text\":\"hello\"}}}}"
        )
    );
    let envelope = events[1].envelope().unwrap();
    assert_eq!(envelope.sequence, 2);
    assert_eq!(envelope.prev_hash, Some(events[0].hash().to_string()));
    assert_eq!((envelope.run_id, envelope.session_id, envelope.agent_id), (run, None, None));
    let read: Value = serde_json::from_slice(&events[1].body).unwrap();
    let names: Vec<&String> = read.as_object().unwrap().keys().collect();
    assert_eq!(names, ["sequence", "prevHash", "id", "type", "runId", "timestamp", "v", "payload"]);
}

pub async fn c07_sequences_are_gapless_from_1_and_ids_are_unique(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let mut after = 1;
    for batch in [1, 5, 16, 1, 64] {
        let events = (0..batch).map(|n| event(json!({"n": n}))).collect();
        let appended = store.append(at(run, after, Writes { events, ..Writes::default() })).await.unwrap();
        assert_eq!(appended, Appended { first: after + 1, last: after + batch });
        after = appended.last;
    }
    assert_eq!(store.head(run).await.unwrap(), Some(after));
    let events = store.read(run, 0, 1000).await.unwrap();
    let sequences: Vec<u64> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (1..=after).collect::<Vec<u64>>());
    let envelopes: Vec<_> = events.iter().map(|event| event.envelope().unwrap()).collect();
    assert!(envelopes.iter().zip(1..).all(|(envelope, sequence)| envelope.sequence == sequence));
    assert!(envelopes.iter().all(|envelope| envelope.run_id == run));
    let ids: HashSet<_> = envelopes.iter().map(|envelope| envelope.id).collect();
    assert_eq!(ids.len() as u64, after);
    assert_eq!(store.head(fresh_run()).await.unwrap(), None);
    assert_eq!(store.read(fresh_run(), 0, 10).await.unwrap(), []);
}

pub async fn d11_a_conflict_names_both_places_and_leaves_nothing(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    append(&*store, run, 1, json!({"n": 2})).await.unwrap();
    let before = (store.run(run).await.unwrap(), store.read(run, 0, 100).await.unwrap());
    for (guard, expected) in [(0, 0), (1, 1), (3, 3), (u64::from(u32::MAX), u64::from(u32::MAX))] {
        let approval = fresh_approval();
        let key = KeyDigest::of(&["conflict", &approval.to_string()]);
        let writes = everything(approval, key);
        let error = store.append(at(run, guard, writes)).await.unwrap_err();
        assert!(
            matches!(error, StorageError::VersionConflict { expected: e, actual: 2 } if e == expected),
            "at {guard}: {error}"
        );
        assert_eq!(error.code(), Code::StorageVersionConflict);
        assert_eq!(store.approval(approval).await.unwrap(), None);
        assert_eq!(store.kept(key).await.unwrap(), None);
    }
    assert_eq!((store.run(run).await.unwrap(), store.read(run, 0, 100).await.unwrap()), before);
    assert!(store.due_timers(1000).await.unwrap().iter().all(|timer| timer.run != run));
    assert!(store.undelivered(0, 1000).await.unwrap().iter().all(|item| item.run != run));
}

pub async fn d11_a_refused_row_leaves_nothing_of_its_change(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let approval = fresh_approval();
    let key = KeyDigest::of(&["row", &approval.to_string()]);
    store.append(at(run, 1, everything(approval, key))).await.unwrap();
    let row = store.run(run).await.unwrap();

    // The same approval and key again, in an otherwise good change, beside good changes of other runs.
    let others = super::ManyRuns::start(&*store, 4).await.0;
    let mut refused = everything(approval, KeyDigest::of(&["another", &approval.to_string()]));
    refused.events.push(event(json!({"n": 3})));
    let good = others.iter().map(|run| append(&*store, *run, 1, json!({"good": true})));
    let (answer, good) = tokio::join!(store.append(at(run, 2, refused)), async { join_all(good).await });
    assert!(matches!(answer, Err(StorageError::AlreadyExists(..))), "{answer:?}");
    assert!(good.iter().all(Result::is_ok), "{good:?}");
    assert_eq!(store.run(run).await.unwrap(), row);
    assert_eq!(store.read(run, 2, 10).await.unwrap(), []);
    assert_eq!(store.kept(KeyDigest::of(&["another", &approval.to_string()])).await.unwrap(), None);
    // The run goes on where it was.
    assert_eq!(append(&*store, run, 2, json!({})).await.unwrap(), Appended { first: 3, last: 3 });
}

/// Waits for all, one after the other.
async fn join_all<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut all = Vec::new();
    for future in futures {
        all.push(future.await);
    }
    all
}

/// A change that writes a row of every kind.
fn everything(approval: runyard_domain::ApprovalId, key: KeyDigest) -> Writes {
    let long_ago = Timestamp::from_unix_ms(1);
    let far = Timestamp::from_unix_ms(4_000_000_000_000);
    Writes {
        events: vec![event(json!({"everything": true}))],
        projection: Some(Projection { status: "waiting", state: safe(json!({"count": 99})) }),
        approvals: vec![ApprovalWrite::Open {
            id: approval,
            expires: far,
            request: safe(json!({"verb": "write"})),
        }],
        timers: vec![
            TimerWrite::Set { name: "deadline".into(), due: far, payload: Safe::NULL },
            TimerWrite::Set { name: "overdue".into(), due: long_ago, payload: safe(json!({"t": 1})) },
        ],
        outbox: vec![safe(json!({"to": "others"}))],
        result: Some(KeyedResult {
            key,
            fingerprint: [1; 32],
            result: safe(json!({"ok": true})),
            expires: far,
        }),
    }
}

pub async fn d11_a_change_that_can_never_be_made_is_a_validation_error(store: Arc<dyn Store>) {
    let run = fresh_run();
    let nothing = store.append(at(run, 0, Writes::default())).await.unwrap_err();
    assert!(matches!(nothing, StorageError::Validation(..)), "{nothing}");
    let many = Writes { events: (0..300).map(|n| event(json!({"n": n}))).collect(), ..Writes::default() };
    let many = store.append(at(run, 0, many)).await.unwrap_err();
    assert!(matches!(many, StorageError::Validation(..)), "{many}");
    // What nobody could read back, and rows without a limit.
    let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    let deep = store.append(at(run, 0, one(nested(121)))).await.unwrap_err();
    assert!(matches!(deep, StorageError::Validation(..)), "{deep}");
    let large = Writes { outbox: vec![safe(json!("x".repeat(PAYLOAD_BYTES_MAX)))], ..one(json!({})) };
    let large = store.append(at(run, 0, large)).await.unwrap_err();
    assert!(matches!(large, StorageError::Validation(..)), "{large}");
    let name = super::fixtures::safe_text(&"n".repeat(5_000));
    let named = Writes { timers: vec![TimerWrite::Cancel { name }], ..one(json!({})) };
    let named = store.append(at(run, 0, named)).await.unwrap_err();
    assert!(matches!(named, StorageError::Validation(..)), "{named}");
    let blob = crate::blob_id(b"a blob that nobody put");
    let mut dangling = event(json!({}));
    dangling.blobs.push(blob);
    let dangling = Writes { events: vec![dangling], ..Writes::default() };
    let error = store.append(at(run, 0, dangling)).await.unwrap_err();
    assert!(matches!(&error, StorageError::NotFound(what) if what.contains(&blob.to_string())), "{error}");
    let head = Change {
        run,
        append: fresh_append(),
        generation: None,
        place: Place::Head(Box::new(|_| Ok(one(json!({}))))),
    };
    let error = store.append(head).await.unwrap_err();
    assert!(matches!(&error, StorageError::NotFound(what) if what.contains(&run.to_string())), "{error}");
    assert_eq!(store.run(run).await.unwrap(), None);
}

pub async fn d11_a_head_change_sees_the_row_and_may_refuse(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let head = |place| Change { run, append: fresh_append(), generation: None, place: Place::Head(place) };
    let counted = store.append(head(Box::new(|row| Ok(count_up(&row.state)))));
    assert_eq!(counted.await.unwrap(), Appended { first: 2, last: 2 });
    let row = store.run(run).await.unwrap().unwrap();
    assert_eq!((row.status.as_str(), row.state.as_slice()), ("counting", br#"{"count":1}"#.as_slice()));
    let refused = store.append(head(Box::new(|row| {
        assert_eq!(row.sequence, 2);
        Err(Refusal { code: Code::Conflict, source: "not in this state".into() })
    })));
    let error = refused.await.unwrap_err();
    assert!(matches!(error, StorageError::Refused { code: Code::Conflict, .. }), "{error}");
    assert_eq!(store.run(run).await.unwrap().unwrap(), row);
}

/// One event, and the state counted up.
pub(super) fn count_up(state: &[u8]) -> Writes {
    let state: Value = serde_json::from_slice(state).unwrap();
    let count = state["count"].as_u64().unwrap() + 1;
    let mut writes = one(json!({"count": count}));
    writes.projection = Some(Projection { status: "counting", state: safe(json!({"count": count})) });
    writes
}

pub async fn d11_a_change_at_a_place_is_made_once_however_often_it_is_sent(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let append_id = fresh_append();
    let writes = Writes { events: vec![event(json!({"a": 1})), event(json!({"a": 2}))], ..Writes::default() };
    let again = |writes: &Writes| Change {
        run,
        append: append_id,
        generation: None,
        place: Place::At(1, writes.clone()),
    };
    let expected = Appended { first: 2, last: 3 };
    assert_eq!(store.append(again(&writes)).await.unwrap(), expected);
    assert_eq!(store.append(again(&writes)).await.unwrap(), expected);
    // Also after others wrote, and under a lease that somebody else holds by now.
    append(&*store, run, 3, json!({"b": 1})).await.unwrap();
    assert_eq!(store.append(again(&writes)).await.unwrap(), expected);
    let taken = store.acquire(run, "runner".into(), Duration::from_secs(60)).await.unwrap();
    assert!(matches!(taken, Acquired::Granted(_)));
    let stale = Change { generation: Some(0), ..again(&writes) };
    assert_eq!(store.append(stale).await.unwrap(), expected);
    assert_eq!(store.head(run).await.unwrap(), Some(4));
    // The same id with another content is a mistake, and is told from a conflict.
    let error = store.append(again(&one(json!({"other": true})))).await.unwrap_err();
    assert!(matches!(error, StorageError::AlreadyExists(..)), "{error}");
    // Nor can it grow: what was not written is not acknowledged.
    let mut more = writes.clone();
    more.events.extend([event(json!({"a": 3})), event(json!({"a": 4}))]);
    let error = store.append(again(&more)).await.unwrap_err();
    assert!(matches!(error, StorageError::VersionConflict { expected: 1, actual: 4 }), "{error}");
    // Another id at that place is an ordinary conflict.
    let error = store.append(at(run, 1, writes)).await.unwrap_err();
    assert!(matches!(error, StorageError::VersionConflict { expected: 1, actual: 4 }), "{error}");
}

pub async fn d11_a_change_at_the_head_is_made_once_however_often_it_is_sent(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let append_id = fresh_append();
    let again = || Change {
        run,
        append: append_id,
        generation: None,
        place: Place::Head(Box::new(|row| Ok(count_up(&row.state)))),
    };
    let expected = Appended { first: 2, last: 2 };
    assert_eq!(store.append(again()).await.unwrap(), expected);
    append(&*store, run, 2, json!({"b": 1})).await.unwrap();
    assert_eq!(store.append(again()).await.unwrap(), expected);
    let row = store.run(run).await.unwrap().unwrap();
    assert_eq!((row.sequence, row.state.as_slice()), (3, br#"{"count":1}"#.as_slice()));
}

pub async fn b09_events_are_read_in_pages(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    for after in 1..40 {
        append(&*store, run, after, json!({"n": after + 1})).await.unwrap();
    }
    let whole = store.read(run, 0, 1000).await.unwrap();
    assert_eq!(whole.len(), 40);
    for limit in [1, 7, 39, 40, 41] {
        let mut pages = Vec::new();
        loop {
            let page = store.read(run, pages.len() as u64, limit).await.unwrap();
            assert!(page.len() <= limit as usize);
            if page.is_empty() {
                break;
            }
            pages.extend(page);
        }
        assert_eq!(pages, whole, "in pages of {limit}");
    }
    assert_eq!(store.read(run, 40, 10).await.unwrap(), []);
    assert_eq!(store.read(run, u64::MAX, 10).await.unwrap(), []);
    assert_eq!(store.read(run, 0, 0).await.unwrap(), []);
    assert_eq!(store.read(run, 0, u32::MAX).await.unwrap(), whole);
}

pub async fn c07_payloads_come_back_byte_for_byte(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let big = "ab€\n".repeat(PAYLOAD_BYTES_MAX / 8);
    let payloads = [
        json!({"text": "日本語 — naïve 🏃‍♀️ \u{0} \u{7f} \u{feff} \u{2028} \\ \" / \u{10ffff}"}),
        json!({"deep": [[[{"a": null}]], 1.5, -0.0, 1e300, u64::MAX, i64::MIN, true, "", {}]}),
        json!({"z": 1, "a": 2, "é": 3, "": 4}),
        (0..120).fold(json!(1), |inner, _| json!([inner])),
        Value::Null,
        json!({"text": big}),
    ];
    for (payload, after) in payloads.iter().zip(1..) {
        append(&*store, run, after, payload.clone()).await.unwrap();
    }
    let events = store.read(run, 1, 100).await.unwrap();
    for (payload, event) in payloads.iter().zip(&events) {
        let body = std::str::from_utf8(&event.body).unwrap();
        let stored = &body[body.find("\"payload\":").unwrap() + 10..body.len() - 1];
        assert!(stored == serde_json::to_string(payload).unwrap(), "{}", &stored[..stored.len().min(200)]);
        assert_eq!(event.envelope().unwrap().payload, *payload);
    }
    assert!(verify(&*store, run).await.unwrap().is_ok());
}

pub async fn b09_a_payload_beyond_the_limit_is_refused(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let frame = serde_json::to_string(&json!({"text": ""})).unwrap().len();
    let fits = "x".repeat(PAYLOAD_BYTES_MAX - frame);
    append(&*store, run, 1, json!({"text": fits})).await.unwrap();
    let error = append(&*store, run, 2, json!({"text": format!("{fits}x")})).await.unwrap_err();
    assert!(matches!(&error, StorageError::Validation(what) if what.contains("limit")), "{error}");
    assert_eq!(store.head(run).await.unwrap(), Some(2));
}

pub async fn b09_a_long_text_goes_to_a_blob_and_the_event_says_what_was_cut(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    let text = "0123456789ä\n".repeat(20_000);
    let Value::String(redacted) = safe(Value::String(text.clone())).into_inner() else { panic!("a text") };
    assert_eq!(redacted, text);
    let long = super::fixtures::safe_text(&text);
    let (payload, blobs) = bounded_text(&*store, long).await.unwrap();
    let mut referring = event(Value::Null);
    (referring.payload, referring.blobs) = (payload, blobs.clone());
    store.append(at(run, 1, Writes { events: vec![referring], ..Writes::default() })).await.unwrap();

    let read = store.read(run, 1, 1).await.unwrap()[0].envelope().unwrap().payload;
    let (start, end) = (read["text"].as_str().unwrap(), read["textEnd"].as_str().unwrap());
    assert!(text.starts_with(start) && text.ends_with(end) && start.len() > 4000 && end.len() > 4000);
    assert_eq!(
        (read["truncated"].clone(), read["bytes"].as_u64().unwrap()),
        (json!(true), text.len() as u64)
    );
    assert_eq!(read["cutBytes"].as_u64().unwrap() as usize, text.len() - start.len() - end.len());
    assert_eq!(read["blob"], json!(blobs[0]));
    assert_eq!(store.get(read["blob"].as_str().unwrap().parse().unwrap()).await.unwrap(), text.as_bytes());

    let (short, blobs) = bounded_text(&*store, super::fixtures::safe_text("short")).await.unwrap();
    assert_eq!((short.into_inner(), blobs), (json!({"text": "short", "truncated": false}), vec![]));
}

pub async fn c07_a_log_verifies_from_its_first_event_to_its_head(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    for after in 1..20 {
        append(&*store, run, after, json!({"n": after})).await.unwrap();
    }
    let verified = verify(&*store, run).await.unwrap().unwrap();
    let last = store.read(run, 19, 1).await.unwrap()[0].clone();
    assert_eq!((verified.events, verified.head), (20, Some(last.hash())));
    assert_eq!(store.run(run).await.unwrap().unwrap().head, Some(last.hash()));
    let missing = verify(&*store, fresh_run()).await.unwrap_err();
    assert!(matches!(missing, StorageError::NotFound(..)), "{missing}");
}
