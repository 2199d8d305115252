//! A whole hub in this process: database, engine, and an edge of its own at the other end of an in-memory link.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use runyard::{ActionError, Code, Runtime};
use runyard_edge::sandbox::{Sandboxes, System};
use runyard_edge::{AllowList, Edge, EdgeOptions, Secrets, Supervisors};
use runyard_engine::{Engine, EngineError, EngineOptions, Installation, Limits};
use runyard_store::{Clock, SystemClock};
use sha2::{Digest, Sha256};
use tokio::io::duplex;
use tokio::task::JoinHandle;

use crate::configuration::Configuration;
use crate::database::{Database, Opened};
use crate::home::Home;
use crate::hub_here::Stay;
use crate::projects::{WorkspaceProjects, audit_trust};
use crate::{installation, wiring};

/// The edge in the hub's own process.
const EDGE: &str = "local";
/// How much of the link is on its way at most.
const LINK_BYTES: usize = 256 * 1024;
/// How long between two looks for the edge.
const LOOK: Duration = Duration::from_millis(2);
/// How long the edge may take to stop everything.
const STOP: Duration = Duration::from_secs(20);
/// How long a hub that begins or ends may take to tell the audit what runs recorded. What is left then is told by the next one.
const DELIVER: Duration = Duration::from_secs(10);

/// A hub with its edge.
pub(crate) struct Hub {
    pub(crate) engine: Engine,
    pub(crate) runtime: Runtime,
    edge: JoinHandle<()>,
    link: JoinHandle<()>,
    background: Vec<JoinHandle<()>>,
    database: Opened,
}

impl Hub {
    /// Starts it, and unless it is there for one call goes on with the runs that an earlier process left. `url` is where it will answer.
    pub(crate) async fn start(
        home: &Home,
        configuration: &Configuration,
        url: &str,
        stay: Stay,
    ) -> Result<Self, ActionError> {
        let database = Database::of(home, configuration).open("runyard up").await?;
        let store = database.store();
        let key = installation::tag_key(home).map_err(|error| refused(format!("{error:#}")))?;
        let redactor = installation::redactor(home, key.clone()).build();
        let redactor = redactor.map_err(|error| refused(error.to_string()))?;
        runyard_redact::process::set(redactor.clone());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let record = Installation::open(Arc::clone(&store), redactor.clone(), Arc::clone(&clock)).await;
        let edge_id = edge_id(home, &database).map_err(|error| refused(format!("{error:#}")))?;
        let workspaces = AllowList::open(&home.edge(), &edge_id, &[home.path().to_owned()]);
        let workspaces =
            workspaces.map_err(|error| ActionError::new(error.code(), format!("Cannot start: {error}.")))?;
        let backends =
            wiring::backends(home, configuration).map_err(|error| refused(format!("{error:#}")))?;
        wiring::check_kinds(configuration, &backends).map_err(ActionError::from)?;
        let engine = Engine::start(EngineOptions {
            store: Arc::clone(&store),
            redactor: redactor.clone(),
            clock: Arc::clone(&clock),
            // A home has one hub at a time, so the next one goes on at once with what this one drove.
            owner: edge_id.clone(),
            shared_store: matches!(database, Opened::Postgres(_)),
            own_edges: BTreeSet::from([edge_id.clone()]),
            catalog: wiring::catalog(configuration, &backends),
            policy: wiring::base_policy(configuration),
            workspaces: Arc::new(workspaces.clone()),
            installation: record.map_err(EngineError::from).map_err(not_started)?,
            digest_key: installation::digest_key(home).map_err(|error| refused(format!("{error:#}")))?,
            limits: limits(configuration),
        });
        let engine = engine.await.map_err(not_started)?;
        let projects = WorkspaceProjects::new(configuration, &workspaces, engine.installation());
        let allowed = engine.workspaces().list().await;
        projects.look_at(allowed.map_err(EngineError::from).map_err(not_started)?).await;
        let projects = Arc::new(projects);
        engine.set_projects(projects.clone());
        projects.audit_own().await.map_err(EngineError::from).map_err(not_started)?;
        audit_trust(home.path(), engine.installation()).await.map_err(not_started)?;
        engine.audit_workspaces().await.map_err(not_started)?;
        let (home_of_redactor, key_of_redactor) = (home.clone(), key);
        let edge = Edge::new(EdgeOptions {
            id: edge_id,
            home: home.edge(),
            url: url.to_owned(),
            search_path: search_path(),
            sandboxes: sandboxes(home, configuration).await,
            backends,
            workspaces,
            secrets: Secrets::at(&configuration.edge().secrets_directory),
            supervision: Arc::new(Supervisors::new()),
            redactors: Arc::new(move || installation::redactor(&home_of_redactor, key_of_redactor.clone())),
            clock,
            checkouts_max_bytes: configuration.hub().checkouts_max_bytes,
        });
        let edge = edge.map_err(|error| refused(error.to_string()))?;
        let (hub_end, edge_end) = duplex(LINK_BYTES);
        let attached = engine.clone();
        let link = tokio::spawn(async move { attached.attach(hub_end).await });
        let edge = tokio::spawn(async move {
            if let Err(error) = edge.serve(edge_end).await {
                tracing::error!(%error, "the edge stopped");
            }
        });
        // A run whose edge is not there yet would be taken for one whose edge is gone.
        arrived(&engine).await?;
        let mut background = Vec::new();
        if stay == Stay::ForOneCall {
            engine.stop();
            // The one call may be for the audit, and nobody delivers while it lasts.
            deliver(&engine).await;
        } else {
            background.extend(engine.go().await.map_err(not_started)?);
            background.push(tokio::spawn(projects.watch(engine.clone())));
        }
        let runtime = wiring::hub_runtime(home, configuration, store, redactor, engine.clone());
        let runtime = runtime.map_err(|error| refused(format!("{error:#}")))?;
        Ok(Hub { engine, runtime, edge, link, background, database })
    }

