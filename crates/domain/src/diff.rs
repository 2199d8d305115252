//! What changed in a run's checkout, as the hub and people see it. The edge alone looks at files.

use serde::{Deserialize, Serialize};

use crate::BlobId;

/// One file that changed. What it holds is in a part of the diff, by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffFile {
    /// Names it in the diff.
    pub id: String,
    /// Where it is, relative to the workspace.
    pub path: String,
    /// Where it came from, where it was renamed or copied.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub old_path: Option<String>,
    /// `added`, `deleted`, `modified`, `renamed`, `copied` or `retyped`.
    pub change: String,
    /// What it was, as git writes modes; none where it is new.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub old_mode: Option<String>,
    /// What it is; none where it is gone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub new_mode: Option<String>,
    /// How its content is shown: `text`, `binary`, `too_large`, or `same` where it did not change.
    pub content: String,
    /// Lines that are new.
    pub insertions: u64,
    /// Lines that are gone.
    pub deletions: u64,
    /// How many hunks there are to choose from: 1, 2, 3, …
    pub hunks: u32,
    /// Its size before and after.
    pub bytes: (u64, u64),
    /// Whether it configures who may do what: then it counts only where it is chosen by itself.
    pub protected: bool,
    /// The part of the diff that holds its text; none where it has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub part: Option<u32>,
}

/// The text of one file's change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffText {
    /// The file.
    pub id: String,
    /// The change, as a unified diff.
    pub patch: String,
    /// How many bytes of it are left out at its end.
    pub omitted: u64,
}

/// How much changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiffStats {
    /// Files that changed.
    pub files: u64,
    /// Lines that are new.
    pub insertions: u64,
    /// Lines that are gone.
    pub deletions: u64,
    /// Files that count only where they are chosen by themselves.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub protected: u64,
    /// Things in the checkout that can be no change, such as hard links and sockets.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub problems: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl DiffStats {
    /// Whether there is nothing to look at.
    pub const fn is_empty(&self) -> bool {
        self.files == 0 && self.problems == 0
    }
}

impl std::fmt::Display for DiffStats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let files = if self.files == 1 { "file" } else { "files" };
        write!(f, "{} {files} changed, +{} −{} lines", self.files, self.insertions, self.deletions)
    }
}

/// Where the diff of a run is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DiffParts {
    /// Lists of [`DiffFile`]s, in order.
    pub files: Vec<BlobId>,
    /// Lists of [`DiffText`]s, by part.
    pub texts: Vec<BlobId>,
}

/// A file that a person chose, whole or by hunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelectedFile {
    /// The file's id in the diff.
    pub file: String,
    /// The hunks: 1, 2, 3, …; without them the whole file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hunks: Option<Vec<u32>>,
}

/// A person's word on a line of a diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Comment {
    /// The file's id in the diff.
    pub file: String,
    /// The line in the new text, or in the old one where the file is gone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u64>,
    /// What is said.
    pub text: String,
}

/// Where changes are brought to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApplyTo {
    /// The person's files.
    #[default]
    Files,
    /// The person's files, and a commit of them on the branch that is checked out.
    Commit,
    /// A commit on a new branch of that name. The person's files stay as they are.
    Branch(String),
}
