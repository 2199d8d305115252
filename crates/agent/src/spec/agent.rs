//! What an agent is, as data.

use runyard_llm::inference::RetryPolicy;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::pattern::{is_pattern, matches};
use crate::agent::{CallOrder, Settings};
use crate::run::{ContextPolicy, Limits};
use crate::state::UnknownKeyPolicy;

/// What an agent is, as data. It runs here with a [`model`](Self::model), or elsewhere behind an
/// [`endpoint`](Self::endpoint).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentSpec {
    /// What it goes by, unique among the agents.
    pub id: String,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The model that it asks first, by the id under which it is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The models that it asks when that one does not answer, in this order.
    pub fallback_models: Vec<String>,
    /// What its model is told before the conversation.
    pub instructions: String,
    /// Which of the tools it is offered.
    pub tools: ToolFilter,
    /// The plugins that it has, by their ids, in the order of installation.
    pub plugins: Vec<String>,
    /// What its plugins are told, by the names of their sections.
    pub sections: Map<String, Value>,
    /// How its model is asked.
    pub settings: Settings,
    /// How the calls of one answer are made.
    pub calls: CallOrder,
    /// When it stops by itself.
    pub limits: Limits,
    /// How much of a long conversation its model reads. Where it does not say, the window of its models counts.
    pub context: ContextPolicy,
    /// How patiently it asks.
    pub retry: RetryPolicy,
    /// What to do with stored state that it has no key for.
    #[serde(with = "UnknownKeys")]
    pub unknown_keys: UnknownKeyPolicy,
    /// Where it is, if it does not run here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointSpec>,
}

impl AgentSpec {
    /// An agent that runs here, with every tool there is.
    pub fn new(id: impl Into<String>, model: impl Into<String>) -> Self {
        AgentSpec { id: id.into(), model: Some(model.into()), ..AgentSpec::default() }
    }

    /// An agent that runs elsewhere.
    pub fn remote(id: impl Into<String>, endpoint: EndpointSpec) -> Self {
        AgentSpec { id: id.into(), endpoint: Some(endpoint), ..AgentSpec::default() }
    }

    /// The models that it asks, best first.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.model.iter().chain(&self.fallback_models).map(String::as_str)
    }
}

/// Which of the tools an agent is offered. `*` in a name stands for any text. What is excluded is out, whatever else is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolFilter {
    /// These alone; all, where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Not these.
    pub exclude: Vec<String>,
}

impl ToolFilter {
    /// These alone.
    pub fn only<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        ToolFilter { allow: Some(names.into_iter().map(Into::into).collect()), exclude: Vec::new() }
    }

    /// All but these.
    pub fn without<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        ToolFilter { allow: None, exclude: names.into_iter().map(Into::into).collect() }
    }

    /// Whether a tool passes.
    pub fn admits(&self, tool: &str) -> bool {
        let is_in = |names: &[String]| names.iter().any(|name| matches(name, tool));
        !is_in(&self.exclude) && self.allow.as_deref().is_none_or(is_in)
    }

    /// The names in it that stand for one tool each.
    pub(crate) fn plain_names(&self) -> impl Iterator<Item = &str> {
        let all = self.allow.iter().flatten().chain(&self.exclude);
        all.map(String::as_str).filter(|name| !is_pattern(name))
    }
}

/// Where an agent is that does not run here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EndpointSpec {
    /// What it is reached by: the name of a registered backend.
    pub backend: String,
    /// Its address.
    pub url: String,
    /// What else the backend is told.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
}

/// The words for [`UnknownKeyPolicy`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "UnknownKeyPolicy", rename_all = "snake_case")]
enum UnknownKeys {
    Error,
    Skip,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_filter_lets_through_what_is_allowed_and_not_excluded() {
        #[track_caller]
        fn check(filter: &ToolFilter, admitted: &[&str]) {
            let all = ["fs_read", "fs_write", "shell"];
            assert_eq!(all.into_iter().filter(|tool| filter.admits(tool)).collect::<Vec<_>>(), admitted);
        }
        check(&ToolFilter::default(), &["fs_read", "fs_write", "shell"]);
        check(&ToolFilter::only(["fs_*"]), &["fs_read", "fs_write"]);
        check(&ToolFilter::only(Vec::<String>::new()), &[]);
        check(&ToolFilter::without(["shell"]), &["fs_read", "fs_write"]);
        let both = ToolFilter { exclude: vec!["*_write".into()], ..ToolFilter::only(["fs_*", "fs_write"]) };
        check(&both, &["fs_read"]);
    }

    #[test]
    fn a_spec_is_read_with_its_defaults_and_without_what_it_does_not_know() {
        let spec: AgentSpec = serde_json::from_value(json!({ "id": "a", "model": "m" })).unwrap();
        assert_eq!(spec, AgentSpec::new("a", "m"));
        let again: AgentSpec = serde_json::from_value(serde_json::to_value(&spec).unwrap()).unwrap();
        assert_eq!(again, spec);
        let skip: AgentSpec =
            serde_json::from_value(json!({ "id": "a", "model": "m", "unknownKeys": "skip" })).unwrap();
        assert_eq!(skip.unknown_keys, UnknownKeyPolicy::Skip);
        for wrong in [json!({ "id": "a", "modell": "m" }), json!({ "id": "a", "tools": { "deny": [] } })] {
            assert!(serde_json::from_value::<AgentSpec>(wrong).is_err());
        }
    }
}
