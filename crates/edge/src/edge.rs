//! The edge: speaks the link with the hub and drives one session per run.
//!
//! It decides nothing about runs beyond the gate's allow and deny; what it did is what the hub recorded. When the link closes it
//! stops everything: the hub hands its runs out again.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runyard_backend::link::frames::{FrameError, Writer, frames};
use runyard_backend::link::{FromEdge, OpenRun, Report, ToEdge};
use runyard_backend::{Backend, Command, failpoint};
use runyard_domain::run::{Failure, ThreadRecorded};
use runyard_domain::{BackendProfile, Code, RunId, SessionId};
use runyard_redact::RedactorBuilder;
use runyard_store::Clock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::digest::DigestKey;
use crate::disk::Disk;
use crate::gateway::Gateway;
use crate::outbox::{Closing, Outbox, Settled};
use crate::places::Places;
use crate::policies::Policies;
use crate::sandbox::Sandboxes;
use crate::session::{self, CLOSE_PATIENCE, Said};
use crate::{AllowList, EdgeError, Secrets, Supervision, check, private, private_files};

/// How many runs an edge drives at a time, at most.
pub const SESSIONS_MAX: usize = 4_096;
/// How many messages to the hub wait at most; after that, sessions do.
const OUTGOING_MAX: usize = 256;
/// How many commands and decisions wait for a session at most.
const SAID_MAX: usize = 256;
/// A session waits for one answer at a time; the others are of batches that nobody waits for.
const SETTLED_MAX: usize = 4;

/// What an edge is made of.
pub struct EdgeOptions {
    /// Its id.
    pub id: String,
    /// Its own directory: the digest key, and one directory per run.
    pub home: PathBuf,
    /// Where the hub is found by what a run starts.
    pub url: String,
    /// The `PATH` of what a run starts.
    pub search_path: String,
    /// What confines the processes that it starts.
    pub sandboxes: Sandboxes,
    /// The backends, by kind.
    pub backends: BTreeMap<String, Arc<dyn Backend>>,
    /// The allow-list.
    pub workspaces: AllowList,
    /// Where the backend profiles' secrets are.
    pub secrets: Secrets,
    /// Who looks after processes.
    pub supervision: Arc<dyn Supervision>,
    /// Begins a redactor that knows what this edge knows; each run adds its own token and places.
    pub redactors: Arc<dyn Fn() -> RedactorBuilder + Send + Sync>,
    /// The clock that expiring rules go by.
    pub clock: Arc<dyn Clock>,
    /// How much of the disk the directories of all runs may take before a run is refused.
    pub checkouts_max_bytes: u64,
}

/// What all sessions of an edge share.
pub(crate) struct Shared {
    pub(crate) id: String,
    pub(crate) home: PathBuf,
    pub(crate) disk: Disk,
    pub(crate) url: String,
    pub(crate) search_path: String,
    pub(crate) sandboxes: Sandboxes,
    pub(crate) backends: BTreeMap<String, Arc<dyn Backend>>,
    pub(crate) workspaces: AllowList,
    pub(crate) secrets: Secrets,
    pub(crate) gateway: Gateway,
    pub(crate) supervision: Arc<dyn Supervision>,
    pub(crate) redactors: Arc<dyn Fn() -> RedactorBuilder + Send + Sync>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) key: DigestKey,
    pub(crate) policies: Arc<Policies>,
}

/// Executes next to the files.
pub struct Edge {
    hello: FromEdge,
    shared: Arc<Shared>,
}

