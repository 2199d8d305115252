//! Layers put on one another: what counts, where it came from, and what was left out.
//!
//! A layer either counts as a whole or only narrows. What narrowing means for one setting is in the table of settings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use runyard::{Action, command_actions};
use runyard_domain::gate::{Rule, RuleText};
use serde_json::{Value, json};

use super::origin::{Origin, Place, Sourced};
use super::problem::{Fault, Problem};
use super::reading::Content;
use super::setting::{Section, Setting};
use crate::trust::{Standing, Trusted};

/// The backend where neither a caller nor an agent profile names one.
pub(crate) const BACKEND_DEFAULT: &str = "codex";
/// The kind of a backend profile that does not say.
pub(crate) const KIND_DEFAULT: &str = "codex-app-server-stdio";

/// Values by their full key, such as `agent.codex.sandbox`.
pub(crate) type Values = BTreeMap<String, Sourced<Value>>;

/// What the layers so far say.
#[derive(Clone, Default)]
pub(crate) struct Layers {
    /// What was said; what was not is in [`Layers::completed`].
    said: Values,
    pub(crate) rules: Vec<Sourced<Rule>>,
    pub(crate) actions: Vec<Sourced<Action>>,
    pub(crate) ignored: Vec<Ignored>,
    /// The project files that count because a person said so.
    pub(crate) trusted: Vec<Trusted>,
}

/// Something that was said and does not count.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ignored {
    pub(crate) key: String,
    pub(crate) origin: Origin,
    pub(crate) why: Why,
}

/// Why something does not count.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Why {
    /// It would widen, and its file is not trusted.
    NotTrusted(Standing),
    /// It belongs in the data directory.
    DataDirectoryOnly,
    /// No variable of this name means anything.
    Misspelt { meant: String },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NotTrusted(Standing::Changed) => {
                f.write_str("not trusted, it changed since: run `runyard trust`")
            }
            Why::NotTrusted(Standing::WritableByOthers) => {
                f.write_str("not trusted, others can write it: chmod go-w")
            }
            Why::NotTrusted(Standing::Trusted | Standing::Unknown) => {
                f.write_str("not trusted: run `runyard trust`")
            }
            Why::DataDirectoryOnly => f.write_str("counts in the data directory only"),
            Why::Misspelt { meant } => write!(f, "did you mean {meant}?"),
        }
    }
}

impl Layers {
    /// One value on top.
    pub(crate) fn set(&mut self, key: String, value: Sourced<Value>) {
        self.said.insert(key, value);
    }

    /// A layer that counts as a whole. `base` is the folder that the commands in it start from.
    pub(crate) fn add(
        &mut self,
        content: Content,
        base: &Path,
        origin: impl Fn(Place) -> Origin,
    ) -> Vec<Problem> {
        let mut problems = Vec::new();
        for located in content.values {
            let ((key, value), origin) = (located.value, origin(located.place));
            if Section::is_own(&key) && matches!(origin, Origin::Project(_)) {
                self.ignored.push(Ignored { key, origin, why: Why::DataDirectoryOnly });
            } else {
                self.said.insert(key, Sourced { value, origin });
            }
        }
        for located in content.rules {
            let origin = origin(located.place);
            let value = match origin {
                Origin::Project(_) => of_project(located.value),
                _ => located.value,
            };
            self.rules.push(Sourced { value, origin });
        }
        for located in content.actions {
            let origin = origin(located.place);
            match command_actions(&located.value.document, base) {
                Ok(actions) => {
                    self.actions.retain(|action| action.value.name() != located.value.name);
                    let sourced = |value| Sourced { value, origin: origin.clone() };
                    self.actions.extend(actions.into_iter().map(sourced));
                }
                Err(error) => problems.push(Problem { origin, fault: Fault::Action(error) }),
            }
        }
        problems
    }

    /// A layer that may only narrow: what would widen is left out, and said so.
    pub(crate) fn narrow(&mut self, content: Content, standing: Standing) {
        let (before, base) = (self.clone(), self.completed());
        for located in content.values {
            let ((key, given), origin) = (located.value, Origin::Project(located.place));
            let narrowed = Setting::of(&key).and_then(|setting| narrowed(setting, &key, &given, &base));
            if narrowed.as_ref() != Some(&given) {
                let why = match Section::is_own(&key) {
                    true => Why::DataDirectoryOnly,
                    false => Why::NotTrusted(standing),
                };
                self.ignored.push(Ignored { key: key.clone(), origin: origin.clone(), why });
            }
            if let Some(value) = narrowed {
                self.set_narrower(&key, Sourced { value, origin });
            }
        }
        for located in content.rules {
            let origin = Origin::Project(located.place);
            if super::narrowing::can_only_narrow(&located.value) {
                self.rules.push(Sourced { value: of_project(located.value), origin });
            } else {
                self.ignore(format!("policy.rule {}", located.value.id()), origin, standing);
            }
        }
        for located in content.actions {
            let key = format!("actions.{}", located.value.name);
            self.ignore(key, Origin::Project(located.place), standing);
        }
        debug_assert!(super::narrowing::is_within(self, &before), "what may only narrow widened");
    }

