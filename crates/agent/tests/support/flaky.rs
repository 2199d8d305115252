//! A store whose operations are counted, and fail when they are told to.
#![allow(dead_code, reason = "each test uses some of it")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_domain::{AppendId, Timestamp};
use runyard_redact::Safe;
use runyard_store::{
    AgentRunId, AgentRunRow, Claimed, Clock, Committed, Lease, MemoryStore, RunStore, StateValue,
    StorageError, StoredMessage, ThreadCommit, ThreadId, ThreadRow, ThreadRunStore, ThreadStore, ToolCallRow,
};
use serde_json::Value;

/// The operations of a store of threads that a run uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    CreateThread,
    Messages,
    ThreadValues,
    AgentRun,
    UnfinishedRun,
    RunValues,
    ToolCalls,
    Claim,
    RenewClaim,
    ReleaseClaim,
    Commit,
}

impl Operation {
    pub(crate) const ALL: [Operation; 11] = [
        Operation::CreateThread,
        Operation::Messages,
        Operation::ThreadValues,
        Operation::AgentRun,
        Operation::UnfinishedRun,
        Operation::RunValues,
        Operation::ToolCalls,
        Operation::Claim,
        Operation::RenewClaim,
        Operation::ReleaseClaim,
        Operation::Commit,
    ];
}

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nothing happens.
    Io,
    /// It happens, and nobody hears of it.
    Unheard,
    /// It happens after whoever asked has gone away: it never answers.
    Hangs,
    /// It is refused.
    Refused,
    /// Another one took the thread.
    Stale,
    /// Another one wrote to the thread.
    Conflict,
    /// What it is about is not there.
    Missing,
    /// What it would make is there already.
    Exists,
    /// What is stored cannot be read.
    Unreadable,
    DiskFull,
    ReadOnly,
    Corrupt,
    Locked,
    NewerSchema,
    Poisoned,
}

impl Failure {
    /// What the store says. What happens and is not heard of is no error of its own where nothing is committed.
    fn error(self, append: Option<AppendId>) -> StorageError {
        let doing = "working";
        match self {
            Failure::Io | Failure::Hangs => StorageError::io(doing, "the disk is away"),
            Failure::Unheard => match append {
                Some(append) => StorageError::unknown(append),
                None => StorageError::io("answering", "the line broke"),
            },
            Failure::Refused => StorageError::invalid("it is not to be stored"),
            Failure::Stale => StorageError::StaleGeneration { held: 1, current: 2 },
            Failure::Conflict => StorageError::VersionConflict { expected: 1, actual: 2 },
            Failure::Missing => StorageError::not_found("thing"),
            Failure::Exists => StorageError::exists("the thing"),
            Failure::Unreadable => StorageError::unreadable("the thing", "no JSON"),
            Failure::DiskFull => StorageError::DiskFull { doing },
            Failure::ReadOnly => StorageError::ReadOnly { doing, what: "the disk".to_owned() },
            Failure::Corrupt => StorageError::Corrupt { doing, detail: "a page".to_owned() },
            Failure::Locked => StorageError::Locked { owner: "somebody".to_owned() },
            Failure::NewerSchema => StorageError::NewerSchema { found: 2, known: 1 },
            Failure::Poisoned => StorageError::Poisoned,
        }
    }
}

/// Which operations fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) operation: Operation,
    /// The first to fail, counted from 1.
    pub(crate) from: u32,
    /// So many fail.
    pub(crate) times: u32,
    pub(crate) failure: Failure,
}

impl Plan {
    /// It always fails so.
    pub(crate) fn always(operation: Operation, failure: Failure) -> Self {
        Plan { operation, from: 1, times: u32::MAX, failure }
    }

    /// It fails so the first time.
    pub(crate) fn once(operation: Operation, failure: Failure) -> Self {
        Plan { operation, from: 1, times: 1, failure }
    }
}

/// The clock of the tests, which stands still but for what is waited for.
struct TestClock(tokio::time::Instant);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(1_000 + i64::try_from(self.0.elapsed().as_millis()).unwrap())
    }
}

/// A store in memory whose operations fail when they are told to.
pub(crate) struct Flaky {
    pub(crate) inner: Arc<MemoryStore>,
    /// Whether whoever asks has to wait a moment before and after each operation.
    slow: bool,
    /// How many messages were read.
    pub(crate) messages_read: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    plan: Option<Plan>,
    /// What fails with it.
    too: Option<Plan>,
    /// How often each operation was asked for since the plan was made.
    asked: [u32; Operation::ALL.len()],
    failed: u32,
    commits: Vec<ThreadCommit>,
}

impl Flaky {
    pub(crate) fn new(plan: Option<Plan>) -> Arc<Self> {
        Arc::new(Flaky { state: Mutex::new(State { plan, ..State::default() }), ..Flaky::of(Arc::default()) })
    }

    /// A store that never fails, and has a moment before and after each operation at which whoever asks can die.
    pub(crate) fn slow() -> Arc<Self> {
        Arc::new(Flaky { slow: true, ..Flaky::of(Arc::default()) })
    }

    /// A store whose clock is that of the tests, within a tokio runtime.
    pub(crate) fn timed() -> Arc<Self> {
        let clock = Arc::new(TestClock(tokio::time::Instant::now()));
        Arc::new(Flaky::of(Arc::new(MemoryStore::with_clock(clock))))
    }

    fn of(inner: Arc<MemoryStore>) -> Self {
        Flaky { inner, slow: false, messages_read: AtomicU64::new(0), state: Mutex::default() }
    }