impl Edge {
    /// An edge with its home, which is made if it is not there.
    pub fn new(options: EdgeOptions) -> Result<Self, EdgeError> {
        let unusable = |source| EdgeError::Io { what: "the edge's home", source };
        private::make_directory(&options.home).map_err(unusable)?;
        let home = options.home.canonicalize().map_err(unusable)?;
        check::sweep(&home).map_err(unusable)?;
        let key = DigestKey::of(&home)?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Edge {
            hello: FromEdge::Hello {
                edge_id: options.id.clone(),
                version,
                sandbox: options.sandboxes.to_string(),
            },
            shared: Arc::new(Shared {
                id: options.id,
                disk: Disk::new(&home, options.checkouts_max_bytes),
                home,
                url: options.url,
                search_path: options.search_path,
                sandboxes: options.sandboxes,
                backends: options.backends,
                workspaces: options.workspaces,
                secrets: options.secrets,
                gateway: Gateway::new(),
                supervision: options.supervision,
                redactors: options.redactors,
                clock: options.clock,
                key,
                policies: Arc::default(),
            }),
        })
    }

    /// Works for the hub at the other end until the link closes, and returns when nothing of it is left.
    ///
    /// When it is dropped everything is stopped too, without waiting for it.
    pub async fn serve<S>(&self, io: S) -> Result<(), EdgeError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (mut reader, writer) = frames(io);
        let (to_hub, outgoing) = mpsc::channel(OUTGOING_MAX);
        let mut sweeping = JoinSet::new();
        sweeping.spawn(sweep(Arc::clone(&self.shared)));
        let mut writing = JoinSet::new();
        writing.spawn(write(writer, outgoing));
        // There is room: nothing was sent before.
        let _ = to_hub.try_send(self.hello.clone());
        let mut sessions = Sessions::new(Arc::clone(&self.shared), to_hub);
        let ended = loop {
            tokio::select! {
                message = reader.next() => match message {
                    Ok(Some(message)) => sessions.hear(message),
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error.into()),
                },
                Some(written) = writing.join_next() => break written.unwrap_or(Ok(())).map_err(EdgeError::from),
                Some(_) = sessions.tasks.join_next() => {}
            }
        };
        sessions.end().await;
        ended
    }
}

/// Removes the secrets that an edge left in the homes of sessions when it died.
async fn sweep(edge: Arc<Shared>) {
    let private: Vec<&'static str> =
        edge.backends.values().flat_map(|backend| backend.info().private_files).copied().collect();
    match private_files::sweep(&edge.home, &private, CLOSE_PATIENCE).await {
        Ok(swept) => tracing::debug!(?swept, "homes of sessions were swept"),
        Err(error) => tracing::error!(%error, "secrets in the homes of sessions could not be swept"),
    }
}

async fn write<W: AsyncWrite + Unpin>(
    mut writer: Writer<W, FromEdge>,
    mut outgoing: mpsc::Receiver<FromEdge>,
) -> Result<(), FrameError> {
    while let Some(message) = outgoing.recv().await {
        match writer.send(&message).await {
            // The hub is gone, which whoever reads hears as the end of the link.
            Err(FrameError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            sent => sent?,
        }
    }
    Ok(())
}

/// The sessions of one link.
struct Sessions {
    edge: Arc<Shared>,
    to_hub: mpsc::Sender<FromEdge>,
    by_run: HashMap<RunId, Handle>,
    /// Conversations of runs that are about to be opened, with the generation that they are for.
    histories: HashMap<RunId, (u64, Vec<ThreadRecorded>)>,
    checks: Arc<Semaphore>,
    tasks: JoinSet<()>,
}

/// The hold on a session.
#[derive(Clone)]
struct Handle {
    generation: u64,
    said: mpsc::Sender<Said>,
    settled: mpsc::Sender<Settled>,
    closing: watch::Sender<Closing>,
    /// Set when what it applies is to be taken back.
    stop_applying: Arc<AtomicBool>,
    /// Its sender lives as long as anything of the session.
    alive: watch::Receiver<()>,
    task: AbortHandle,
}

impl Handle {
    fn is_over(&self) -> bool {
        self.alive.has_changed().is_err()
    }

    /// Closes the session and waits until nothing of it is left.
    async fn close(mut self) {
        self.closing.send_replace(Closing::Closed);
        // The backend has its time, and then its processes have theirs.
        if timeout(CLOSE_PATIENCE * 2, over(&mut self.alive)).await.is_err() {
            self.task.abort();
            over(&mut self.alive).await;
        }
    }
}

/// Tells the hub that a session is gone, should it break down: it cannot say so itself any more.
struct Breakdown {
    run: RunId,
    generation: u64,
    to_hub: mpsc::Sender<FromEdge>,
}

impl Drop for Breakdown {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(run = %self.run, "a session of the edge broke down");
            let _ = self.to_hub.try_send(FromEdge::Closed { run: self.run, generation: self.generation });
        }
    }
}

