//! The audit: who did what, and whether that record still holds.

use runyard_actions::{Action, ActionError, Context, DefinitionError, action};
use runyard_engine::{AuditEntry, ENTRIES_MAX, Engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failed::failing;
use crate::page::{limit_default, page};

/// One less than a page of the log, so that it is known whether there is more.
const LIMIT_MAX: u32 = ENTRIES_MAX - 1;

pub(crate) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![audit_list(), audit_verify()]
}

#[derive(Deserialize, JsonSchema)]
struct List {
    /// Only entries after this place: the sequence of the last one that is known.
    #[serde(default)]
    after: u64,
    /// How many at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = LIMIT_MAX))]
    limit: u32,
}

/// One entry of the audit.
#[derive(Serialize, JsonSchema)]
struct EntryView {
    /// Its place.
    sequence: u64,
    /// When.
    at: String,
    /// What kind of thing happened.
    #[serde(rename = "type")]
    kind: String,
    /// Who did it.
    by: Value,
    /// What they did.
    what: Value,
    /// The hash of the stored entry, which stands for all entries before it too.
    hash: String,
}

impl From<AuditEntry> for EntryView {
    fn from(entry: AuditEntry) -> Self {
        let AuditEntry { sequence, at, kind, by, what, hash } = entry;
        EntryView { sequence, at: at.to_string(), kind, by, what, hash }
    }
}

#[derive(Serialize, JsonSchema)]
struct Entries {
    /// The entries, oldest first.
    entries: Vec<EntryView>,
    /// The place to go on after; absent where there is nothing more yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// Read who did what: decisions, changes of policy, tokens and workspaces, logins, refusals.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["audit.read"],
    http = "GET /api/v1/audit"
)]
async fn audit_list(input: List, ctx: &Context) -> Result<Entries, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let found = engine.installation().entries(input.after, input.limit + 1).await.map_err(failing)?;
    let (entries, more) = page(found.into_iter().map(EntryView::from), input.limit);
    let next = entries.last().filter(|_| more).map(|last| last.sequence);
    Ok(Entries { entries, next })
}

#[derive(Serialize, JsonSchema)]
struct VerifiedAudit {
    /// How many entries were looked at; each is chained to the one before it.
    entries: u64,
    /// The hash of the last one. Kept elsewhere, it shows later whether the record was cut or written anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
}

/// Check that the audit is whole: every entry follows from the one before it, and tokens and rules are what it leads to.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["audit.read"],
    http = "GET /api/v1/audit/verify"
)]
async fn audit_verify(ctx: &Context) -> Result<VerifiedAudit, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let verified = engine.installation().verify().await.map_err(failing)?;
    Ok(VerifiedAudit { entries: verified.events, head: verified.head.map(|hash| hash.to_string()) })
}
