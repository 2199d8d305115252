//! An engine in memory, and an edge that is played by the test: it hears what the hub says and reports what the test wants.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test support; each file uses its own part"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_backend::link::frames::{Reader, Writer, frames};
use runyard_backend::link::{FromEdge, OpenRun, Report, ToEdge};
use runyard_backend::{
    BackendInfo, ListChange, Resumes, Runs, SecretKeys, Signal, WorkspaceError, Workspaces,
};
use runyard_domain::gate::{OwnRuns, Preset, Request, Risk};
use runyard_domain::run::{Budget, CHECKED, OnReject, Run, Task, ToolOutcome, TurnOutcome, Who};
use runyard_domain::{
    Actor, AgentProfile, AppendId, BackendProfile, ExecutionPolicy, Listing, RunId, Workspace,
    WorkspaceChanged, WorkspaceId,
};
use runyard_engine::{BasePolicy, Catalog, Engine, EngineOptions, Installation, Limits, NewRun};
use runyard_redact::{Redactor, TagKey};
use runyard_store::{Clock, MemoryStore, Store, SystemClock};
use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex};

/// An allow-list that always holds one workspace, whatever is done to it.
struct OneWorkspace {
    workspace: Workspace,
    unsaid: Mutex<Vec<ListChange>>,
}

impl OneWorkspace {
    fn note(&self, change: Listing, by: &Who) {
        let mut unsaid = self.unsaid.lock().unwrap();
        let id = AppendId::from_parts(unsaid.len() as u64 + 1, &[8; 10]);
        let (workspace_id, label) = (self.workspace.id, self.workspace.label.clone());
        unsaid.push(ListChange {
            id,
            what: WorkspaceChanged { change, workspace_id, label },
            by: by.clone(),
        });
    }
}

pub fn workspace() -> Workspace {
    Workspace {
        id: WorkspaceId::from_parts(1, &[1; 10]),
        label: "site".into(),
        project: "site".into(),
        edge_id: "local".into(),
    }
}

#[async_trait]
impl Workspaces for OneWorkspace {
    async fn add(&self, _: &str, _: Option<&str>, by: &Who) -> Result<Workspace, WorkspaceError> {
        self.note(Listing::Added, by);
        Ok(self.workspace.clone())
    }

    async fn remove(&self, _: WorkspaceId, by: &Who) -> Result<(), WorkspaceError> {
        self.note(Listing::Removed, by);
        Ok(())
    }

    async fn unsaid(&self) -> Result<Vec<ListChange>, WorkspaceError> {
        Ok(self.unsaid.lock().unwrap().clone())
    }

    async fn said(&self, changes: Vec<AppendId>) -> Result<(), WorkspaceError> {
        self.unsaid.lock().unwrap().retain(|change| !changes.contains(&change.id));
        Ok(())
    }

    async fn list(&self) -> Result<Vec<Workspace>, WorkspaceError> {
        Ok(vec![self.workspace.clone()])
    }

    async fn shown(&self, _: WorkspaceId, text: String) -> Result<String, WorkspaceError> {
        Ok(text.replace("/srv/site/", ""))
    }

    async fn resolve(&self, place: &str) -> Result<Workspace, WorkspaceError> {
        if place == self.workspace.label || place == self.workspace.id.to_string() {
            Ok(self.workspace.clone())
        } else {
            Err(WorkspaceError::Outside { place: place.to_owned() })
        }
    }
}

pub fn person() -> Actor {
    Actor::owner("ada")
}

pub fn catalog(world: &World) -> Catalog {
    let World { resumes, kind, budget, checkout, .. } = *world;
    let agent = |id: &str, on_reject| AgentProfile {
        id: id.into(),
        label: id.into(),
        backend_profile: "demo".into(),
        capabilities: vec![],
        preset: Preset::Default,
        on_reject,
        execution_policy: ExecutionPolicy { budget, ..ExecutionPolicy::default() },
        runs_max: 8,
    };
    let info = BackendInfo {
        backend_kind: kind,
        protocol: "runyard-script",
        transport: "in-process",
        command: None,
        resumes,
        runs: Runs::Agent,
        asks: true,
        tells_steps: true,
        checkout,
        needs_network: false,
        secret_keys: SecretKeys::default(),
        gateway: false,
        wires: &[],
        logs_thread: false,
        private_files: &[],
        settings: &[],
    };
    let backend = BackendProfile {
        profile: "demo".into(),
        backend_kind: kind.into(),
        required_secret_keys: world.secrets.iter().map(|key| (*key).to_owned()).collect(),
        settings: BTreeMap::new(),
        ..BackendProfile::default()
    };
    Catalog {
        agents: BTreeMap::from([
            ("demo".to_owned(), agent("demo", OnReject::Cancel)),
            ("patient".to_owned(), agent("patient", OnReject::Continue)),
        ]),
        backends: BTreeMap::from([("demo".to_owned(), backend)]),
        kinds: BTreeMap::from([(kind.to_owned(), info)]),
    }
}

