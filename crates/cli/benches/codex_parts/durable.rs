//! Codex's lines to durable events: through the edge, over the link, into an engine on a database on disk, as a hub does it, with
//! one reader who follows. Against the store's own limit: the same events appended directly, in large batches and in batches of the
//! size that they came in, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use runyard_adapters::codex::{CODEX_KIND, CodexBackend};
use runyard_backend::Backend;
use runyard_domain::gate::Preset;
use runyard_domain::run::{OnReject, Task};
use runyard_domain::{Actor, AgentProfile, AppendId, Event, ExecutionPolicy, RunId};
use runyard_engine::{BasePolicy, Catalog, Engine, EngineOptions, Installation, Limits, NewRun};
use runyard_redact::{Redactor, TagKey};
use runyard_store::{
    Change, Clock, EventLog, LoggedEvent, NewEvent, Place, Projection, Runs, Store, SystemClock, Writes,
};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::duplex;

use crate::played::{EDGE, Stage, profile, rules};
use crate::speech::Speech;
use crate::{Asked, median, ms, speed};

/// How much of the link is on its way at most, as in a hub.
const LINK_BYTES: usize = 256 * 1024;
/// How many events are appended at a time where the store's limit is taken.
const BATCH: usize = 64;
/// Within so much of an event's bytes stands its type.
const HEAD_BYTES: usize = 512;
const AGENT: &str = "codex";

pub(crate) fn to_events(asked: &Asked) {
    let speech = Speech::of(asked.size(16, 1) * 1_000_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (mut through, mut alike, mut limit, mut last) = (Vec::new(), Vec::new(), Vec::new(), None);
    for _ in 0..asked.size(5, 1) {
        let recorded = runtime.block_on(recorded(&speech));
        alike.push(runtime.block_on(appended(&recorded, recorded.batch())));
        limit.push(runtime.block_on(appended(&recorded, BATCH)));
        through.push(recorded.took);
        last = Some(recorded);
    }
    let recorded = last.expect("at least one round");
    let (events, lines) = (recorded.events.len(), speech.bytes.len());
    let bytes: usize = recorded.events.iter().map(|event| event.body.len()).sum();
    println!(
        "  {:.1} MB in {} lines become {events} events of {:.1} MB in {} batches",
        lines as f64 / 1e6,
        speech.lines,
        bytes as f64 / 1e6,
        recorded.batches
    );
    let through = median(through);
    let each_second = |time: Duration| events as f64 / time.as_secs_f64();
    println!(
        "  durable: {:.0} events a second, {:.1} MB of lines a second ({:.0} ms)",
        each_second(through),
        speed(lines, through),
        ms(through)
    );
    for (batch, time) in [(BATCH, median(limit)), (recorded.batch(), median(alike))] {
        println!(
            "  the store alone, appends of {batch} one after the other: {:.0} events a second ({:.0} ms); share {:.0} %",
            each_second(time),
            ms(time),
            100.0 * time.as_secs_f64() / through.as_secs_f64()
        );
    }
}

/// A turn that is on disk.
struct Recorded {
    took: Duration,
    /// All that was written from the start of codex to the end of its turn.
    events: Vec<LoggedEvent>,
    batches: usize,
    state: Value,
}

impl Recorded {
    /// How many events a batch came to, about.
    fn batch(&self) -> usize {
        self.events.len().div_ceil(self.batches)
    }
}

fn store() -> (TempDir, Arc<SqliteStore>) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(OpenOptions::new(folder.path().join("runyard.db"), "bench")).unwrap();
    (folder, Arc::new(store))
}

fn redactor() -> Redactor {
    Redactor::builder(TagKey::from_bytes([7; 32])).build().unwrap()
}

/// From the start of codex until the end of its turn is durable.
async fn recorded(speech: &Speech) -> Recorded {
    let (_folder, store) = store();
    let stage = Stage::new(speech).await;
    let engine = engine(&stage, store.clone()).await;
    let (hub_end, edge_end) = duplex(LINK_BYTES);
    let (attached, edge) = (engine.clone(), stage.edge());
    let link = tokio::spawn(async move { attached.attach(hub_end).await });
    let serving = tokio::spawn(async move { edge.serve(edge_end).await });
    while !engine.edges().iter().any(|edge| edge.connected) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let background = engine.go().await.unwrap();
    let made = engine.create_run(new_run(), &Actor::owner("ada")).await.unwrap();
    let run = made.standing.run.id;
    let mut tail = engine.follow(run, 0).await.unwrap();
    let mut events: Vec<LoggedEvent> = Vec::new();
    let took = loop {
        let more = tail.next().await.unwrap();
        if more.iter().any(|event| is(event, "run.turn.ended")) {
            events.extend(more);
            break stage.begun().elapsed();
        }
        let broken = |event: &&LoggedEvent| is(event, "run.failed") || is(event, "run.approval.requested");
        let broken = more.iter().find(broken).map(|event| String::from_utf8_lossy(&event.body));
        assert_eq!(broken, None);
        events.extend(more);
    };
    let batches = usize::try_from(engine.figures().batches_recorded).unwrap();
    let row = store.run(run).await.unwrap().unwrap();
    let started = events.iter().position(|event| is(event, "run.started")).unwrap();
    let ended = events.iter().position(|event| is(event, "run.turn.ended")).unwrap();
    engine.stop();
    background.iter().for_each(tokio::task::JoinHandle::abort);
    link.abort();
    let _ = serving.await.unwrap();
    Recorded {
        took,
        events: events.drain(started + 1..=ended).collect(),
        batches,
        state: serde_json::from_slice(&row.state).unwrap(),
    }
}

