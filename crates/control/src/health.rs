//! Whether the hub can do its work.

use runyard_actions::{Action, ActionError, Context, DefinitionError, action};
use runyard_engine::Engine;
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![health()]
}

#[derive(Serialize, JsonSchema)]
struct Health {
    /// ok, or degraded where something is missing.
    status: &'static str,
    /// The hub's version.
    version: &'static str,
    /// The store.
    database: Database,
    /// The edges.
    edges: EdgeCounts,
}

#[derive(Serialize, JsonSchema)]
struct Database {
    /// Whether it answers.
    ok: bool,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
struct EdgeCounts {
    /// How many are connected.
    connected: usize,
    /// How many were seen since the hub began.
    known: usize,
}

/// Say whether the hub can do its work: its store answers, and an edge is there.
#[action(crate = "runyard_actions", idempotency = "idempotent", http = "GET /api/v1/health")]
async fn health(ctx: &Context) -> Result<Health, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let code = engine.runs(None, None, 1).await.err().map(|error| error.code().as_str());
    let edges = engine.edges();
    let connected = edges.iter().filter(|edge| edge.connected).count();
    Ok(Health {
        status: if code.is_none() && connected > 0 { "ok" } else { "degraded" },
        version: env!("CARGO_PKG_VERSION"),
        database: Database { ok: code.is_none(), code },
        edges: EdgeCounts { connected, known: edges.len() },
    })
}
