//! The store in a file and the one in memory agree: the same steps, drawn by lot, get the same answers and leave the same.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed expectation fails the test")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use runyard_domain::AppendId;
use runyard_redact::Safe;
use runyard_store::conformance::{Whole, set, whole};
use runyard_store::{
    AgentRunId, ClaimAfter, JournalWrite, KeyDigest, ManualClock, MemoryStore, RunWrite, Scope, StorageError,
    ThreadCommit, ThreadId, ThreadRunStore, ThreadWrites, ValueWrite,
};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::json;
use support::{Dice, place, proof, runtime};

const THREADS: [&str; 2] = ["one", "two"];
const RUNS: [&str; 4] = ["a", "b", "c", "d"];
const OWNERS: [&str; 2] = ["here", "there"];
const KEYS: [&str; 3] = ["x", "y", "z"];
const STEPS: usize = 120;

/// Something that is done to both.
#[derive(Debug)]
enum Move {
    Create(ThreadId),
    Delete(ThreadId),
    Claim(ThreadId, AgentRunId, &'static str, Duration),
    Renew(ThreadId, u64),
    Release(ThreadId, u64),
    Commit(Box<ThreadCommit>),
    Wait(i64),
}

/// What is known while the steps are drawn, so that many of them are fine.
#[derive(Default)]
struct Guess {
    claims: [(u64, usize); 2],
    versions: [u64; 2],
    commits: Vec<ThreadCommit>,
    appends: u64,
}

fn one<const N: usize>(dice: &mut Dice, of: [&'static str; N]) -> &'static str {
    of[dice.roll(N as u64) as usize]
}

fn id<T>(name: &'static str, new: impl Fn(Safe<String>) -> Result<T, StorageError>) -> T {
    new(name.into()).unwrap()
}

fn draw(dice: &mut Dice, guess: &mut Guess) -> Move {
    let at = dice.roll(2) as usize;
    let thread = id(THREADS[at], ThreadId::new);
    let (mut generation, run) = guess.claims[at];
    generation -= u64::from(dice.roll(12) == 0 && generation > 0);
    let term = Duration::from_millis(dice.roll(3) * 500);
    match dice.roll(20) {
        0 | 1 => Move::Create(thread),
        2 if dice.roll(3) == 0 => Move::Delete(thread),
        2..=5 => Move::Claim(thread, id(one(dice, RUNS), AgentRunId::new), one(dice, OWNERS), term),
        6 => Move::Renew(thread, generation),
        7 => Move::Release(thread, generation),
        8 => Move::Wait(dice.roll(1_500) as i64 - 200),
        9 if !guess.commits.is_empty() => {
            let again = dice.roll(guess.commits.len() as u64) as usize;
            Move::Commit(Box::new(guess.commits[again].clone()))
        }
        _ => {
            let run = if dice.roll(15) == 0 { dice.roll(4) as usize } else { run };
            let expected = (guess.versions[at] + u64::from(dice.roll(12) == 0))
                .saturating_sub(u64::from(dice.roll(12) == 0));
            guess.appends += 1;
            let mut unique = [0; 10];
            unique[..8].copy_from_slice(&guess.appends.to_be_bytes());
            let commit = ThreadCommit {
                thread,
                run: id(RUNS[run], AgentRunId::new),
                append: AppendId::from_parts(1, &unique),
                generation,
                expected,
                writes: writes(dice),
                claim: if dice.roll(5) == 0 { ClaimAfter::Released } else { ClaimAfter::Kept },
            };
            guess.commits.push(commit.clone());
            Move::Commit(Box::new(commit))
        }
    }
}

fn writes(dice: &mut Dice) -> ThreadWrites {
    let messages = (0..dice.roll(3)).map(|_| dice.roll(1_000).into()).collect();
    let values = (0..dice.roll(3)).map(|_| {
        let scope = if dice.roll(2) == 0 { Scope::Thread } else { Scope::Run };
        match dice.roll(3) {
            0 => ValueWrite::Remove { scope, key: one(dice, KEYS).into() },
            _ => set(scope, one(dice, KEYS), json!(dice.roll(9))),
        }
    });
    let values = values.collect();
    let entries = if dice.roll(2) == 0 { dice.roll(3) } else { 0 };
    let journal = (0..entries).map(|_| {
        let (call, payload) = (one(dice, KEYS).into(), dice.roll(9).into());
        match dice.roll(2) {
            0 => JournalWrite::Intent { call, key: KeyDigest::of(&["k"]), payload },
            _ => JournalWrite::Result { call, payload },
        }
    });
    let journal = journal.collect();
    let record = (dice.roll(3) > 0).then(|| RunWrite {
        status: one(dice, KEYS),
        finished: dice.roll(6) == 0,
        payload: dice.roll(9).into(),
    });
    ThreadWrites { messages, values, journal, record }
}

/// What a store answers, with errors by their codes.
async fn answer(store: &dyn ThreadRunStore, step: &Move) -> String {
    fn told<T: std::fmt::Debug>(answer: Result<T, StorageError>) -> String {
        answer.map_or_else(|error| format!("{}: {error}", error.code()), |answer| format!("{answer:?}"))
    }
    match step {
        Move::Create(thread) => told(store.create_thread(thread, Safe::NULL).await),
        Move::Delete(thread) => told(store.delete_thread(thread).await),
        Move::Claim(thread, run, owner, term) => told(store.claim(thread, run, (*owner).into(), *term).await),
        Move::Renew(thread, generation) => {
            told(store.renew_claim(thread, *generation, Duration::from_millis(700)).await)
        }
        Move::Release(thread, generation) => told(store.release_claim(thread, *generation).await),
        Move::Commit(commit) => told(store.commit((**commit).clone()).await),
        Move::Wait(_) => String::new(),
    }
}

/// Everything that is stored. The places of calls only say their order.
async fn all(store: &dyn ThreadRunStore) -> Vec<Whole> {
    let mut found = Vec::new();
    for thread in THREADS {
        for run in RUNS {
            let mut whole = whole(store, &id(thread, ThreadId::new), &id(run, AgentRunId::new)).await;
            whole.calls.iter_mut().zip(1..).for_each(|(call, place)| call.place = place);
            found.push(whole);
        }
    }
    found
}

async fn note(store: &dyn ThreadRunStore, guess: &mut Guess, step: &Move) {
    if let Move::Claim(thread, run, ..) = step {
        let at = THREADS.iter().position(|name| *name == thread.as_str()).unwrap();
        let run = RUNS.iter().position(|name| *name == run.as_str()).unwrap();
        if let Some(row) = store.thread(thread).await.unwrap()
            && row.holder.is_some_and(|holder| holder.run.as_str() == RUNS[run])
        {
            guess.claims[at] = (row.generation, run);
        }
    }
    for (thread, version) in THREADS.iter().zip(&mut guess.versions) {
        let row = store.thread(&id(thread, ThreadId::new)).await.unwrap();
        *version = row.map_or(0, |row| row.version);
    }
}

#[test]
fn d12_the_file_and_the_memory_agree_on_steps_that_are_drawn_by_lot() {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut dice = Dice::new(seed * 0x9E37_79B9);
    let (mut granted, mut committed) = (0, 0);
    let rounds = proof(5, 40, 2_000);
    for _ in 0..rounds {
        let clock = Arc::new(ManualClock::at(1_000_000));
        let (_folder, database) = place();
        let options = OpenOptions::new(&database, "the test").clock(clock.clone());
        let (file, memory) = (SqliteStore::open(options).unwrap(), MemoryStore::with_clock(clock.clone()));
        let mut guess = Guess::default();
        runtime().block_on(async {
            for _ in 0..STEPS {
                let step = draw(&mut dice, &mut guess);
                if let Move::Wait(ms) = step {
                    clock.advance_ms(ms);
                }
                let (ours, theirs) = (answer(&file, &step).await, answer(&memory, &step).await);
                assert_eq!(ours, theirs, "{step:?}");
                granted += usize::from(ours.starts_with("Granted"));
                committed += usize::from(ours.starts_with("Committed"));
                note(&memory, &mut guess, &step).await;
            }
            assert_eq!(all(&file).await, all(&memory).await);
            assert_eq!(file.check().await.unwrap(), []);
        });
    }
    // Enough of them were fine to prove something.
    assert!(granted > rounds && committed > rounds, "{granted} claims and {committed} commits");
    println!("{granted} claims and {committed} commits");
}
