//! The agents and backends that runs can choose from.

use std::collections::BTreeMap;

use runyard_backend::BackendInfo;
use runyard_domain::run::{Degraded, Run, RunEvent};
use runyard_domain::{AgentProfile, BackendProfile, PlannedBackend};
use runyard_store::blob_id;

use crate::record::Fact;
use crate::{Engine, EngineError};

/// The agents and backends that runs can choose from.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// The agent profiles, by id.
    pub agents: BTreeMap<String, AgentProfile>,
    /// The backend profiles, by name.
    pub backends: BTreeMap<String, BackendProfile>,
    /// What is known of each kind of backend.
    pub kinds: BTreeMap<String, BackendInfo>,
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

impl Engine {
    /// The backend of a profile as it is configured now.
    pub(crate) fn planned_backend(&self, name: &str) -> Result<PlannedBackend, EngineError> {
        let (profile, info) = self.catalog().backend(name)?;
        let default =
            || info.command.into_iter().flat_map(str::split_whitespace).map(str::to_owned).collect();
        Ok(PlannedBackend {
            backend_kind: profile.backend_kind.clone(),
            command: if profile.command.is_empty() { default() } else { profile.command.clone() },
            digest: blob_id(&serde_json::to_vec(profile)?).to_string(),
        })
    }

    /// What is said of a run whose backend profile is not what it was when the run was planned.
    pub(crate) fn replanned(&self, run: &Run) -> Vec<Fact> {
        let profile = &run.created.backend_profile;
        let planned = run.planned.as_ref().and_then(|plan| plan.backend.as_ref());
        let now = self.planned_backend(profile).ok();
        match (planned, now) {
            (Some(planned), Some(now)) if planned.digest != now.digest => {
                let reason = format!(
                    "the configuration of backend profile {profile} changed since the run was planned"
                );
                let known = run.degraded.contains(&reason);
                let degraded = Fact::from(RunEvent::Degraded(Degraded { reason }));
                if known { Vec::new() } else { vec![degraded] }
            }
            _ => Vec::new(),
        }
    }
}
