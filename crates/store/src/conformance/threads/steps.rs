//! What the suite of threads builds its commits from.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::fixtures::{fresh_append, safe, safe_text};
use crate::{
    AgentRunId, AgentRunRow, Claim, ClaimAfter, Claimed, RunWrite, Scope, StateValue, StoredMessage,
    ThreadCommit, ThreadId, ThreadRow, ThreadRunStore, ThreadWrites, ToolCallRow, ValueWrite,
};

pub(super) const MINUTE: Duration = Duration::from_secs(60);

fn fresh(what: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{what} {count} of {}", std::process::id())
}

/// A thread that nobody used before.
pub fn fresh_thread() -> ThreadId {
    ThreadId::new(safe_text(&fresh("thread"))).unwrap()
}

/// A run of an agent that nobody used before.
pub fn fresh_agent_run() -> AgentRunId {
    AgentRunId::new(safe_text(&fresh("run"))).unwrap()
}

/// A thread without messages.
pub async fn start_thread(store: &dyn ThreadRunStore) -> ThreadId {
    let thread = fresh_thread();
    store.create_thread(&thread, safe(json!({"for": "the suite"}))).await.unwrap();
    thread
}

/// A thread that a run has claimed for a minute and recorded itself on.
pub async fn began(store: &dyn ThreadRunStore) -> (ThreadId, AgentRunId, Claim) {
    let (thread, run) = (start_thread(store).await, fresh_agent_run());
    let claim = granted(store.claim(&thread, &run, "the suite".into(), MINUTE).await.unwrap());
    let first = commit_of(&thread, &run, &claim, 0, record("running"));
    assert_eq!(store.commit(first).await.unwrap().version, 0);
    (thread, run, claim)
}

#[track_caller]
pub fn granted(claimed: Claimed) -> Claim {
    match claimed {
        Claimed::Granted(claim) => claim,
        Claimed::Held { run, owner, .. } => panic!("held by {owner} for {run}"),
    }
}

/// A commit under this claim, which is kept.
pub fn commit_of(
    thread: &ThreadId,
    run: &AgentRunId,
    claim: &Claim,
    expected: u64,
    writes: ThreadWrites,
) -> ThreadCommit {
    ThreadCommit {
        thread: thread.clone(),
        run: run.clone(),
        append: fresh_append(),
        generation: claim.generation,
        expected,
        writes,
        claim: ClaimAfter::Kept,
    }
}

/// One message and nothing else.
pub fn message(payload: Value) -> ThreadWrites {
    ThreadWrites { messages: vec![safe(payload)], ..ThreadWrites::default() }
}

/// A record and nothing else.
pub fn record(status: &'static str) -> ThreadWrites {
    let finished = status == "done";
    let record = RunWrite { status, finished, payload: safe(json!({"status": status})) };
    ThreadWrites { record: Some(record), ..ThreadWrites::default() }
}

/// A value.
pub fn set(scope: Scope, key: &str, value: Value) -> ValueWrite {
    ValueWrite::Set { scope, key: safe_text(key), value: safe(value) }
}

/// Everything that is stored of a thread and one of its runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Whole {
    pub thread: Option<ThreadRow>,
    pub messages: Vec<StoredMessage>,
    pub values: Vec<StateValue>,
    pub runs: Vec<AgentRunRow>,
    pub run: Option<AgentRunRow>,
    pub run_values: Vec<StateValue>,
    pub calls: Vec<ToolCallRow>,
}

/// Reads everything that is stored of a thread and one of its runs.
pub async fn whole(store: &dyn ThreadRunStore, thread: &ThreadId, run: &AgentRunId) -> Whole {
    Whole {
        thread: store.thread(thread).await.unwrap(),
        messages: store.messages(thread, 0, 5000).await.unwrap(),
        values: store.thread_values(thread, None, 5000).await.unwrap(),
        runs: store.agent_runs(thread, None, 5000).await.unwrap(),
        run: store.agent_run(run).await.unwrap(),
        run_values: store.run_values(run, None, 5000).await.unwrap(),
        calls: store.tool_calls(run, 0, 5000).await.unwrap(),
    }
}
