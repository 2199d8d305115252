//! The hub's end of the link and a puppet backend, both moved by the test.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runyard_backend::link::frames::{Reader, Writer, frames};
use runyard_backend::link::{FromEdge, OpenRun, Report, Stage, ToEdge, Work};
use runyard_backend::{
    Answer, Backend, BackendError, BackendInfo, COMMANDS_MAX, Command, Journal, JournalError, Launch, Probe,
    Process, ProcessError, Processes, Resumes, Runs, SecretKeys, Session, SessionSpec, Signal, Start,
    Workspaces,
};
use runyard_domain::gate::{Policy, Request};
use runyard_domain::run::{ApprovalPolicyRef, FailureKind, Task, Who};
use runyard_domain::{BackendProfile, ExecutionPolicy, Preparation, RunId, SessionId, WorkspaceRef};
use runyard_edge::sandbox::{Confinement, Sandboxes, System};
use runyard_edge::{AllowList, Edge, EdgeError, EdgeOptions, Secrets, Supervision};
use runyard_redact::{Redactor, TagKey};
use runyard_store::ManualClock;
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) const TOKEN: &str = "ryr_run_token_0123456789";
/// Nothing in a test takes so long; time stands still while anything moves, so that it costs nothing.
const QUIET: Duration = Duration::from_secs(3600);

/// A backend that does what the test says.
pub(crate) struct PuppetBackend {
    asks: bool,
    opened: mpsc::UnboundedSender<Puppet>,
}

/// One session of it.
pub(crate) struct Puppet {
    pub(crate) spec: SessionSpec,
    pub(crate) journal: Arc<dyn Journal>,
    commands: mpsc::Receiver<Command>,
    /// The session's task: sending makes it panic, dropping ends it.
    pub(crate) task: oneshot::Sender<()>,
}

#[async_trait]
impl Backend for PuppetBackend {
    fn info(&self) -> BackendInfo {
        BackendInfo {
            backend_kind: "puppet",
            protocol: "strings",
            transport: "hand",
            command: None,
            resumes: Resumes::Thread,
            runs: Runs::Agent,
            asks: self.asks,
            tells_steps: self.asks,
            checkout: true,
            needs_network: false,
            secret_keys: SecretKeys::default(),
            gateway: false,
            wires: &[],
            logs_thread: false,
            private_files: &[],
            settings: &[],
        }
    }

    async fn check(&self, profile: &BackendProfile, _: &Probe) -> Result<String, BackendError> {
        assert!(!profile.settings.contains_key("explodes"), "the profile says so");
        match profile.settings.get("missing") {
            None => Ok("puppet 1".to_owned()),
            Some(at) => {
                Err(BackendError::new(FailureKind::BackendSpawnFailed, format!("there is no {at}/puppet")))
            }
        }
    }

    async fn open(&self, spec: SessionSpec, journal: Arc<dyn Journal>) -> Result<Session, BackendError> {
        if let Some(message) = spec.profile.settings.get("broken") {
            return Err(BackendError::new(FailureKind::ProviderAuthFailed, message.clone()));
        }
        if spec.profile.settings.contains_key("talks") {
            let starting = Signal::Status {
                phase: "starting".into(),
                model: None,
                version: None,
                thread: None,
                usage: None,
            };
            journal.record(vec![starting]).await.unwrap();
        }
        let (sender, commands) = mpsc::channel(COMMANDS_MAX);
        let (task, ended) = oneshot::channel();
        let _ = self.opened.send(Puppet { spec, journal, commands, task });
        let task = tokio::spawn(async move {
            if ended.await.is_ok() {
                panic!("the puppet was told to");
            }
        });
        Ok(Session { commands: sender, task })
    }
}

impl Puppet {
    /// Records while the hub does what it does.
    pub(crate) fn record(&self, batch: Vec<Signal>) -> JoinHandle<Result<(), JournalError>> {
        let journal = Arc::clone(&self.journal);
        tokio::spawn(async move { journal.record(batch).await })
    }

    pub(crate) fn ask(&self, key: &str, request: Request) -> JoinHandle<Result<(), JournalError>> {
        self.record(vec![Signal::Ask { key: key.to_owned(), request }])
    }

    /// The next command; none when the session is closed.
    pub(crate) async fn command(&mut self) -> Option<Command> {
        timeout(QUIET, self.commands.recv()).await.expect("a command comes")
    }

    /// Nothing is said to it, however long it waits.
    #[track_caller]
    pub(crate) fn hears_nothing(&mut self) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            if let Ok(heard) = timeout(QUIET, self.commands.recv()).await {
                panic!("{place}: heard {heard:?}");
            }
        }
    }
}

/// Processes of an earlier session, as far as there are any.
pub(crate) struct NoProcesses {
    pub(crate) gone: watch::Sender<bool>,
}

