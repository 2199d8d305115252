//! The two ports: what drives a run, and where its signals become durable.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
pub use runyard_domain::run::Resumes;
use runyard_domain::run::{Capability, FailureKind, Task, ThreadRecorded};
use runyard_domain::{BackendProfile, CommandId, ExecutionPolicy, RunId, Wire};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::{Processes, Signal};

/// How many commands wait for a backend at most.
pub const COMMANDS_MAX: usize = 64;

/// Runs agents of one kind. Implementations pass [`conformance`](crate::conformance).
#[async_trait]
pub trait Backend: Send + Sync {
    /// What it is.
    fn info(&self) -> BackendInfo;

    /// Checks, before anything starts, that it could: the program is there, the settings make sense. Gives what it found, for
    /// people (a version, say). What it asks its program is asked through `probe`, in bounded time, and leaves nothing.
    async fn check(&self, profile: &BackendProfile, probe: &Probe) -> Result<String, BackendError>;

    /// How to get the program that it starts, where it starts one.
    fn install(&self) -> Option<&'static str> {
        None
    }

    /// Starts its program and lets it introduce itself, in bounded time, with nothing of it left when this returns. Gives what it
    /// said, for people. What starts no program has nobody to meet.
    async fn handshake(&self, _spec: HandshakeSpec) -> Result<String, BackendError> {
        Ok("it starts no program of its own".to_owned())
    }

    /// Starts or resumes an agent. It reports through `journal` only, and acts on nothing before `record` returned for what
    /// justifies it: the call before the step, the ask before the wait.
    ///
    /// When the sender of commands is dropped, or `record` says [`JournalError`], it stops everything it started and its task
    /// ends. After [`Signal::TurnEnded`] it waits for the next [`Command::Turn`]. When it comes to its end otherwise, it says
    /// [`Signal::Ended`] last.
    async fn open(&self, spec: SessionSpec, journal: Arc<dyn Journal>) -> Result<Session, BackendError>;
}

/// What a backend is. Nothing here needs a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendInfo {
    /// Its kind, as backend profiles name it.
    pub backend_kind: &'static str,
    /// The protocol that it speaks.
    pub protocol: &'static str,
    /// How.
    pub transport: &'static str,
    /// The command that it starts, where it starts one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<&'static str>,
    /// How far it can be resumed.
    pub resumes: Resumes,
    /// What a run of it is.
    pub runs: Runs,
    /// Whether it asks before it acts.
    pub asks: bool,
    /// Whether it tells of each step that it takes. Of one that does not, only what it says and its changes are on record.
    pub tells_steps: bool,
    /// Whether it works in a checkout, which is looked at when it is done.
    pub checkout: bool,
    /// Whether its processes must reach a provider, so that without a gateway the network cannot be cut for them.
    pub needs_network: bool,
    /// The secrets that its profiles have, unless they say otherwise.
    pub secret_keys: SecretKeys,
    /// Whether it can be pointed at the edge's gateway.
    pub gateway: bool,
    /// What it speaks to a provider by itself. The gateway translates between some of the others.
    pub wires: &'static [Wire],
    /// Whether it keeps its conversation in the run's log ([`Signal::Thread`]) and wants it back when it is opened.
    pub logs_thread: bool,
    /// What in its home holds secrets or is made of them. It goes when the session's processes are gone, and when an edge starts.
    pub private_files: &'static [&'static str],
    /// The names that its settings in a backend profile may have.
    #[serde(skip)]
    pub settings: &'static [&'static str],
}

/// What a run of a backend is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Runs {
    /// An agent that is told in words what is to be done. What it starts is bounded by the run's sandbox.
    Agent,
    /// One action. It does what it was declared to do, as the hub's own user: no sandbox bounds it, and it is asked about as a whole.
    Action,
}

impl BackendInfo {
    /// What it can do, as its runs say it.
    pub const fn capability(&self) -> Capability {
        Capability {
            resumes: self.resumes,
            asks: self.asks,
            tells_steps: self.tells_steps,
            checkout: self.checkout,
            gateway: self.gateway,
        }
    }
}

/// The names of secrets that a kind of backend uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeys {
    /// It cannot do without.
    pub required: &'static [&'static str],
    /// It is given them where there are any.
    pub optional: &'static [&'static str],
}

/// How a program is asked what it is, before anything is to run.
#[derive(Clone)]
pub struct Probe {
    /// Where it runs.
    pub directory: PathBuf,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    /// Starts it.
    pub processes: Arc<dyn Processes>,
}

/// All that a backend is given to start.
#[derive(Clone)]
pub struct SessionSpec {
    /// The run.
    pub run: RunId,
    /// The backend profile.
    pub profile: BackendProfile,
    /// Where it begins.
    pub start: Start,
    /// The conversation that it goes on with, as it was recorded, where it keeps it in the log.
    pub history: Vec<ThreadRecorded>,
    /// What is known of calls in it that have no result: of this run where it is resumed, else of the one that it goes on from.
    pub left: Option<LeftOver>,
    /// Takes out of a text what may not be recorded.
    pub redaction: Arc<dyn Redaction>,
    /// Knows which files may be looked into without asking.
    pub sight: Arc<dyn Sight>,
    /// The run's checkout.
    pub directory: PathBuf,
    /// A private directory of this session and backend profile: the runs of a session find there what the backend keeps of
    /// their conversation.
    pub home: PathBuf,
    /// A private directory of this run that its processes cannot reach, where a sandbox is in force: what the adapter itself must
    /// find again as it wrote it.
    pub notes: PathBuf,
    /// What the run may do.
    pub policy: ExecutionPolicy,
    /// How its agent reaches its provider.
    pub access: Access,
    /// Whether a sandbox bounds its processes from outside.
    pub confined: bool,
    /// What every process that it starts finds in its environment.
    pub environment: BTreeMap<String, String>,
    /// Starts processes.
    pub processes: Arc<dyn Processes>,
}

