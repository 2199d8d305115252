//! The real codex on a loopback provider, as the conformance suite and the tests use it.

mod program;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use runyard_adapters::codex::{CODEX_KIND, CodexBackend};
use runyard_backend::conformance::{Bench, Live, Part, Recorder, Scene, Stage};
use runyard_backend::{
    Access, Backend, BackendError, BackendInfo, Custody, Exit, HandshakeSpec, Journal, Launch, Probe,
    Process, ProcessError, Processes, Session, SessionSpec, Start,
};
use runyard_demo_provider::{DemoProvider, Options};
use runyard_domain::run::Task;
use runyard_domain::{BackendProfile, ExecutionPolicy};
use rustix::process::{Pid, Signal, kill_process};

pub(crate) use self::program::program;

/// Unknown models are given no tool for patches.
const MODEL: &str = "gpt-5.5";

pub(crate) fn profile(program: &Path) -> BackendProfile {
    BackendProfile {
        profile: "codex".to_owned(),
        backend_kind: CODEX_KIND.to_owned(),
        command: vec![program.to_string_lossy().into_owned()],
        ..BackendProfile::default()
    }
}

pub(crate) fn text(text: &str) -> Task {
    Task::Text { text: text.to_owned(), redacted: false }
}

pub(crate) fn write_script(path: &Path, body: &str) {
    // A file that is being executed cannot be written; a new one can take its place.
    let (Ok(()) | Err(_)) = std::fs::remove_file(path);
    std::fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Codex with a provider and a stage of its own.
pub(crate) struct Codex {
    pub(crate) provider: DemoProvider,
    pub(crate) policy: ExecutionPolicy,
    pub(crate) access: Access,
    pub(crate) confined: bool,
    /// The pauses between the tries of a turn that failed for a moment: none, so that it fails at once.
    pub(crate) pauses: &'static [Duration],
    stage: OnceLock<Stage>,
}

impl Codex {
    pub(crate) async fn new() -> Self {
        Codex::with(Options::default()).await
    }

    /// With a provider of one's own.
    pub(crate) async fn with(options: Options) -> Self {
        let provider = DemoProvider::start_with(options).await.unwrap();
        let policy = ExecutionPolicy::default();
        Codex { provider, policy, access: Access::Open, confined: false, pauses: &[], stage: OnceLock::new() }
    }

    fn stage(&self) -> &Stage {
        self.stage.get_or_init(|| Stage::new(self))
    }

    /// The run's checkout.
    pub(crate) fn directory(&self) -> PathBuf {
        self.stage().directory()
    }

    /// What a file of the checkout holds.
    pub(crate) fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.directory().join(name)).ok()
    }

    fn part_of(&self, task: &str) -> Part {
        self.part_with(&program(), task)
    }

    fn part_with(&self, program: &Path, task: &str) -> Part {
        let (base_url, model) = (Some(self.provider.url()), Some(MODEL.to_owned()));
        Part { profile: BackendProfile { base_url, model, ..profile(program) }, task: text(task) }
    }

    /// A session that begins with this text.
    pub(crate) async fn fresh(&self, task: &str) -> Live {
        self.stage().fresh(self, &self.part_of(task), &Recorder::new()).await
    }

    /// The same with another program.
    pub(crate) async fn fresh_with(&self, program: &Path, task: &str) -> Live {
        self.stage().fresh(self, &self.part_with(program, task), &Recorder::new()).await
    }

    pub(crate) async fn open(&self, start: Start, recorder: Arc<Recorder>) -> Live {
        self.stage().open(self, &self.part_of(""), start, &recorder).await
    }

    /// Why it does not open with this program.
    pub(crate) async fn refused(&self, program: &Path) -> BackendError {
        let start = Start::Fresh { task: text("hello"), thread: None };
        let spec = self.stage().spec(&self.part_with(program, "hello"), start);
        self.backend().open(spec, Recorder::new()).await.err().expect("it does not open")
    }

    /// What it says when it is only met.
    pub(crate) async fn met(&self, program: &Path) -> Result<String, BackendError> {
        let start = Start::Fresh { task: text("hello"), thread: None };
        let SessionSpec { profile, directory, home, environment, processes, .. } =
            self.stage().spec(&self.part_with(program, "hello"), start);
        self.backend().handshake(HandshakeSpec { profile, directory, home, environment, processes }).await
    }

    /// Kills the process of codex that was started last, and nothing else.
    pub(crate) fn kill(&self) {
        kill_process(noted(&pid_file(&self.directory())).unwrap(), Signal::KILL).unwrap();
    }
}

