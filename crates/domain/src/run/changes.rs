//! What the events about a run's changes say: found, being applied, applied, and carried over by a later run.

use serde::{Deserialize, Serialize};

use crate::{ApplyTo, ApprovalId, DiffParts, DiffStats, RunId, SelectedFile};

/// What is as always is not written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `run.diff.ready`: what changed in the run's checkout, found by looking at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiffReady {
    /// What it starts from.
    pub base: String,
    /// What it leads to.
    pub target: String,
    /// The first of the files, relative to the workspace.
    pub paths: Vec<String>,
    /// What it is, in a line.
    pub summary: String,
    /// Stands for all that changed, made by the edge.
    #[serde(skip_serializing_if = "is_default", default)]
    pub digest: String,
    /// How much changed.
    #[serde(skip_serializing_if = "is_default", default)]
    pub stats: DiffStats,
    /// Where it is kept.
    #[serde(skip_serializing_if = "is_default", default)]
    pub parts: DiffParts,
}

/// `run.applying`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Applying {
    /// What allowed it.
    pub approval_id: ApprovalId,
    /// Stands for what is applied: the chosen part, as the edge found it.
    pub digest: String,
    /// Where to.
    #[serde(skip_serializing_if = "is_default", default)]
    pub to: ApplyTo,
    /// How much.
    #[serde(skip_serializing_if = "is_default", default)]
    pub stats: DiffStats,
}

/// `run.applied`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// What allowed it.
    pub approval_id: ApprovalId,
    /// What was applied.
    pub digest: String,
    /// The commit that holds it, where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<String>,
}

/// The changes of a run that has ended, to be applied or taken back by another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Carries {
    /// The run that made them, or that applied them.
    pub of: RunId,
    /// Whether they are taken back.
    #[serde(skip_serializing_if = "is_default", default)]
    pub undo: bool,
    /// Which part of them; without it all of them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub selection: Option<Vec<SelectedFile>>,
    /// Where to.
    #[serde(skip_serializing_if = "is_default", default)]
    pub to: ApplyTo,
    /// Stands for what was looked at.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub digest: Option<String>,
}
