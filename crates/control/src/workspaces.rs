//! Workspaces: the directories that people allow runs to work on.

use runyard_actions::{Action, ActionError, Context, DefinitionError, action};
use runyard_domain::Workspace;
use runyard_domain::run::Who;
use runyard_engine::Engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failed::{failing, failing_at, not_found};

pub(crate) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![workspace_list(), workspace_add(), workspace_remove()]
}

/// A workspace. Its root is known to its edge alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WorkspaceEntry {
    /// Its id.
    id: String,
    /// Its name for people.
    label: String,
    /// The project that it belongs to.
    project: String,
    /// The edge that has it.
    edge_id: String,
}

impl From<&Workspace> for WorkspaceEntry {
    fn from(workspace: &Workspace) -> Self {
        WorkspaceEntry {
            id: workspace.id.to_string(),
            label: workspace.label.clone(),
            project: workspace.project.clone(),
            edge_id: workspace.edge_id.clone(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Workspaces {
    /// The workspaces, by label.
    workspaces: Vec<WorkspaceEntry>,
}

/// List the workspaces that runs may work on.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["workspaces.read"],
    http = "GET /api/v1/workspaces"
)]
async fn workspace_list(ctx: &Context) -> Result<Workspaces, ActionError> {
    let listed = ctx.service::<Engine>()?.workspaces().list().await.map_err(failing)?;
    Ok(Workspaces { workspaces: listed.iter().map(WorkspaceEntry::from).collect() })
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The directory, as an absolute path on the edge.
    #[schemars(length(min = 1, max = 4096))]
    path: String,
    /// Its name for people; the directory's own without.
    #[schemars(length(min = 1, max = 128))]
    label: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct WorkspaceAnswer {
    /// The workspace.
    workspace: WorkspaceEntry,
}

/// Allow runs to work on a directory. Adding it again gives what is there.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "idempotent",
    people_only,
    permissions = ["workspaces.write"],
    http = "POST /api/v1/workspaces",
    example = r#"{"path": "/home/ada/demo"}"#
)]
async fn workspace_add(input: Add, ctx: &Context) -> Result<WorkspaceAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let by = Who::from(ctx.actor());
    let added = engine.workspaces().add(&input.path, input.label.as_deref(), &by).await;
    let added = added.map_err(|error| failing_at("path", error))?;
    engine.audit_workspaces().await.map_err(failing)?;
    Ok(WorkspaceAnswer { workspace: (&added).into() })
}

#[derive(Deserialize, JsonSchema)]
struct Remove {
    /// The workspace's id or label.
    id: String,
}

/// Take a workspace off the list. Its files and its past runs stay as they are.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "conditional",
    people_only,
    permissions = ["workspaces.write"],
    http = "DELETE /api/v1/workspaces/{id}"
)]
async fn workspace_remove(input: Remove, ctx: &Context) -> Result<WorkspaceAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let listed = engine.workspaces().list().await.map_err(failing)?;
    let is_meant = |found: &&Workspace| found.label == input.id || found.id.to_string() == input.id;
    let found = listed.iter().find(is_meant);
    let found = found.ok_or_else(|| not_found(&format!("workspace {}", input.id)))?;
    // Before it goes: whatever is added under its label later is another place.
    let by = Who::from(ctx.actor());
    let retired = engine.installation().retire_project(&found.label, &by).await;
    if retired.map_err(failing)? > 0 {
        engine.policy_changed().await;
    }
    engine.workspaces().remove(found.id, &by).await.map_err(failing)?;
    engine.audit_workspaces().await.map_err(failing)?;
    Ok(WorkspaceAnswer { workspace: found.into() })
}
