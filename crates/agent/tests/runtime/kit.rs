//! Models, tools, plugins and a store to build runtimes of.

use std::collections::HashMap;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_agent::AgentRuntimeBuilder;
use runyard_agent::plugin::{InstallError, Plugin, PluginConfig, Registrar};
use runyard_agent::run::{AgentEvent, Observer};
use runyard_agent::spec::AgentSpec;
use runyard_agent::state::{KeyOptions, Scope as StateScope, StateKey};
use runyard_agent::tool::{
    SuspendTicket, Tool, ToolContext, ToolDescriptor, ToolError, ToolOutput, ToolResult,
};
use runyard_domain::Timestamp;
use runyard_llm::inference::{ScriptedAnswer, ScriptedModel, ToolCall};
use runyard_redact::Safe;
use runyard_store::{
    AgentRunId, AgentRunRow, Claimed, Clock, Committed, Lease, MemoryStore, RunStore, StateValue,
    StorageError, StoredMessage, ThreadCommit, ThreadId, ThreadRow, ThreadRunStore, ThreadStore, ToolCallRow,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// A model that says these, one after the other.
pub(crate) fn saying<const N: usize>(texts: [&str; N]) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::of("scripted", texts.map(ScriptedAnswer::text)))
}

/// A model that gives these answers, one after the other.
pub(crate) fn scripted(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::of("scripted", answers))
}

/// An answer that calls a tool.
pub(crate) fn call(tool: &str) -> ScriptedAnswer {
    ScriptedAnswer::calls([ToolCall { id: "c1".into(), name: tool.into(), arguments: json!({}) }])
}

/// A builder with one agent `a` on the model `m`.
pub(crate) fn one_agent(model: Arc<ScriptedModel>) -> AgentRuntimeBuilder {
    AgentRuntimeBuilder::new().model("m", model).agent(AgentSpec::new("a", "m"))
}

/// What a tool does when it is called.
pub(crate) enum Does {
    /// Says this.
    Say(&'static str),
    /// Takes so long, and says that it is done.
    Take(Duration),
    /// Waits for an answer, once, and then says that it went on.
    Wait,
    /// Never ends.
    Hang,
}

/// A tool without arguments.
pub(crate) struct Plain {
    descriptor: ToolDescriptor,
    does: Does,
    pub(crate) calls: AtomicU32,
}

impl Plain {
    pub(crate) fn new(id: &str, does: Does) -> Arc<Self> {
        Arc::new(Self::bare(id, does))
    }

    pub(crate) fn idempotent(id: &str, does: Does) -> Arc<Self> {
        let mut tool = Self::bare(id, does);
        tool.descriptor.idempotent = true;
        Arc::new(tool)
    }

    fn bare(id: &str, does: Does) -> Self {
        let descriptor = ToolDescriptor::new(id, "A tool.", json!({ "type": "object" })).unwrap();
        Plain { descriptor, does, calls: AtomicU32::new(0) }
    }

