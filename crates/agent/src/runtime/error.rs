//! Why a run cannot begin.

use runyard_domain::Code;

use crate::resolve::ResolveError;
use crate::state::StateError;

/// Why a run cannot begin. One that began always has an outcome instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// The keys, hooks and tools of the agent do not go together.
    #[error("the agent cannot be put together: {0}")]
    State(#[source] StateError),
    /// The thread has a run that is not over: it goes on here or elsewhere, it waits, or its process died.
    #[error("the thread \"{thread_id}\" has a run that is not over")]
    ThreadAlreadyRunning {
        /// The thread.
        thread_id: String,
    },
    /// There is no such agent.
    #[error("there is no agent \"{agent_id}\"")]
    AgentNotFound {
        /// The id.
        agent_id: String,
    },
    /// A message of the input is larger than can be stored, and a run that cannot store it cannot go on from it.
    #[error(
        "message {message} of the input has {bytes} bytes as JSON; {bytes_max} are the limit, pictures included"
    )]
    InputTooLarge {
        /// Which, counted from 1.
        message: usize,
        /// How many bytes it has.
        bytes: usize,
        /// How many it may have.
        bytes_max: usize,
    },
    /// The agent cannot be resolved.
    #[error("the agent cannot be resolved: {message}")]
    ResolveFailed {
        /// Why not, with the code of the reason.
        message: String,
    },
}

impl RuntimeError {
    /// Its row in the error table.
    pub const fn code(&self) -> Code {
        match self {
            Self::State(_) => Code::RuntimeState,
            Self::ThreadAlreadyRunning { .. } => Code::RuntimeThreadAlreadyRunning,
            Self::AgentNotFound { .. } => Code::RuntimeAgentNotFound,
            Self::InputTooLarge { .. } => Code::StorageValidation,
            Self::ResolveFailed { .. } => Code::RuntimeResolveFailed,
        }
    }
}

impl From<ResolveError> for RuntimeError {
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::AgentNotFound(agent_id) => RuntimeError::AgentNotFound { agent_id },
            ResolveError::EnvBuild(error) => RuntimeError::State(error),
            error => RuntimeError::ResolveFailed { message: format!("{error} ({})", error.code()) },
        }
    }
}