    fn ignore(&mut self, key: String, origin: Origin, standing: Standing) {
        self.ignored.push(Ignored { key, origin, why: Why::NotTrusted(standing) });
    }

    /// What is the same already keeps its origin. The preset of all reaches also those agents that have their own.
    fn set_narrower(&mut self, key: &str, given: Sourced<Value>) {
        let base = self.completed();
        let is_below = |name: &str| {
            name == key || (key == "policy.preset" && name.starts_with("agent.") && name.ends_with(".preset"))
        };
        let below: BTreeSet<&str> =
            base.keys().map(String::as_str).filter(|name| is_below(name)).chain([key]).collect();
        for name in below {
            let same = base.get(name).is_some_and(|base| base.value == given.value);
            let narrower = Setting::of(name)
                .zip(base.get(name))
                .is_none_or(|(setting, base)| setting.is_within(&given.value, &base.value));
            if narrower && !same {
                self.said.insert(name.to_owned(), given.clone());
            }
        }
    }

    /// Every value: what was said, for each backend profile its kind and an agent profile, and for each agent what it did not
    /// say.
    pub(crate) fn completed(&self) -> Values {
        let mut values = self.said.clone();
        let backends = names(&values, "backend");
        for backend in &backends {
            let kind = || by_default(json!(KIND_DEFAULT));
            values.entry(format!("backend.{backend}.kind")).or_insert_with(kind);
        }
        let agents: BTreeSet<String> = names(&values, "agent").union(&backends).cloned().collect();
        let preset = values.get("policy.preset").cloned();
        for agent in agents {
            for setting in Section::Agent.settings() {
                let key = format!("agent.{agent}.{}", setting.key);
                let value = match setting.key {
                    "preset" => preset.clone(),
                    "backend" if backends.contains(&agent) => Some(by_default(json!(agent))),
                    "backend" => Some(by_default(json!(BACKEND_DEFAULT))),
                    _ => setting.agent_default(&agent).map(by_default),
                };
                if let Some(value) = value {
                    values.entry(key).or_insert(value);
                }
            }
            if super::native::is(&values, &agent) {
                for setting in Section::Agent.settings() {
                    let key = format!("agent.{agent}.{}", setting.key);
                    if let Some(value) = setting.native_default() {
                        values.entry(key).or_insert_with(|| by_default(value));
                    }
                }
            }
        }
        values
    }
}

/// What is left of a value for something that there is already.
fn narrowed(setting: &Setting, key: &str, given: &Value, base: &Values) -> Option<Value> {
    match setting.section {
        Section::Hub | Section::Edge | Section::Server | Section::Backend => None,
        Section::Policy | Section::Workspace => {
            setting.narrowed(given, base.get(key).map(|base| &base.value))
        }
        Section::Agent => {
            let agent = key.split('.').nth(1)?;
            // A limit for an agent that there is not would make one.
            base.contains_key(&format!("agent.{agent}.backend")).then_some(())?;
            // And what only an agent of ours has is nothing to another.
            (!setting.is_native() || super::native::is(base, agent)).then_some(())?;
            setting.narrowed(given, base.get(key).map(|base| &base.value))
        }
    }
}

/// A project's rule under a name that no other file's rule has, so that neither passes for the other.
fn of_project(rule: Rule) -> Rule {
    let text = RuleText { id: Some(format!("project: {}", rule.id())), ..rule.text().clone() };
    Rule::try_from(text).unwrap_or(rule)
}

pub(crate) fn by_default(value: Value) -> Sourced<Value> {
    Sourced { value, origin: Origin::Default }
}

/// The names that stand under `agent` or `backend`.
pub(crate) fn names(values: &Values, section: &str) -> BTreeSet<String> {
    let name = |key: &String| {
        let mut parts = key.split('.');
        (parts.next() == Some(section)).then(|| parts.next().map(str::to_owned)).flatten()
    };
    values.keys().filter_map(name).collect()
}