#[async_trait]
impl Supervision for NoProcesses {
    fn under(&self, _lock: &Path, _confinement: Confinement) -> Arc<dyn Processes> {
        Arc::new(Nothing)
    }

    async fn settled(&self, _lock: &Path) -> io::Result<()> {
        let _ = self.gone.subscribe().wait_for(|gone| *gone).await;
        Ok(())
    }
}

/// Nothing is started, so that it need not be there.
fn sandboxes() -> Sandboxes {
    Sandboxes::by("/usr/bin/bwrap".into(), System::default())
}

struct Nothing;

#[async_trait]
impl Processes for Nothing {
    async fn start(&self, launch: Launch) -> Result<Process, ProcessError> {
        let program = launch.program.display().to_string();
        Err(ProcessError::Start { program, source: io::ErrorKind::NotFound.into() })
    }
}

/// An edge with its files, which outlive its links.
pub(crate) struct Place {
    kept: tempfile::TempDir,
    pub(crate) workspaces: AllowList,
    pub(crate) workspace: WorkspaceRef,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) supervision: Arc<NoProcesses>,
}

impl Place {
    pub(crate) async fn new() -> Place {
        let kept = tempfile::tempdir().unwrap();
        std::fs::create_dir(kept.path().join("project")).unwrap();
        std::fs::write(kept.path().join("project/file"), "original").unwrap();
        let workspaces = AllowList::open(&kept.path().join("home"), "edge", &[]).unwrap();
        let root = kept.path().join("project");
        let workspace =
            workspaces.add(root.to_str().unwrap(), None, &Who::runyard()).await.unwrap().reference();
        let clock = Arc::new(ManualClock::at(1_000_000));
        let supervision = Arc::new(NoProcesses { gone: watch::channel(true).0 });
        Place { kept, workspaces, workspace, clock, supervision }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.kept.path().canonicalize().unwrap().join("project")
    }

    pub(crate) fn run_directory(&self, run: RunId) -> PathBuf {
        self.kept.path().canonicalize().unwrap().join("home/runs").join(run.to_string())
    }

    /// An edge on these files, and the puppets that it opens.
    pub(crate) fn edge(&self) -> (Edge, mpsc::UnboundedReceiver<Puppet>) {
        let (opened, puppets) = mpsc::unbounded_channel();
        let backend = |asks| -> Arc<dyn Backend> { Arc::new(PuppetBackend { asks, opened: opened.clone() }) };
        let backends =
            BTreeMap::from([("puppet".to_owned(), backend(true)), ("mute".to_owned(), backend(false))]);
        let edge = Edge::new(EdgeOptions {
            id: "edge".to_owned(),
            home: self.kept.path().join("home"),
            url: "http://127.0.0.1:7070".to_owned(),
            search_path: "/usr/bin".to_owned(),
            sandboxes: sandboxes(),
            backends,
            workspaces: self.workspaces.clone(),
            secrets: Secrets::at(self.kept.path().join("secrets")),
            supervision: Arc::clone(&self.supervision) as Arc<dyn Supervision>,
            // As an installation's own: the run's places lie in a directory that is private as well.
            redactors: Arc::new(|| {
                let builder = Redactor::builder(TagKey::from_bytes([7; 32]));
                builder.private_path(std::env::temp_dir(), "<tmp>")
            }),
            clock: Arc::clone(&self.clock) as Arc<dyn runyard_store::Clock>,
            checkouts_max_bytes: u64::MAX,
        });
        (edge.unwrap(), puppets)
    }

    /// An edge on these files, and the hub that it serves. The hub has sent the default policy.
    pub(crate) async fn link(&self) -> Hub {
        let (edge, puppets) = self.edge();
        let (near, far) = duplex(64 * 1024);
        let serving = tokio::spawn(async move { edge.serve(far).await });
        let (reader, writer) = frames(near);
        let mut hub = Hub { reader, writer, puppets, serving };
        let hello = FromEdge::Hello {
            edge_id: "edge".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sandbox: sandboxes().to_string(),
        };
        assert_eq!(hub.next().await, hello);
        hub.send(ToEdge::Policy(Box::default())).await;
        hub
    }

    /// Keeps a secret of a profile where the edge looks for it.
    pub(crate) fn secret(&self, profile: &str, key: &str, value: &str) {
        Secrets::at(self.kept.path().join("secrets")).set(profile, key, value.as_bytes()).unwrap();
    }

