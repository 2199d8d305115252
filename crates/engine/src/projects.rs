//! What a workspace's own configuration changes for its runs.
//!
//! How such a configuration is read, and how far it counts, is not known here.

use async_trait::async_trait;
use runyard_domain::gate::{AgentPreset, Rule};
use runyard_domain::run::{Created, Failure, Run};
use runyard_domain::{AgentProfile, Code, Preparation, Workspace};

use crate::{Engine, EngineError};

/// The configurations that lie in workspaces.
#[async_trait]
pub trait Projects: Send + Sync {
    /// Looks at the configuration of a workspace as it is now, and gives the agent profile as it counts there.
    async fn agent(&self, workspace: &Workspace, agent: &AgentProfile) -> Result<AgentProfile, EngineError>;

    /// The rules of all configurations that were looked at, each bound to its own workspace.
    fn rules(&self) -> Vec<Rule>;

    /// The presets of the agents that have another in a workspace than elsewhere, of all configurations that were looked at.
    fn presets(&self) -> Vec<AgentPreset>;

    /// What prepares the checkouts of a workspace, as its configuration said when it was last looked at.
    fn preparation(&self, workspace: &Workspace) -> Preparation;

    /// How many runs of an agent profile may be active at a time in the workspace of this label, as its configuration said
    /// when it was last looked at; nothing where it says nothing.
    fn runs_max(&self, workspace: &str, agent: &str) -> Option<usize>;
}

impl Engine {
    /// The agent profile of this id as it counts in a workspace. Edges are told when that changes the policy.
    pub async fn agent_in(&self, workspace: &Workspace, id: &str) -> Result<AgentProfile, EngineError> {
        let mut agent = self.catalog().agent(id)?.clone();
        if let Some(projects) = self.projects() {
            let before = (projects.rules(), projects.presets());
            agent = projects.agent(workspace, &agent).await?;
            if (projects.rules(), projects.presets()) != before {
                self.policy_changed().await;
            }
        }
        // The configuration's policy may have changed since the hub began.
        agent.preset = self.preset_of(id, Some(&workspace.label));
        Ok(agent)
    }

    /// What prepares the checkout of a run, as it is recorded; nothing where it has none, or carries another run's changes.
    pub(crate) fn planned_preparation(
        &self,
        workspace: &Workspace,
        created: &Created,
    ) -> Result<Preparation, EngineError> {
        let (_, info) = self.catalog().backend(&created.backend_profile)?;
        match self.projects().filter(|_| info.checkout && created.carries.is_none()) {
            Some(projects) => self.recorded(&projects.preparation(workspace)),
            None => Ok(Preparation::default()),
        }
    }

    /// What prepares the checkout of a run that has not started, looked at anew: what is executed never comes from the record. It
    /// must be what was planned.
    pub(crate) async fn preparation(&self, run: &Run) -> Result<Result<Preparation, Failure>, EngineError> {
        let planned = run.planned.as_ref().map(|plan| &plan.preparation).filter(|_| run.started.is_none());
        let (Some(planned), Some(projects)) = (planned.filter(|plan| !plan.is_empty()), self.projects())
        else {
            return Ok(Ok(Preparation::default()));
        };
        let workspace = match self.workspaces().resolve(&run.created.workspace.id.to_string()).await {
            Ok(workspace) => workspace,
            Err(error) => {
                let message = format!("The workspace {} is not there any more.", run.created.workspace.label);
                return Ok(Err(Failure::new(error.code(), message)));
            }
        };
        // A configuration that is not valid any more prepares nothing, which is not what was planned.
        let looked = self.agent_in(&workspace, &run.created.agent_id).await;
        let preparation = looked.map(|_| projects.preparation(&workspace)).unwrap_or_default();
        if self.recorded(&preparation)? != *planned {
            let message =
                "What prepares the checkout, or whether it counts, changed after the run was planned.";
            return Ok(Err(Failure::new(Code::Conflict, message)));
        }
        Ok(Ok(preparation))
    }

    /// It, without secrets.
    fn recorded(&self, preparation: &Preparation) -> Result<Preparation, EngineError> {
        let safe = self.recorder().redactor.json(serde_json::to_value(preparation)?);
        Ok(serde_json::from_value(safe.into_inner())?)
    }
}