pub fn task(text: &str) -> Task {
    Task::Text { text: text.into(), redacted: false }
}

pub fn new_run(text: &str) -> NewRun {
    NewRun {
        task: task(text),
        agent: "demo".into(),
        workspace: "site".into(),
        backend_profile: None,
        session: None,
        continues: None,
        execution_policy: None,
        key: None,
    }
}

/// A store that several engines, one after the other, work on.
pub struct World {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub limits: Limits,
    pub resumes: Resumes,
    /// The kind of the one backend.
    pub kind: &'static str,
    /// The budget of the agent profiles.
    pub budget: Option<Budget>,
    /// Whether the backend works in a checkout, which is looked at when it is done.
    pub checkout: bool,
    /// Whether people approve what their own runs ask.
    pub own_runs: OwnRuns,
    /// The secrets that the one backend profile needs.
    pub secrets: &'static [&'static str],
}

impl Default for World {
    fn default() -> Self {
        World {
            store: Arc::new(MemoryStore::new()),
            clock: Arc::new(SystemClock),
            limits: Limits { park_after_ms: 3_600_000, ..Limits::default() },
            resumes: Resumes::Steps,
            kind: "scripted",
            budget: None,
            checkout: false,
            own_runs: OwnRuns::default(),
            secrets: &[],
        }
    }
}

impl World {
    pub fn redactor(&self) -> Redactor {
        Redactor::builder(TagKey::from_bytes([7; 32])).build().unwrap()
    }

    /// A hub on the store, without an edge.
    pub async fn hub(&self) -> Engine {
        self.hub_of(&["local"]).await
    }

    /// A hub that drives runs on these edges.
    pub async fn hub_of(&self, edges: &[&str]) -> Engine {
        let installation =
            Installation::open(Arc::clone(&self.store), self.redactor(), Arc::clone(&self.clock))
                .await
                .unwrap();
        let engine = Engine::start(EngineOptions {
            store: Arc::clone(&self.store),
            redactor: self.redactor(),
            clock: Arc::clone(&self.clock),
            owner: "hub".into(),
            own_edges: edges.iter().map(|edge| (*edge).to_owned()).collect(),
            shared_store: true,
            catalog: catalog(self),
            policy: BasePolicy { own_runs: self.own_runs, ..BasePolicy::default() },
            workspaces: Arc::new(OneWorkspace { workspace: workspace(), unsaid: Mutex::default() }),
            installation,
            digest_key: [5; 32],
            limits: self.limits,
        });
        engine.await.unwrap()
    }

    /// A hub on the store with an edge that the test plays.
    pub async fn hub_and_edge(&self) -> (Engine, PlayedEdge) {
        let engine = self.hub().await;
        let edge = PlayedEdge::attach(&engine).await;
        engine.go().await.unwrap();
        (engine, edge)
    }
}

/// An edge that does what the test says.
pub struct PlayedEdge {
    hears: Reader<ReadHalf<DuplexStream>, ToEdge>,
    says: Writer<WriteHalf<DuplexStream>, FromEdge>,
}

impl PlayedEdge {
    pub async fn attach(engine: &Engine) -> Self {
        let (hub_end, edge_end) = duplex(1 << 20);
        let attached = engine.clone();
        tokio::spawn(async move { attached.attach(hub_end).await });
        let (hears, mut says) = frames::<_, ToEdge, FromEdge>(edge_end);
        let hello =
            FromEdge::Hello { edge_id: "local".into(), version: "test".into(), sandbox: "none".into() };
        says.send(&hello).await.unwrap();
        let mut edge = PlayedEdge { hears, says };
        assert!(matches!(edge.hear().await, ToEdge::Policy(_)), "a new edge is told the policy first");
        edge
    }

    pub async fn hear(&mut self) -> ToEdge {
        let heard = tokio::time::timeout(Duration::from_secs(30), self.hears.next()).await;
        heard.expect("the hub says something").unwrap().expect("the link is open")
    }

