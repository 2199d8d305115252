//! Policies: a preset and rules. Which rule wins is the judge's matter.

use serde::{Deserialize, Serialize};

use super::judge::Subject;
use super::rule::{Rule, Scope};

/// What is done where no rule speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// A write in the run's own checkout is recorded and not asked about.
    #[default]
    Default,
    /// Every write is asked about.
    Strict,
}

impl Preset {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Preset::Default => "default",
            Preset::Strict => "strict",
        }
    }
}

/// Whether a person may approve what a run asks that they started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnRuns {
    /// Yes.
    #[default]
    Approve,
    /// No: somebody else does. They may still reject it.
    Refuse,
}

/// Everything that decides requests, as one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// Grows with every change.
    #[serde(default)]
    pub version: u64,
    /// What is done where no rule speaks.
    #[serde(default)]
    pub preset: Preset,
    /// The base, from configuration files.
    #[serde(default, alias = "rule")]
    pub rules: Vec<Rule>,
    /// What people added.
    #[serde(default)]
    pub stored: Vec<Rule>,
}

impl Policy {
    /// The rules that speak for this subject, the base first.
    pub(super) fn in_force<'a>(&'a self, subject: &'a Subject<'_>) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().chain(&self.stored).filter(|rule| rule.is_in_force(subject))
    }

    /// The policy without the rules of this name that are good for one time.
    pub(super) fn without_once(&self, id: &str) -> Self {
        let mut policy = self.clone();
        let stays = |rule: &Rule| rule.scope() != Scope::Once || rule.id() != id;
        policy.rules.retain(stays);
        policy.stored.retain(stays);
        policy
    }
}
