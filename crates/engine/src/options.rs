//! What an engine is made of, and its limits.

use std::collections::BTreeSet;
use std::sync::Arc;

use runyard_backend::Workspaces;
use runyard_redact::Redactor;
use runyard_store::{Clock, Store};

use crate::catalog::Catalog;
use crate::installation::Installation;
use crate::policy::BasePolicy;

/// What an engine is made of.
pub struct EngineOptions {
    /// Where everything is recorded.
    pub store: Arc<dyn Store>,
    /// Redacts by form what arrives; the edge has taken out the values that it knows.
    pub redactor: Redactor,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The name under which this hub holds leases. The same for every process of a hub that is alone on its store, so that
    /// the next one goes on at once.
    pub owner: String,
    /// The edges that are this hub's to drive runs on. What runs elsewhere is another hub's, on a store that both share.
    pub own_edges: BTreeSet<String>,
    /// Whether other hubs write to the same store.
    pub shared_store: bool,
    /// The agents and backends.
    pub catalog: Catalog,
    /// What the hub's own configuration says of the policy when it starts.
    pub policy: BasePolicy,
    /// The allow-list of the edge.
    pub workspaces: Arc<dyn Workspaces>,
    /// Tokens, stored rules and the audit.
    pub installation: Installation,
    /// The key of the digests that the hub itself makes, of calls that agents want to make here.
    pub digest_key: [u8; 32],
    /// The limits.
    pub limits: Limits,
}

/// Limits and deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many runs may be active on an edge at a time; the others wait in Planned.
    pub runs_per_edge_max: usize,
    /// How long an edge may take to accept a run.
    pub accept_ms: u64,
    /// How long preparing may take.
    pub prepare_ms: u64,
    /// How long applying may take before the run says that it is late.
    pub apply_ms: u64,
    /// How long a session may take to close.
    pub close_ms: u64,
    /// After how long a session that waits for people is parked.
    pub park_after_ms: u64,
    /// When no answer counts as a rejection.
    pub approval_expiry_ms: u64,
    /// How long a lease is held without being renewed.
    pub lease_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            runs_per_edge_max: 32,
            accept_ms: 30_000,
            prepare_ms: 10 * 60_000,
            apply_ms: 10 * 60_000,
            close_ms: 60_000,
            park_after_ms: 60_000,
            approval_expiry_ms: 7 * 24 * 60 * 60 * 1000,
            lease_ms: 60_000,
        }
    }
}
