//! Bringing chosen changes of a checkout to a person's files, and taking them back.
//!
//! [`plan`] says what would be written, and writes nothing: it looks at the checkout, at what it began as and at the person's files,
//! and brings the three together. [`Plan::stage`] puts everything that is needed on disk, in a journal; [`carry_out`] changes the
//! files, all of them or none; [`settle`] finds out what became of it after a crash; [`undo`] is the same the other way round.
//!
//! It decides nothing about who may do so, and runs no `git`: see [`crate::commit`] for that.

use std::collections::{BTreeMap, BTreeSet};

use runyard_domain::Code;
use serde::{Deserialize, Serialize};

use crate::{Change, Changes, CheckoutError, Conflict, ContentId, FileId, FileMode, RelPath};

mod carry;
mod draft;
mod folders;
mod journal;
mod place;
mod plan;
mod restore;
mod three_way;
mod undo;

pub use carry::carry_out;
pub use journal::Staged;
pub(crate) use journal::{failed as journal_failed, get as journal_get, paths_of, set as journal_set};
pub use plan::{Plan, Sides, plan};
pub use restore::{Settled, settle};
pub(crate) use three_way::{Side, three_way};
pub use undo::{plan_undo, undo};

/// What was chosen of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Chosen {
    /// The file.
    pub file: FileId,
    /// Which of its hunks; the first is 0. All of the file, its mode too, where none are named. With only some of them, it keeps its
    /// mode; with an empty list, nothing of it is chosen.
    pub hunks: Option<BTreeSet<u32>>,
}

/// What was chosen of all changes. The order does not matter, and what is named twice is chosen by both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Selection(pub Vec<Chosen>);

impl Selection {
    /// Every change, but for those that count only where a person names them: see [`is_protected`].
    pub fn whole(changes: &Changes) -> Self {
        let plain = changes.files.iter().filter(|change| !is_protected(change));
        Selection(plain.map(|change| Chosen { file: change.id.clone(), hunks: None }).collect())
    }

    /// Each file once. All of a file is more than some of it.
    fn merged(&self) -> BTreeMap<&FileId, Option<BTreeSet<u32>>> {
        let mut merged: BTreeMap<&FileId, Option<BTreeSet<u32>>> = BTreeMap::new();
        for chosen in &self.0 {
            match merged.get_mut(&chosen.file) {
                None => drop(merged.insert(&chosen.file, chosen.hunks.clone())),
                Some(earlier) => match (&mut *earlier, &chosen.hunks) {
                    (Some(hunks), Some(more)) => hunks.extend(more),
                    _ => *earlier = None,
                },
            }
        }
        merged
    }
}

/// Whether a change touches what configures who may do what, also by moving it away.
pub fn is_protected(change: &Change) -> bool {
    let moved = change.old_path.as_ref().is_some_and(RelPath::is_protected);
    change.protected || change.path.is_protected() || moved
}

/// What there is under a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// What it is.
    pub mode: FileMode,
    /// Who may do what with it; 0 for a link, which has none.
    pub permissions: u32,
    /// How long it is.
    pub bytes: u64,
    /// What it holds.
    pub content: ContentId,
}

/// What is done to one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Which.
    pub path: RelPath,
    /// What is there now.
    pub before: Option<State>,
    /// What will be there.
    pub after: Option<State>,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The paths that are other than they were.
    pub paths: Vec<RelPath>,
}

/// How much one plan takes on. All of it is held in memory for as long as the plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplyLimits {
    /// So many paths.
    pub paths_max: usize,
    /// So many bytes in one file.
    pub file_bytes_max: u64,
    /// So many bytes in all.
    pub bytes_max: u64,
}

impl Default for ApplyLimits {
    fn default() -> Self {
        ApplyLimits { paths_max: 100_000, file_bytes_max: 128 << 20, bytes_max: 512 << 20 }
    }
}

