//! The directories that people named.

use serde::{Deserialize, Serialize};

use crate::WorkspaceId;

/// A directory that a person named, as everybody but its edge knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The project that it is, by its label: a workspace stands for its project, and nothing groups several.
    pub project: String,
    /// The edge that has it.
    pub edge_id: String,
}

/// `audit.workspace`: the list of workspaces changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceChanged {
    /// What happened.
    pub change: Listing,
    /// Which workspace.
    pub workspace_id: WorkspaceId,
    /// What it is called.
    pub label: String,
}

/// What happened to an entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Listing {
    /// It came in.
    Added,
    /// It went out.
    Removed,
}

/// What brings a checkout to where an agent can begin. It comes from configuration that counts: that trust is the approval, and
/// nothing asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Preparation {
    /// Which ignored files are brought: patterns as in a `.gitignore`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub copy: Vec<String>,
    /// What is run there, one after the other: each a program and its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub setup: Vec<Vec<String>>,
}

impl Preparation {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.copy.is_empty() && self.setup.is_empty()
    }
}

impl Workspace {
    /// As events name it.
    pub fn reference(&self) -> WorkspaceRef {
        WorkspaceRef { id: self.id, label: self.label.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::Preparation;

    #[test]
    fn a_preparation_is_empty_only_where_it_brings_and_does_nothing() {
        let copy = || vec!["target".to_owned()];
        let setup = || vec![vec!["make".to_owned()]];
        assert!(Preparation::default().is_empty());
        for preparation in [
            Preparation { copy: copy(), setup: Vec::new() },
            Preparation { copy: Vec::new(), setup: setup() },
            Preparation { copy: copy(), setup: setup() },
        ] {
            assert!(!preparation.is_empty(), "{preparation:?}");
        }
    }
}