async fn over(alive: &mut watch::Receiver<()>) {
    while alive.changed().await.is_ok() {}
}

impl Sessions {
    fn new(edge: Arc<Shared>, to_hub: mpsc::Sender<FromEdge>) -> Self {
        let checks = Arc::new(Semaphore::new(check::CHECKS_MAX));
        Sessions {
            edge,
            to_hub,
            by_run: HashMap::new(),
            histories: HashMap::new(),
            checks,
            tasks: JoinSet::new(),
        }
    }

    fn hear(&mut self, message: ToEdge) {
        match message {
            ToEdge::Open(open) => self.open(*open),
            ToEdge::History { run, generation, recorded } => self.remember(run, generation, recorded),
            // Answers come as decisions, whose use is recorded first.
            ToEdge::Command { command: Command::Answer { .. }, .. } => {}
            ToEdge::Command { run, generation, command } => self.say(run, generation, Said::Command(command)),
            ToEdge::Decision { run, generation, approval, key, digest, answer } => {
                self.say(run, generation, Said::Decision { approval, key, digest, answer });
            }
            ToEdge::Recorded { run, generation, edge_sequence, granted } => {
                self.settle(run, generation, Settled::Recorded { edge_sequence, granted });
            }
            ToEdge::Refused { run, generation, edge_sequence, fenced } => {
                self.settle(run, generation, Settled::Refused { edge_sequence, fenced });
            }
            ToEdge::StopApplying { run, generation } => {
                if let Some(handle) = self.session(run, generation) {
                    handle.stop_applying.store(true, Ordering::Relaxed);
                }
            }
            ToEdge::Close { run, generation, over } => self.close(run, generation, over),
            ToEdge::Policy(policy) => self.edge.policies.replace(*policy),
            ToEdge::Check { id, profile } => self.check(id, *profile),
            ToEdge::CloseSession { id, session } => self.close_session(id, session),
        }
    }

    fn close_session(&mut self, id: u64, session: SessionId) {
        let (home, to_hub) = (self.edge.home.clone(), self.to_hub.clone());
        self.tasks.spawn(async move {
            let closed = tokio::task::spawn_blocking(move || private_files::close(&home, session)).await;
            let removed = matches!(closed, Ok(Ok(())));
            if !removed {
                tracing::error!(%session, ?closed, "what is kept of a session could not be removed");
            }
            let _ = to_hub.send(FromEdge::SessionClosed { id, removed }).await;
        });
    }

    /// Looks at a backend profile as soon as few enough are looked at.
    fn check(&mut self, id: u64, profile: BackendProfile) {
        let (edge, to_hub, checks) = (Arc::clone(&self.edge), self.to_hub.clone(), Arc::clone(&self.checks));
        self.tasks.spawn(async move {
            let Ok(_permit) = checks.acquire().await else { return };
            let found = check::check(&edge, &profile).await;
            let _ = to_hub.send(FromEdge::Checked { id, found }).await;
        });
    }

    fn session(&self, run: RunId, generation: u64) -> Option<&Handle> {
        self.by_run.get(&run).filter(|handle| handle.generation == generation)
    }

    fn say(&self, run: RunId, generation: u64, said: Said) {
        if let Some(handle) = self.session(run, generation)
            && let Err(mpsc::error::TrySendError::Full(_)) = handle.said.try_send(said)
        {
            // Losing one silently would leave the run waiting for ever.
            let overrun = |closing: &mut Closing| {
                let first = *closing == Closing::Open;
                if first {
                    *closing = Closing::Overrun;
                }
                first
            };
            handle.closing.send_if_modified(overrun);
        }
    }

    fn settle(&self, run: RunId, generation: u64, settled: Settled) {
        if let Some(handle) = self.session(run, generation) {
            // When it is full, nobody waits for this one.
            let _ = handle.settled.try_send(settled);
        }
    }