    /// Whether no other hub can go on with what is recorded here.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(self.database, Opened::Sqlite(_))
    }

    /// Stops everything that it started. Runs are gone on with by the next hub.
    pub(crate) async fn stop(self) {
        self.engine.stop();
        self.background.iter().for_each(JoinHandle::abort);
        // Without its other end the edge stops all sessions.
        self.link.abort();
        if tokio::time::timeout(STOP, self.edge).await.is_err() {
            tracing::error!("the edge did not stop in time");
        }
    }
}

/// Brings into the audit what runs recorded for it.
pub(crate) async fn deliver(engine: &Engine) {
    match tokio::time::timeout(DELIVER, engine.deliver_waiting()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "the audit cannot be written; the next hub tries again"),
        Err(_) => tracing::error!("the audit could not be written in time; the next hub goes on with it"),
    }
}

/// Where the programs are that the edge starts.
fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

/// What confines the processes that the edge in this process starts.
pub(crate) async fn sandboxes(home: &Home, configuration: &Configuration) -> Sandboxes {
    let person = std::env::var_os("HOME").map(PathBuf::from);
    let system = System::look(person.as_deref(), home.path());
    Sandboxes::look(&search_path(), system.hiding(&configuration.edge().secrets_directory)).await
}

/// Waits until the edge has come in.
async fn arrived(engine: &Engine) -> Result<(), ActionError> {
    let came = async {
        while !engine.edges().iter().any(|edge| edge.connected) {
            tokio::time::sleep(LOOK).await;
        }
    };
    let late = |_| ActionError::internal("the edge in this process does not answer");
    tokio::time::timeout(STOP, came).await.map_err(late)
}

/// The edge in this hub's process, by a name that no other hub on the same database has.
fn edge_id(home: &Home, database: &Opened) -> anyhow::Result<String> {
    Ok(match database {
        Opened::Sqlite(_) => EDGE.to_owned(),
        Opened::Postgres(_) => {
            let key = installation::digest_key(home)?;
            let name = Sha256::new_with_prefix(b"the name of the edge").chain_update(key).finalize();
            format!("{EDGE}-{:02x}{:02x}{:02x}{:02x}", name[0], name[1], name[2], name[3])
        }
    })
}

fn limits(configuration: &Configuration) -> Limits {
    let hub = configuration.hub();
    Limits {
        runs_per_edge_max: hub.runs_max,
        accept_ms: hub.accept_ms,
        prepare_ms: hub.prepare_ms,
        apply_ms: hub.apply_ms,
        close_ms: hub.stop_ms,
        park_after_ms: hub.park_after_ms,
        approval_expiry_ms: hub.approval_expiry_ms,
        lease_ms: hub.lease_ms,
    }
}

fn refused(reason: String) -> ActionError {
    ActionError::new(Code::StorageIo, format!("Cannot start: {reason}."))
}

fn not_started(error: EngineError) -> ActionError {
    ActionError::new(error.code(), format!("Cannot start: {error}."))
}