fn pid_file(checkout: &Path) -> PathBuf {
    checkout.parent().unwrap().join("codex.pid")
}

impl Bench for Codex {
    fn backend(&self) -> Arc<dyn Backend> {
        let (policy, access, confined) = (self.policy.clone(), self.access.clone(), self.confined);
        Arc::new(Watched { codex: CodexBackend::with_pauses(self.pauses), policy, access, confined })
    }

    fn part(&self, scene: Scene, _: &Stage) -> Part {
        let task = match scene {
            Scene::Talk => "hello",
            Scene::Act => "[[scenario:shell echo - >> marker]]",
            Scene::Linger => "[[scenario:shell echo $$ >> marker; exec sleep 1000]]",
            Scene::Chatter => "[[scenario:shell seq 1 40000]]",
        };
        self.part_of(task)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(120)
    }
}

/// Codex under a policy, with its process id written down.
struct Watched {
    codex: CodexBackend,
    policy: ExecutionPolicy,
    access: Access,
    confined: bool,
}

#[async_trait]
impl Backend for Watched {
    fn info(&self) -> BackendInfo {
        self.codex.info()
    }

    async fn check(&self, profile: &BackendProfile, probe: &Probe) -> Result<String, BackendError> {
        self.codex.check(profile, probe).await
    }

    async fn handshake(&self, spec: HandshakeSpec) -> Result<String, BackendError> {
        self.codex.handshake(spec).await
    }

    async fn open(&self, mut spec: SessionSpec, journal: Arc<dyn Journal>) -> Result<Session, BackendError> {
        spec.policy = self.policy.clone();
        spec.access = self.access.clone();
        spec.confined = self.confined;
        spec.processes = Arc::new(Noting { file: pid_file(&spec.directory), inner: spec.processes });
        self.codex.open(spec, journal).await
    }
}

struct Noting {
    file: PathBuf,
    inner: Arc<dyn Processes>,
}

#[async_trait]
impl Processes for Noting {
    async fn start(&self, launch: Launch) -> Result<Process, ProcessError> {
        let note = ["-c", "echo $$ > \"$0\"; exec \"$@\""].map(str::to_owned);
        let program = [self.file.as_path(), &launch.program].map(|path| path.to_string_lossy().into_owned());
        let arguments = note.into_iter().chain(program).chain(launch.arguments).collect();
        let process = self.inner.start(Launch { program: "/bin/sh".into(), arguments, ..launch }).await?;
        let custody = Box::new(Gentle { file: self.file.clone(), inner: process.custody });
        Ok(Process { custody, ..process })
    }
}

fn noted(file: &Path) -> Option<Pid> {
    Pid::from_raw(std::fs::read_to_string(file).ok()?.trim().parse().ok()?)
}

/// Stops as the edge does: it terminates before it kills. Codex then takes its turn for interrupted by the user.
struct Gentle {
    file: PathBuf,
    inner: Box<dyn Custody>,
}

#[async_trait]
impl Custody for Gentle {
    async fn wait(&mut self) -> Result<Exit, ProcessError> {
        self.inner.wait().await
    }

    async fn stop(&mut self) -> Result<Exit, ProcessError> {
        if let Some(codex) = noted(&self.file)
            && kill_process(codex, Signal::TERM).is_ok()
        {
            let (Ok(_) | Err(_)) = tokio::time::timeout(Duration::from_secs(2), self.inner.wait()).await;
        }
        self.inner.stop().await
    }
}
