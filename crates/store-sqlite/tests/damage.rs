//! Damage: it is found, it is named, and it does not spread.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::path::Path;

use runyard_domain::RunId;
use runyard_redact::Safe;
use runyard_store::conformance::{event, fresh_append, one, safe};
use runyard_store::{
    Blobs, Break, BreakKind, Change, EventLog, Place, Projection, Runs, RunsQuery, StorageError, blob_id,
    verify,
};
use runyard_store_sqlite::{Finding, SqliteStore};
use serde_json::json;
use support::{change, open, place, proof, run_number, runtime};

const EVENTS: u64 = 20;
const RUNS: u64 = 5;

/// Some runs, written one after another, so that each has pages of its own.
fn filled(database: &Path) {
    let store = open(database);
    runtime().block_on(async {
        for run in 0..RUNS {
            for place in 0..EVENTS {
                let text = format!("run {run} event {} ", place + 1).repeat(60);
                let event = event(json!({ "marker": place, "text": text }));
                store.append(change(run_number(run), place, vec![event])).await.unwrap();
            }
        }
        store.close().await;
    });
}

fn by_hand(database: &Path, sql: &str) {
    let raw = rusqlite::Connection::open(database).unwrap();
    assert!(raw.execute(sql, []).unwrap() > 0, "{sql}");
}

async fn verified(store: &SqliteStore, run: u64) -> Result<u64, Break> {
    verify(store, run_number(run)).await.unwrap().map(|verified| verified.events)
}

/// The key of the third run, which the hands are laid on.
const OF_RUN_3: &str = "run = (SELECT min(key) + 3 FROM runs)";

#[track_caller]
fn check_edit(sql: &str, expected: Break) {
    let (_folder, database) = place();
    filled(&database);
    by_hand(&database, sql);
    let store = open(&database);
    runtime().block_on(async {
        assert_eq!(verified(&store, 3).await, Err(expected.clone()), "{sql}");
        // What is missing shows in the tables already; what is only different shows in the chain alone.
        let findings = match expected {
            Break { kind: BreakKind::Missing, sequence } => {
                vec![Finding::Misplaced { run: run_number(3), sequence }]
            }
            _ => Vec::new(),
        };
        assert_eq!(store.check().await.unwrap(), findings, "{sql}");
        for run in [0, 1, 2, 4] {
            assert_eq!(verified(&store, run).await, Ok(EVENTS), "{sql}");
        }
    });
}

#[test]
fn c07_an_event_that_was_changed_by_hand_is_named() {
    let edit =
        |what: &str, place| format!("UPDATE events SET {what} WHERE {OF_RUN_3} AND sequence = {place}");
    let other = "body = CAST(replace(CAST(body AS TEXT), 'run 3', 'run 9') AS BLOB)";
    check_edit(&edit(other, 7), Break { sequence: 8, kind: BreakKind::Unchained });
    check_edit(&edit(other, EVENTS), Break { sequence: EVENTS, kind: BreakKind::NotTheHead });
    check_edit(&edit("body = x'00'", 7), Break { sequence: 7, kind: BreakKind::Unreadable });
    check_edit(&edit("sequence = 70", 7), Break { sequence: 7, kind: BreakKind::Missing });
    check_edit(&edit("run = 1", 7), Break { sequence: 7, kind: BreakKind::Missing });
    check_edit(
        &format!("DELETE FROM events WHERE {OF_RUN_3} AND sequence = 7"),
        Break { sequence: 7, kind: BreakKind::Missing },
    );
}

#[test]
fn c07_a_run_whose_end_was_cut_off_or_forged_is_named() {
    let at_key = "key = (SELECT min(key) + 3 FROM runs)";
    check_edit(
        &format!("UPDATE runs SET head = zeroblob(32) WHERE {at_key}"),
        Break { sequence: EVENTS, kind: BreakKind::NotTheHead },
    );
    check_edit(
        &format!("UPDATE runs SET sequence = 21 WHERE {at_key}"),
        Break { sequence: 21, kind: BreakKind::Missing },
    );
}

/// Where in the file the event of this run and place is.
fn find(bytes: &[u8], run: u64, place: u64) -> usize {
    let needle = format!("\"text\":\"run {run} event {place} ");
    bytes.windows(needle.len()).position(|window| window == needle.as_bytes()).unwrap()
}

#[test]
fn c07_a_flipped_byte_in_an_event_is_named() {
    let (_folder, database) = place();
    filled(&database);
    let mut bytes = std::fs::read(&database).unwrap();
    let at = find(&bytes, 3, 7) + 40;
    bytes[at] ^= 1;
    std::fs::write(&database, bytes).unwrap();
    let store = open(&database);
    runtime().block_on(async {
        assert_eq!(verified(&store, 3).await, Err(Break { sequence: 8, kind: BreakKind::Unchained }));
        for run in [0, 1, 2, 4] {
            assert_eq!(verified(&store, run).await, Ok(EVENTS));
        }
    });
}

