//! The `runyard.toml` of workspaces, as far as it counts: until a person trusts it, it only narrows. And what the data
//! directory's says of the policy.
//!
//! A project's is looked at when the hub starts, whenever a run is made, and again when a file changes while the hub runs, so that
//! what it says reaches the runs that are at work. What is narrowed are the agent profiles and the rules; an agent or a backend that
//! only a project knows is none that a run can choose. Of the data directory's file the policy alone is followed: agents, backends
//! and the hub stay as they were when it started.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use runyard_domain::gate::{AgentPreset, Effect, Preset, Rule, RuleKind, RuleText};
use runyard_domain::run::Who;
use runyard_domain::{Actor, AgentProfile, Preparation, Workspace};
use runyard_edge::AllowList;
use runyard_engine::{
    AuditFact, Engine, EngineError, Installation, InstallationError, PoliciesSaid, PolicyRead, Projects,
    TrustGiven,
};

use crate::configuration::{
    Configuration, ConfigurationProblems, Environment, FILE_NAME, Flags, Origin, Problem, files_above,
};
use crate::trust::{TrustRecords, Trusted};
use crate::wiring;

/// How often the files are looked at while a hub runs.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The configurations of the workspaces of this edge.
pub(crate) struct WorkspaceProjects {
    configuration: Configuration,
    workspaces: AllowList,
    installation: Installation,
    /// What was found, by the label of the workspace.
    found: Mutex<BTreeMap<String, Found>>,
    /// What the audit says of it, once that was read.
    said: tokio::sync::Mutex<Option<PoliciesSaid>>,
}

/// What the configuration of one workspace says.
#[derive(Default)]
struct Found {
    policy: PolicyRead,
    /// Whether the audit has this policy.
    in_audit: bool,
    preparation: Preparation,
    /// How many runs of an agent profile may be active at a time, by its id.
    runs_max: BTreeMap<String, usize>,
}

/// How files stood when they were looked at: when each changed, by its path.
#[derive(Clone, Default, PartialEq)]
struct Stamp(Vec<(PathBuf, i64, i64, u64)>);

/// The data directory's file: how it stood at the last look, and when it was last taken over.
#[derive(Default)]
struct OwnFile {
    seen: Stamp,
    taken: Option<Stamp>,
}

