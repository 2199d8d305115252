//! The directories that people named.

use serde::{Deserialize, Serialize};

use crate::WorkspaceId;

/// A directory that a person named, as everybody but its edge knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceRef {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name for people.
    pub label: String,
}

/// A workspace of the allow-list. Its root is for its edge alone, and stands in no event of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name for people.
    pub label: String,
    /// The project that it belongs to: what several workspaces are grouped by.
    pub project: String,
    /// The edge that has it.
    pub edge_id: String,
}

impl Workspace {
    /// As events name it.
    pub fn reference(&self) -> WorkspaceRef {
        WorkspaceRef { id: self.id, label: self.label.clone() }
    }
}
