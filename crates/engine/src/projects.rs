//! What a workspace's own configuration changes for its runs.
//!
//! How such a configuration is read, and how far it counts, is not known here.

use async_trait::async_trait;
use runyard_domain::gate::Rule;
use runyard_domain::{AgentProfile, Workspace};

use crate::{Engine, EngineError};

/// The configurations that lie in workspaces.
#[async_trait]
pub trait Projects: Send + Sync {
    /// Looks at the configuration of a workspace as it is now, and gives the agent profile as it counts there.
    async fn agent(&self, workspace: &Workspace, agent: &AgentProfile) -> Result<AgentProfile, EngineError>;

    /// The rules of all configurations that were looked at, each bound to its own workspace.
    fn rules(&self) -> Vec<Rule>;
}

impl Engine {
    /// The agent profile of this id as it counts in a workspace. Edges are told when that changes the policy.
    pub async fn agent_in(&self, workspace: &Workspace, id: &str) -> Result<AgentProfile, EngineError> {
        let agent = self.catalog().agent(id)?;
        let Some(projects) = self.projects() else { return Ok(agent.clone()) };
        let before = projects.rules();
        let agent = projects.agent(workspace, agent).await?;
        if projects.rules() != before {
            self.policy_changed().await;
        }
        Ok(agent)
    }
}
