//! What a run may do: what its caller says, within what the agent profile allows, with the secrets of its backend profile alone.
//!
//! It is settled once, when the run is made, and recorded; nothing later widens it. Whether a secret is there is for the edge to
//! find out.

use runyard_backend::BackendInfo;
use runyard_domain::{
    AgentProfile, BackendProfile, ExecutionPolicy, ProviderCredential, SecretRef, SecretScope,
    WantedExecution,
};

use crate::{EngineError, budget};

/// What is wrong with a secret scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unscoped {
    /// It names none of the profile's secrets.
    #[error(
        "its secret scope has no reference to them; give executionPolicy.secretScope.providerCredentials an entry with that \
         profile and a secretRef of that name, or leave secretScope out"
    )]
    NoReference,
    /// It names secrets that the profile does not have.
    #[error("its secret scope names others; there are {}", .known.join(", "))]
    OtherKeys {
        /// Those that it has.
        known: Vec<String>,
    },
    /// It leaves out what the profile cannot do without.
    #[error("its secret scope leaves out {key}")]
    Without {
        /// The first of these.
        key: String,
    },
}

/// What a run may do, never more than its caller says, the agent profile allows and the backend profile has (B05, B07). What the
/// caller does not speak of is the agent profile's.
pub(crate) fn execution_policy(
    wanted: Option<&WantedExecution>,
    agent: &AgentProfile,
    backend: (&BackendProfile, &BackendInfo),
) -> Result<ExecutionPolicy, EngineError> {
    let allowed = &agent.execution_policy;
    let policy = match wanted {
        None => allowed.clone(),
        Some(wanted) => {
            check_times(wanted)?;
            ExecutionPolicy {
                budget: budget::narrowed(wanted.budget, allowed.budget),
                ..wanted.of(allowed).narrowed_by(allowed)
            }
        }
    };
    budget::check(policy.budget.as_ref(), backend)?;
    let wanted_scope = wanted.and_then(|wanted| wanted.secret_scope.as_ref());
    let said = wanted_scope.into_iter().chain(&allowed.secret_scope);
    Ok(ExecutionPolicy { secret_scope: Some(secret_scope(said, backend.0)?), ..policy })
}

/// The secrets that a run may be given: its own profile's, as far as all that is said agrees. Where nothing is said, all of them.
fn secret_scope<'a>(
    said: impl Iterator<Item = &'a SecretScope>,
    backend: &BackendProfile,
) -> Result<SecretScope, EngineError> {
    let (profile, required) = (&backend.profile, &backend.required_secret_keys);
    if required.is_empty() {
        return Ok(SecretScope::default());
    }
    let refused = |why| EngineError::SecretUnavailable { profile: profile.clone(), why };
    let known: Vec<String> = required.iter().chain(&backend.optional_secret_keys).cloned().collect();
    let mut keys = known.clone();
    for scope in said {
        let own = |entry: &&ProviderCredential| {
            entry.profile == *profile && entry.secret_ref.name == backend.secrets_name()
        };
        let entry =
            scope.provider_credentials.iter().find(own).ok_or_else(|| refused(Unscoped::NoReference))?;
        let named = &entry.secret_ref.keys;
        if named.iter().any(|key| !known.contains(key)) {
            return Err(refused(Unscoped::OtherKeys { known }));
        }
        // None are all.
        keys.retain(|key| named.is_empty() || named.contains(key));
    }
    if let Some(key) = required.iter().find(|key| !keys.contains(key)) {
        return Err(refused(Unscoped::Without { key: key.clone() }));
    }
    let secret_ref = SecretRef { name: backend.secrets_name().to_owned(), keys };
    Ok(SecretScope {
        provider_credentials: vec![ProviderCredential { profile: profile.clone(), secret_ref }],
    })
}

fn check_times(wanted: &WantedExecution) -> Result<(), EngineError> {
    let max = ExecutionPolicy::TIMEOUT_MS_MAX;
    for (path, ms) in [
        ("executionPolicy.timeoutMs", wanted.timeout_ms),
        ("executionPolicy.idleMs", wanted.idle_ms),
        ("executionPolicy.keepOpenMs", wanted.keep_open_ms),
    ] {
        if ms.is_some_and(|ms| ms == 0 || ms > max) {
            return Err(EngineError::Invalid { path, message: format!("Expected 1 to {max}.") });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
