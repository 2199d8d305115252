//! What the tests share: a world with a scripted model, tools, hooks and a store, in which runs are run and looked at.

#[path = "../support/flaky.rs"]
pub(crate) mod flaky;
#[path = "../support/heard.rs"]
mod heard;
pub(crate) mod parts;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use runyard_agent::checkpoint::{Checkpoint, NoCheckpoint, OpenError, Opened, StoreCheckpoint};
use runyard_agent::phase::{RunIdentity, TerminationReason};
use runyard_agent::run::{
    AgentEvent, Begin, ContextPolicy, Decision, Inbox, Limits, Observer, RunOutcome, RunParts, RunRecord,
    loop_environment, run,
};
use runyard_agent::state::{KeyOptions, UnknownKeyPolicy};
use runyard_agent::tool::Tool;
use runyard_agent::{Agent, CallOrder, Settings};
use runyard_domain::{Actor, RunId};
use runyard_llm::inference::{
    Breakers, FixedJitter, Inference, Message, Model, Part, Pool, RetryPolicy, Role, ScriptedAnswer,
    ScriptedModel, ToolCall, Update,
};
use runyard_redact::{Known, Redactor, TagKey};
use runyard_store::{AgentRunId, MemoryStore, PAGE_MAX, ThreadId, ThreadRunStore, ToolCallRow};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) use heard::Heard;
use parts::{Bits, Label, Memory, Tally};

pub(crate) const THREAD: &str = "thread";
pub(crate) const OWNER: &str = "tests";
/// What nobody may store.
pub(crate) const SECRET: &str = "correct-horse-battery-staple-7731";

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
    Redactor::builder(TagKey::from_bytes([7; 32])).known([Known::value(SECRET)]).build().unwrap()
});

/// Everything around runs.
pub(crate) struct World {
    pub(crate) model: Arc<ScriptedModel>,
    pub(crate) store: Arc<dyn ThreadRunStore>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) cancellation: CancellationToken,
    pub(crate) heard: Arc<Heard>,
    pub(crate) limits: Limits,
    pub(crate) context: ContextPolicy,
    pub(crate) settings: Settings,
    pub(crate) order: CallOrder,
    pub(crate) retry: RetryPolicy,
    pub(crate) redactor: Redactor,
    pub(crate) unknown_keys: UnknownKeyPolicy,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// Asked instead of the scripted model.
    pub(crate) instead: Option<Arc<dyn Model>>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) bits: Bits,
}

/// What came of one run, or of one part of it.
pub(crate) struct Seen {
    pub(crate) outcome: RunOutcome,
    pub(crate) events: Vec<AgentEvent>,
}

pub(crate) fn run_id() -> RunId {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let mut random = [0; 10];
    random[2..].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    RunId::from_parts(1_700_000_000_000, &random)
}

pub(crate) fn call(id: &str, tool: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), name: tool.to_owned(), arguments }
}

/// The model calls one tool.
pub(crate) fn calls(id: &str, tool: &str) -> ScriptedAnswer {
    ScriptedAnswer::calls([call(id, tool, json!({ "n": 1 }))])
}

pub(crate) fn says(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::text(text)
}

