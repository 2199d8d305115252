//! What a run costs apart from its model: one tool call, then a last message, by a scripted model.
//!
//! `cargo bench -p runyard-agent --bench loop`, or with the names of parts: `-- run turns durable suspended`. `run` is the time
//! of one run by itself (divan); the others print processor time, which is what counts on a machine that others use too.
//! `durable` writes to `RUNYARD_BENCH_DIR`, or to the directory for temporary files.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "this is a benchmark")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use divan::{Bencher, black_box};
use runyard_agent::checkpoint::{Checkpoint, NoCheckpoint, Opened, StoreCheckpoint};
use runyard_agent::phase::{GateDecision, PhaseContext, RunIdentity, TerminationReason, ToolGate};
use runyard_agent::plugin::{InstallError, Plugin, Registrar};
use runyard_agent::run::{
    Begin, ContextPolicy, Inbox, Limits, RunOutcome, RunParts, Unobserved, loop_environment, run,
};
use runyard_agent::state::UnknownKeyPolicy;
use runyard_agent::tool::{
    SuspendTicket, Tool, ToolContext, ToolDescriptor, ToolError, ToolOutput, ToolResult,
};
use runyard_agent::{Agent, CallOrder, Settings};
use runyard_domain::{Actor, RunId};
use runyard_llm::inference::{AtEnd, Inference, Message, Script, ScriptedAnswer, ScriptedModel, ToolCall};
use runyard_redact::{Redactor, TagKey};
use runyard_store::{MemoryStore, ThreadRunStore};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::{Map, Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Runs of one sample.
const RUNS: u32 = 50;
/// Runs at a time, where they wait for the disk.
const AT_A_TIME: usize = 64;

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        // It is being tested: that it builds is all that can be said.
        return;
    }
    let parts: Vec<String> = std::env::args().skip(1).filter(|part| !part.starts_with('-')).collect();
    let is_asked = |part: &str| parts.is_empty() || parts.iter().any(|asked| asked == part);
    if is_asked("run") {
        divan::Divan::default().run_benches();
        cpu_of_a_run();
    }
    if is_asked("turns") {
        turns();
    }
    if is_asked("suspended") {
        suspended();
    }
    if is_asked("durable") {
        durable();
    }
}

struct Look(ToolDescriptor);

#[async_trait]
impl Tool for Look {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.0
    }

    async fn execute(&self, _args: Value, _context: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolResult::success("22 degrees, and not a cloud in the sky").into())
    }
}

/// Asks a person before each call.
struct Asks;

impl Plugin for Asks {
    fn id(&self) -> &str {
        "asks"
    }

    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        registrar.gate(Asks);
        Ok(())
    }
}

#[async_trait]
impl ToolGate for Asks {
    async fn decide(
        &self,
        call: &ToolCall,
        _context: &PhaseContext<'_>,
    ) -> Result<GateDecision, runyard_agent::phase::Fault> {
        Ok(GateDecision::Suspend(Box::new(SuspendTicket::new(call.id.clone(), "confirm", "May I?"))))
    }
}

fn agent(asks: bool) -> Agent {
    let schema = json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "unit": { "enum": ["celsius", "fahrenheit"] } },
        "required": ["city"],
    });
    let mut environment = loop_environment(Map::new()).unwrap();
    let look = Look(ToolDescriptor::new("weather", "Says how the weather is.", schema).unwrap());
    environment.add_tool(Arc::new(look)).unwrap();
    if asks {
        environment.install(&Asks).unwrap();
    }
    let call = ToolCall {
        id: "call_1".into(),
        name: "weather".into(),
        arguments: json!({ "city": "Lisbon", "unit": "celsius" }),
    };
    let answers =
        vec![ScriptedAnswer::calls([call]), ScriptedAnswer::text("It is warm and sunny in Lisbon.")];
    // By what was said last, so that many runs can ask at the same time.
    let answers = answers
        .into_iter()
        .zip([runyard_llm::inference::Role::User, runyard_llm::inference::Role::Tool])
        .map(|(mut answer, role)| {
            answer.when = Some(runyard_llm::inference::When { role: Some(role), ..Default::default() });
            answer
        })
        .collect();
    let script = Script { name: "scripted".into(), at_end: AtEnd::Fail, answers };
    Agent {
        id: "agent".into(),
        instructions: "You are helpful.".into(),
        inference: Inference::of(Arc::new(ScriptedModel::new(script).forgetful())),
        tools: environment.tools().map(|tool| tool.descriptor().spec()).collect(),
        environment: Arc::new(environment),
        settings: Settings::default(),
        calls: CallOrder::OneByOne,
        limits: Arc::new(Limits::default()),
        context: ContextPolicy::default(),
        unknown_keys: UnknownKeyPolicy::Error,
    }
}

