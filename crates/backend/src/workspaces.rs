//! The allow-list of an edge: the directories that people named. Their roots never leave it.

use async_trait::async_trait;
use runyard_domain::run::Who;
use runyard_domain::{AppendId, Code, Workspace, WorkspaceChanged, WorkspaceId};
use serde::{Deserialize, Serialize};

/// The allow-list of an edge.
#[async_trait]
pub trait Workspaces: Send + Sync {
    /// Adds a directory, durably. Adding it again gives what is there and changes nothing.
    async fn add(&self, path: &str, label: Option<&str>, by: &Who) -> Result<Workspace, WorkspaceError>;

    /// Takes it off the list. Its files stay as they are.
    async fn remove(&self, id: WorkspaceId, by: &Who) -> Result<(), WorkspaceError>;

    /// What changed and was not yet said to be in the audit, oldest first. It is kept together with the change.
    async fn unsaid(&self) -> Result<Vec<ListChange>, WorkspaceError>;

    /// These changes are in the audit.
    async fn said(&self, changes: Vec<AppendId>) -> Result<(), WorkspaceError>;

    /// All of them, by label.
    async fn list(&self) -> Result<Vec<Workspace>, WorkspaceError>;

    /// The workspace that an id, a label or an absolute path inside it names.
    async fn resolve(&self, place: &str) -> Result<Workspace, WorkspaceError>;

    /// The text as others may read it: what lies in the workspace is named from its root on, which only its edge knows.
    async fn shown(&self, id: WorkspaceId, text: String) -> Result<String, WorkspaceError>;
}

/// A change of the allow-list that the audit is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListChange {
    /// Under which it is recorded, so that it is there once.
    pub id: AppendId,
    /// What changed.
    pub what: WorkspaceChanged,
    /// Who did it.
    pub by: Who,
}

/// Why a directory is no workspace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// It lies in no workspace of the allow-list.
    #[error("{place} lies in no workspace of the allow-list")]
    Outside {
        /// What was asked for.
        place: String,
    },
    /// There is no such workspace.
    #[error("there is no workspace {place}")]
    Unknown {
        /// What was asked for.
        place: String,
    },
    /// It cannot be one.
    #[error("cannot use {place} as a workspace: {why}")]
    Unfit {
        /// What was asked for.
        place: String,
        /// Why.
        why: &'static str,
    },
    /// The list cannot be read or written.
    #[error("cannot use the list of workspaces: {source}")]
    Io {
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

impl WorkspaceError {
    /// Its row in the error table.
    pub const fn code(&self) -> Code {
        match self {
            WorkspaceError::Outside { .. } => Code::WorkspaceOutsideAllowlist,
            WorkspaceError::Unknown { .. } => Code::NotFound,
            WorkspaceError::Unfit { .. } => Code::ValidationError,
            WorkspaceError::Io { .. } => Code::StorageIo,
        }
    }
}
