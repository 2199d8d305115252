//! The policy that counts, and who is told when it changes.

use std::sync::{Arc, PoisonError, RwLock};

use runyard_backend::link::ToEdge;
use runyard_domain::gate::{AgentPreset, OwnRuns, Policy, Preset, Rule};
use tokio::sync::watch;

use crate::Engine;
use crate::edges::EdgeHandle;
use crate::installation::Installation;

/// What the hub's own configuration says of the policy. What projects say and what people store comes on top.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BasePolicy {
    /// The gate's preset where an agent profile has none of its own.
    pub preset: Preset,
    /// The agent profiles that have a stricter one.
    pub presets: Vec<AgentPreset>,
    /// Whether people approve what their own runs ask.
    pub own_runs: OwnRuns,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// The base as it is now, and the turn of whoever tells the edges.
pub(crate) struct PolicyNow {
    base: RwLock<Arc<BasePolicy>>,
    /// Since the hub began, so that it also knows of changes that came before anybody followed it.
    stored: watch::Receiver<u64>,
    telling: tokio::sync::Mutex<()>,
}

impl PolicyNow {
    pub(crate) fn new(base: BasePolicy, installation: &Installation) -> Self {
        PolicyNow {
            base: RwLock::new(Arc::new(base)),
            stored: installation.changed(),
            telling: tokio::sync::Mutex::default(),
        }
    }
}

impl Engine {
    /// What the hub's own configuration says of the policy.
    pub fn base_policy(&self) -> Arc<BasePolicy> {
        Arc::clone(&self.policy_now().base.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets another base count from now on, for the runs that are running too.
    pub async fn rebase(&self, base: BasePolicy) {
        *self.policy_now().base.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(base);
        self.policy_changed().await;
    }

    /// The preset of an agent profile in the workspace of this label, or where no project says anything.
    pub fn preset_of(&self, agent: &str, workspace: Option<&str>) -> Preset {
        let base = self.base_policy();
        let of_projects = self.projects().filter(|_| workspace.is_some()).map(|projects| projects.presets());
        let presets = base.presets.iter().cloned().chain(of_projects.into_iter().flatten()).collect();
        Policy { preset: base.preset, presets, ..Policy::default() }
            .preset_of(agent, workspace.unwrap_or_default())
    }

    /// The policy that counts now.
    pub fn policy(&self) -> Policy {
        let BasePolicy { preset, mut presets, mut rules, .. } = self.base_policy().as_ref().clone();
        if let Some(projects) = self.projects() {
            rules.extend(projects.rules());
            presets.extend(projects.presets());
        }
        let version = self.installation().registry().policy_version();
        Policy { version, preset, presets, rules, stored: self.installation().stored_rules() }
    }

    /// Tells every edge the policy that counts now.
    pub async fn policy_changed(&self) {
        // Read within the turn: whoever is last knows of all changes that anybody came to tell.
        let _turn = self.policy_now().telling.lock().await;
        let policy = self.policy();
        for edge in self.edges_known().handles() {
            edge.send(ToEdge::Policy(Box::new(policy.clone()))).await;
        }
    }

    /// Tells one edge the policy, before it is known under `arrive` to those who tell of changes.
    pub(crate) async fn tell_policy_first(&self, edge: &EdgeHandle, arrive: impl FnOnce()) {
        let _turn = self.policy_now().telling.lock().await;
        edge.send(ToEdge::Policy(Box::new(self.policy()))).await;
        arrive();
    }

    /// Tells the edges when the policy changes, also by another hub.
    pub(crate) async fn follow_policy(&self) {
        let mut stored = self.policy_now().stored.clone();
        while stored.changed().await.is_ok() {
            self.policy_changed().await;
        }
    }
}
