//! Our own agent loop as a backend: it runs inside the edge, and its conversation is in the run's log and nowhere else.
//!
//! ```text
//! native/profile.rs     what a backend profile says about the agent: model, prompt, tools, limits
//! native/session.rs     one session: turns, words, interrupts, ends
//! native/ear.rs         commands, sorted while the agent works
//! native/log.rs         the agent's checkpoint: what it did, as signals
//! native/left.rs        calls that an earlier run left without a result
//! native/told.rs        what it tells while it works, as signals
//! native/gate.rs        each call as a request of the gate
//! native/workspace.rs   its tools, which are actions: read, list, search, write, patch, shell
//! native/question.rs    the tool that asks a person, and answers to calls that wait
//! ```
//!
//! The model is reached as the run's access says: through the edge's gateway, or with the profile's key. Nothing that the
//! agent starts sees either.

mod ear;
mod gate;
mod left;
mod log;
mod profile;
mod question;
mod session;
mod told;
mod words;
mod workspace;

use std::sync::Arc;

use async_trait::async_trait;
use runyard_backend::{
    Backend, BackendError, BackendInfo, COMMANDS_MAX, Journal, Probe, Resumes, Runs, SecretKeys, Session,
    SessionSpec,
};
use runyard_domain::run::FailureKind;
use runyard_domain::{BackendProfile, Wire};
use runyard_llm::http::{Client, Roots};
use runyard_llm::inference::Breakers;
use tokio::sync::mpsc;

use self::profile::{Profile, SETTINGS};
use self::session::NativeSession;

/// The kind that backend profiles name.
pub const NATIVE_KIND: &str = "native";

/// The names of its tools.
pub const TOOLS: [&str; 7] = ["read", "list", "search", "write", "patch", "shell", question::ASK];

/// How often its model is asked in a turn, unless it says otherwise.
pub const ROUNDS_MAX: u32 = 200;
/// How many equal calls in a row end a turn, likewise. That many are no work: an agent that waits for something sleeps longer.
pub const REPETITIONS_MAX: usize = 32;
/// The least that can be said of that: one call alone is no repetition.
pub const REPETITIONS_MIN: usize = 2;
/// The most.
pub use runyard_agent::run::REPETITION_WINDOW_MAX as REPETITIONS_EVER_MAX;
/// How often an answer that was cut is gone on with, likewise.
pub const CONTINUATIONS_MAX: u32 = 2;
/// How often a model is asked again, likewise.
pub const RETRIES_MAX: u32 = 2;
/// How long an answer may pause, likewise: models that think without a sign of it take minutes.
pub const IDLE_MS: u64 = IDLE_MS_EVER_MAX;
/// The most that can be said of that. A gateway waits longer, so that it is the agent that notices, and says what was the matter.
pub const IDLE_MS_EVER_MAX: u64 = 300_000;

/// The secret that its profiles have: the provider's key, as codex has it.
const KEY: &str = "auth.json";

/// Our own agent loop.
pub struct NativeBackend {
    models: Models,
}

/// What all sessions reach their models with.
struct Models {
    client: Arc<Client>,
    /// A model that keeps failing rests for every run, not only for the one that noticed.
    breakers: Breakers,
}

impl NativeBackend {
    /// The backend. All its sessions share one client, and what is known of each model's health.
    pub fn new() -> Self {
        let client = Arc::new(Client::new(Roots::System));
        NativeBackend { models: Models { client, breakers: Breakers::default() } }
    }
}

impl Default for NativeBackend {
    fn default() -> Self {
        NativeBackend::new()
    }
}

#[async_trait]
impl Backend for NativeBackend {
    fn info(&self) -> BackendInfo {
        BackendInfo {
            backend_kind: NATIVE_KIND,
            protocol: "runyard-agent",
            transport: "in-process",
            command: None,
            resumes: Resumes::Steps,
            runs: Runs::Agent,
            asks: true,
            tells_steps: true,
            checkout: true,
            needs_network: false,
            secret_keys: SecretKeys { required: &[KEY], optional: &[] },
            gateway: true,
            wires: &[Wire::Responses, Wire::Chat, Wire::Messages],
            logs_thread: true,
            private_files: &[],
            settings: &SETTINGS,
        }
    }

    async fn check(&self, profile: &BackendProfile, _: &Probe) -> Result<String, BackendError> {
        let profile = Profile::read(profile).map_err(unusable)?;
        Ok(format!("{} with {} tools", profile.model, profile.tools.len()))
    }

    async fn open(&self, spec: SessionSpec, journal: Arc<dyn Journal>) -> Result<Session, BackendError> {
        let profile = Profile::read(&spec.profile).map_err(unusable)?;
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let session = NativeSession::new(profile, spec, journal, receiver, &self.models).map_err(unusable)?;
        Ok(Session { commands, task: tokio::spawn(session.run()) })
    }
}

fn unusable(message: String) -> BackendError {
    BackendError::new(FailureKind::BackendSpawnFailed, message)
}