    pub async fn opened(&mut self) -> OpenRun {
        loop {
            match self.hear().await {
                ToEdge::Open(open) => return *open,
                // Whatever changes in the installation may come with a policy.
                ToEdge::Policy(_) => {}
                other => panic!("expected Open, not {other:?}"),
            }
        }
    }

    pub async fn say(&mut self, message: FromEdge) {
        self.says.send(&message).await.unwrap();
    }

    pub async fn report(&mut self, open: &OpenRun, edge_sequence: u64, reports: Vec<Report>) {
        let (run, generation) = (open.run, open.generation);
        self.say(FromEdge::Batch { run, generation, edge_sequence, reports }).await;
    }

    /// Reports, and takes the hub's word that it is recorded.
    pub async fn recorded(&mut self, open: &OpenRun, edge_sequence: u64, reports: Vec<Report>) {
        self.report(open, edge_sequence, reports).await;
        match self.hear().await {
            ToEdge::Recorded { edge_sequence: heard, .. } => assert_eq!(heard, edge_sequence),
            other => panic!("expected Recorded, not {other:?}"),
        }
    }

    /// Takes a run and brings it to Running, in the middle of its first turn. Three batches.
    pub async fn start(&mut self) -> OpenRun {
        let open = self.opened().await;
        self.recorded(&open, 1, vec![Report::Accepted]).await;
        self.recorded(&open, 2, vec![preparing()]).await;
        let turn = Report::Signal(Signal::TurnStarted { command: None });
        self.recorded(&open, 3, vec![started(), turn]).await;
        open
    }

    pub async fn closes(&mut self, run: RunId) -> bool {
        match self.hear().await {
            ToEdge::Close { run: heard, generation, over } => {
                assert_eq!(heard, run);
                self.say(FromEdge::Closed { run, generation }).await;
                over
            }
            other => panic!("expected Close, not {other:?}"),
        }
    }
}

/// What an edge checks, all of it.
pub fn preparing() -> Report {
    Report::Preparing { checks: CHECKED.map(str::to_owned).to_vec() }
}

/// A run starts, and everything was as it should be.
pub fn started() -> Report {
    let checks = CHECKED.map(|check| (check.to_owned(), "fine".to_owned()));
    Report::Started { backend_kind: "scripted".into(), protocol: "p".into(), checks: BTreeMap::from(checks) }
}

pub fn asked(key: &str, command: &str) -> Report {
    Report::Asked {
        key: key.into(),
        request: Request::Shell { command: command.into(), cwd: ".".into() },
        redacted: false,
        digest: format!("digest of {command}"),
        risk: Risk::Low,
        reason: "shell commands are asked about".into(),
        notes: vec!["only the sandbox bounds it".into()],
    }
}

pub fn call(name: &str, idempotent: bool) -> Report {
    Report::Signal(Signal::ToolCall {
        call: name.into(),
        tool: "shell".into(),
        summary: format!("step {name}"),
        arguments: serde_json::Value::Null,
        idempotent,
    })
}

pub fn result(name: &str) -> Report {
    let (call, outcome, summary) = (name.to_owned(), ToolOutcome::Succeeded, "done".to_owned());
    Report::Signal(Signal::ToolResult { call, outcome, code: None, summary })
}

pub fn turn_ended() -> Report {
    Report::Signal(Signal::TurnEnded { outcome: TurnOutcome::Completed })
}

/// Waits until the run is in the state of this name.
pub async fn until(engine: &Engine, run: RunId, state: &str) -> Run {
    let wait = async {
        let mut tail = engine.follow(run, 0).await.unwrap();
        loop {
            let standing = engine.run(run).await.unwrap();
            if standing.run.state.name() == state {
                return standing.run;
            }
            tail.next().await.unwrap();
        }
    };
    match tokio::time::timeout(Duration::from_secs(30), wait).await {
        Ok(run) => run,
        Err(_) => panic!("{run} is {:?}, not {state}", engine.run(run).await.unwrap().run.state),
    }
}

/// The types of a run's events.
pub async fn kinds(engine: &Engine, run: RunId) -> Vec<String> {
    let events = engine.events(run, 0, 1_000).await.unwrap();
    let kind = |event: &runyard_store::LoggedEvent| {
        let body: serde_json::Value = serde_json::from_slice(&event.body).unwrap();
        body["type"].as_str().unwrap().to_owned()
    };
    events.iter().map(kind).collect()
}