    /// A run in the workspace, planned and never handed out before.
    pub(crate) fn open(&self, number: u8) -> OpenRun {
        OpenRun {
            run: RunId::from_parts(1, &[number; 10]),
            generation: 1,
            session: SessionId::from_parts(1, &[number; 10]),
            agent_id: "demo".to_owned(),
            backend_profile: BackendProfile {
                profile: "puppet".to_owned(),
                backend_kind: "puppet".to_owned(),
                required_secret_keys: Vec::new(),
                settings: BTreeMap::new(),
                ..BackendProfile::default()
            },
            workspace: self.workspace.clone(),
            execution_policy: ExecutionPolicy::default(),
            approval_policy: ApprovalPolicyRef { preset: "default".to_owned(), version: 0 },
            stage: Stage::Planned,
            preparation: Preparation::default(),
            rules_used: Vec::new(),
            work: Work::default(),
            start: Start::Fresh {
                task: Task::Text { text: "do it".to_owned(), redacted: false },
                thread: None,
            },
            history: Vec::new(),
            left: None,
            run_token: TOKEN.to_owned(),
            usage: None,
        }
    }
}

/// The hub's end.
pub(crate) struct Hub {
    pub(crate) reader: Reader<ReadHalf<DuplexStream>, FromEdge>,
    pub(crate) writer: Writer<WriteHalf<DuplexStream>, ToEdge>,
    puppets: mpsc::UnboundedReceiver<Puppet>,
    pub(crate) serving: JoinHandle<Result<(), EdgeError>>,
}

impl Hub {
    pub(crate) async fn send(&mut self, message: ToEdge) {
        self.writer.send(&message).await.unwrap();
    }

    /// Bytes that are no message.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) {
        self.writer.get_mut().write_all(bytes).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> FromEdge {
        let next = timeout(QUIET, self.reader.next()).await.expect("the edge says something");
        next.unwrap().expect("the link is open")
    }

    /// Nothing comes, however long it waits.
    #[track_caller]
    pub(crate) fn hears_nothing(&mut self) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            if let Ok(heard) = timeout(QUIET, self.reader.next()).await {
                panic!("{place}: heard {heard:?}");
            }
        }
    }

    /// The next batch, which is not answered yet.
    pub(crate) async fn batch(&mut self) -> Batch {
        match self.next().await {
            FromEdge::Batch { run, generation, edge_sequence, reports } => {
                Batch { run, generation, edge_sequence, reports }
            }
            other => panic!("no batch: {other:?}"),
        }
    }

    pub(crate) async fn recorded(&mut self, batch: &Batch) {
        self.granted(batch, Vec::new()).await;
    }

    pub(crate) async fn granted(&mut self, batch: &Batch, granted: Vec<(String, Answer)>) {
        let Batch { run, generation, edge_sequence, .. } = *batch;
        self.send(ToEdge::Recorded { run, generation, edge_sequence, granted }).await;
    }

    /// The next reports, which are durable now.
    pub(crate) async fn reports(&mut self) -> Vec<Report> {
        let batch = self.batch().await;
        self.recorded(&batch).await;
        batch.reports
    }

    pub(crate) async fn report(&mut self) -> Report {
        let mut reports = self.reports().await;
        assert_eq!(reports.len(), 1, "{reports:?}");
        reports.remove(0)
    }

    /// Hands a run out, and records all that it says until its backend is open.
    pub(crate) async fn start(&mut self, open: OpenRun) -> Puppet {
        let reports = match open.stage {
            Stage::Planned => 3,
            Stage::Accepted => 2,
            Stage::Preparing => 1,
            Stage::Running => 0,
        };
        self.send(ToEdge::Open(Box::new(open))).await;
        for _ in 0..reports {
            self.reports().await;
        }
        self.puppet().await
    }

    pub(crate) async fn puppet(&mut self) -> Puppet {
        timeout(QUIET, self.puppets.recv()).await.expect("a session is opened").unwrap()
    }

    pub(crate) async fn policy(&mut self, policy: Policy) {
        self.send(ToEdge::Policy(Box::new(policy))).await;
    }
}

/// A batch that the hub has not answered.
#[derive(Debug, PartialEq)]
pub(crate) struct Batch {
    pub(crate) run: RunId,
    pub(crate) generation: u64,
    pub(crate) edge_sequence: u64,
    pub(crate) reports: Vec<Report>,
}

pub(crate) fn shell(command: &str) -> Request {
    Request::Shell { command: command.to_owned(), cwd: ".".to_owned() }
}

pub(crate) fn read(path: &str) -> Request {
    Request::Read { path: path.to_owned() }
}

pub(crate) fn write(path: &str, content: &str) -> Request {
    Request::Write { path: path.to_owned(), content: Some(content.to_owned()) }
}

pub(crate) fn yes() -> Answer {
    Answer { approved: true, reason: None, answer: None }
}

pub(crate) fn delta(text: &str) -> Signal {
    Signal::Delta { item: "m".to_owned(), text: text.to_owned() }
}

pub(crate) fn message(text: &str) -> Signal {
    Signal::Message { item: "m".to_owned(), text: text.to_owned() }
}
