//! Why there is no runtime.

use std::io;
use std::path::PathBuf;

use runyard_domain::Code;

use crate::resolve::ResolveError;
use crate::spec::SpecError;
use crate::state::StateError;

/// Why a runtime cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The keys, hooks and tools of an agent do not go together.
    #[error("an agent cannot be put together: {0}")]
    State(#[source] StateError),
    /// Two agents have this id.
    #[error("there are two agents \"{0}\"")]
    AgentRegistryConflict(String),
    /// Two tools have this id.
    #[error("there are two tools \"{0}\"")]
    ToolRegistryConflict(String),
    /// Two models have this id.
    #[error("there are two models \"{0}\"")]
    ModelRegistryConflict(String),
    /// Two providers have this id.
    #[error("there are two providers \"{0}\"")]
    ProviderRegistryConflict(String),
    /// Two plugins have this id.
    #[error("there are two plugins \"{0}\"")]
    PluginRegistryConflict(String),
    /// Something that was given cannot be meant so.
    #[error("{0}")]
    ValidationFailed(String),
    /// Agents that were to be found are not.
    #[error(transparent)]
    DiscoveryFailed(#[from] DiscoveryError),
}

/// Why agents that were to be found are not.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// A folder or a file in it cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file is no agent's definition.
    #[error("{} is no agent's definition: {message}", path.display())]
    InvalidFile {
        /// Which.
        path: PathBuf,
        /// What is wrong, and where.
        message: String,
    },
    /// A card did not come.
    #[error("the agent card at {url} cannot be read: {message}")]
    CardUnreachable {
        /// Where it should be.
        url: String,
        /// Why it did not come.
        message: String,
    },
    /// What came is no agent's card.
    #[error("what is at {url} is no agent card: {message}")]
    InvalidCard {
        /// Where it is.
        url: String,
        /// What is wrong.
        message: String,
    },
}

impl BuildError {
    /// Its row in the error table.
    pub const fn code(&self) -> Code {
        match self {
            Self::State(_) => Code::BuildState,
            Self::AgentRegistryConflict(_) => Code::BuildAgentRegistryConflict,
            Self::ToolRegistryConflict(_) => Code::BuildToolRegistryConflict,
            Self::ModelRegistryConflict(_) => Code::BuildModelRegistryConflict,
            Self::ProviderRegistryConflict(_) => Code::BuildProviderRegistryConflict,
            Self::PluginRegistryConflict(_) => Code::BuildPluginRegistryConflict,
            Self::ValidationFailed(_) => Code::BuildValidationFailed,
            Self::DiscoveryFailed(_) => Code::BuildDiscoveryFailed,
        }
    }

    /// An agent that does not resolve.
    pub(super) fn unresolved(agent_id: &str, error: ResolveError) -> Self {
        match error {
            ResolveError::EnvBuild(error) => BuildError::State(error),
            error => BuildError::ValidationFailed(format!("agent \"{agent_id}\": {error}")),
        }
    }
}

impl From<SpecError> for BuildError {
    fn from(error: SpecError) -> Self {
        BuildError::ValidationFailed(error.to_string())
    }
}