    /// Keeps a part of a conversation until its run is opened.
    fn remember(&mut self, run: RunId, generation: u64, recorded: Vec<ThreadRecorded>) {
        let has_room = self.histories.len() < SESSIONS_MAX;
        match self.histories.get_mut(&run) {
            Some((of, kept)) if *of == generation => kept.extend(recorded),
            Some(other) => *other = (generation, recorded),
            None if has_room => drop(self.histories.insert(run, (generation, recorded))),
            // A hub opens what it announced; one that does not is not listened to without end.
            None => {}
        }
    }

    fn open(&mut self, mut open: OpenRun) {
        if let Some((_, mut recorded)) =
            self.histories.remove(&open.run).filter(|(generation, _)| *generation == open.generation)
        {
            recorded.append(&mut open.history);
            open.history = recorded;
        }
        self.by_run.retain(|_, handle| !handle.is_over());
        let before = self.by_run.get(&open.run).cloned();
        if before.as_ref().is_some_and(|before| before.generation >= open.generation) {
            return;
        }
        if before.is_none() && self.by_run.len() >= SESSIONS_MAX {
            self.refuse(&open);
            return;
        }
        let (run, generation) = (open.run, open.generation);
        let (said, to_hear) = mpsc::channel(SAID_MAX);
        let (settled, answers) = mpsc::channel(SETTLED_MAX);
        let (closing, closed) = watch::channel(Closing::Open);
        let (living, alive) = watch::channel(());
        let stop_applying = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stop_applying);
        let (edge, to_hub, breakdown) = (Arc::clone(&self.edge), self.to_hub.clone(), self.to_hub.clone());
        let outbox =
            Outbox { run, generation, to_hub, settled: answers, closing: closed.clone(), edge_sequence: 0 };
        let task = self.tasks.spawn(async move {
            let living = Arc::new(living);
            let _breakdown = Breakdown { run, generation, to_hub: breakdown };
            if let Some(before) = before {
                before.close().await;
            }
            session::run(edge, open, outbox, to_hear, closed, stop, &living).await;
        });
        self.by_run.insert(run, Handle { generation, said, settled, closing, stop_applying, alive, task });
    }

    /// Says that there is no room for a run.
    fn refuse(&mut self, open: &OpenRun) {
        let message = format!("the edge drives {SESSIONS_MAX} runs already");
        let failure = Failure::new(Code::ConcurrencyLimit, message);
        let (run, generation, edge_sequence) = (open.run, open.generation, 1);
        let batch =
            FromEdge::Batch { run, generation, edge_sequence, reports: vec![Report::Failed { failure }] };
        self.send(batch);
    }

    fn close(&mut self, run: RunId, generation: u64, over: bool) {
        let closed = FromEdge::Closed { run, generation };
        match self.by_run.get(&run) {
            // A later owner has it.
            Some(handle) if handle.generation > generation => self.send(closed),
            handle => {
                let handle = handle.cloned();
                let (to_hub, places) = (self.to_hub.clone(), Places::of(&self.edge.home, run));
                self.tasks.spawn(async move {
                    if let Some(handle) = handle {
                        handle.close().await;
                    }
                    if over {
                        tidy(places).await;
                    }
                    let _ = to_hub.send(closed).await;
                });
            }
        }
    }

    fn send(&mut self, message: FromEdge) {
        let to_hub = self.to_hub.clone();
        self.tasks.spawn(async move {
            let _ = to_hub.send(message).await;
        });
    }

    /// Closes everything.
    async fn end(mut self) {
        for handle in self.by_run.values() {
            handle.closing.send_replace(Closing::Closed);
        }
        for (_, handle) in self.by_run.drain() {
            handle.close().await;
        }
    }
}

async fn tidy(places: Places) {
    failpoint::reach("run.tidy");
    let tidied = tokio::task::spawn_blocking(move || places.tidy()).await;
    failpoint::reach("run.tidied");
    match tidied {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "what a run no longer needs could not be removed"),
        Err(error) => tracing::error!(%error, "tidying up broke down"),
    }
}