    async fn moment(&self) {
        if self.slow {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn fails(&self, plan: Option<Plan>) {
        let mut state = self.state.lock().unwrap();
        state.plan = plan;
        state.too = None;
        state.asked = Default::default();
        state.failed = 0;
    }

    /// The same, with something else that fails.
    pub(crate) fn fails_too(&self, plan: Plan) {
        self.state.lock().unwrap().too = Some(plan);
    }

    /// How often an operation was asked for.
    pub(crate) fn asked(&self, operation: Operation) -> u32 {
        self.state.lock().unwrap().asked[operation as usize]
    }

    /// How often one failed.
    pub(crate) fn failed(&self) -> u32 {
        self.state.lock().unwrap().failed
    }

    /// All that was committed, in order, with what was tried again.
    pub(crate) fn commits(&self) -> Vec<ThreadCommit> {
        self.state.lock().unwrap().commits.clone()
    }

    fn failure(&self, operation: Operation) -> Option<Failure> {
        let mut state = self.state.lock().unwrap();
        let asked = &mut state.asked[operation as usize];
        *asked += 1;
        let asked = *asked;
        let is_now = |plan: &Plan| asked >= plan.from && asked - plan.from < plan.times;
        let mut plans = [state.plan, state.too].into_iter().flatten();
        let plan = plans.find(|plan| plan.operation == operation && is_now(plan))?;
        state.failed += 1;
        Some(plan.failure)
    }

    async fn through<T>(
        &self,
        operation: Operation,
        done: impl Future<Output = Result<T, StorageError>>,
    ) -> Result<T, StorageError> {
        match self.failure(operation) {
            None => {
                self.moment().await;
                let answer = done.await;
                self.moment().await;
                answer
            }
            Some(Failure::Hangs) => std::future::pending().await,
            Some(failure) => {
                if failure == Failure::Unheard {
                    let _ = done.await;
                }
                Err(failure.error(None))
            }
        }
    }
}

#[async_trait]
impl ThreadStore for Flaky {
    async fn create_thread(&self, thread: &ThreadId, metadata: Safe<Value>) -> Result<(), StorageError> {
        self.through(Operation::CreateThread, self.inner.create_thread(thread, metadata)).await
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadRow>, StorageError> {
        self.inner.thread(thread).await
    }

    async fn threads(&self, after: Option<&ThreadId>, limit: u32) -> Result<Vec<ThreadRow>, StorageError> {
        self.inner.threads(after, limit).await
    }

    async fn messages(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredMessage>, StorageError> {
        let page = self.through(Operation::Messages, self.inner.messages(thread, after, limit)).await?;
        self.messages_read.fetch_add(page.len() as u64, Ordering::SeqCst);
        Ok(page)
    }

    async fn thread_values(
        &self,
        thread: &ThreadId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StateValue>, StorageError> {
        self.through(Operation::ThreadValues, self.inner.thread_values(thread, after, limit)).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StorageError> {
        self.inner.delete_thread(thread).await
    }
}

#[async_trait]
impl RunStore for Flaky {
    async fn agent_run(&self, run: &AgentRunId) -> Result<Option<AgentRunRow>, StorageError> {
        self.through(Operation::AgentRun, self.inner.agent_run(run)).await
    }

    async fn agent_runs(
        &self,
        thread: &ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<AgentRunRow>, StorageError> {
        self.inner.agent_runs(thread, before, limit).await
    }

    async fn unfinished_run(&self, thread: &ThreadId) -> Result<Option<AgentRunRow>, StorageError> {
        self.through(Operation::UnfinishedRun, self.inner.unfinished_run(thread)).await
    }

    async fn run_values(
        &self,
        run: &AgentRunId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StateValue>, StorageError> {
        self.through(Operation::RunValues, self.inner.run_values(run, after, limit)).await
    }

    async fn tool_calls(
        &self,
        run: &AgentRunId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ToolCallRow>, StorageError> {
        self.through(Operation::ToolCalls, self.inner.tool_calls(run, after, limit)).await
    }
}

#[async_trait]
impl ThreadRunStore for Flaky {
    async fn claim(
        &self,
        thread: &ThreadId,
        run: &AgentRunId,
        owner: Safe<String>,
        term: Duration,
    ) -> Result<Claimed, StorageError> {
        self.through(Operation::Claim, self.inner.claim(thread, run, owner, term)).await
    }

    async fn renew_claim(
        &self,
        thread: &ThreadId,
        generation: u64,
        term: Duration,
    ) -> Result<Lease, StorageError> {
        self.through(Operation::RenewClaim, self.inner.renew_claim(thread, generation, term)).await
    }

    async fn release_claim(&self, thread: &ThreadId, generation: u64) -> Result<(), StorageError> {
        self.through(Operation::ReleaseClaim, self.inner.release_claim(thread, generation)).await
    }

    async fn commit(&self, commit: ThreadCommit) -> Result<Committed, StorageError> {
        self.state.lock().unwrap().commits.push(commit.clone());
        let append = commit.append;
        match self.failure(Operation::Commit) {
            None => {
                self.moment().await;
                let answer = self.inner.commit(commit).await;
                self.moment().await;
                answer
            }
            Some(failure) => {
                if matches!(failure, Failure::Unheard | Failure::Hangs) {
                    // Whoever goes away does not undo it.
                    let _ = self.inner.commit(commit).await;
                }
                if failure == Failure::Hangs {
                    return std::future::pending().await;
                }
                Err(failure.error(Some(append)))
            }
        }
    }
}
