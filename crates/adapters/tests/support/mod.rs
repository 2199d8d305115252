//! The real codex on a loopback provider, as the conformance suite and the tests use it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use runyard_adapters::codex::{CODEX_KIND, CodexBackend};
use runyard_backend::conformance::{Bench, Live, Part, Recorder, Scene, Stage};
use runyard_backend::{
    Backend, BackendError, BackendInfo, Custody, Exit, Journal, Launch, Process, ProcessError, Processes,
    Session, SessionSpec, Start,
};
use runyard_demo_provider::{DemoProvider, Options};
use runyard_domain::run::Task;
use runyard_domain::{BackendProfile, ExecutionPolicy};
use rustix::process::{Pid, Signal, kill_process};

const VERSION: &str = "0.166.0";
/// Unknown models are given no tool for patches.
const MODEL: &str = "gpt-5.5";

/// The program, which must be there.
pub(crate) fn program() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join(format!("codex-{VERSION}"));
    let native = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
    let program = std::env::var_os("RUNYARD_TEST_CODEX").map_or_else(|| target.join(native), PathBuf::from);
    assert!(
        program.is_file(),
        "there is no {}; install it: npm install --prefix {} --no-save --no-audit --no-fund --ignore-scripts \
         @openai/codex@{VERSION}, or name it in RUNYARD_TEST_CODEX",
        program.display(),
        target.display()
    );
    program
}

pub(crate) fn profile(settings: &[(&str, &str)]) -> BackendProfile {
    BackendProfile {
        profile: "codex".to_owned(),
        backend_kind: CODEX_KIND.to_owned(),
        required_secret_keys: Vec::new(),
        settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
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
    program: PathBuf,
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
        Codex { provider, policy, program: program(), stage: OnceLock::new() }
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

    fn part_with(&self, settings: &[(&str, &str)], task: &str) -> Part {
        let (url, program) = (self.provider.url(), self.program.to_string_lossy());
        let own = [("base_url", url.as_str()), ("model", MODEL), ("program", &program)];
        Part { profile: profile(&[&own, settings].concat()), task: text(task) }
    }

    /// A session that begins with this text.
    pub(crate) async fn fresh(&self, task: &str) -> Live {
        self.fresh_with(&[], task).await
    }

    /// The same with other settings.
    pub(crate) async fn fresh_with(&self, settings: &[(&str, &str)], task: &str) -> Live {
        self.stage().fresh(self, &self.part_with(settings, task), &Recorder::new()).await
    }

    pub(crate) async fn open(&self, start: Start, recorder: Arc<Recorder>) -> Live {
        self.stage().open(self, &self.part_with(&[], ""), start, &recorder).await
    }

    /// Why it does not open with these settings.
    pub(crate) async fn refused(&self, settings: &[(&str, &str)]) -> BackendError {
        let start = Start::Fresh { task: text("hello"), thread: None };
        let spec = self.stage().spec(&self.part_with(settings, "hello"), start);
        self.backend().open(spec, Recorder::new()).await.err().expect("it does not open")
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
        Arc::new(Watched { policy: self.policy.clone() })
    }

    fn part(&self, scene: Scene, _: &Stage) -> Part {
        let task = match scene {
            Scene::Talk => "hello",
            Scene::Act => "[[scenario:shell echo - >> marker]]",
            Scene::Linger => "[[scenario:shell echo $$ >> marker; exec sleep 1000]]",
            Scene::Chatter => "[[scenario:shell seq 1 40000]]",
        };
        self.part_with(&[], task)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(120)
    }
}

/// Codex under a policy, with its process id written down.
struct Watched {
    policy: ExecutionPolicy,
}

#[async_trait]
impl Backend for Watched {
    fn info(&self) -> BackendInfo {
        CodexBackend::new().info()
    }

    async fn check(&self, profile: &BackendProfile) -> Result<String, BackendError> {
        CodexBackend::new().check(profile).await
    }

    async fn open(&self, mut spec: SessionSpec, journal: Arc<dyn Journal>) -> Result<Session, BackendError> {
        spec.policy = self.policy.clone();
        spec.processes = Arc::new(Noting { file: pid_file(&spec.directory), inner: spec.processes });
        CodexBackend::new().open(spec, journal).await
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
