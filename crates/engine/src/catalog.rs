//! The agents and backends that runs can choose from.

use std::collections::BTreeMap;

use runyard_backend::BackendInfo;
use runyard_domain::gate::{OwnRuns, Preset, Rule};
use runyard_domain::{AgentProfile, BackendProfile};

use crate::EngineError;

/// The agents and backends that runs can choose from, and the rules that the configuration sets.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// The agent profiles, by id.
    pub agents: BTreeMap<String, AgentProfile>,
    /// The backend profiles, by name.
    pub backends: BTreeMap<String, BackendProfile>,
    /// What is known of each kind of backend.
    pub kinds: BTreeMap<String, BackendInfo>,
    /// The gate's preset where an agent profile has none of its own.
    pub preset: Preset,
    /// Whether people approve what their own runs ask.
    pub own_runs: OwnRuns,
    /// The rules of the configuration.
    pub rules: Vec<Rule>,
}

impl Catalog {
    /// The agent profile of this id.
    pub(crate) fn agent(&self, id: &str) -> Result<&AgentProfile, EngineError> {
        self.agents.get(id).ok_or_else(|| EngineError::Invalid {
            path: "agent",
            message: format!("Expected an agent profile: {}.", listed(&self.agents)),
        })
    }

    /// Every backend profile of a kind that is known, by name, with what is known of its kind.
    pub fn known_backends(&self) -> impl Iterator<Item = (&BackendProfile, &BackendInfo)> {
        self.backends.values().filter_map(|found| Some((found, self.kinds.get(&found.backend_kind)?)))
    }

    /// The backend profile of this name, with what is known of its kind.
    pub fn find_backend(&self, name: &str) -> Option<(&BackendProfile, &BackendInfo)> {
        let found = self.backends.get(name)?;
        Some((found, self.kinds.get(&found.backend_kind)?))
    }

    pub(crate) fn backend(&self, name: &str) -> Result<(&BackendProfile, &BackendInfo), EngineError> {
        self.find_backend(name).ok_or_else(|| EngineError::Invalid {
            path: "backendProfile",
            message: format!("Expected a backend profile: {}.", listed(&self.backends)),
        })
    }
}

fn listed<T>(known: &BTreeMap<String, T>) -> String {
    known.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}
