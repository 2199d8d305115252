//! Codex as a backend: `codex app-server` over standard input and output, one process for each session.
//!
//! ```text
//! codex.rs                 launch
//! codex/home.rs            settings, program, private home, config.toml
//! codex/session.rs         input and output: lines, commands, journal
//! codex/conversation.rs    one thread, one turn at a time; no input or output
//! codex/requests.rs        what codex asks permission for
//! codex/tokens.rs          which tokens of a thread are the run's own
//! codex/translate.rs       notifications → signals; wire, patch, place, failure, bounds are its words
//! ```
//!
//! What confines what. The approval policy is `untrusted`: codex asks before every command and every change of files, and the
//! answer comes from the gate or a person. Codex's own sandbox is off (`danger-full-access`), because under it one yes may run a
//! command twice: inside, and after it failed there once more outside, without asking. So what an approved command can reach is
//! bounded only by whoever starts the process ([`Processes`](runyard_backend::Processes)); the run says so when nothing does.
//! Where the execution policy is `read-only`, every step is declined here, codex's sandbox is on as a second wall, and the run is
//! degraded. A step that codex takes without having asked is reported as such. A search of the web by the provider is off.
//!
//! The end of the process before the end of its turn is a failure, whatever its exit code: codex ends with 0 when it is
//! terminated. It keeps its conversation in its home, so a session can be opened again on its thread; the turn that was running
//! is then continued by a word that says that the pause was no refusal, and codex asks for what it was waiting for anew.
//!
//! It deliberately holds no run state, decides nothing that the gate decides, redacts nothing, and knows no secret.

mod bounds;
mod conversation;
mod failure;
mod home;
mod patch;
mod place;
mod requests;
mod session;
mod tokens;
mod translate;
mod wire;

use std::ffi::OsString;
use std::sync::Arc;

use async_trait::async_trait;
use runyard_backend::{
    Backend, BackendError, BackendInfo, COMMANDS_MAX, Journal, Launch, Resumes, Session, SessionSpec, Start,
};
use runyard_domain::run::{FailureKind, Task};
use runyard_domain::{BackendProfile, Sandbox};
use tokio::sync::mpsc;

use self::conversation::{Confinement, Conversation, First, Opening};
use self::home::{Home, Settings};
use self::place::Workspace;
use self::session::Inbox;
use self::tokens::Ledger;
use self::translate::Translation;
use crate::process::{Speaker, version};

/// The kind of this backend, as backend profiles name it.
pub const CODEX_KIND: &str = "codex-app-server-stdio";

/// Runs codex.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodexBackend;

impl CodexBackend {
    /// The backend.
    pub fn new() -> Self {
        CodexBackend
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
            asks: true,
            checkout: true,
            needs_network: true,
        }
    }

    async fn check(&self, profile: &BackendProfile) -> Result<String, BackendError> {
        let program = Settings::read(profile)?.program(std::env::var_os("PATH").as_deref())?;
        let said = version(&program).await?;
        if said.starts_with("codex") {
            Ok(said)
        } else {
            let message = format!("{} is not codex: it says \"{said}\"", program.display());
            Err(BackendError::new(FailureKind::BackendSpawnFailed, message))
        }
    }

    async fn open(&self, spec: SessionSpec, journal: Arc<dyn Journal>) -> Result<Session, BackendError> {
        let settings = Settings::read(&spec.profile)?;
        if let Some(key) = settings.env_key.as_ref().filter(|key| !spec.environment.contains_key(*key)) {
            let message =
                format!("the environment has no {key}, which profile {} needs", spec.profile.profile);
            return Err(BackendError::new(FailureKind::SecretUnavailable, message));
        }
        let path = spec.environment.get("PATH").map(OsString::from);
        let program = settings.program(path.as_deref())?;
        let home = Home::prepare(&spec.home, &settings, &spec.directory)?;
        let ledger = match &spec.start {
            Start::Fresh { thread, .. } => Ledger::begin(&spec.home, spec.run, thread.is_some())?,
            Start::Resume { .. } => Ledger::resume(&spec.home, spec.run),
        };
        let opening = opening(spec.start, home.was_there)?;
        let mut environment = spec.environment;
        environment.insert("CODEX_HOME".to_owned(), home.path.to_string_lossy().into_owned());
        let launch = Launch {
            program,
            arguments: ["app-server", "--listen", "stdio://"].map(str::to_owned).to_vec(),
            directory: spec.directory.clone(),
            environment,
        };
        let codex = Speaker::start(&*spec.processes, launch).await?;
        let confinement = match spec.policy.sandbox {
            Sandbox::ReadOnly => Confinement::NoStep,
            Sandbox::WorkspaceWrite | Sandbox::None => Confinement::Outside,
        };
        let directory = spec.directory.to_string_lossy().into_owned();
        let translation = Translation::new(Workspace::new(&spec.directory), ledger.kept());
        let conversation = Conversation::new(opening, directory, confinement, translation);
        let (commands, inbox) = mpsc::channel(COMMANDS_MAX);
        let inbox = Inbox::new(inbox);
        let session = session::Session { codex, conversation, ledger, journal, inbox, deaf_until: None };
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