impl World {
    pub(crate) fn new(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Self {
        World {
            model: Arc::new(ScriptedModel::of("model", answers)),
            store: Arc::new(MemoryStore::new()),
            inbox: Arc::default(),
            cancellation: CancellationToken::new(),
            heard: Arc::default(),
            limits: Limits::default(),
            context: ContextPolicy::default(),
            settings: Settings::default(),
            order: CallOrder::OneByOne,
            retry: RetryPolicy::default(),
            redactor: REDACTOR.clone(),
            unknown_keys: UnknownKeyPolicy::Error,
            observer: None,
            instead: None,
            tools: Vec::new(),
            bits: Bits::default(),
        }
    }

    pub(crate) fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds hooks and gates.
    pub(crate) fn with(mut self, add: impl FnOnce(&mut Bits)) -> Self {
        add(&mut self.bits);
        self
    }

    pub(crate) fn parallel(mut self) -> Self {
        self.order = CallOrder::Parallel;
        self
    }

    pub(crate) fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The same world after the process died, with another model and nobody who says anything.
    pub(crate) fn again(&mut self, answers: impl IntoIterator<Item = ScriptedAnswer>) {
        self.model = Arc::new(ScriptedModel::of("model", answers));
        self.inbox = Arc::default();
        self.cancellation = CancellationToken::new();
        self.heard = Arc::default();
    }

    pub(crate) fn agent(&self) -> Agent {
        let mut environment = loop_environment(Map::new()).unwrap();
        environment.add_key::<Tally>(KeyOptions::DEFAULT).unwrap();
        environment.add_key::<Label>(KeyOptions::DEFAULT).unwrap();
        environment.add_key::<Memory>(KeyOptions::DEFAULT).unwrap();
        for tool in &self.tools {
            environment.add_tool(Arc::clone(tool)).unwrap();
        }
        environment.install(&self.bits).unwrap();
        let tools = environment.tools().map(|tool| tool.descriptor().spec()).collect();
        let scripted = || Arc::clone(&self.model) as Arc<dyn Model>;
        let pool = Pool::new([self.instead.clone().unwrap_or_else(scripted)], &Breakers::default());
        Agent {
            id: "agent".into(),
            instructions: "Be short.".into(),
            inference: Inference::with_jitter(pool, self.retry.clone(), Arc::new(FixedJitter(0))),
            environment: Arc::new(environment),
            tools,
            settings: self.settings.clone(),
            calls: self.order,
            limits: Arc::new(self.limits.clone()),
            context: self.context.clone(),
            unknown_keys: self.unknown_keys,
        }
    }

    pub(crate) fn parts(&self, run_id: RunId, checkpoint: Arc<dyn Checkpoint>) -> RunParts {
        let thread_id: Arc<str> = THREAD.into();
        RunParts {
            agent: self.agent(),
            identity: RunIdentity { run_id, thread_id, agent_id: "agent".into() },
            actor: Arc::new(Actor::owner("tests")),
            checkpoint,
            inbox: Arc::clone(&self.inbox),
            observer: self.observer.clone().unwrap_or_else(|| Arc::clone(&self.heard) as Arc<dyn Observer>),
            cancellation: self.cancellation.clone(),
        }
    }

    pub(crate) async fn try_open(&self, run_id: RunId) -> Result<(StoreCheckpoint, Opened), OpenError> {
        let name = run_id.to_string();
        let names = (THREAD, name.as_str(), OWNER);
        StoreCheckpoint::open(Arc::clone(&self.store), self.redactor.clone(), names, Vec::new()).await
    }

    pub(crate) async fn open(&self, run_id: RunId) -> (StoreCheckpoint, Opened) {
        self.try_open(run_id).await.unwrap()
    }

    /// Runs a run, or goes on with it, in the store.
    pub(crate) async fn go(&self, run_id: RunId, input: &[&str], decisions: Vec<Decision>) -> Seen {
        self.try_go(run_id, input, decisions).await.unwrap()
    }

    /// The same, where the thread may not open.
    pub(crate) async fn try_go(
        &self,
        run_id: RunId,
        input: &[&str],
        decisions: Vec<Decision>,
    ) -> Result<Seen, OpenError> {
        let (checkpoint, opened) = self.try_open(run_id).await?;
        let before = self.heard.events().len();
        let begin = Begin {
            resumed: opened.record.is_some(),
            opened,
            input: input.iter().map(|text| Message::user(*text)).collect(),
            decisions,
        };
        let outcome = run(self.parts(run_id, Arc::new(checkpoint)), begin).await;
        Ok(Seen { outcome, events: self.heard.events().split_off(before) })
    }

    /// Runs one run in the store.
    pub(crate) async fn ask(&self, input: &str) -> Seen {
        self.go(run_id(), &[input], Vec::new()).await
    }

    /// Runs one run without a store.
    pub(crate) async fn ask_unstored(&self, input: &str) -> Seen {
        let begin = Begin { input: vec![Message::user(input)], ..Begin::default() };
        let outcome = run(self.parts(run_id(), Arc::new(NoCheckpoint)), begin).await;
        Seen { outcome, events: self.heard.events() }
    }

    pub(crate) async fn messages(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let page = self.store.messages(&self.thread(), messages.len() as u64, PAGE_MAX).await.unwrap();
            if page.is_empty() {
                return messages;
            }
            messages.extend(page.iter().map(|stored| serde_json::from_slice(&stored.body).unwrap()));
        }
    }

    pub(crate) async fn record(&self, run_id: RunId) -> RunRecord {
        let row = self.store.agent_run(&self.run_name(run_id)).await.unwrap().unwrap();
        assert_eq!(row.finished, row.status == "done");
        serde_json::from_slice(&row.payload).unwrap()
    }

    pub(crate) async fn journal(&self, run_id: RunId) -> Vec<ToolCallRow> {
        self.store.tool_calls(&self.run_name(run_id), 0, PAGE_MAX).await.unwrap()
    }

    /// All that is stored, as one text.
    pub(crate) async fn everything(&self, run_id: RunId) -> String {
        let (thread, run) = (self.thread(), self.run_name(run_id));
        let mut all = format!("{:?}", self.messages().await);
        for value in self.store.thread_values(&thread, None, PAGE_MAX).await.unwrap() {
            all.push_str(&format!("{} {}", value.key, String::from_utf8_lossy(&value.value)));
        }
        for value in self.store.run_values(&run, None, PAGE_MAX).await.unwrap() {
            all.push_str(&format!("{} {}", value.key, String::from_utf8_lossy(&value.value)));
        }
        for row in self.journal(run_id).await {
            all.push_str(&String::from_utf8_lossy(&row.intent));
            all.push_str(&String::from_utf8_lossy(&row.result.unwrap_or_default()));
        }
        let row = self.store.agent_run(&run).await.unwrap().unwrap();
        all.push_str(&String::from_utf8_lossy(&row.payload));
        all
    }