    pub(crate) fn called(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Tool for Plain {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    async fn execute(&self, _args: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Ok(match self.does {
            Does::Say(text) => ToolResult::success(text),
            Does::Take(time) => {
                tokio::time::sleep(time).await;
                ToolResult::success("done")
            }
            Does::Wait if context.approved => ToolResult::success("went on"),
            Does::Wait => ToolResult::suspended(SuspendTicket::new("t1", "confirm", "Shall I?")),
            Does::Hang => pending().await,
        }
        .into())
    }
}

/// A key that two plugins may both want.
pub(crate) struct Shared;

impl StateKey for Shared {
    const KEY: &'static str = "test.shared";
    const SCOPE: StateScope = StateScope::Thread;
    type Value = u32;
    type Update = u32;

    fn apply(value: &mut u32, update: u32) {
        *value = update;
    }
}

/// What the plugins here are told.
#[derive(Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Told {
    #[serde(default)]
    #[expect(dead_code, reason = "only its type counts")]
    pub(crate) level: u8,
}

impl PluginConfig for Told {
    const KEY: &'static str = "told";
}

/// What a plugin brings.
#[derive(Clone)]
pub(crate) enum Brings {
    Nothing,
    TheSharedKey,
    ATool(&'static str),
    TwiceTheTool(&'static str),
    Config,
}

/// Plugins of different types, since there is one of each type in an environment.
pub(crate) struct First(pub(crate) &'static str, pub(crate) Brings);
pub(crate) struct Second(pub(crate) &'static str, pub(crate) Brings);

fn register(brings: &Brings, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
    match brings {
        Brings::Nothing => {}
        Brings::TheSharedKey => registrar.key::<Shared>(KeyOptions::DEFAULT)?,
        Brings::ATool(id) => registrar.tool(Plain::new(id, Does::Say("from a plugin")))?,
        Brings::TwiceTheTool(id) => {
            registrar.tool(Plain::new(id, Does::Say("one")))?;
            registrar.tool(Plain::new(id, Does::Say("two")))?;
        }
        Brings::Config => {
            registrar.config::<Told>()?;
        }
    }
    Ok(())
}

impl Plugin for First {
    fn id(&self) -> &str {
        self.0
    }

    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        register(&self.1, registrar)
    }
}

impl Plugin for Second {
    fn id(&self) -> &str {
        self.0
    }

    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        register(&self.1, registrar)
    }
}

/// Hears everything.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<AgentEvent>>>);

impl Heard {
    pub(crate) fn events(&self) -> Vec<AgentEvent> {
        self.0.lock().unwrap().clone()
    }

    /// How often the run's end was told.
    pub(crate) fn ends(&self) -> usize {
        self.events().iter().filter(|event| matches!(event, AgentEvent::RunEnded { .. })).count()
    }
}

#[async_trait]
impl Observer for Heard {
    async fn observe(&self, event: AgentEvent) {
        self.0.lock().unwrap().push(event);
    }
}

/// The store's clock is that of the tests.
struct TestClock(tokio::time::Instant);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(1_000 + i64::try_from(self.0.elapsed().as_millis()).unwrap())
    }
}

/// A store in memory that counts what is read, and fails when it is told to.
pub(crate) struct TestStore {
    inner: MemoryStore,
    /// How many messages were read.
    pub(crate) messages_read: AtomicU64,
    pub(crate) fails_to_claim: AtomicBool,
    pub(crate) fails_to_renew: AtomicBool,
    /// So many renewals never answer.
    pub(crate) hangs_to_renew: AtomicU32,
    pub(crate) fails_to_commit: AtomicBool,
    pub(crate) hangs_to_commit: AtomicBool,
    counts: Mutex<HashMap<&'static str, u32>>,
}

impl TestStore {
    /// Within a tokio runtime, whose clock it has.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(TestStore {
            inner: MemoryStore::with_clock(Arc::new(TestClock(tokio::time::Instant::now()))),
            messages_read: AtomicU64::new(0),
            fails_to_claim: AtomicBool::new(false),
            fails_to_renew: AtomicBool::new(false),
            hangs_to_renew: AtomicU32::new(0),
            fails_to_commit: AtomicBool::new(false),
            hangs_to_commit: AtomicBool::new(false),
            counts: Mutex::default(),
        })
    }

    pub(crate) fn count(&self, what: &'static str) -> u32 {
        self.counts.lock().unwrap().get(what).copied().unwrap_or(0)
    }

    fn counted(&self, what: &'static str) {
        *self.counts.lock().unwrap().entry(what).or_default() += 1;
    }

    fn failing(switch: &AtomicBool) -> Result<(), StorageError> {
        match switch.load(Ordering::SeqCst) {
            true => Err(StorageError::io("testing", "the disk is on fire")),
            false => Ok(()),
        }
    }
}

/// The thread of this name.
pub(crate) fn thread(name: &'static str) -> ThreadId {
    ThreadId::new(name.into()).unwrap()
}

#[async_trait]
impl ThreadStore for TestStore {
    async fn create_thread(&self, thread: &ThreadId, metadata: Safe<Value>) -> Result<(), StorageError> {
        self.inner.create_thread(thread, metadata).await
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
        let page = self.inner.messages(thread, after, limit).await?;
        self.messages_read.fetch_add(page.len() as u64, Ordering::SeqCst);
        Ok(page)
    }

    async fn thread_values(
        &self,
        thread: &ThreadId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StateValue>, StorageError> {
        self.inner.thread_values(thread, after, limit).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StorageError> {
        self.inner.delete_thread(thread).await
    }
}

#[async_trait]
impl RunStore for TestStore {
    async fn agent_run(&self, run: &AgentRunId) -> Result<Option<AgentRunRow>, StorageError> {
        self.inner.agent_run(run).await
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
        Self::failing(&self.fails_to_claim)?;
        self.inner.unfinished_run(thread).await
    }

    async fn run_values(
        &self,
        run: &AgentRunId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StateValue>, StorageError> {
        self.inner.run_values(run, after, limit).await
    }

    async fn tool_calls(
        &self,
        run: &AgentRunId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ToolCallRow>, StorageError> {
        self.inner.tool_calls(run, after, limit).await
    }
}

#[async_trait]
impl ThreadRunStore for TestStore {
    async fn claim(
        &self,
        thread: &ThreadId,
        run: &AgentRunId,
        owner: Safe<String>,
        term: Duration,
    ) -> Result<Claimed, StorageError> {
        Self::failing(&self.fails_to_claim)?;
        self.inner.claim(thread, run, owner, term).await
    }

    async fn renew_claim(
        &self,
        thread: &ThreadId,
        generation: u64,
        term: Duration,
    ) -> Result<Lease, StorageError> {
        Self::failing(&self.fails_to_renew)?;
        let hangs =
            self.hangs_to_renew.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if hangs.is_ok() {
            return pending().await;
        }
        self.counted("renewals");
        self.inner.renew_claim(thread, generation, term).await
    }

    async fn release_claim(&self, thread: &ThreadId, generation: u64) -> Result<(), StorageError> {
        self.inner.release_claim(thread, generation).await
    }

    async fn commit(&self, commit: ThreadCommit) -> Result<Committed, StorageError> {
        Self::failing(&self.fails_to_commit)?;
        self.counted("commits");
        if self.hangs_to_commit.load(Ordering::SeqCst) {
            return pending().await;
        }
        self.inner.commit(commit).await
    }
}
