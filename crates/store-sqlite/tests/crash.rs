//! Crashes: whatever was acknowledged is there after the process was killed, or the end of its log was torn.
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
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runyard_domain::RunId;
use runyard_store::conformance::{event, fresh_append};
use runyard_store::{Change, EventLog, Place, Runs, RunsQuery, Writes, append_until_known};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::json;
use support::{
    Dice, Player, change, marked, markers, open, place, play, proof, repeatable, run_number, runtime, say,
};

/// How many runs the child writes to at the same time.
const RUNS: u64 = 24;

#[test]
fn child() {
    play(&[("load", load), ("sizes", sizes), ("repeat", repeat)]);
}

/// Goes on with every run, and says what was acknowledged: the run, the place and the marker.
fn load(database: &Path) {
    let store = open(database);
    let next_marker = Arc::new(AtomicU64::new(u64::from(std::process::id()) << 32));
    runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 1..=RUNS {
            let (store, markers) = (Arc::clone(&store), Arc::clone(&next_marker));
            tasks.spawn(async move { go_on(&store, number, &markers).await });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
}

async fn go_on(store: &SqliteStore, number: u64, markers: &AtomicU64) {
    let run = run_number(number);
    let mut dice = Dice::new(number.wrapping_mul(0x9E37_79B9) + u64::from(std::process::id()));
    let mut after = store.head(run).await.unwrap().unwrap_or(0);
    loop {
        let count = 1 + dice.roll(4);
        let first = markers.fetch_add(count, Ordering::Relaxed);
        let texts = (first..first + count)
            .map(|marker| json!({ "marker": marker, "text": "x".repeat(dice.roll(2_000) as usize) }));
        let events: Vec<_> = texts.map(event).collect();
        let change = if after > 0 && dice.roll(4) == 0 {
            let writes = Writes { events, ..Writes::default() };
            let place = Place::Head(Box::new(move |_| Ok(writes.clone())));
            Change { run, append: fresh_append(), generation: None, place }
        } else {
            change(run, after, events)
        };
        after = store.append(change).await.unwrap().last;
        say(&format!("{number} {after} {}", first + count - 1));
    }
}

/// What the child said was acknowledged: for each run the marker of the event at a place.
type Acknowledged = BTreeMap<u64, BTreeMap<u64, u64>>;

fn note(acknowledged: &mut Acknowledged, line: &str) {
    // The last line may be cut by the kill, and then it was not said.
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    if let [run, sequence, marker] = numbers[..] {
        acknowledged.entry(run).or_default().insert(sequence, marker);
    }
}

async fn check_acknowledged(store: &SqliteStore, acknowledged: &Acknowledged) {
    for (number, events) in acknowledged {
        let run = run_number(*number);
        let head = store.head(run).await.unwrap().unwrap_or(0);
        let (last, _) = events.last_key_value().unwrap();
        assert!(head >= *last, "run {number} is at {head}, and {last} was acknowledged");
        for (sequence, marker) in events {
            let found = store.read(run, sequence - 1, 1).await.unwrap();
            let found = found[0].envelope().unwrap();
            assert_eq!((found.sequence, found.payload["marker"].as_u64()), (*sequence, Some(*marker)));
        }
    }
}

/// Sequences without a gap, chains that hold, every marker once, and tables that are whole.
async fn check_everything(store: &SqliteStore) {
    let page = store.runs(RunsQuery { limit: 1_000, ..RunsQuery::default() }).await.unwrap();
    for row in page.runs {
        let markers = markers(store, row.run).await;
        assert_eq!(markers.len() as u64, row.sequence);
        let mut once = markers.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), markers.len(), "an event is there twice");
    }
    assert_eq!(store.check().await.unwrap(), []);
}

#[test]
fn c07_a_writer_killed_at_any_point_has_lost_nothing_that_it_acknowledged() {
    let kills = proof(20, 200, 2_000);
    let seed = u64::from(std::process::id());
    let mut dice = Dice::new(seed * 0x9E37_79B9);
    println!("seed {seed}");
    let (_folder, database) = place();
    let runtime = runtime();
    let mut total = 0;
    for kill in 1..=kills {
        let mut child = Player::start("load", &database);
        let mut acknowledged = Acknowledged::new();
        // The first word says that it is at work; then it is left to itself for some time.
        note(&mut acknowledged, &child.hear().unwrap());
        std::thread::sleep(Duration::from_micros(dice.roll(40_000)));
        child.kill().iter().for_each(|line| note(&mut acknowledged, line));
        total += acknowledged.values().map(BTreeMap::len).sum::<usize>();
        let is_thorough = kill % 25 == 0 || kill == kills;
        // Read beside what the kill left, or take it over: the next owner finds either.
        let store = match dice.roll(2) {
            0 => SqliteStore::open_read_only(&database).unwrap(),
            _ => SqliteStore::open(OpenOptions::new(&database, "the test")).unwrap(),
        };
        runtime.block_on(async {
            check_acknowledged(&store, &acknowledged).await;
            if is_thorough {
                check_everything(&store).await;
            }
        });
    }
    println!("{kills} kills, {total} acknowledged changes, none lost");
}