/// A path where the person's own changes and the chosen ones do not go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileConflict {
    /// Which.
    pub path: RelPath,
    /// Why.
    pub why: Why,
}

/// Why changes do not go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Both changed the same lines.
    Lines(Vec<Conflict>),
    /// Both changed it, and not by lines: one removed it or made it another kind of thing.
    ChangedBoth,
    /// It is no longer there.
    Deleted,
    /// Something else is there already.
    Exists,
    /// Both changed it, and it is no text.
    NotText,
    /// It is another repository, which is not brought anywhere.
    Submodule,
}

/// Why changes were not applied, or not taken back.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// No such change.
    #[error("there is no change named {}", file.as_str())]
    Unknown {
        /// What was asked for.
        file: FileId,
    },
    /// No such hunk.
    #[error("{path} has no hunk {hunk}")]
    UnknownHunk {
        /// Of which file.
        path: RelPath,
        /// What was asked for.
        hunk: u32,
    },
    /// It does not go together with what the person changed. Nothing was written.
    #[error("{} with what was changed meanwhile", counted(.0.len(), "file does not go together", "files do not go together", .0.first().map(|first| &first.path)))]
    Conflicts(Vec<FileConflict>),
    /// It is no longer what was looked at. Nothing was written.
    #[error("{path} is not what it was when this was decided")]
    ContentChanged {
        /// What.
        path: RelPath,
    },
    /// It holds a placeholder in the place of a secret. Nothing was written.
    #[error("{path} holds a placeholder where a secret was")]
    Placeholder {
        /// What.
        path: RelPath,
    },
    /// It is never written to.
    #[error("{path} lies in a repository's own directory, which is never written to")]
    Protected {
        /// What.
        path: RelPath,
    },
    /// It is more than one plan takes on.
    #[error("this is more than {max} {of}, which is the limit of what is applied at once")]
    TooMuch {
        /// Of what.
        of: &'static str,
        /// The limit.
        max: u64,
    },
    /// Somebody else wrote while it was applied. What they wrote is there; everything else is as it was before.
    #[error("{} by something else meanwhile", counted(.paths.len(), "file was written", "files were written", .paths.first()))]
    Torn {
        /// Where.
        paths: Vec<RelPath>,
    },
    /// It could be neither carried out nor put back. The journal has what is needed to settle it.
    #[error("it stopped halfway, and has to be settled: {source}")]
    Unsettled {
        /// Why.
        #[source]
        source: CheckoutError,
    },
    /// It was never applied, so there is nothing to take back.
    #[error("it is not applied")]
    NotApplied,
    /// The repository is not as it has to be.
    #[error(transparent)]
    Repository(#[from] crate::commit::RepositoryError),
    /// The files, or git, say no.
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
}

impl ApplyError {
    /// Its row in the error table.
    pub fn code(&self) -> Code {
        match self {
            ApplyError::Unknown { .. } => Code::NotFound,
            ApplyError::UnknownHunk { .. } | ApplyError::TooMuch { .. } => Code::ValidationError,
            ApplyError::Conflicts(_)
            | ApplyError::ContentChanged { .. }
            | ApplyError::Torn { .. }
            | ApplyError::NotApplied => Code::Conflict,
            ApplyError::Unsettled { .. } => Code::OutcomeUnknown,
            ApplyError::Placeholder { .. } => Code::RedactedContent,
            ApplyError::Protected { .. } => Code::PermissionDenied,
            ApplyError::Repository(error) => error.code(),
            ApplyError::Checkout(error) => error.code(),
        }
    }
}

/// How many files something is said of, and which is the first.
pub(crate) fn counted(count: usize, one: &str, many: &str, first: Option<&RelPath>) -> String {
    let said = if count == 1 { one } else { many };
    match first {
        Some(first) => format!("{count} {said} ({first}{})", if count > 1 { ", …" } else { "" }),
        None => format!("{count} {said}"),
    }
}