impl Stamp {
    fn of(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let stamp = |path: PathBuf| {
            let found = path.symlink_metadata().ok()?;
            Some((path, found.ctime(), found.ctime_nsec(), found.ino()))
        };
        Stamp(files.into_iter().filter_map(stamp).collect())
    }
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
            said: tokio::sync::Mutex::default(),
        }
    }

    /// Looks at these before anything runs: what is gone on with counts as much as what is new.
    pub(crate) async fn look_at(&self, workspaces: Vec<Workspace>) {
        for workspace in workspaces {
            if let Err(error) = self.look(&workspace).await {
                tracing::info!(workspace = workspace.label, %error, "its configuration does not count, or is not in the audit");
            }
        }
    }

    async fn look(&self, workspace: &Workspace) -> Result<Configuration, EngineError> {
        // One look at a time: what an earlier one found must not take the place of what a later one did.
        let mut said = self.said.lock().await;
        let read = self.read(workspace).await;
        let mut found = match &read {
            Ok(configuration) => Found {
                in_audit: false,
                policy: self.policy_of(configuration, &workspace.label),
                preparation: configuration.preparation().clone(),
                runs_max: configuration
                    .agents()
                    .iter()
                    .map(|(id, agent)| (id.clone(), agent.runs_max))
                    .collect(),
            },
            // What it forbids is not known, so a person decides.
            Err(_) => Found {
                policy: PolicyRead {
                    workspace: Some(workspace.label.clone()),
                    rules: bound(Effect::Ask, &workspace.label).into_iter().collect(),
                    ..PolicyRead::default()
                },
                ..Found::default()
            },
        };
        let policy = found.policy.clone();
        let is_said = {
            let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            let before = all.get(&workspace.label);
            found.in_audit = before.is_some_and(|before| before.in_audit && before.policy == policy);
            let is_said = found.in_audit;
            all.insert(workspace.label.clone(), found);
            is_said
        };
        if !is_said {
            self.audit_policy(&mut said, policy).await?;
            let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = all.get_mut(&workspace.label) {
                found.in_audit = true;
            }
        }
        read
    }

    /// What the configuration of a workspace says of the policy there, beyond the hub's own.
    fn policy_of(&self, configuration: &Configuration, label: &str) -> PolicyRead {
        let own = self.configuration.agents();
        let agents = configuration.agents().iter().map(|(id, agent)| (id.clone(), agent.preset));
        let preset = Some(configuration.preset()).filter(|preset| *preset != self.configuration.preset());
        PolicyRead {
            workspace: Some(label.to_owned()),
            rules: rules_for(configuration, label),
            preset,
            agents: agents
                .filter(|(id, preset)| own.get(id).is_none_or(|own| own.preset != *preset))
                .collect(),
            own_runs: None,
        }
    }

    /// Keeps in the audit what the hub's own file says of the policy when the hub starts.
    pub(crate) async fn audit_own(&self) -> Result<(), InstallationError> {
        self.audit_base(&self.configuration).await
    }

    async fn audit_base(&self, configuration: &Configuration) -> Result<(), InstallationError> {
        let own = configuration.sourced().0.iter();
        let own = own.filter(|rule| matches!(rule.origin, Origin::Data(_) | Origin::Environment(_)));
        let preset = configuration.preset();
        let agents = configuration.agents().iter().map(|(id, agent)| (id.clone(), agent.preset));
        let policy = PolicyRead {
            workspace: None,
            rules: own.map(|rule| rule.value.clone()).collect(),
            preset: Some(preset),
            agents: agents.filter(|(_, own)| *own != preset).collect(),
            own_runs: Some(configuration.hub().own_runs),
        };
        self.audit_policy(&mut *self.said.lock().await, policy).await
    }

    /// Keeps in the audit what counts from now on, also where the files changed while no hub ran.
    async fn audit_policy(
        &self,
        known: &mut Option<PoliciesSaid>,
        policy: PolicyRead,
    ) -> Result<(), InstallationError> {
        let said = match known.take() {
            Some(said) => said,
            None => self.installation.policies_said().await?,
        };
        self.installation.record_policy(known.insert(said), policy).await
    }

    /// Looks again, for as long as the hub runs, whenever one of the files changed or a person trusts another one.
    pub(crate) async fn watch(self: Arc<Self>, engine: Engine) {
        let (mut seen, mut own) = (Stamp::default(), OwnFile::default());
        loop {
            match self.look_again(&engine, &seen).await {
                Ok(stamp) => seen = stamp,
                Err(error) => tracing::error!(%error, "the projects' configurations cannot be looked at"),
            }
            if let Err(error) = self.follow_own(&engine, &mut own).await {
                tracing::error!(%error, "what the hub's own configuration says of the policy cannot be recorded");
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn look_again(&self, engine: &Engine, seen: &Stamp) -> Result<Stamp, EngineError> {
        let workspaces = engine.workspaces().list().await?;
        let mut roots = Vec::new();
        for workspace in &workspaces {
            // One whose directory is gone says nothing.
            roots.extend(self.workspaces.root(workspace.id).await.ok());
        }
        let data = self.configuration.data().to_owned();
        let look = move || {
            let files = roots.iter().flat_map(|root| files_above(root, &data));
            Stamp::of(files.chain([TrustRecords::file(&data)]))
        };
        let Ok(stamp) = tokio::task::spawn_blocking(look).await else { return Ok(Stamp::default()) };
        if stamp != *seen {
            let before = (self.rules(), self.presets());
            self.look_at(workspaces).await;
            if (self.rules(), self.presets()) != before {
                engine.policy_changed().await;
            }
            if let Err(error) = audit_trust(self.configuration.data(), &self.installation).await {
                tracing::error!(%error, "what is trusted cannot be recorded");
            }
        }
        Ok(stamp)
    }

    /// Lets what the data directory's file says of the policy count, as soon as nobody writes it any more: half of a file says
    /// less than whoever writes it means. One that is not valid changes nothing.
    async fn follow_own(&self, engine: &Engine, own: &mut OwnFile) -> Result<(), InstallationError> {
        let data = self.configuration.data().to_owned();
        let look = move || {
            let stamp = || Stamp::of([data.join(FILE_NAME)]);
            let before = stamp();
            let read = Configuration::load(&data, None, &Environment::of_process(), &Flags::default());
            (stamp() == before).then_some((before, read))
        };
        let Ok(Some((stamp, read))) = tokio::task::spawn_blocking(look).await else { return Ok(()) };
        let settled = own.seen == stamp;
        own.seen = stamp;
        if !settled || own.taken.as_ref() == Some(&own.seen) {
            return Ok(());
        }
        match read {
            Ok(configuration) => {
                let base = wiring::base_policy(&configuration);
                if *engine.base_policy() != base {
                    self.audit_base(&configuration).await?;
                    engine.rebase(base).await;
                }
            }
            Err(problems) => {
                tracing::error!(%problems, "the policy stays as it is: runyard.toml is not valid")
            }
        }
        own.taken = Some(own.seen.clone());
        Ok(())
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
        found.values().flat_map(|found| &found.policy.rules).cloned().collect()
    }

    fn presets(&self) -> Vec<AgentPreset> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |(label, found): (&String, &Found)| {
            let preset = |(agent, preset): (&String, &Preset)| AgentPreset {
                agent: agent.clone(),
                workspace: Some(label.clone()),
                preset: *preset,
            };
            found.policy.agents.iter().map(preset).collect::<Vec<_>>()
        };
        found.iter().flat_map(of).collect()
    }

    fn preparation(&self, workspace: &Workspace) -> Preparation {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.get(&workspace.label).map(|found| found.preparation.clone()).unwrap_or_default()
    }

    fn runs_max(&self, workspace: &str, agent: &str) -> Option<usize> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.get(workspace)?.runs_max.get(agent).copied()
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

/// Keeps in the audit what people trust and trust no longer, each once: `runyard trust` works without a hub.
pub(crate) async fn audit_trust(data: &Path, installation: &Installation) -> Result<(), EngineError> {
    let unreadable = |problem: Problem| EngineError::Invalid { path: "trust", message: problem.to_string() };
    let records = TrustRecords::read(data).map_err(unreadable)?;
    for record in records.replaced().iter().chain(records.all()) {
        audit(installation, record).await?;
    }
    for record in records.revoked() {
        let by = Who::from(&Actor::owner(&record.by));
        let fact = AuditFact::TrustRevoked(given(record));
        installation.record_once(record.append_id("revoked"), &by, fact).await?;
    }
    Ok(())
}

/// Keeps in the audit that a person trusts a file, once.
async fn audit(installation: &Installation, record: &Trusted) -> Result<(), InstallationError> {
    let by = Who::from(&Actor::owner(&record.by));
    installation.record_once(record.append_id("trust"), &by, AuditFact::Trust(given(record))).await
}

fn given(record: &Trusted) -> TrustGiven {
    TrustGiven { path: record.path.display().to_string(), digest: record.digest.to_string() }
}