/// Appends one event after another, and says after each how large the log is.
fn sizes(database: &Path) {
    let store = open(database);
    runtime().block_on(async {
        for marker in 0.. {
            let run = run_number(marker % 3);
            store.append(marked(run, marker / 3, marker)).await.unwrap();
            let size = std::fs::metadata(database.with_extension("db-wal")).unwrap().len();
            say(&format!("{marker} {size}"));
        }
    });
}

#[test]
fn c07_a_torn_end_of_the_log_is_left_out_and_everything_before_it_is_there() {
    let seed = u64::from(std::process::id());
    let mut dice = Dice::new(seed * 0x9E37_79B9);
    println!("seed {seed}");
    let (folder, database) = place();
    let mut child = Player::start("sizes", &database);
    let mut said: Vec<String> = (0..60).map(|_| child.hear().unwrap()).collect();
    said.extend(child.kill());
    // How large the log was when each event was acknowledged.
    let sizes: Vec<u64> = said.iter().filter_map(|line| line.split_once(' ')?.1.parse().ok()).collect();
    let log = database.with_extension("db-wal");
    let whole = std::fs::read(&log).unwrap();
    for tear in 0..proof(10, 60, 500) {
        let torn = folder.path().join(format!("torn-{tear}.db"));
        std::fs::copy(&database, &torn).unwrap();
        // Every third tear is in the last commit, where a real one would be.
        let last = sizes[sizes.len() - 2];
        let from = if tear % 3 == 0 { last } else { sizes[0] };
        let at = from + dice.roll(whole.len() as u64 - from);
        let mut bytes = whole.clone();
        match dice.roll(3) {
            0 => bytes.truncate(at as usize),
            1 => bytes[at as usize..].fill(0),
            _ => bytes[at as usize..].iter_mut().for_each(|byte| *byte = dice.roll(256) as u8),
        }
        std::fs::write(torn.with_extension("db-wal"), bytes).unwrap();
        let kept = sizes.iter().filter(|size| **size <= at).count();
        let store = open(&torn);
        runtime().block_on(async {
            let mut found = 0;
            for run in 0..3 {
                let markers = match store.run(run_number(run)).await.unwrap() {
                    Some(_) => markers(&store, run_number(run)).await,
                    None => Vec::new(),
                };
                assert!(markers.iter().zip(0..).all(|(marker, place)| *marker == place * 3 + run));
                found += markers.len();
            }
            assert!(found >= kept, "{found} are there; {kept} were before the tear at {at}");
            assert_eq!(store.check().await.unwrap(), []);
            // And it goes on.
            let run: RunId = run_number(7);
            store.append(marked(run, 0, 1)).await.unwrap();
        });
        drop(store);
        std::fs::remove_file(&torn).unwrap();
    }
}

/// Makes one change after another that can be repeated, and says before each which one.
fn repeat(database: &Path) {
    let store = open(database);
    runtime().block_on(async {
        let head = store.head(run_number(1)).await.unwrap().unwrap_or(0);
        for marker in head.. {
            say(&format!("{marker}"));
            store.append(repeatable(run_number(1), marker, marker)).await.unwrap();
        }
    });
}

// The outcome of what was under way at the kill is unknown to its caller, who repeats it with the same id.
#[test]
fn d11_a_change_whose_writer_was_killed_is_made_once_when_it_is_repeated() {
    let (_folder, database) = place();
    let runtime = runtime();
    let mut dice = Dice::new(u64::from(std::process::id()) * 0x9E37_79B9);
    let (mut landed, mut lost) = (0, 0);
    for _ in 0..proof(5, 40, 400) {
        let mut child = Player::start("repeat", &database);
        let mut tried = child.hear().unwrap();
        std::thread::sleep(Duration::from_micros(dice.roll(10_000)));
        tried = child.kill().pop().unwrap_or(tried);
        let tried: u64 = tried.parse().unwrap();
        let store = open(&database);
        runtime.block_on(async {
            let run = run_number(1);
            match store.head(run).await.unwrap().unwrap_or(0) {
                head if head == tried + 1 => landed += 1,
                head if head == tried => lost += 1,
                head => panic!("{tried} was tried, and the run is at {head}"),
            }
            for _ in 0..2 {
                let made = append_until_known(&*store, || repeatable(run, tried, tried)).await.unwrap();
                assert_eq!((made.first, made.last), (tried + 1, tried + 1));
            }
            assert_eq!(markers(&store, run).await, (0..=tried).collect::<Vec<_>>());
        });
    }
    println!("of the changes under way, {landed} had landed and {lost} had not");
}
