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
use runyard_agent::phase::{GateDecision, PhaseContext, TerminationReason, ToolGate};
use runyard_agent::plugin::{InstallError, Plugin, Registrar};
use runyard_agent::run::{ContextPolicy, RunOutcome};
use runyard_agent::spec::AgentSpec;
use runyard_agent::tool::{
    SuspendTicket, Tool, ToolContext, ToolDescriptor, ToolError, ToolOutput, ToolResult,
};
use runyard_agent::{AgentRuntime, AgentRuntimeBuilder, RunRequest};
use runyard_llm::inference::{AtEnd, Role, Script, ScriptedAnswer, ScriptedModel, ToolCall, When};
use runyard_store::{MemoryStore, ThreadRunStore};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

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

fn weather() -> Look {
    let schema = json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "unit": { "enum": ["celsius", "fahrenheit"] } },
        "required": ["city"],
    });
    Look(ToolDescriptor::new("weather", "Says how the weather is.", schema).unwrap())
}

fn script() -> Script {
    let call = ToolCall {
        id: "call_1".into(),
        name: "weather".into(),
        arguments: json!({ "city": "Lisbon", "unit": "celsius" }),
    };
    let answers =
        vec![ScriptedAnswer::calls([call]), ScriptedAnswer::text("It is warm and sunny in Lisbon.")];
    // By what was said last, so that many runs can ask at the same time.
    let answers = answers.into_iter().zip([Role::User, Role::Tool]).map(|(mut answer, role)| {
        answer.when = Some(When { role: Some(role), ..When::default() });
        answer
    });
    Script { name: "scripted".into(), at_end: AtEnd::Fail, answers: answers.collect() }
}

/// How an agent and its store are, where they are not as they come.
#[derive(Default)]
struct Kind {
    /// It asks a person before each call.
    asks: bool,
    /// So many tokens are read before the older part is to be summarised.
    tokens_max: Option<u64>,
    /// So many bytes of conversations are kept from run to run.
    cache_bytes: Option<usize>,
    store: Option<Arc<dyn ThreadRunStore>>,
}

/// An application with one agent.
#[derive(Clone)]
struct World(AgentRuntime);

impl World {
    fn new(runtime: &Runtime, kind: Kind) -> Self {
        let plugins = kind.asks.then(|| "asks".to_owned()).into_iter().collect();
        let context = ContextPolicy { tokens_max: kind.tokens_max, ..ContextPolicy::default() };
        let instructions = "You are helpful.".to_owned();
        let spec = AgentSpec { instructions, plugins, context, ..AgentSpec::new("agent", "scripted") };
        let mut builder = AgentRuntimeBuilder::new()
            .model("scripted", Arc::new(ScriptedModel::new(script()).forgetful()))
            .tool(Arc::new(weather()))
            .plugin(Asks)
            .agent(spec);
        if let Some(store) = kind.store {
            builder = builder.store(store);
        }
        if let Some(bytes) = kind.cache_bytes {
            builder = builder.cache_bytes(bytes);
        }
        World(runtime.block_on(builder.build()).unwrap())
    }

    async fn run(&self, thread: &str) -> RunOutcome {
        self.0.run(RunRequest::new("agent", thread, "How is the weather in Lisbon?")).await.unwrap()
    }
}

/// The name of a thread that is not there yet.
fn new_thread() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    format!("thread-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn memory() -> Option<Arc<dyn ThreadRunStore>> {
    Some(Arc::new(MemoryStore::new()))
}

#[divan::bench(sample_count = 200, sample_size = 1, counters = [RUNS], args = [false, true])]
fn run(bencher: Bencher<'_, '_>, with_a_store: bool) {
    let runtime = one_thread();
    let store = if with_a_store { memory() } else { None };
    let world = World::new(&runtime, Kind { store, ..Kind::default() });
    bencher.bench_local(|| {
        runtime.block_on(async {
            for _ in 0..RUNS {
                black_box(world.run(&new_thread()).await);
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
        let runtime = one_thread();
        let world = World::new(&runtime, Kind { store, ..Kind::default() });
        let go = |runs: u32| {
            runtime.block_on(async {
                for _ in 0..runs {
                    assert_eq!(world.run(&new_thread()).await.reason, TerminationReason::NaturalEnd);
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

/// Threads that grow by four messages a turn.
fn turns() {
    // Far beyond what is said in a thousand turns: what is looked at is whether it is counted anew each time.
    let limit = Some(100_000_000);
    for (name, threads, tokens_max, cache_bytes) in [
        ("kept by the runtime", 20, None, None),
        ("kept by the runtime, with a limit of context", 20, limit, None),
        ("read anew each turn", 2, None, Some(0)),
    ] {
        let runtime = one_thread();
        let world =
            World::new(&runtime, Kind { tokens_max, cache_bytes, store: memory(), ..Kind::default() });
        println!("CPU per turn in memory, {name}: {}", per_turn(&runtime, &world, threads));
    }
    with_sqlite(|runtime, store| {
        let world = World::new(runtime, Kind { store: Some(Arc::clone(store)), ..Kind::default() });
        println!("CPU per turn on SQLite, kept by the runtime: {}", per_turn(runtime, &world, 2));
    });
}

/// What a turn costs on so many threads, in five windows of 200 turns.
fn per_turn(runtime: &Runtime, world: &World, threads: u32) -> String {
    let mut windows = [Duration::ZERO; 5];
    for _ in 0..threads {
        let thread = new_thread();
        for window in &mut windows {
            let before = cpu();
            runtime.block_on(async {
                for _ in 0..200 {
                    assert_eq!(world.run(&thread).await.reason, TerminationReason::NaturalEnd);
                }
            });
            *window += cpu() - before;
        }
    }
    let names = ["1-200", "201-400", "401-600", "601-800", "801-1000"];
    let windows = names.iter().zip(windows);
    windows
        .map(|(turns, all)| format!("{turns} {:.1?}", all / (200 * threads)))
        .collect::<Vec<_>>()
        .join(", ")
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
        let world =
            World::new(runtime, Kind { asks: true, store: Some(Arc::clone(store)), ..Kind::default() });
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
                assert_eq!(world.run(&new_thread()).await.reason, reason);
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
        let world = World::new(runtime, Kind { store: Some(Arc::clone(store)), ..Kind::default() });
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