#[test]
fn d11_a_damaged_page_is_an_error_for_its_run_and_the_others_stay_readable_and_writable() {
    let (_folder, database) = place();
    filled(&database);
    let mut bytes = std::fs::read(&database).unwrap();
    // The head of the page that the event begins in.
    let page = find(&bytes, 3, 7) / 4096 * 4096;
    bytes[page..page + 16].fill(0xee);
    std::fs::write(&database, bytes).unwrap();
    let store = open(&database);
    runtime().block_on(async {
        let read = store.read(run_number(3), 0, 100).await;
        assert!(matches!(read, Err(StorageError::Corrupt { .. })), "{read:?}");
        let whole: Vec<u64> = vec![0, 1, 4];
        for run in &whole {
            assert_eq!(verified(&store, *run).await, Ok(EVENTS));
        }
        let page = store.runs(RunsQuery { limit: 100, ..RunsQuery::default() }).await.unwrap();
        assert_eq!(page.runs.len() as u64, RUNS);
        let more = vec![event(json!({ "marker": EVENTS }))];
        store.append(change(run_number(4), EVENTS, more)).await.unwrap();
        assert_eq!(verified(&store, 4).await, Ok(EVENTS + 1));
        let findings = store.check().await.unwrap();
        assert!(findings.iter().any(|finding| matches!(finding, Finding::Damaged(_))), "{findings:?}");
    });
}

// A group in which one change meets damage: it alone fails.
#[test]
fn d11_damage_that_one_change_meets_does_not_fail_the_others_of_its_group() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        for run in 0..RUNS {
            let mut change = change(run_number(run), 0, vec![event(json!({ "marker": 0 }))]);
            if let Place::At(_, writes) = &mut change.place {
                // So large that each run's row has a page of its own.
                let state = safe(json!({ "of": format!("run number {run} ").repeat(200) }));
                writes.projection = Some(Projection { status: "running", state });
            }
            store.append(change).await.unwrap();
        }
        store.close().await;
    });
    drop(store);
    let mut bytes = std::fs::read(&database).unwrap();
    let needle = b"{\"of\":\"run number 3 ";
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at / 4096 * 4096..][..16].fill(0xee);
    std::fs::write(&database, bytes).unwrap();
    let store = open(&database);
    runtime().block_on(async {
        let busy = {
            let store = std::sync::Arc::clone(&store);
            tokio::spawn(async move {
                let place = Place::Head(Box::new(|_| {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    Ok(one(json!({ "marker": 1 })))
                }));
                let append = fresh_append();
                store.append(Change { run: run_number(0), append, generation: None, place }).await
            })
        };
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let more = |run| change(run_number(run), 1, vec![event(json!({ "marker": 1 }))]);
        let (whole, damaged, other) =
            tokio::join!(store.append(more(1)), store.append(more(3)), store.append(more(4)));
        busy.await.unwrap().unwrap();
        whole.unwrap();
        assert!(matches!(damaged, Err(StorageError::Corrupt { .. })), "{damaged:?}");
        other.unwrap();
        assert_eq!(verified(&store, 4).await, Ok(2));
    });
}

// Wherever a byte is flipped, the store says so or gives what was written: never something else, and it never panics.
#[test]
fn d11_no_flipped_byte_goes_by_unseen() {
    let (_folder, database) = place();
    filled(&database);
    let whole = std::fs::read(&database).unwrap();
    let mut dice = support::Dice::new(u64::from(std::process::id()) * 0x9E37_79B9);
    let expected = runtime().block_on(async {
        let store = open(&database);
        contents(&store).await.unwrap()
    });
    let (mut refused, mut named, mut same) = (0, 0, 0);
    for _ in 0..proof(20, 150, 3_000) {
        let mut bytes = whole.clone();
        let at = dice.roll(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << dice.roll(8);
        std::fs::write(&database, bytes).unwrap();
        let store = match SqliteStore::open_read_only(&database) {
            Ok(store) => store,
            Err(_) => {
                refused += 1;
                continue;
            }
        };
        runtime().block_on(async {
            match contents(&store).await {
                Ok(found) => {
                    assert_eq!(found, expected, "byte {at} was flipped");
                    same += 1;
                }
                Err(_) => named += 1,
            }
        });
    }
    println!("{refused} refused at opening, {named} named, {same} in a place that no run's log depends on");
}

/// The heads of all runs, as far as their logs hold.
async fn contents(store: &SqliteStore) -> Result<Vec<(RunId, String)>, String> {
    let mut heads = Vec::new();
    for run in 0..RUNS {
        let verified = verify(store, run_number(run)).await.map_err(|error| error.to_string())?;
        let verified = verified.map_err(|found| found.to_string())?;
        heads.push((run_number(run), verified.head.unwrap().to_string()));
    }
    Ok(heads)
}

#[test]
fn b09_a_blob_whose_file_is_damaged_or_gone_is_named() {
    let (_folder, database) = place();
    let store = open(&database);
    runtime().block_on(async {
        let mut ids = Vec::new();
        for text in ["whole", "damaged", "gone"] {
            ids.push(store.put(Safe::<String>::from(text).into()).await.unwrap());
        }
        let path = |text: &str| {
            let digits = blob_id(text.as_bytes()).to_string().replace("sha256:", "");
            database.with_extension("db.blobs").join(&digits[..2]).join(digits)
        };
        std::fs::write(path("damaged"), "demaged").unwrap();
        std::fs::remove_file(path("gone")).unwrap();
        assert_eq!(store.get(ids[0]).await.unwrap(), b"whole");
        for id in &ids[1..] {
            let got = store.get(*id).await;
            assert!(matches!(got, Err(StorageError::Corrupt { .. })), "{got:?}");
        }
        let mut findings = store.check().await.unwrap();
        findings.sort_by_key(|finding| format!("{finding:?}"));
        assert_eq!(findings, [Finding::BlobDamaged(ids[1]), Finding::BlobMissing(ids[2])]);
        // Putting what is gone brings it back.
        store.put(Safe::<String>::from("gone").into()).await.unwrap();
        assert_eq!(store.get(ids[2]).await.unwrap(), b"gone");
    });
}
