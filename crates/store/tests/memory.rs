//! The store in memory keeps every promise but one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail like tests")]

use std::sync::Arc;
use std::time::Duration;

use runyard_store::conformance::{one, start};
use runyard_store::{
    Acquired, Change, Leases, ManualClock, MemoryStore, Place, Runs, StorageError, Store, ThreadRunStore,
    conformance_tests, thread_conformance_tests,
};
use serde_json::json;

async fn memory() -> (Arc<dyn Store>, ()) {
    (Arc::new(MemoryStore::new()), ())
}

conformance_tests!(memory);

async fn threads() -> (Arc<dyn ThreadRunStore>, ()) {
    (Arc::new(MemoryStore::new()), ())
}

thread_conformance_tests!(threads);

const TERM: Duration = Duration::from_secs(30);

fn generation(acquired: Acquired) -> u64 {
    match acquired {
        Acquired::Granted(lease) => lease.generation,
        Acquired::Held { owner, .. } => panic!("held by {owner}"),
    }
}

// clause: D11
#[tokio::test]
async fn a_clock_that_jumps_never_lets_two_owners_write() {
    let clock = Arc::new(ManualClock::at(1_000_000));
    let store = MemoryStore::with_clock(clock.clone());
    let run = start(&store).await;
    let first = generation(store.acquire(run, "one".into(), TERM).await.unwrap());
    clock.advance_ms(29_999);
    assert!(matches!(store.acquire(run, "two".into(), TERM).await.unwrap(), Acquired::Held { .. }));
    // Forwards: it is over, whoever jumped.
    clock.advance_ms(1);
    let second = generation(store.acquire(run, "two".into(), TERM).await.unwrap());
    // Backwards, by a day: nobody waits for a day.
    clock.advance_ms(-86_400_000);
    let third = generation(store.acquire(run, "three".into(), TERM).await.unwrap());
    assert_eq!((first, second, third), (1, 2, 3));
    for (held, accepted) in [(first, false), (second, false), (third, true)] {
        let place = Place::At(1, one(json!({"held": held})));
        let append = runyard_domain::AppendId::from_parts(1, &[held as u8; 10]);
        let written =
            runyard_store::EventLog::append(&store, Change { run, append, generation: Some(held), place })
                .await;
        match written {
            Ok(_) => assert!(accepted, "generation {held} wrote"),
            Err(StorageError::StaleGeneration { current, .. }) => assert!(!accepted && current == third),
            Err(error) => panic!("{error}"),
        }
    }
    // An owner whose clock was set back renews, and is asked for the new term's end.
    clock.advance_ms(-1_000);
    let renewed = store.renew(run, third, TERM).await.unwrap();
    assert_eq!(renewed.expires, store.run(run).await.unwrap().unwrap().lease.unwrap().expires);
    assert!(matches!(store.acquire(run, "four".into(), TERM).await.unwrap(), Acquired::Held { .. }));
}

// clause: B11
#[tokio::test]
async fn no_planted_secret_is_delivered() {
    runyard_store::conformance::plant_secrets(Arc::new(MemoryStore::new())).await;
}

// clause: B11
#[tokio::test]
async fn no_planted_secret_is_read_from_a_thread() {
    runyard_store::conformance::plant_thread_secrets(Arc::new(MemoryStore::new())).await;
}
