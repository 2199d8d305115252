//! The ports between the record and whatever drives a run.
//!
//! A [`Backend`] drives runs: a coding agent, our own loop, a single action. It reports through a [`Journal`] and hears through a
//! bounded queue of [`Command`]s. [`link`] holds the messages between hub and edge. [`scripted`] is a backend whose agent is a
//! data file. No run state lives here, and nothing here knows the store or the gate's rules.

mod api_key;
mod backend;
pub mod beneath;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod failpoint;
mod hearing;
pub mod link;
mod processes;
pub mod scripted;
mod signal;
mod workspaces;

pub use api_key::{ANTHROPIC_KEY, NoKey, OPENAI_KEY, api_key};
pub use backend::{
    Access, Answer, Backend, BackendError, BackendInfo, COMMANDS_MAX, Command, CommandSender, GatewayAccess,
    HandshakeSpec, Journal, JournalError, LeftOver, Probe, Redaction, Resumes, Runs, SecretFile, SecretKeys,
    Session, SessionSpec, Sight, Start,
};
pub use hearing::{Heard, Hearing, Steer, Stop};
pub use processes::{Custody, Exit, Launch, Process, ProcessError, Processes};
pub use scripted::{Script, ScriptError, ScriptedBackend, Scripts};
pub use signal::{Ending, Signal, Stream};
pub use workspaces::{ListChange, WorkspaceError, Workspaces};