/// Whether it is of this type, without reading all of it: the type stands before the payload.
fn is(event: &LoggedEvent, kind: &str) -> bool {
    let (head, wanted) = (&event.body[..event.body.len().min(HEAD_BYTES)], format!("\"type\":\"{kind}\""));
    head.windows(wanted.len()).any(|window| window == wanted.as_bytes())
}

async fn engine(stage: &Stage, store: Arc<dyn Store>) -> Engine {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let installation = Installation::open(Arc::clone(&store), redactor(), Arc::clone(&clock)).await.unwrap();
    let options = EngineOptions {
        store,
        redactor: redactor(),
        clock,
        owner: "hub".to_owned(),
        own_edges: BTreeSet::from([EDGE.to_owned()]),
        shared_store: false,
        catalog: catalog(),
        policy: BasePolicy { rules: rules(), ..BasePolicy::default() },
        workspaces: Arc::new(stage.workspaces.clone()),
        installation,
        digest_key: [5; 32],
        limits: Limits::default(),
    };
    Engine::start(options).await.unwrap()
}

fn catalog() -> Catalog {
    let agent = AgentProfile {
        id: AGENT.to_owned(),
        label: AGENT.to_owned(),
        backend_profile: AGENT.to_owned(),
        capabilities: Vec::new(),
        preset: Preset::Default,
        on_reject: OnReject::Cancel,
        execution_policy: ExecutionPolicy::default(),
        runs_max: 8,
    };
    Catalog {
        agents: BTreeMap::from([(AGENT.to_owned(), agent)]),
        backends: BTreeMap::from([(AGENT.to_owned(), profile(AGENT))]),
        kinds: BTreeMap::from([(CODEX_KIND.to_owned(), CodexBackend::new().info())]),
    }
}

fn new_run() -> NewRun {
    NewRun {
        task: Task::Text { text: "look around".to_owned(), redacted: false },
        agent: AGENT.to_owned(),
        workspace: "site".to_owned(),
        backend_profile: None,
        session: None,
        continues: None,
        execution_policy: None,
        key: None,
    }
}

/// How long the store itself takes for the same events, all prepared, so many at a time.
async fn appended(recorded: &Recorded, batch: usize) -> Duration {
    let (_folder, store) = store();
    let run = RunId::from_parts(1, &[1; 10]);
    let changes = changes(run, recorded, batch);
    let begun = Instant::now();
    for change in changes {
        store.append(change).await.unwrap();
    }
    let took = begun.elapsed();
    store.close().await;
    took
}

fn changes(run: RunId, recorded: &Recorded, batch: usize) -> Vec<Change> {
    let redactor = redactor();
    let mut kinds: BTreeMap<String, &'static str> = BTreeMap::new();
    let mut event = |event: &LoggedEvent| {
        let Event { id, kind, session_id, agent_id, timestamp, payload, .. } = event.envelope().unwrap();
        let kind = *kinds.entry(kind).or_insert_with_key(|kind| kind.clone().leak());
        NewEvent {
            session: session_id,
            agent: agent_id.map(|agent| redactor.content(&agent)),
            ..NewEvent::new(id, timestamp, kind, redactor.json(payload))
        }
    };
    let batches = recorded.events.chunks(batch).zip((0..).step_by(batch));
    let change = |(batch, after): (&[LoggedEvent], u64)| {
        let projection = Projection { status: "running", state: redactor.json(recorded.state.clone()) };
        let events = batch.iter().map(&mut event).collect();
        Change {
            run,
            append: AppendId::from_parts(after + 1, &[1; 10]),
            generation: None,
            place: Place::At(after, Writes { events, projection: Some(projection), ..Writes::default() }),
        }
    };
    batches.map(change).collect()
}