fn run_id() -> RunId {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let mut random = [0; 10];
    random[2..].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    RunId::from_parts(1_700_000_000_000, &random)
}

fn redactor() -> Redactor {
    Redactor::builder(TagKey::from_bytes([7; 32])).build().unwrap()
}

/// Everything that runs share.
#[derive(Clone)]
struct World {
    agent: Agent,
    store: Option<Arc<dyn ThreadRunStore>>,
    redactor: Redactor,
    actor: Arc<Actor>,
}

impl World {
    fn new(agent: Agent, store: Option<Arc<dyn ThreadRunStore>>) -> Self {
        World { agent, store, redactor: redactor(), actor: Arc::new(Actor::owner("bench")) }
    }

    async fn run(&self, thread: &str, known: Vec<Arc<Message>>) -> RunOutcome {
        let run_id = run_id();
        let (checkpoint, opened): (Arc<dyn Checkpoint>, Opened) = match &self.store {
            None => (Arc::new(NoCheckpoint), Opened { messages: known, ..Opened::default() }),
            Some(store) => {
                let name = run_id.to_string();
                let names = (thread, name.as_str(), "bench");
                let opened = StoreCheckpoint::open(Arc::clone(store), self.redactor.clone(), names, known);
                let (checkpoint, opened) = opened.await.unwrap();
                (Arc::new(checkpoint), opened)
            }
        };
        let parts = RunParts {
            agent: self.agent.clone(),
            identity: RunIdentity { run_id, thread_id: thread.into(), agent_id: Arc::clone(&self.agent.id) },
            actor: Arc::clone(&self.actor),
            checkpoint,
            inbox: Arc::new(Inbox::default()),
            observer: Arc::new(Unobserved),
            cancellation: CancellationToken::new(),
        };
        let input = vec![Message::user("How is the weather in Lisbon?")];
        run(parts, Begin { opened, input, ..Begin::default() }).await
    }
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn memory() -> Option<Arc<dyn ThreadRunStore>> {
    Some(Arc::new(MemoryStore::new()))
}

#[divan::bench(sample_count = 200, sample_size = 1, counters = [RUNS])]
fn without_a_store(bencher: Bencher<'_, '_>) {
    let (runtime, world) = (one_thread(), World::new(agent(false), None));
    bencher.bench_local(|| {
        runtime.block_on(async {
            for _ in 0..RUNS {
                black_box(world.run("thread", Vec::new()).await);
            }
        });
    });
}

#[divan::bench(sample_count = 200, sample_size = 1, counters = [RUNS])]
fn in_memory(bencher: Bencher<'_, '_>) {
    let (runtime, world) = (one_thread(), World::new(agent(false), memory()));
    bencher.bench_local(|| {
        runtime.block_on(async {
            for _ in 0..RUNS {
                let thread = run_id().to_string();
                black_box(world.run(&thread, Vec::new()).await);
            }
        });
    });
}

/// The processor time of this process so far.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    let of_main: u64 = stat.split(' ').next().unwrap().parse().unwrap();
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let all = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
    let all: u64 = all.filter_map(|stat| stat.split(' ').next()?.parse::<u64>().ok()).sum();
    Duration::from_nanos(all.max(of_main))
}

