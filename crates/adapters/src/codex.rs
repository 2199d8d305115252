//! Codex as a backend: `codex app-server` over standard input and output, one process for each session.
//!
//! ```text
//! codex.rs                 launch
//! codex/program.rs         which program
//! codex/config.rs          config.toml, auth.json, the gateway's token
//! codex/home.rs            its private home
//! codex/handshake.rs       meeting it, before there is a run
//! codex/session.rs         input and output: lines, commands, journal
//! codex/raw.rs             the lines as they are, where the profile keeps them
//! codex/conversation.rs    one thread, one turn at a time; no input or output
//! codex/requests.rs        what codex asks for; forms are the words of its questions and our answers
//! codex/tokens.rs          which tokens of a thread are the run's own
//! codex/translate.rs       notifications → signals; wire, patch, place, failure, bounds are its words
//! ```
//!
//! What confines what. The approval policy is `untrusted`: codex asks before every command and every change of files, and the
//! answer comes from the gate or a person. Codex's own sandbox is off (`danger-full-access`), because under it one yes may run a
//! command twice: inside, and after it failed there once more outside, without asking. So what an approved command can reach is
//! bounded only by whoever starts the process ([`Processes`](runyard_backend::Processes)); the run says so when nothing does.
//! Where the execution policy is `read-only` a change of files is declined here, and commands are asked for if a sandbox outside
//! keeps them from writing. Where there is none every step is declined, codex's sandbox is on as a second wall, and the run is
//! degraded. A step that codex takes without having asked is reported as such. A search of the web by the provider is off.
//!
//! The end of the process before the end of its turn is a failure, whatever its exit code: codex ends with 0 when it is
//! terminated. It keeps its conversation in its home, so a session can be opened again on its thread; the turn that was running
//! is then continued by a word that says that the pause was no refusal, and codex asks for what it was waiting for anew. A turn
//! that failed because the provider did, for a moment, is continued here after a pause, where nothing that it began is open.
//!
//! It deliberately holds no run state, decides nothing that the gate decides, and redacts nothing. Secrets pass through it into
//! the private home or, as the gateway's token, into codex's own environment, and nowhere else.

mod bounds;
mod config;
mod conversation;
mod failure;
mod forms;
mod handshake;
mod home;
mod models;
mod patch;
mod place;
mod program;
mod raw;
mod requests;
mod session;
mod tokens;
mod translate;
mod wire;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runyard_backend::{
    Backend, BackendError, BackendInfo, COMMANDS_MAX, HandshakeSpec, Journal, Launch, Probe, Resumes, Runs,
    SecretKeys, Session, SessionSpec, Start,
};
use runyard_domain::run::{FailureKind, Task};
use runyard_domain::{BackendProfile, Sandbox, Wire};
use tokio::sync::mpsc;

use self::config::Config;
use self::conversation::{Confinement, Conversation, First, Opening, Terms};
use self::home::Home;
use self::place::Workspace;
use self::program::Program;
use self::raw::Raw;
use self::session::Inbox;
use self::tokens::Ledger;
use self::translate::Translation;
use crate::process::{Speaker, version};

/// The kind of this backend, as backend profiles name it.
pub const CODEX_KIND: &str = "codex-app-server-stdio";

/// What in its home holds secrets or is made of them: codex writes the environment of its commands into snapshots.
const PRIVATE_FILES: &[&str] =
    &["codex/auth.json", "codex/config.toml", "codex/shell_snapshots", "codex/tmp"];

/// How long is waited before each further try of a turn that failed for a moment; as many tries as there are pauses.
pub const PAUSES: &[Duration] = &[Duration::from_secs(2), Duration::from_secs(8)];

/// Runs codex.
#[derive(Clone, Copy, Debug)]
pub struct CodexBackend {
    pauses: &'static [Duration],
}

impl CodexBackend {
    /// The backend.
    pub fn new() -> Self {
        CodexBackend::with_pauses(PAUSES)
    }

    /// The backend with other pauses between the tries of a turn than [`PAUSES`].
    pub fn with_pauses(pauses: &'static [Duration]) -> Self {
        CodexBackend { pauses }
    }
}

impl Default for CodexBackend {
    fn default() -> Self {
        CodexBackend::new()
    }
}

