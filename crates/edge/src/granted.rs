//! What a run is given to reach its model provider: its profile's secrets, or a way through the gateway.

use std::io::ErrorKind;
use std::net::IpAddr;

use runyard_backend::link::{OpenRun, Report};
use runyard_backend::{Access, BackendInfo, GatewayAccess};
use runyard_domain::run::{Failure, FailureKind, ProjectedHow};
use runyard_domain::{SecretScope, Wire};
use runyard_redact::Known;

use crate::edge::Shared;
use crate::gateway::{Lease, Pass};
use crate::places::Places;
use crate::prepare::own_fault;
use crate::projection::{How, Projection, project};

/// What is said of a run whose provider is reached without TLS.
const CLEAR_TEXT: &str =
    "the provider's key goes over the network in clear text: base_url is http:// and not of this machine";

/// What is said of a run that is given its secrets as files.
const IN_REACH: &str = "its secrets lie in the agent's own home, where what it starts can read them: only the gateway keeps them from it";

/// What a run is given to reach its provider.
pub(crate) struct Granted {
    pub(crate) access: Access,
    pub(crate) lease: Option<Lease>,
    /// What is to be recorded, where secrets are made available.
    pub(crate) projected: Option<Report>,
    /// All of it in words.
    pub(crate) said: String,
    /// What of it cannot be relied on.
    pub(crate) degraded: Option<&'static str>,
    known: Vec<Known>,
}

impl Granted {
    /// Reads the profile's secrets, as far as the run's execution policy names them, and opens the way through the gateway.
    pub(crate) async fn to(
        edge: &Shared,
        open: &OpenRun,
        places: &Places,
        info: &BackendInfo,
    ) -> Result<Self, Failure> {
        let Projection { how, files, mut known, keys, said } = read(edge, open, info).await?;
        let mut degraded = None;
        let (access, lease, recorded) = match how {
            How::Nothing => (Access::Open, None, None),
            How::Files => {
                degraded = Some(IN_REACH);
                (Access::Projected(files), None, Some(ProjectedHow::Home))
            }
            How::Gateway(upstream) => {
                degraded = goes_in_clear(&upstream.base_url).then_some(CLEAR_TEXT);
                let socket = Some(places.gateway());
                let tokens_left = tokens_left(open);
                // Where it does not speak what its provider does, the gateway translates what Codex speaks.
                let spoken =
                    if info.wires.contains(&upstream.wire) { upstream.wire } else { Wire::Responses };
                let pass = Pass { run: open.run, upstream, spoken, tokens_left, socket };
                let lease = edge.gateway.open(pass).await;
                let lease = lease.map_err(|error| match error.kind() {
                    // What the profile says cannot be used; the error says why and repeats no value.
                    ErrorKind::InvalidInput => {
                        Failure::of_backend(FailureKind::BackendSpawnFailed, error.to_string())
                    }
                    _ => own_fault("the gateway could not be opened", &error),
                })?;
                known.push(Known::named("RUNYARD_GATEWAY_TOKEN", lease.token().to_owned()));
                let (base_url, token) = (lease.base_url().to_owned(), lease.token().to_owned());
                let access = Access::Gateway(GatewayAccess { base_url, token, files });
                (access, Some(lease), Some(ProjectedHow::Gateway))
            }
        };
        let profile = open.backend_profile.secrets_name().to_owned();
        let projected = recorded.map(|how| Report::Projected { profile, keys, how });
        Ok(Granted { access, lease, projected, said, degraded, known })
    }

    /// What must never be said.
    pub(crate) fn known(&self) -> Vec<Known> {
        self.known.clone()
    }
}

/// What must never be said of a run whose agent is done: its profile's secrets, as far as they are there.
pub(crate) async fn known(edge: &Shared, open: &OpenRun) -> Vec<Known> {
    let Some(backend) = edge.backends.get(&open.backend_profile.backend_kind) else { return Vec::new() };
    match read(edge, open, &backend.info()).await {
        Ok(projection) => projection.known,
        Err(_) => Vec::new(),
    }
}

async fn read(edge: &Shared, open: &OpenRun, info: &BackendInfo) -> Result<Projection, Failure> {
    let (secrets, profile, info) = (edge.secrets.clone(), open.backend_profile.clone(), info.clone());
    let scope: SecretScope = open.execution_policy.secret_scope.clone().unwrap_or_default();
    let read = tokio::task::spawn_blocking(move || project(&secrets, &profile, &scope, &info)).await;
    read.map_err(|error| own_fault("the secrets could not be read", &error))?
}

/// Whether what is sent there can be read by others on the way.
fn goes_in_clear(base_url: &str) -> bool {
    let Some(rest) = base_url.strip_prefix("http://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(host) => host.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    !(host == "localhost" || is_loopback)
}

/// How many tokens the run may still use, where that is limited.
fn tokens_left(open: &OpenRun) -> Option<u64> {
    let allowed = open.execution_policy.budget.as_ref()?.tokens?;
    let used = open.usage.and_then(|usage| usage.tokens()).unwrap_or_default();
    Some(allowed.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b11_a_key_goes_in_clear_only_without_tls_and_only_to_other_machines() {
        for url in ["http://llm.example.com/v1", "http://10.0.0.1:8080/v1", "http://127.evil.example/v1"] {
            assert!(goes_in_clear(url), "{url}");
        }
        for url in
            ["https://llm.example.com/v1", "http://127.0.0.1:1/v1", "http://localhost:1", "http://[::1]:1/v1"]
        {
            assert!(!goes_in_clear(url), "{url}");
        }
    }
}
