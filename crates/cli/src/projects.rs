//! The `runyard.toml` of workspaces, as far as it counts: until a person trusts it, it only narrows.
//!
//! It is looked at when the hub starts and whenever a run is made. What is narrowed are the agent profiles and the rules; an
//! agent or a backend that only a project knows is none that a run can choose.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use runyard_domain::gate::{Effect, Rule, RuleKind, RuleText};
use runyard_domain::run::Who;
use runyard_domain::{Actor, AgentProfile, Preparation, Workspace};
use runyard_edge::AllowList;
use runyard_engine::{AuditFact, EngineError, Installation, InstallationError, Projects, TrustGiven};

use crate::configuration::{Configuration, ConfigurationProblems, Origin};
use crate::trust::Trusted;

/// The configurations of the workspaces of this edge.
pub(crate) struct WorkspaceProjects {
    configuration: Configuration,
    workspaces: AllowList,
    installation: Installation,
    /// What was found, by the label of the workspace.
    found: Mutex<BTreeMap<String, Found>>,
}

/// What the configuration of one workspace says.
#[derive(Default)]
struct Found {
    rules: Vec<Rule>,
    preparation: Preparation,
}

impl WorkspaceProjects {
    pub(crate) fn new(
        configuration: &Configuration,
        workspaces: &AllowList,
        installation: &Installation,
    ) -> Self {
        WorkspaceProjects {
            configuration: configuration.clone(),
            workspaces: workspaces.clone(),
            installation: installation.clone(),
            found: Mutex::default(),
        }
    }

    /// Looks at these before anything runs: what is gone on with counts as much as what is new.
    pub(crate) async fn look_at(&self, workspaces: Vec<Workspace>) {
        for workspace in workspaces {
            if let Err(error) = self.look(&workspace).await {
                tracing::info!(workspace = workspace.label, %error, "everything is asked about there");
            }
        }
    }

    async fn look(&self, workspace: &Workspace) -> Result<Configuration, EngineError> {
        let read = self.read(workspace).await;
        let found = match &read {
            Ok(configuration) => Found {
                rules: rules_for(configuration, &workspace.label),
                preparation: configuration.preparation().clone(),
            },
            // What it forbids is not known, so a person decides.
            Err(_) => Found {
                rules: bound(Effect::Ask, &workspace.label).into_iter().collect(),
                preparation: Preparation::default(),
            },
        };
        self.found.lock().unwrap_or_else(PoisonError::into_inner).insert(workspace.label.clone(), found);
        read
    }

    async fn read(&self, workspace: &Workspace) -> Result<Configuration, EngineError> {
        let root = self.workspaces.root(workspace.id).await?;
        let configuration = self.configuration.clone();
        let read = tokio::task::spawn_blocking(move || configuration.in_workspace(&root)).await;
        let invalid = |problems: ConfigurationProblems| EngineError::Invalid {
            path: "workspace",
            message: format!("Its runyard.toml is not valid: {problems}."),
        };
        match read {
            Ok(read) => read.map_err(invalid),
            Err(_) => Err(EngineError::Invalid {
                path: "workspace",
                message: "Its runyard.toml could not be looked at.".to_owned(),
            }),
        }
    }
}

#[async_trait]
impl Projects for WorkspaceProjects {
    async fn agent(&self, workspace: &Workspace, agent: &AgentProfile) -> Result<AgentProfile, EngineError> {
        let configuration = self.look(workspace).await?;
        for record in configuration.trusted() {
            audit(&self.installation, record).await?;
        }
        Ok(configuration.agents().get(&agent.id).unwrap_or(agent).clone())
    }

    fn rules(&self) -> Vec<Rule> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.values().flat_map(|found| &found.rules).cloned().collect()
    }

    fn preparation(&self, workspace: &Workspace) -> Preparation {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.get(&workspace.label).map(|found| found.preparation.clone()).unwrap_or_default()
    }
}

/// The rules that only the project sets, for its own workspace.
fn rules_for(configuration: &Configuration, label: &str) -> Vec<Rule> {
    let of_project =
        configuration.sourced().0.iter().filter(|rule| matches!(rule.origin, Origin::Project(_)));
    let bound = of_project.filter_map(|rule| {
        let text = rule.value.text();
        let own = text.workspace.as_deref().is_none_or(|workspace| workspace == label);
        let text = RuleText { workspace: Some(label.to_owned()), ..text.clone() };
        own.then(|| Rule::try_from(text).ok()).flatten()
    });
    bound.collect()
}

/// A rule about everything in one workspace.
fn bound(effect: Effect, label: &str) -> Option<Rule> {
    let text = RuleText { workspace: Some(label.to_owned()), ..RuleText::new(effect, RuleKind::Any, None) };
    Rule::try_from(text).ok()
}

/// Keeps in the audit that a person trusts a file, once.
pub(crate) async fn audit(installation: &Installation, record: &Trusted) -> Result<(), InstallationError> {
    let given = TrustGiven { path: record.path.display().to_string(), digest: record.digest.to_string() };
    let by = Who::from(&Actor::owner(&record.by));
    installation.record_once(record.append_id(), &by, AuditFact::Trust(given)).await
}
