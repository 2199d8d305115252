//! What it means that one configuration allows no more than another.

use runyard_domain::gate::{Effect, Rule, RuleKind, Scope};
use serde_json::Value;

use super::layers::Layers;
use super::origin::Sourced;
use super::setting::Setting;

/// Whether a rule makes no request milder, whatever else holds.
///
/// An ask rule about a path outside the workspace would: what is denied there by default would be asked about. A rule that
/// is used up says something about one request only, and about others by being gone.
pub(crate) fn can_only_narrow(rule: &Rule) -> bool {
    let is_about_paths = matches!(rule.kind(), RuleKind::Read | RuleKind::Write | RuleKind::Patch);
    let is_outside = rule.text().matches.as_deref().is_some_and(|pattern| pattern.starts_with('/'));
    let is_severe = match rule.effect() {
        Effect::Allow => false,
        Effect::Ask => !(is_about_paths && is_outside),
        Effect::Deny => true,
    };
    is_severe && rule.scope() == Scope::Always
}

/// Whether `narrow` allows nothing that `base` does not: the same agents, backends, actions and hub, no setting beyond, every
/// rule still there, and new ones only where they cannot widen.
pub(crate) fn is_within(narrow: &Layers, base: &Layers) -> bool {
    let (values, base_values) = (narrow.completed(), base.completed());
    let kept = base_values.iter().all(|(key, base)| {
        let value = values.get(key);
        value.is_some_and(|value| setting_is_within(key, value, base))
    });
    // The one thing that may be new is a limit where there was none.
    let no_more = values.keys().all(|key| {
        let is_limit = Setting::of(key).is_some_and(Setting::is_limit);
        base_values.contains_key(key) || is_limit
    });
    let rules = narrow.rules.strip_prefix(base.rules.as_slice());
    let rules = rules.is_some_and(|new| new.iter().all(|rule| can_only_narrow(&rule.value)));
    let names = |layers: &Layers| -> Vec<String> {
        layers.actions.iter().map(|action| action.value.name().to_owned()).collect()
    };
    kept && no_more && rules && names(narrow) == names(base)
}

fn setting_is_within(key: &str, value: &Sourced<Value>, base: &Sourced<Value>) -> bool {
    Setting::of(key).is_some_and(|setting| setting.is_within(&value.value, &base.value))
}