/// Which files a backend may look into without asking: for what reads many at once, as a search does.
pub trait Sight: Send + Sync {
    /// Whether reading this file of the checkout is allowed as things stand. The path is from the checkout's root on.
    fn may_read(&self, path: &str) -> bool;
}

/// Takes secrets and private paths out of what a backend is about to record, so that what its model reads is what is stored.
pub trait Redaction: Send + Sync {
    /// Content of files, output of commands, what a model says: by known values and unmistakable forms alone.
    fn content(&self, text: &str) -> String;

    /// Arguments: by the names of their keys too.
    fn arguments(&self, arguments: Value) -> Value;
}

/// All that a backend is given to meet its program: no secret, and nothing of a run.
#[derive(Clone)]
pub struct HandshakeSpec {
    /// The backend profile.
    pub profile: BackendProfile,
    /// Where it runs; empty.
    pub directory: PathBuf,
    /// A private directory for this alone.
    pub home: PathBuf,
    /// What its process finds in its environment.
    pub environment: BTreeMap<String, String>,
    /// Starts processes.
    pub processes: Arc<dyn Processes>,
}

/// How an agent reaches its model provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// It needs no secret.
    Open,
    /// Through the edge's gateway, which holds the provider's key.
    Gateway(GatewayAccess),
    /// By itself, with these secrets in its home.
    Projected(Vec<SecretFile>),
}

/// The way to the edge's gateway, for one run.
#[derive(Clone, PartialEq, Eq)]
pub struct GatewayAccess {
    /// Where it listens, as seen by the agent.
    pub base_url: String,
    /// What it is called with; good for this run alone.
    pub token: String,
    /// Secrets that are no key of the provider, such as the person's own configuration.
    pub files: Vec<SecretFile>,
}

impl fmt::Debug for GatewayAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayAccess").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

/// A secret for the agent's home.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretFile {
    /// Its name.
    pub key: String,
    /// All of it.
    pub content: Vec<u8>,
}

impl fmt::Debug for SecretFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretFile").field("key", &self.key).finish_non_exhaustive()
    }
}

/// What is known of the calls that a run may have left without a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOver {
    /// The steps that it began and that nobody saw the end of, by the backend's name for them. Others were never begun.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub begun: BTreeSet<String>,
    /// Why a person rejected what it asked for, where that ended it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rejected: Option<String>,
}

/// Where a session begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "start", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Start {
    /// With the task. A thread, where there is one, is that of an earlier run of the session.
    Fresh {
        /// What is to be done.
        task: Task,
        /// The conversation that it goes on with.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        thread: Option<String>,
    },
    /// In the middle: its process died or was parked during a turn.
    Resume {
        /// What is to be done.
        task: Task,
        /// The conversation, if it was known by then.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        thread: Option<String>,
        /// Whether a turn was running, which is to go on.
        turn_active: bool,
    },
}

/// A backend's live session.
pub struct Session {
    /// Takes commands. Dropping it closes the session.
    pub commands: CommandSender,
    /// Ends when nothing of the session is left.
    pub task: JoinHandle<()>,
}

/// The queue of commands.
pub type CommandSender = mpsc::Sender<Command>;

/// An instruction to a live session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Command {
    /// A further turn. Sent only when none runs.
    Turn {
        /// Its id.
        id: CommandId,
        /// What is said.
        text: String,
    },
    /// A word into the turn that runs. A backend says with [`Signal::Heard`] when it has it, in the batch that shows it where there
    /// is one. What is not heard when the turn ends is said to be lost by whoever records the end.
    Steer {
        /// Its id.
        id: CommandId,
        /// What is said.
        text: String,
    },
    /// Ends the turn that runs.
    Interrupt {
        /// Its id.
        id: CommandId,
    },
    /// The answer to an [`Signal::Ask`].
    Answer {
        /// The request's key.
        key: String,
        /// The answer.
        answer: Answer,
    },
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Whether it is a yes.
    pub approved: bool,
    /// What was said about it; for the agent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// The answer to a question.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answer: Option<Value>,
}

/// Where a backend's signals become durable.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Returns when the batch is durable, in order after what was recorded before, and whole up to 128 signals. Pieces of text
    /// ([`Signal::Delta`], [`Signal::ToolOutput`]) are previews: they may wait a moment, and are durable before whatever comes
    /// after them. Waiting for it is the back-pressure. After an error nothing of the batch was recorded, unless the hub was
    /// lost meanwhile (then all of it or nothing), and no later one will be: stop now.
    async fn record(&self, batch: Vec<Signal>) -> Result<(), JournalError>;
}

/// Why nothing more is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Somebody else drives the run now.
    #[error("another owner drives the run")]
    Fenced,
    /// The session is closed, or its run has ended.
    #[error("the session is closed")]
    Stopped,
}

/// Why a backend cannot start.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct BackendError {
    /// What kind of failure.
    pub failure_kind: FailureKind,
    /// What happened, safe to show.
    pub message: String,
}

impl BackendError {
    /// A failure of this kind.
    pub fn new(failure_kind: FailureKind, message: impl Into<String>) -> Self {
        BackendError { failure_kind, message: message.into() }
    }
}
