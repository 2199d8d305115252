//! A real edge with the real adapter, whose codex is played: a process that is a buffer in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use async_trait::async_trait;
use runyard_adapters::codex::{CODEX_KIND, CodexBackend};
use runyard_backend::{
    Backend, BackendError, BackendInfo, Custody, Exit, Journal, Launch, Probe, Process, ProcessError,
    Processes, Session, SessionSpec, Workspaces,
};
use runyard_domain::gate::{Effect, Rule, RuleKind};
use runyard_domain::run::Who;
use runyard_domain::{BackendProfile, Workspace};
use runyard_edge::sandbox::{Confinement, Sandboxes, System};
use runyard_edge::{AllowList, Edge, EdgeOptions, Secrets, Supervision};
use runyard_redact::{Known, Redactor, TagKey};
use runyard_store::SystemClock;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::speech::{COMMAND, Speech};
use crate::support::codex::CODEX_KEY;

pub(crate) const EDGE: &str = "edge";

/// A place for an edge: its home, a workspace, and the codex that it will be played.
pub(crate) struct Stage {
    pub(crate) files: TempDir,
    pub(crate) workspaces: AllowList,
    pub(crate) workspace: Workspace,
    played: Played,
}

impl Stage {
    pub(crate) async fn new(speech: &Speech) -> Self {
        let files = tempfile::tempdir().unwrap();
        let project = files.path().join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("README.md"), "A place to look around in.\n").unwrap();
        let workspaces = AllowList::open(&files.path().join("home"), EDGE, &[]).unwrap();
        let workspace =
            workspaces.add(project.to_str().unwrap(), Some("site"), &Who::runyard()).await.unwrap();
        let (bytes, pauses) = (Arc::clone(&speech.bytes), Arc::clone(&speech.pauses));
        let played = Played { bytes, pauses, begun: Arc::default() };
        Stage { files, workspaces, workspace, played }
    }

    pub(crate) fn edge(&self) -> Edge {
        let home = self.files.path().join("home");
        let backend: Arc<dyn Backend> = Arc::new(PlayedCodex(CodexBackend::new()));
        let private = home.clone();
        let options = EdgeOptions {
            id: EDGE.to_owned(),
            secrets: Secrets::at(home.join("secrets")),
            home,
            url: "http://127.0.0.1:7070".to_owned(),
            search_path: "/usr/bin:/bin".to_owned(),
            // Nothing is started, so that it need not be there.
            sandboxes: Sandboxes::by("/usr/bin/bwrap".into(), System::default()),
            backends: BTreeMap::from([(CODEX_KIND.to_owned(), backend)]),
            workspaces: self.workspaces.clone(),
            supervision: Arc::new(self.played.clone()),
            // As a hub's own edge: the owner's token, a key of the provider, and private places are known.
            redactors: Arc::new(move || {
                let known = [
                    Known::named("token", "ryd_0123456789abcdef0123456789abcdef"),
                    Known::named("key", CODEX_KEY),
                ];
                let builder = Redactor::builder(TagKey::from_bytes([7; 32])).known(known);
                let builder =
                    builder.private_path(&private, "<data>").private_path("/home/somebody", "<home>");
                builder.private_path("/tmp", "<tmp>").private_path("/var/tmp", "<tmp>")
            }),
            clock: Arc::new(SystemClock),
            checkouts_max_bytes: u64::MAX,
        };
        Edge::new(options).unwrap()
    }

    /// When codex was started.
    pub(crate) fn begun(&self) -> Instant {
        *self.played.begun.get().expect("codex was started")
    }
}

/// A profile that needs no secret. The program must be there, and is not run.
pub(crate) fn profile(name: &str) -> BackendProfile {
    BackendProfile {
        profile: name.to_owned(),
        backend_kind: CODEX_KIND.to_owned(),
        command: vec!["/bin/true".to_owned()],
        ..BackendProfile::default()
    }
}

/// Lets codex run its command without asking anybody.
pub(crate) fn rules() -> Vec<Rule> {
    vec![Rule::new(Effect::Allow, RuleKind::Shell, Some(COMMAND)).unwrap()]
}

/// The adapter; only that nobody looks for the program's version.
struct PlayedCodex(CodexBackend);

#[async_trait]
impl Backend for PlayedCodex {
    fn info(&self) -> BackendInfo {
        self.0.info()
    }

    async fn check(&self, _: &BackendProfile, _: &Probe) -> Result<String, BackendError> {
        Ok("codex, played".to_owned())
    }

    async fn open(&self, spec: SessionSpec, journal: Arc<dyn Journal>) -> Result<Session, BackendError> {
        self.0.open(spec, journal).await
    }
}

/// Starts codex, which is played.
#[derive(Clone)]
pub(crate) struct Played {
    bytes: Arc<[u8]>,
    pauses: Arc<[usize]>,
    begun: Arc<OnceLock<Instant>>,
}

#[async_trait]
impl Supervision for Played {
    fn under(&self, _: &Path, _: Confinement) -> Arc<dyn Processes> {
        Arc::new(self.clone())
    }

    async fn settled(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[async_trait]
impl Processes for Played {
    async fn start(&self, _: Launch) -> Result<Process, ProcessError> {
        let heard = Arc::new(Mutex::new(Heard::default()));
        let mouth = Mouth {
            bytes: Arc::clone(&self.bytes),
            pauses: Arc::clone(&self.pauses),
            at: 0,
            heard: Arc::clone(&heard),
        };
        let _ = self.begun.set(Instant::now());
        Ok(Process {
            stdin: Some(Box::pin(Ear(heard))),
            stdout: Some(Box::pin(mouth)),
            stderr: Some(Box::pin(tokio::io::empty())),
            custody: Box::new(NoCustody),
        })
    }
}

struct NoCustody;

#[async_trait]
impl Custody for NoCustody {
    async fn wait(&mut self) -> Result<Exit, ProcessError> {
        std::future::pending().await
    }

    async fn stop(&mut self) -> Result<Exit, ProcessError> {
        Ok(Exit::Code(0))
    }
}

/// What codex was told.
#[derive(Default)]
struct Heard {
    /// Answers to what it asked.
    answers: usize,
    waits: Option<Waker>,
}

/// Its standard input.
struct Ear(Arc<Mutex<Heard>>);

impl AsyncWrite for Ear {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        // Requests and notifications have a method; an answer has none. Each comes in one piece.
        let answers = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| is_answer(line)).count();
        let mut heard = self.0.lock().unwrap();
        heard.answers += answers;
        if let (1.., Some(waker)) = (answers, heard.waits.take()) {
            waker.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn is_answer(line: &[u8]) -> bool {
    let message: serde_json::Value = serde_json::from_slice(line).expect("a whole line of JSON");
    message.get("method").is_none()
}

/// Its standard output: it says all that it has to say up to where it waits for an answer, and after the last word it stays.
struct Mouth {
    bytes: Arc<[u8]>,
    pauses: Arc<[usize]>,
    at: usize,
    heard: Arc<Mutex<Heard>>,
}

impl AsyncRead for Mouth {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let end = {
            let mut heard = self.heard.lock().unwrap();
            let end = self.pauses.get(heard.answers).copied().unwrap_or(self.bytes.len());
            if self.at >= end {
                heard.waits = Some(context.waker().clone());
                return Poll::Pending;
            }
            end
        };
        let end = end.min(self.at + into.remaining());
        into.put_slice(&self.bytes[self.at..end]);
        self.at = end;
        Poll::Ready(Ok(()))
    }
}
