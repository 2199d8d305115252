//! Policies: a preset and rules. Which rule wins is the judge's matter.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::judge::Subject;
use super::rule::{Rule, Scope};
use crate::RuleId;

/// How much of the digest of a rule's name stands for it.
const MARK_BYTES: usize = 16;

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

/// The preset of an agent, where that is another than the policy's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentPreset {
    /// The agent profile.
    pub agent: String,
    /// The label of the only workspace where this counts, whatever counts elsewhere.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workspace: Option<String>,
    /// Its preset.
    pub preset: Preset,
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
    /// The agents that have another.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub presets: Vec<AgentPreset>,
    /// The base, from configuration files.
    #[serde(default, alias = "rule")]
    pub rules: Vec<Rule>,
    /// What people added.
    #[serde(default)]
    pub stored: Vec<Rule>,
}

impl Policy {
    /// The preset of an agent in a workspace: the policy's own, or a stricter one of the agent's.
    pub fn preset_of(&self, agent: &str, workspace: &str) -> Preset {
        let of = |place: Option<&str>| {
            let mut own = self.presets.iter();
            own.find(|own| own.agent == agent && own.workspace.as_deref() == place).map(|own| own.preset)
        };
        match (self.preset, of(Some(workspace)).or_else(|| of(None))) {
            (Preset::Default, Some(own)) => own,
            (preset, _) => preset,
        }
    }

    /// The rules that speak for this subject, the base first.
    pub(super) fn in_force<'a>(&'a self, subject: &'a Subject<'_>) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().chain(&self.stored).filter(|rule| rule.is_in_force(subject))
    }

    /// Takes away the rules that are good for one time and whose name is said to be used up.
    pub fn take_away(&mut self, is_used_up: impl Fn(&str) -> bool) {
        let stays = |rule: &Rule| rule.scope() != Scope::Once || !is_used_up(rule.id());
        self.rules.retain(stays);
        self.stored.retain(stays);
    }

    /// Takes away those that a run used up, by their marks.
    pub fn take_away_marked(&mut self, marks: &[String]) {
        if !marks.is_empty() {
            self.take_away(|name| marks.contains(&mark(name)));
        }
    }

    /// Whether the rule of this name is good for one time in each run: one of the base, which every run begins with. What people
    /// added is good for one time in all.
    pub fn is_once_in_each_run(&self, id: &str) -> bool {
        self.rules.iter().any(|rule| rule.scope() == Scope::Once && rule.id() == id)
    }
}

/// What a run's log says of a rule that it used up: the id of one that people added, which is gone then for everybody, and of any
/// other a digest of its name. A name may be a pattern that holds what is never stored.
pub fn mark(rule: &str) -> String {
    if rule.parse::<RuleId>().is_ok() {
        return rule.to_owned();
    }
    let digest = Sha256::digest(rule.as_bytes());
    let hex: String = digest.iter().take(MARK_BYTES).map(|byte| format!("{byte:02x}")).collect();
    format!("file_{hex}")
}

#[cfg(test)]
mod tests {
    use super::super::rule::{Effect, RuleKind, RuleText};
    use super::*;

    fn rule(id: &str, scope: Scope) -> Rule {
        let text = RuleText::new(Effect::Allow, RuleKind::Shell, Some("make"));
        Rule::try_from(RuleText { id: Some(id.to_owned()), scope, ..text }).unwrap()
    }

    fn left(policy: &Policy) -> Vec<&str> {
        policy.rules.iter().chain(&policy.stored).map(Rule::id).collect()
    }

    #[test]
    fn c11_a_run_lacks_the_rules_for_one_time_that_it_used_up_and_no_others() {
        let rules = vec![rule("a", Scope::Once), rule("b", Scope::Once), rule("c", Scope::Always)];
        let mut policy = Policy { rules, stored: vec![rule("d", Scope::Once)], ..Policy::default() };
        policy.take_away_marked(&[]);
        assert_eq!(left(&policy), ["a", "b", "c", "d"]);
        policy.take_away_marked(&[mark("a"), mark("c")]);
        assert_eq!(left(&policy), ["b", "c", "d"]);
    }

    #[test]
    fn c11_once_in_each_run_is_what_a_rule_of_the_base_says_of_scope_once() {
        let rules = vec![rule("a", Scope::Once), rule("c", Scope::Always)];
        let policy = Policy { rules, stored: vec![rule("d", Scope::Once)], ..Policy::default() };
        let once: Vec<&str> =
            ["a", "b", "c", "d"].into_iter().filter(|id| policy.is_once_in_each_run(id)).collect();
        assert_eq!(once, ["a"]);
    }

    #[test]
    fn a_mark_is_the_id_of_what_people_added_and_a_digest_of_any_other_name() {
        let stored = RuleId::from_parts(1, &[1; 10]).to_string();
        assert_eq!(mark(&stored), stored);
        assert_eq!(mark("abc"), "file_ba7816bf8f01cfea414140de5dae2223");
    }
}
