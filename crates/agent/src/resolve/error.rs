//! Why an agent cannot be resolved.

use runyard_domain::Code;

use crate::state::StateError;

/// Why an agent cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// There is no such agent.
    #[error("there is no agent \"{0}\"")]
    AgentNotFound(String),
    /// There is no such model.
    #[error("there is no model \"{0}\"")]
    ModelNotFound(String),
    /// There is no such provider.
    #[error("there is no provider \"{0}\"")]
    ProviderNotFound(String),
    /// There is no such plugin.
    #[error("there is no plugin \"{0}\"")]
    PluginNotFound(String),
    /// What the agent tells a plugin is not as the plugin wants it.
    #[error("the section \"{key}\" of plugin \"{plugin}\" is wrong: {message}")]
    InvalidPluginConfig {
        /// The plugin.
        plugin: String,
        /// The section.
        key: String,
        /// What is wrong, and where.
        message: String,
    },
    /// Nothing reaches the agent.
    #[error("agent \"{agent_id}\" is behind the backend \"{backend}\", which is not registered")]
    UnsupportedRemoteBackend {
        /// The agent.
        agent_id: String,
        /// What it is reached by.
        backend: String,
    },
    /// The agent cannot be reached as its endpoint says.
    #[error("the endpoint of agent \"{agent_id}\" is none for the backend \"{backend}\": {message}")]
    InvalidRemoteEndpointConfig {
        /// The agent.
        agent_id: String,
        /// What it is reached by.
        backend: String,
        /// What is wrong.
        message: String,
    },
    /// The agent runs elsewhere: there is nothing of it here to be run directly.
    #[error("agent \"{0}\" runs elsewhere and cannot be resolved to run here")]
    RemoteAgentNotDirectlyRunnable(String),
    /// Two tools of one agent have the same id.
    #[error("the tool \"{tool_id}\" comes from {source_a} and from {source_b}")]
    ToolIdConflict {
        /// The id.
        tool_id: String,
        /// Who had it first: a plugin, or the application.
        source_a: String,
        /// Who brought the other one.
        source_b: String,
    },
    /// Keys, hooks and tools do not go together.
    #[error("the agent cannot be put together: {0}")]
    EnvBuild(#[from] StateError),
}

impl ResolveError {
    /// Its row in the error table.
    pub const fn code(&self) -> Code {
        match self {
            Self::AgentNotFound(_) => Code::ResolveAgentNotFound,
            Self::ModelNotFound(_) => Code::ResolveModelNotFound,
            Self::ProviderNotFound(_) => Code::ResolveProviderNotFound,
            Self::PluginNotFound(_) => Code::ResolvePluginNotFound,
            Self::InvalidPluginConfig { .. } => Code::ResolveInvalidPluginConfig,
            Self::UnsupportedRemoteBackend { .. } => Code::ResolveUnsupportedRemoteBackend,
            Self::InvalidRemoteEndpointConfig { .. } => Code::ResolveInvalidRemoteEndpointConfig,
            Self::RemoteAgentNotDirectlyRunnable(_) => Code::ResolveRemoteAgentNotDirectlyRunnable,
            Self::ToolIdConflict { .. } => Code::ResolveToolIdConflict,
            Self::EnvBuild(_) => Code::ResolveEnvBuild,
        }
    }
}
