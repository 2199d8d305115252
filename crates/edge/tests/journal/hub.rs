//! A hub and its edge in a runtime of their own, so that all of it can die at once, as a process does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use runyard_backend::conformance::journal::Given;
use runyard_backend::{Backend, Workspaces};
use runyard_domain::gate::Preset;
use runyard_domain::run::OnReject;
use runyard_domain::{AgentProfile, BackendProfile, ExecutionPolicy};
use runyard_edge::sandbox::{Sandboxes, System};
use runyard_edge::{AllowList, Edge, EdgeOptions, Secrets};
use runyard_engine::{BasePolicy, Catalog, Engine, EngineOptions, Installation, Limits};
use runyard_redact::{Known, Redactor, TagKey};
use runyard_store::{Clock, ManualClock, Store};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::link::{Gates, link};
use crate::puppet::{INFO, NoProcesses, PuppetBackend};

pub(crate) const EDGE: &str = "edge";
pub(crate) const AGENT: &str = "patient";
/// What the edge knows to be secret.
pub(crate) const SECRET: &str = "correct-horse-battery-staple-4711";
/// The hub takes another hub's run over when it has not heard of it for so long.
pub(crate) const LEASE_MS: u64 = 60_000;
/// Longer than any test takes, so that a session is parked only when a test lets the time go by.
const PARK_AFTER: Duration = Duration::from_secs(24 * 3600);

/// What outlives a hub.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) home: PathBuf,
    pub(crate) workspaces: AllowList,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) opened: mpsc::UnboundedSender<Given>,
}

/// A live hub with its edge.
pub(crate) struct Hub {
    pub(crate) engine: Engine,
    pub(crate) gates: Gates,
    runtime: Handle,
    end: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Hub {
    pub(crate) async fn start(kept: Kept, store: Arc<dyn Store>) -> Hub {
        let (end, ended) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let started = start(kept, store).await;
                assert!(tell.send((started.0, started.1, Handle::current())).is_ok(), "it is waited for");
                let _ = ended.await;
            });
            // Nothing is told; what it was doing is dropped where it stands.
            runtime.shutdown_background();
        });
        let (engine, gates, runtime) = told.await.expect("the hub starts");
        Hub { engine, gates, runtime, end, thread }
    }

    /// Does something as the hub: what it begins goes on there, and dies there.
    pub(crate) async fn within<T, F>(&self, work: impl FnOnce(Engine) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.runtime.spawn(work(self.engine.clone())).await.expect("the hub lives")
    }

    /// Lets so much time go by at once that whatever waits for people is parked.
    pub(crate) async fn pass_time(&self) {
        self.within(|_| async {
            tokio::time::pause();
            tokio::time::advance(PARK_AFTER).await;
            tokio::time::resume();
        })
        .await;
    }

    /// Ends everything without a word. Returns when nothing of it is left.
    pub(crate) async fn kill(self) {
        let _ = self.end.send(());
        drop(self.engine);
        let thread = self.thread;
        tokio::task::spawn_blocking(move || thread.join().unwrap()).await.unwrap();
    }
}

async fn start(kept: Kept, store: Arc<dyn Store>) -> (Engine, Gates) {
    let (hub_end, edge_end, gates) = link();
    let engine = engine(&kept, store).await;
    let edge = edge(kept);
    let attached = engine.clone();
    tokio::spawn(async move { attached.attach(hub_end).await });
    tokio::spawn(async move { edge.serve(edge_end).await });
    while engine.edges().is_empty() {
        tokio::task::yield_now().await;
    }
    engine.go().await.unwrap();
    (engine, gates)
}

fn redactor() -> Redactor {
    Redactor::builder(TagKey::from_bytes([7; 32])).build().unwrap()
}

async fn engine(kept: &Kept, store: Arc<dyn Store>) -> Engine {
    let clock: Arc<dyn Clock> = kept.clock.clone();
    let installation = Installation::open(Arc::clone(&store), redactor(), Arc::clone(&clock)).await.unwrap();
    let park_after_ms = u64::try_from(PARK_AFTER.as_millis()).unwrap() / 2;
    let options = EngineOptions {
        store,
        redactor: redactor(),
        clock,
        owner: "hub".to_owned(),
        own_edges: BTreeSet::from([EDGE.to_owned()]),
        shared_store: false,
        catalog: catalog(),
        policy: BasePolicy::default(),
        workspaces: Arc::new(kept.workspaces.clone()) as Arc<dyn Workspaces>,
        installation,
        digest_key: [5; 32],
        limits: Limits { park_after_ms, lease_ms: LEASE_MS, ..Limits::default() },
    };
    Engine::start(options).await.unwrap()
}

fn edge(kept: Kept) -> Edge {
    let backend: Arc<dyn Backend> = Arc::new(PuppetBackend { opened: kept.opened });
    let options = EdgeOptions {
        id: EDGE.to_owned(),
        secrets: Secrets::at(kept.home.join("secrets")),
        home: kept.home,
        url: "http://127.0.0.1:7070".to_owned(),
        search_path: "/usr/bin".to_owned(),
        sandboxes: Sandboxes::by("/usr/bin/bwrap".into(), System::default()),
        backends: BTreeMap::from([(INFO.backend_kind.to_owned(), backend)]),
        workspaces: kept.workspaces,
        supervision: Arc::new(NoProcesses),
        redactors: Arc::new(|| {
            let known = [Known::named("SOME_KEY", SECRET)];
            Redactor::builder(TagKey::from_bytes([7; 32])).known(known)
        }),
        clock: kept.clock,
        checkouts_max_bytes: u64::MAX,
    };
    Edge::new(options).unwrap()
}

fn catalog() -> Catalog {
    let agent = AgentProfile {
        id: AGENT.to_owned(),
        label: AGENT.to_owned(),
        backend_profile: "puppet".to_owned(),
        capabilities: Vec::new(),
        preset: Preset::Default,
        on_reject: OnReject::Continue,
        execution_policy: ExecutionPolicy::default(),
        runs_max: 8,
    };
    let backend = BackendProfile {
        profile: "puppet".to_owned(),
        backend_kind: INFO.backend_kind.to_owned(),
        required_secret_keys: Vec::new(),
        settings: BTreeMap::new(),
        ..BackendProfile::default()
    };
    Catalog {
        agents: BTreeMap::from([(AGENT.to_owned(), agent)]),
        backends: BTreeMap::from([("puppet".to_owned(), backend)]),
        kinds: BTreeMap::from([(INFO.backend_kind.to_owned(), INFO)]),
    }
}