#[async_trait]
impl Backend for CodexBackend {
    fn info(&self) -> BackendInfo {
        BackendInfo {
            backend_kind: CODEX_KIND,
            protocol: "codex-app-server-jsonrpc-stdio",
            transport: "stdio",
            command: Some("codex app-server --listen stdio://"),
            resumes: Resumes::Thread,
            runs: Runs::Agent,
            asks: true,
            tells_steps: true,
            checkout: true,
            needs_network: true,
            secret_keys: SecretKeys { required: &["auth.json"], optional: &["config.toml"] },
            gateway: true,
            wires: &[Wire::Responses],
            logs_thread: false,
            private_files: PRIVATE_FILES,
            settings: &[],
        }
    }

    async fn check(&self, profile: &BackendProfile, probe: &Probe) -> Result<String, BackendError> {
        let path = probe.environment.get("PATH").map(OsString::from);
        let program = Program::of(profile, path.as_deref())?;
        let said = version(&program.path, program.before_server(), probe).await?;
        if said.starts_with("codex") {
            Ok(said)
        } else {
            let message = format!("{} is not codex: it says \"{said}\"", program.path.display());
            Err(BackendError::new(FailureKind::BackendSpawnFailed, message))
        }
    }

    fn install(&self) -> Option<&'static str> {
        Some("npm install -g @openai/codex")
    }

    async fn handshake(&self, spec: HandshakeSpec) -> Result<String, BackendError> {
        handshake::handshake(spec).await
    }

    async fn open(&self, spec: SessionSpec, journal: Arc<dyn Journal>) -> Result<Session, BackendError> {
        let path = spec.environment.get("PATH").map(OsString::from);
        let program = Program::of(&spec.profile, path.as_deref())?;
        let config = Config::of(&spec.profile, &spec.access, &spec.directory, &Home::of(&spec.home))?;
        let home = Home::prepare(&spec.home, config.files).await?;
        let ledger = match &spec.start {
            Start::Fresh { thread, .. } => Ledger::begin(&spec.notes, thread.is_some())?,
            Start::Resume { .. } => Ledger::resume(&spec.notes),
        };
        let opening = opening(spec.start, home.was_there)?;
        let mut environment = spec.environment;
        environment.insert("CODEX_HOME".to_owned(), home.path.to_string_lossy().into_owned());
        environment.extend(config.variable.map(|(name, value)| (name.to_owned(), value)));
        let launch = Launch {
            program: program.path,
            arguments: program.arguments,
            directory: spec.directory.clone(),
            environment,
        };
        let mut codex = Speaker::start(&*spec.processes, launch).await?;
        let raw = spec.profile.debug_raw.then(|| {
            codex.lines.keep(raw::LINE_BYTES_MAX);
            Raw::default()
        });
        let confinement = match spec.policy.sandbox {
            Sandbox::ReadOnly if spec.confined => Confinement::Reading,
            Sandbox::ReadOnly => Confinement::NoStep,
            Sandbox::WorkspaceWrite | Sandbox::None => Confinement::Outside,
        };
        let directory = spec.directory.to_string_lossy().into_owned();
        let translation = Translation::new(Workspace::new(&spec.directory), ledger.kept());
        let terms = Terms { directory, confinement, pauses: self.pauses };
        let mut conversation = Conversation::new(opening, terms, translation);
        if !config.unused.is_empty() {
            conversation.error(format!("config.toml: not used: {}", config.unused.join(", ")));
        }
        let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
        let inbox = Inbox::new(inbox);
        let session = session::Session { codex, conversation, ledger, journal, inbox, raw, deaf_until: None };
        Ok(Session { commands, task: tokio::spawn(session.run()) })
    }
}

/// How a session begins.
fn opening(start: Start, home_was_there: bool) -> Result<Opening, BackendError> {
    let text = |task| match task {
        Task::Text { text, .. } => Ok(text),
        Task::Action { .. } => {
            let message = "codex takes a text, not an action";
            Err(BackendError::new(FailureKind::BackendFailed, message))
        }
    };
    match start {
        Start::Fresh { task, thread } => {
            Ok(Opening { thread, first: First::Task { text: text(task)?, announced: false } })
        }
        // No thread is known before its first turn is, so nothing was begun.
        Start::Resume { task, thread: None, turn_active: announced } => {
            Ok(Opening { thread: None, first: First::Task { text: text(task)?, announced } })
        }
        Start::Resume { task, thread, turn_active } => {
            let lost = !home_was_there;
            let first = if turn_active { First::Continue { task: text(task)?, lost } } else { First::Wait };
            Ok(Opening { thread, first })
        }
    }
}
