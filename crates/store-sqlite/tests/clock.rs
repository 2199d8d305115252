//! The database's clock: leases by it, jumps of it, and what a restart makes of it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use runyard_store::conformance::{fresh_append, one, start};
use runyard_store::{
    Acquired, Blobs, Change, Clock, EventLog, Leases, ManualClock, Place, Runs, StorageError, SystemClock,
    Timers,
};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::json;
use support::{open, place, runtime};

const TERM: Duration = Duration::from_secs(30);
const HOUR_MS: i64 = 3_600_000;

fn by(clock: &Arc<ManualClock>, database: &Path) -> SqliteStore {
    SqliteStore::open(OpenOptions::new(database, "the test").clock(Arc::clone(clock) as _)).unwrap()
}

fn generation(acquired: Acquired) -> u64 {
    match acquired {
        Acquired::Granted(lease) => lease.generation,
        Acquired::Held { owner, .. } => panic!("held by {owner}"),
    }
}

#[test]
fn d11_a_clock_that_jumps_never_lets_two_owners_write() {
    let (_folder, database) = place();
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let store = by(&clock, &database);
    runtime().block_on(async {
        let run = start(&store).await;
        let first = generation(store.acquire(run, "one".into(), TERM).await.unwrap());
        clock.advance_ms(29_999);
        assert!(matches!(store.acquire(run, "two".into(), TERM).await.unwrap(), Acquired::Held { .. }));
        clock.advance_ms(1);
        let second = generation(store.acquire(run, "two".into(), TERM).await.unwrap());
        clock.advance_ms(-24 * HOUR_MS);
        let third = generation(store.acquire(run, "three".into(), TERM).await.unwrap());
        assert_eq!((first, second, third), (1, 2, 3));
        for (held, is_accepted) in [(first, false), (second, false), (third, true)] {
            let place = Place::At(1, one(json!({ "held": held })));
            let change = Change { run, append: fresh_append(), generation: Some(held), place };
            match store.append(change).await {
                Ok(_) => assert!(is_accepted, "generation {held} wrote"),
                Err(StorageError::StaleGeneration { current, .. }) => {
                    assert!(!is_accepted && current == third);
                }
                Err(error) => panic!("{error}"),
            }
        }
        // The lease is in the run's row, and survives the process.
        let before = store.run(run).await.unwrap().unwrap();
        store.close().await;
        drop(store);
        let store = by(&clock, &database);
        assert_eq!(store.run(run).await.unwrap().unwrap(), before);
        assert!(matches!(store.acquire(run, "four".into(), TERM).await.unwrap(), Acquired::Held { .. }));
        store.release(run, third).await.unwrap();
        assert_eq!(generation(store.acquire(run, "four".into(), TERM).await.unwrap()), 4);
    });
}

/// Does something at a time in the future by a clock of its own, and gives the time that the database goes on from
/// afterwards, when the machine's clock is back where it was.
fn goes_on_from(what: impl AsyncFnOnce(&SqliteStore, &ManualClock), closes: bool) -> i64 {
    let (_folder, database) = place();
    let ahead_ms = SystemClock.now().unix_ms() + HOUR_MS;
    let clock = Arc::new(ManualClock::at(ahead_ms));
    let store = by(&clock, &database);
    runtime().block_on(async {
        what(&store, &clock).await;
        if closes {
            store.close().await;
        }
    });
    let found = if closes {
        drop(store);
        let own = open(&database);
        runtime().block_on(own.now()).unwrap().unix_ms()
    } else {
        // As after a crash: what is on the disk while the first one has it.
        let copy = database.with_extension("copy");
        std::fs::copy(&database, &copy).unwrap();
        std::fs::copy(database.with_extension("db-wal"), database.with_extension("copy-wal")).unwrap();
        let own = open(&copy);
        runtime().block_on(own.now()).unwrap().unix_ms()
    };
    found - clock.now().unix_ms()
}

#[test]
fn d11_time_does_not_go_back_over_a_restart_whatever_was_written_last() {
    #[track_caller]
    fn check(found_ms: i64) {
        assert!((0..60_000).contains(&found_ms), "{found_ms} ms after what was written");
    }
    for closes in [true, false] {
        check(goes_on_from(async |store, _| _ = start(store).await, closes));
        check(goes_on_from(
            async |store, clock| {
                let run = start(store).await;
                clock.advance_ms(HOUR_MS);
                store.acquire(run, "one".into(), TERM).await.unwrap();
            },
            closes,
        ));
        check(goes_on_from(
            async |store, _| _ = store.put(runyard_redact::Safe::<String>::from("x").into()).await.unwrap(),
            closes,
        ));
    }
}

#[test]
fn d11_the_databases_own_clock_goes_on_steadily() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let first = store.now().await.unwrap();
        let wall = SystemClock.now();
        assert!((first.unix_ms() - wall.unix_ms()).abs() < 5_000);
        tokio::time::sleep(Duration::from_millis(50)).await;
        let then = store.now().await.unwrap();
        assert!((50..5_000).contains(&(then.unix_ms() - first.unix_ms())));
    });
}
