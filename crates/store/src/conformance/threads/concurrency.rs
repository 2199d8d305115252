//! Many at once: one at a time writes to a thread, and what each was told is what is there.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::fixtures::{safe, safe_text};
use super::steps::{
    MINUTE, commit_of, fresh_agent_run, fresh_thread, granted, message, record, set, start_thread,
};
use crate::{
    ClaimAfter, Claimed, JournalWrite, KeyDigest, Scope, StorageError, ThreadId, ThreadRunStore, ThreadWrites,
};

/// How often two want the same thread.
const RACES: usize = 1_000;
/// How many races go on at the same time.
const LANES: usize = 50;

pub async fn d12_of_two_who_claim_a_thread_exactly_one_gets_it(store: Arc<dyn ThreadRunStore>) {
    let lanes = (0..LANES).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            let thread = start_thread(&*store).await;
            for _ in 0..RACES / LANES {
                race(&store, &thread).await;
            }
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.unwrap();
    }
}

async fn race(store: &Arc<dyn ThreadRunStore>, thread: &ThreadId) {
    let claimant = |owner: &'static str| {
        let (store, thread) = (store.clone(), thread.clone());
        let run = fresh_agent_run();
        tokio::spawn(async move { store.claim(&thread, &run, owner.into(), MINUTE).await.unwrap() })
    };
    let (one, two) = (claimant("one"), claimant("two"));
    let claim = match (one.await.unwrap(), two.await.unwrap()) {
        (Claimed::Granted(claim), Claimed::Held { owner, expires, .. }) if owner == "one" => {
            assert_eq!(expires, claim.expires);
            claim
        }
        (Claimed::Held { owner, expires, .. }, Claimed::Granted(claim)) if owner == "two" => {
            assert_eq!(expires, claim.expires);
            claim
        }
        other => panic!("{other:?}"),
    };
    store.release_claim(thread, claim.generation).await.unwrap();
}

const THREADS: usize = 32;
const TURNS: u64 = 4;

pub async fn d12_many_runs_at_once_on_many_threads_lose_and_mix_up_nothing(store: Arc<dyn ThreadRunStore>) {
    let threads: Vec<ThreadId> = (0..THREADS).map(|_| fresh_thread()).collect();
    let talks = threads.iter().zip(0..).map(|(thread, number)| {
        let (store, thread) = (store.clone(), thread.clone());
        tokio::spawn(async move { talk(&*store, &thread, number).await })
    });
    for talk in talks.collect::<Vec<_>>() {
        talk.await.unwrap();
    }
    for (thread, number) in threads.iter().zip(0_u64..) {
        let messages = store.messages(thread, 0, 5000).await.unwrap();
        let said: Vec<Value> = messages.iter().map(|message| message.payload().unwrap()).collect();
        let expected: Vec<Value> = (0..TURNS)
            .flat_map(|turn| (0..4).map(move |step| json!({"thread": number, "turn": turn, "step": step})))
            .collect();
        assert_eq!(said, expected);
        let values = store.thread_values(thread, None, 9).await.unwrap();
        assert_eq!((values.len(), values[0].value.as_slice()), (1, (TURNS - 1).to_string().as_bytes()));
        let runs = store.agent_runs(thread, None, 99).await.unwrap();
        assert_eq!(
            runs.iter().map(|run| run.number).collect::<Vec<_>>(),
            (1..=TURNS).rev().collect::<Vec<_>>()
        );
        for run in runs {
            assert!(run.finished);
            let calls = store.tool_calls(&run.id, 0, 9).await.unwrap();
            assert_eq!(calls.len(), 1);
            assert!(calls[0].result.is_some());
        }
    }
}

/// Some turns of one tool call each, with somebody else who wants to write in between.
async fn talk(store: &dyn ThreadRunStore, thread: &ThreadId, number: u64) {
    store.create_thread(thread, safe(json!({"number": number}))).await.unwrap();
    let mut version = 0;
    for turn in 0..TURNS {
        let run = fresh_agent_run();
        let claim = granted(store.claim(thread, &run, "one".into(), MINUTE).await.unwrap());
        assert_eq!(claim.version, version);
        let call = safe_text("call");
        for step in 0..4 {
            let mut writes = message(json!({"thread": number, "turn": turn, "step": step}));
            match step {
                0 => writes.record = record("running").record,
                1 => {
                    let key = KeyDigest::of(&[run.as_str()]);
                    writes.journal =
                        vec![JournalWrite::Intent { call: call.clone(), key, payload: safe(json!(turn)) }];
                }
                2 => {
                    let payload = safe(json!({"turn": turn}));
                    writes.journal = vec![JournalWrite::Result { call: call.clone(), payload }];
                    writes.values = vec![set(Scope::Thread, "turn", json!(turn))];
                }
                _ => writes.record = record("done").record,
            }
            let mut commit = commit_of(thread, &run, &claim, version, writes);
            let mut stale = commit_of(thread, &run, &claim, version, ThreadWrites::default());
            stale.generation -= 1;
            if step == 3 {
                commit.claim = ClaimAfter::Released;
            }
            let (committed, refused) = tokio::join!(store.commit(commit), store.commit(stale));
            version = committed.unwrap().version;
            assert!(matches!(refused, Err(StorageError::StaleGeneration { .. })), "{refused:?}");
        }
    }
}
