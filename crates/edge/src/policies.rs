//! The policy that counts at this edge, without the rules that were good for one time and are used up.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use runyard_domain::gate::{Policy, Rule, Scope};

/// The policy of an edge. A new one counts for the next request of every run.
#[derive(Default)]
pub(crate) struct Policies(Mutex<Held>);

#[derive(Default)]
struct Held {
    policy: Option<Arc<Policy>>,
    /// Rules that the hub has not taken away yet.
    spent: BTreeSet<String>,
}

impl Policies {
    /// The policy, once the hub has sent one.
    pub(crate) fn current(&self) -> Option<Arc<Policy>> {
        self.with(|held| held.policy.clone())
    }

    /// What counts from now on.
    pub(crate) fn replace(&self, mut policy: Policy) {
        self.with(|held| {
            let once = |rule: &Rule| rule.scope() == Scope::Once;
            let all: BTreeSet<&str> = policy.stored.iter().filter(|rule| once(rule)).map(Rule::id).collect();
            // What the hub took away may come again as a new one of the same name.
            held.spent.retain(|id| all.contains(id.as_str()));
            policy.take_away(|rule| held.spent.contains(rule));
            held.policy = Some(Arc::new(policy));
        });
    }

    /// Uses a rule up. False when somebody else was first.
    pub(crate) fn spend(&self, rule: &str) -> bool {
        self.with(|held| {
            let first = held.spent.insert(rule.to_owned());
            if first && let Some(policy) = &mut held.policy {
                Arc::make_mut(policy).take_away(|rule| held.spent.contains(rule));
            }
            first
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut Held) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use runyard_domain::gate::{Effect, RuleKind, RuleText};

    use super::*;

    fn policy(version: u64, rules: &[(&str, Scope)]) -> Policy {
        let rule = |(id, scope): &(&str, Scope)| {
            let text = RuleText::new(Effect::Allow, RuleKind::Shell, Some("make"));
            Rule::try_from(RuleText { id: Some((*id).to_owned()), scope: *scope, ..text }).unwrap()
        };
        Policy { version, stored: rules.iter().map(rule).collect(), ..Policy::default() }
    }

    #[track_caller]
    fn check(policies: &Policies, expected: &[&str]) {
        let policy = policies.current().unwrap();
        assert_eq!(policy.stored.iter().map(Rule::id).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn c11_a_rule_for_one_time_counts_once_also_before_the_hub_has_taken_it_away() {
        let policies = Policies::default();
        assert!(policies.current().is_none());
        let (once, always) = (("once", Scope::Once), ("always", Scope::Always));
        policies.replace(policy(1, &[once, always]));
        assert!(policies.spend("once"));
        assert!(!policies.spend("once"), "only one request uses it");
        check(&policies, &["always"]);
        policies.replace(policy(2, &[once, always]));
        check(&policies, &["always"]);
        policies.replace(policy(3, &[always]));
        policies.replace(policy(4, &[once]));
        check(&policies, &["once"]);
    }
}
