//! A store whose operations fail when they are told to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_redact::Safe;
use runyard_store::{
    AgentRunId, AgentRunRow, Claimed, Committed, Lease, MemoryStore, RunStore, StateValue, StorageError,
    StoredMessage, ThreadCommit, ThreadId, ThreadRow, ThreadRunStore, ThreadStore, ToolCallRow,
};
use serde_json::Value;

/// The operations of a store of threads that a run uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    CreateThread,
    Messages,
    ThreadValues,
    AgentRun,
    RunValues,
    ToolCalls,
    Claim,
    ReleaseClaim,
    Commit,
}

impl Operation {
    pub(crate) const ALL: [Operation; 9] = [
        Operation::CreateThread,
        Operation::Messages,
        Operation::ThreadValues,
        Operation::AgentRun,
        Operation::RunValues,
        Operation::ToolCalls,
        Operation::Claim,
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

/// A store in memory whose operations fail when they are told to.
pub(crate) struct Flaky {
    pub(crate) inner: Arc<MemoryStore>,
    /// Whether whoever asks has to wait a moment before and after each operation.
    slow: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    plan: Option<Plan>,
    /// How often each operation was asked for since the plan was made.
    asked: [u32; Operation::ALL.len()],
    failed: u32,
    commits: Vec<ThreadCommit>,
}

impl Flaky {
    pub(crate) fn new(plan: Option<Plan>) -> Arc<Self> {
        let state = Mutex::new(State { plan, ..State::default() });
        Arc::new(Flaky { inner: Arc::default(), slow: false, state })
    }

    /// A store that never fails, and has a moment before and after each operation at which whoever asks can die.
    pub(crate) fn slow() -> Arc<Self> {
        Arc::new(Flaky { inner: Arc::default(), slow: true, state: Mutex::default() })
    }

    async fn moment(&self) {
        if self.slow {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn fails(&self, plan: Option<Plan>) {
        let mut state = self.state.lock().unwrap();
        state.plan = plan;
        state.asked = Default::default();
        state.failed = 0;
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
        let plan = state.plan.filter(|plan| plan.operation == operation)?;
        let fails = asked >= plan.from && asked - plan.from < plan.times;
        state.failed += u32::from(fails);
        fails.then_some(plan.failure)
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
            Some(Failure::Io) => Err(StorageError::io("working", "the disk is away")),
            Some(Failure::Unheard) => {
                let _ = done.await;
                Err(StorageError::io("answering", "the line broke"))
            }
            Some(Failure::Hangs) => std::future::pending().await,
            Some(Failure::Refused) => Err(StorageError::invalid("it is not to be stored")),
            Some(Failure::Stale) => Err(StorageError::StaleGeneration { held: 1, current: 2 }),
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
        self.through(Operation::Messages, self.inner.messages(thread, after, limit)).await
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
        self.inner.unfinished_run(thread).await
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
        self.inner.renew_claim(thread, generation, term).await
    }

    async fn release_claim(&self, thread: &ThreadId, generation: u64) -> Result<(), StorageError> {
        self.through(Operation::ReleaseClaim, self.inner.release_claim(thread, generation)).await
    }

    async fn commit(&self, commit: ThreadCommit) -> Result<Committed, StorageError> {
        self.state.lock().unwrap().commits.push(commit.clone());
        let append = commit.append;
        match self.failure(Operation::Commit) {
            Some(Failure::Unheard) => {
                let _ = self.inner.commit(commit).await;
                Err(StorageError::CommitUnknown { append })
            }
            Some(Failure::Hangs) => {
                // Whoever goes away does not undo it.
                let _ = self.inner.commit(commit).await;
                std::future::pending().await
            }
            Some(Failure::Io) => Err(StorageError::io("committing", "the disk is away")),
            Some(Failure::Refused) => Err(StorageError::invalid("it is not to be stored")),
            Some(Failure::Stale) => Err(StorageError::StaleGeneration { held: 1, current: 2 }),
            None => {
                self.moment().await;
                let answer = self.inner.commit(commit).await;
                self.moment().await;
                answer
            }
        }
    }
}