fn cpu_of_a_run() {
    for (name, store) in [("without a store", None), ("in memory, a new thread each", memory())] {
        let (runtime, world) = (one_thread(), World::new(agent(false), store));
        let go = |runs: u32| {
            runtime.block_on(async {
                for _ in 0..runs {
                    let thread = run_id().to_string();
                    assert_eq!(world.run(&thread, Vec::new()).await.reason, TerminationReason::NaturalEnd);
                }
            });
        };
        go(1_000);
        let mut best = Duration::MAX;
        let mut all = Duration::ZERO;
        for _ in 0..10 {
            let before = cpu();
            go(2_000);
            let spent = (cpu() - before) / 2_000;
            best = best.min(spent);
            all += spent;
        }
        println!("{name}: {:?} CPU per run (best of 10 × 2,000: {best:?})", all / 10);
    }
}

/// One thread that grows by four messages a turn; `known` is what a runtime keeps of it from turn to turn.
fn turns() {
    let runtime = one_thread();
    for (name, keeps) in [("kept from turn to turn", true), ("read anew each turn", false)] {
        let threads = if keeps { 20 } else { 2 };
        let mut windows = [Duration::ZERO; 5];
        for thread in 0..threads {
            let world = World::new(agent(false), memory());
            let mut known = Vec::new();
            for window in &mut windows {
                let before = cpu();
                runtime.block_on(async {
                    for _ in 0..200 {
                        let outcome = world.run(&thread.to_string(), std::mem::take(&mut known)).await;
                        known = if keeps { outcome.thread.messages } else { Vec::new() };
                    }
                });
                *window += cpu() - before;
            }
        }
        let per_turn: Vec<String> =
            windows.iter().map(|window| format!("{:.1?}", *window / (200 * threads))).collect();
        println!(
            "CPU per turn, turns 1-200, -400, -600, -800, -1000, thread {name}: {}",
            per_turn.join(", ")
        );
    }
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Runs that wait are rows of a store on the disk.
fn suspended() {
    const SUSPENDED: u32 = 100_000;
    with_sqlite(|runtime, store| {
        let world = World::new(agent(true), Some(Arc::clone(store)));
        let all = |runs: u32| many(runtime, &world, runs, TerminationReason::Suspended);
        all(2_000);
        let before = resident_bytes();
        let begun = Instant::now();
        all(SUSPENDED);
        let each = resident_bytes().saturating_sub(before) / u64::from(SUSPENDED);
        println!("{SUSPENDED} suspended runs: {each} bytes resident each ({:.0?})", begun.elapsed());
    });
}

fn many(runtime: &Runtime, world: &World, runs: u32, reason: TerminationReason) {
    runtime.block_on(async {
        let mut running = JoinSet::new();
        for _ in 0..runs {
            if running.len() >= AT_A_TIME {
                running.join_next().await.unwrap().unwrap();
            }
            let (world, reason) = (world.clone(), reason.clone());
            running.spawn(async move {
                let thread = run_id().to_string();
                assert_eq!(world.run(&thread, Vec::new()).await.reason, reason);
            });
        }
        while running.join_next().await.is_some() {}
    });
}

fn with_sqlite(measure: impl FnOnce(&Runtime, &Arc<dyn ThreadRunStore>)) {
    let inside =
        std::env::var("RUNYARD_BENCH_DIR").unwrap_or_else(|_| std::env::temp_dir().display().to_string());
    let dir = tempfile::tempdir_in(Path::new(&inside)).unwrap();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = {
        let _inside = runtime.enter();
        SqliteStore::open(OpenOptions::new(dir.path().join("bench.db"), "bench")).unwrap()
    };
    let store: Arc<dyn ThreadRunStore> = Arc::new(store);
    measure(&runtime, &store);
}

fn durable() {
    with_sqlite(|runtime, store| {
        let world = World::new(agent(false), Some(Arc::clone(store)));
        let mut stored = 0;
        for wanted in [10, 2_000, 10_000, 20_000] {
            many(runtime, &world, wanted - stored, TerminationReason::NaturalEnd);
            let (begun, before) = (Instant::now(), cpu());
            let runs = 1_500;
            many(runtime, &world, runs, TerminationReason::NaturalEnd);
            let rate = f64::from(runs) / begun.elapsed().as_secs_f64();
            let spent = (cpu() - before) / runs;
            println!(
                "SQLite, {AT_A_TIME} at a time, {wanted} threads stored: {rate:.0} durable runs/s, {spent:?} CPU per run"
            );
            stored = wanted + runs;
        }
    });
}