    /// Whether nobody holds the thread, and no run of it is unfinished.
    pub(crate) async fn is_free(&self) -> bool {
        let row = self.store.thread(&self.thread()).await.unwrap().unwrap();
        row.holder.is_none() && row.unfinished.is_none()
    }

    pub(crate) fn thread(&self) -> ThreadId {
        ThreadId::new(THREAD.into()).unwrap()
    }

    pub(crate) fn run_name(&self, run_id: RunId) -> AgentRunId {
        AgentRunId::from_stored(run_id.to_string())
    }
}

impl Seen {
    /// How it ended, as it was told: once, and last.
    #[track_caller]
    pub(crate) fn reason(&self) -> &TerminationReason {
        let ends = self.events.iter().filter(|event| matches!(event, AgentEvent::RunEnded { .. }));
        assert_eq!(ends.count(), 1, "{:#?}", self.events);
        let Some(AgentEvent::RunEnded { reason, usage }) = self.events.last() else {
            panic!("the end comes last: {:#?}", self.events);
        };
        assert_eq!((reason, usage), (&self.outcome.reason, &self.outcome.usage));
        reason
    }

    /// Everything that happened, in words.
    pub(crate) fn words(&self) -> Vec<String> {
        self.events.iter().filter_map(word).collect()
    }

    /// What clients saw of the model's words.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for event in &self.events {
            match event {
                AgentEvent::Inference(Update::Text(piece)) => text.push_str(piece),
                AgentEvent::Inference(Update::Reset) => text.clear(),
                _ => {}
            }
        }
        text
    }
}

pub(crate) fn word(event: &AgentEvent) -> Option<String> {
    Some(match event {
        AgentEvent::RunStarted { resumed: false } => "started".to_owned(),
        AgentEvent::RunStarted { resumed: true } => "resumed".to_owned(),
        AgentEvent::StepStarted { step } => format!("step {step}"),
        AgentEvent::Answered { message, .. } => format!("answered {}", message.said()),
        AgentEvent::ToolStarted { place, .. } => format!("made {place}"),
        AgentEvent::ToolReported { place, .. } => format!("reported {place}"),
        AgentEvent::ReportsLost { place, count } => format!("lost {count} {place}"),
        AgentEvent::ToolEnded { place, outcome: Ok(_), .. } => format!("ok {place}"),
        AgentEvent::ToolEnded { place, outcome: Err(error), .. } => {
            format!("{} {place}", error.code().as_str())
        }
        AgentEvent::Suspended { place, ticket } => format!("waits {place} for {}", ticket.action),
        AgentEvent::Summarised { messages } => format!("summarised {messages}"),
        AgentEvent::EffectFailed { key, message } => format!("effect {key} failed: {message}"),
        AgentEvent::ActionFailed { key, message } => format!("action {key} failed: {message}"),
        AgentEvent::RunEnded { .. } => "ended".to_owned(),
        _ => return None,
    })
}

/// Every call has exactly one result, right behind the answer that made it.
#[track_caller]
pub(crate) fn assert_paired(messages: &[Message]) {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        if message.role == Role::Tool {
            for output in outputs(message) {
                let found = open.iter().position(|id| *id == output.0);
                open.remove(found.unwrap_or_else(|| panic!("a result of no call: {messages:#?}")));
            }
        } else {
            assert!(open.is_empty(), "without a result: {open:?} in {messages:#?}");
            open.extend(message.tool_calls().map(|call| call.id.clone()));
        }
    }
    assert!(open.is_empty(), "without a result: {open:?} in {messages:#?}");
}

/// The results in a message: of which call, what, and whether it is an error.
pub(crate) fn outputs(message: &Message) -> Vec<(String, String, bool)> {
    let outputs = message.content.iter().filter_map(|part| match part {
        Part::ToolOutput(output) => Some((output.call_id.clone(), output.content.clone(), output.is_error)),
        _ => None,
    });
    outputs.collect()
}

/// All results of a conversation.
pub(crate) fn results(messages: &[Message]) -> Vec<(String, String, bool)> {
    messages.iter().flat_map(outputs).collect()
}

/// Who said what, in short.
pub(crate) fn shape(messages: &[Message]) -> Vec<String> {
    let one = |message: &Message| match message.role {
        Role::User => format!("user: {}", message.said()),
        Role::System => format!("system: {}", message.said()),
        Role::Assistant => {
            let calls: Vec<_> =
                message.tool_calls().map(|call| format!("{}({})", call.name, call.id)).collect();
            format!("model: {}{}", message.said(), calls.join(" "))
        }
        Role::Tool => outputs(message).into_iter().map(|(id, said, _)| format!("{id}: {said}")).collect(),
    };
    messages.iter().map(one).collect()
}
