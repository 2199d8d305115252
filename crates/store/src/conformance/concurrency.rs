//! Many writers at once, against a simple model: what was acknowledged is exactly what is there, in some one order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use runyard_domain::RunId;
use serde_json::json;

use super::fixtures::{append, fresh_append, one, start};
use super::log::count_up;
use crate::{Change, Place, StorageError, Store, verify};

const WRITERS: u64 = 8;

/// What the writers were told: place by place, whose event it is.
type Acknowledged = BTreeMap<(RunId, u64), (u64, u64)>;

/// Writes `count` events to runs in turn, half of them at a place and half at the head, and returns what was acknowledged.
async fn writer(store: Arc<dyn Store>, runs: Vec<RunId>, writer: u64, count: u64) -> Acknowledged {
    let mut acknowledged = Acknowledged::new();
    for n in 0..count {
        let run = runs[((writer + n) % runs.len() as u64) as usize];
        let payload = json!({"writer": writer, "n": n});
        let appended = if (writer + n).is_multiple_of(2) {
            let decide = Box::new(move |row: &crate::RunRow| {
                let mut writes = count_up(&row.state);
                writes.events = one(payload.clone()).events;
                Ok(writes)
            });
            let place = Place::Head(decide);
            store.append(Change { run, append: fresh_append(), generation: None, place }).await.unwrap()
        } else {
            let mut after = store.head(run).await.unwrap().unwrap();
            loop {
                match append(&*store, run, after, payload.clone()).await {
                    Ok(appended) => break appended,
                    Err(StorageError::VersionConflict { expected, actual }) => {
                        assert!(expected == after && actual != after);
                        after = actual;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        };
        assert_eq!(appended.first, appended.last);
        let before = acknowledged.insert((run, appended.first), (writer, n));
        assert_eq!(before, None, "one place was given twice");
    }
    acknowledged
}

async fn check_against_the_model(store: Arc<dyn Store>, runs: Vec<RunId>, count: u64) {
    let writers: Vec<_> =
        (0..WRITERS).map(|n| tokio::spawn(writer(store.clone(), runs.clone(), n, count))).collect();
    let mut model = Acknowledged::new();
    for writer in writers {
        for (place, event) in writer.await.unwrap() {
            assert_eq!(model.insert(place, event), None, "one place was given to two writers");
        }
    }
    assert_eq!(model.len() as u64, WRITERS * count);
    let mut counted = 0;
    for run in runs {
        let events = store.read(run, 0, 5000).await.unwrap();
        let of_run = model.range((run, 0)..=(run, u64::MAX));
        assert_eq!(events.len(), of_run.clone().count() + 1);
        for ((_, sequence), (writer, n)) in of_run {
            let envelope = events[*sequence as usize - 1].envelope().unwrap();
            assert_eq!(envelope.sequence, *sequence);
            assert_eq!(envelope.payload, json!({"writer": writer, "n": n}));
        }
        assert_eq!(verify(&*store, run).await.unwrap().unwrap().events, events.len() as u64);
        let row = store.run(run).await.unwrap().unwrap();
        let state: serde_json::Value = serde_json::from_slice(&row.state).unwrap();
        counted += state["count"].as_u64().unwrap();
    }
    // Each change at the head saw the state that the one before it left.
    assert_eq!(counted, WRITERS * count / 2);
}

pub async fn c07_eight_writers_on_one_run_agree_with_the_model(store: Arc<dyn Store>) {
    let run = start(&*store).await;
    check_against_the_model(store, vec![run], 20).await;
}

pub async fn c07_eight_writers_on_many_runs_agree_with_the_model(store: Arc<dyn Store>) {
    let runs = super::ManyRuns::start(&*store, 16).await.0;
    check_against_the_model(store, runs, 40).await;
}

pub async fn d11_a_head_change_is_not_starved_by_a_chatty_writer(store: Arc<dyn Store>) {
    const CHATTER_MAX: u64 = 20_000;
    let run = start(&*store).await;
    let answered = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicU64::new(0));
    let chatty = tokio::spawn({
        let (store, answered, written) = (store.clone(), answered.clone(), written.clone());
        async move {
            let mut after = 1;
            while !answered.load(Ordering::SeqCst) {
                assert!(
                    written.fetch_add(1, Ordering::SeqCst) < CHATTER_MAX,
                    "the answer never came through"
                );
                after = match append(&*store, run, after, json!({"chatter": true})).await {
                    Ok(appended) => appended.last,
                    Err(StorageError::VersionConflict { actual, .. }) => actual,
                    Err(error) => panic!("{error}"),
                };
            }
        }
    });
    for _ in 0..10 {
        while written.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let place = Place::Head(Box::new(|row| Ok(count_up(&row.state))));
        // It never has to be repeated, whatever the other writes.
        store.append(Change { run, append: fresh_append(), generation: None, place }).await.unwrap();
    }
    answered.store(true, Ordering::SeqCst);
    chatty.await.unwrap();
    assert!(verify(&*store, run).await.unwrap().is_ok());
}
