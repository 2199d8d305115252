//! Chosen changes as a commit of the person's repository: on a branch of its own, or on what they have checked out.
//!
//! The commit holds what is committed already and the chosen changes, nothing of the person's uncommitted work: the changes are
//! brought to the files of HEAD, which are laid out in a directory of the journal's own. Only plumbing is used, no hook runs, and
//! nothing is signed. A branch touches neither their files nor their index; a commit on HEAD is applied to their files too, and the
//! index follows for exactly those paths. It does not push, merge or switch anything.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use runyard_domain::Code;
use serde::{Deserialize, Serialize};

use crate::apply::{self, ApplyError, ApplyLimits, Edit, FileConflict, Plan, Selection, Settled, Sides};
use crate::{Changes, CheckoutError, Oid, RelPath, Root};

mod index;
mod repository;
mod shift;

use index::IndexEdit;
use repository::Repository;
use shift::{Does, Shift};

/// Where a commit goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Onto {
    /// A new branch of that name, from HEAD.
    Branch(String),
    /// What is checked out.
    Head,
}

/// The person's repository.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The workspace.
    pub path: &'a Path,
    /// The same, open.
    pub workspace: &'a Root,
    /// Set when somebody no longer wants it. Files that have begun to change are taken back; once all of them are in place, what
    /// goes with them follows.
    pub stop: &'a AtomicBool,
}

/// A commit that is wanted.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// In which repository.
    pub place: Place<'a>,
    /// A directory for its journal, and nothing else.
    pub journal: &'a Path,
    /// Where it goes.
    pub onto: Onto,
    /// What it says.
    pub message: &'a str,
}

/// What a commit would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitPlan {
    /// The commit that it follows; none where there is none yet.
    pub parent: Option<Oid>,
    /// What will name it: a branch, or `HEAD` where none is checked out.
    pub reference: String,
    /// What it changes in what is committed.
    pub tree: Plan,
    /// What it changes in the person's files; none for a branch.
    pub files: Option<Plan>,
    message: String,
    onto: Onto,
}

/// A commit that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Which.
    pub commit: Oid,
    /// What names it.
    pub reference: String,
    /// The paths of the person's files that are other than they were.
    pub paths: Vec<RelPath>,
}

/// Why a repository takes no commit.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// There is none.
    #[error("the workspace is no git repository")]
    NoRepository,
    /// The name is none.
    #[error("{name:?} is no name for a branch")]
    BadBranch {
        /// What was asked for.
        name: String,
    },
    /// It is there already.
    #[error("there is a branch {name} already")]
    BranchExists {
        /// What was asked for.
        name: String,
    },
    /// It is checked out.
    #[error("{reference} is checked out, and so is not removed")]
    CheckedOut {
        /// Which.
        reference: String,
    },
    /// It names another commit by now, or another branch is checked out.
    #[error("{reference} is not where it was when this was decided")]
    Moved {
        /// Which.
        reference: String,
    },
    /// git does not know whose commit it would be.
    #[error("git does not know who commits: set user.name and user.email")]
    NoIdentity,
    /// A merge, a rebase or the like is not finished.
    #[error("{what} is in progress; finish or abort it first")]
    Unfinished {
        /// What.
        what: &'static str,
    },
    /// The changes build on work of the person's that is not committed.
    #[error("{} on what is not committed", apply::counted(.0.len(), "change builds", "changes build", .0.first().map(|first| &first.path)))]
    Uncommitted(Vec<FileConflict>),
    /// What is staged does not go together with the commit, or was staged meanwhile.
    #[error("what is staged of {path} is in the way")]
    Staged {
        /// Of which path, from the top of the repository.
        path: RelPath,
    },
    /// Another git is at work.
    #[error("another git process holds the index")]
    Locked,
    /// HEAD has it all already.
    #[error("there is nothing to commit")]
    Nothing,
}

impl RepositoryError {
    /// Its row in the error table.
    pub fn code(&self) -> Code {
        match self {
            RepositoryError::NoRepository
            | RepositoryError::BadBranch { .. }
            | RepositoryError::NoIdentity
            | RepositoryError::Nothing => Code::ValidationError,
            RepositoryError::BranchExists { .. }
            | RepositoryError::CheckedOut { .. }
            | RepositoryError::Moved { .. }
            | RepositoryError::Unfinished { .. }
            | RepositoryError::Uncommitted(_)
            | RepositoryError::Staged { .. }
            | RepositoryError::Locked => Code::Conflict,
        }
    }
}

/// Says what a commit of a selection would be. Nothing of the repository changes; the journal's directory holds what HEAD has of the
/// paths in question.
pub fn plan(
    request: &Request<'_>,
    changes: &Changes,
    selection: Option<&Selection>,
    sides: &mut Sides<'_>,
    placeholder: &dyn Fn(&[u8]) -> bool,
    limits: &ApplyLimits,
) -> Result<CommitPlan, ApplyError> {
    let repository = Repository::open(request.place, request.journal)?;
    let reference = match &request.onto {
        Onto::Branch(name) => repository.new_branch(name)?,
        Onto::Head => {
            repository.refuse_unfinished()?;
            repository.head_reference()?
        }
    };
    repository.check_identity()?;
    let parent = repository.commit_of("HEAD")?;
    let paths = changes.files.iter().flat_map(|change| [Some(&change.path), change.old_path.as_ref()]);
    let scratch = repository.lay_out(parent.as_ref(), paths.flatten())?;
    let files = match request.onto {
        Onto::Branch(_) => None,
        Onto::Head => Some(apply::plan(changes, selection, sides, placeholder, limits)?),
    };
    let committed = &mut Sides { workspace: &scratch, contents: &mut *sides.contents, ..*sides };
    let tree = match apply::plan(changes, selection, committed, placeholder, limits) {
        Err(ApplyError::Conflicts(conflicts)) => return Err(RepositoryError::Uncommitted(conflicts).into()),
        tree => tree?,
    };
    if tree.edits.is_empty() {
        return Err(RepositoryError::Nothing.into());
    }
    let (message, onto) = (request.message.to_owned(), request.onto.clone());
    Ok(CommitPlan { parent, reference, tree, files, message, onto })
}

impl CommitPlan {
    /// What it comes to, as bytes for a digest.
    pub fn describe(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Described<'a> {
            version: u32,
            parent: Option<&'a Oid>,
            reference: &'a str,
            message: &'a str,
            tree: &'a [Edit],
            files: Option<&'a [Edit]>,
        }
        let described = Described {
            version: 1,
            parent: self.parent.as_ref(),
            reference: &self.reference,
            message: &self.message,
            tree: &self.tree.edits,
            files: self.files.as_ref().map(|files| &files.edits[..]),
        };
        serde_json::to_vec(&described).unwrap_or_default()
    }

    /// Puts everything on disk that carrying it out and taking it back need. The commit is made, and nothing names it yet.
    pub fn stage(&self, place: Place<'_>, journal: &Path) -> Result<Oid, ApplyError> {
        let repository = Repository::open(place, journal)?;
        shift::clear(&repository, journal)?;
        let scratch = repository.scratch()?;
        let laid = journal.join(LAID_JOURNAL);
        self.tree.stage(&laid, &scratch)?;
        apply::carry_out(&laid, &scratch, place.stop, &|_| {})?;
        let paths = self.tree.edits.iter().map(|edit| &edit.path);
        let commit = repository.commit(self.parent.as_ref(), paths, &self.message)?;
        let mut index = Vec::new();
        if let Some(files) = &self.files {
            index = index::follow(&repository, self.parent.as_ref(), &commit)?;
            files.stage(&journal.join(FILES), place.workspace)?;
        }
        Shift {
            does: Does::Make,
            commit: commit.clone(),
            parent: self.parent.clone(),
            reference: self.reference.clone(),
            index,
            has_files: self.files.is_some(),
        }
        .stage(journal)?;
        repository.remove_scratch()?;
        Ok(commit)
    }
}

/// Where the person's files are journalled, below the journal.
const FILES: &str = "files";
/// And where their being put back is.
const FILES_BACK: &str = "files-back";
/// Where the files of HEAD are, below the journal, while the commit is made.
const LAID: &str = "laid";
const LAID_JOURNAL: &str = "laid-journal";

/// Makes a staged commit count: the person's files where it is on HEAD, then the name, then the index. The name has to be where it
/// was, and the files what they were, or nothing changes.
pub fn carry_out(
    place: Place<'_>,
    journal: &Path,
    reached: &dyn Fn(&'static str),
) -> Result<Committed, ApplyError> {
    shift::carry_out(&Repository::open(place, journal)?, journal, reached)
}

/// Finds out what became of a staged commit, or of taking one back, and makes it all or nothing.
pub fn settle(
    place: Place<'_>,
    journal: &Path,
    reached: &dyn Fn(&'static str),
) -> Result<Settled, ApplyError> {
    shift::settle(&Repository::open(place, journal)?, journal, reached)
}

/// Takes a commit back: its name goes to where it was, files and index to what they were. Where the name has moved on, it is
/// [`RepositoryError::Moved`]: then only the person can say what is to become of it.
pub fn undo(
    place: Place<'_>,
    journal: &Path,
    undo_journal: &Path,
    limits: &ApplyLimits,
    reached: &dyn Fn(&'static str),
) -> Result<Committed, ApplyError> {
    let repository = Repository::open(place, undo_journal)?;
    if Shift::is_there(undo_journal) {
        return shift::carry_out(&repository, undo_journal, reached);
    }
    if settle(place, journal, reached)? != Settled::Applied {
        return Err(ApplyError::NotApplied);
    }
    let made = Shift::read(journal)?;
    if repository.commit_of(&made.reference)?.as_ref() != Some(&made.commit) {
        return Err(RepositoryError::Moved { reference: made.reference }.into());
    }
    if !made.has_files {
        repository.refuse_checked_out(&made.reference)?;
    }
    let index: Vec<IndexEdit> = index::back(&repository, &made.index)?;
    std::fs::create_dir_all(undo_journal).map_err(|error| apply::journal_failed("make", error))?;
    if made.has_files {
        let files = apply::plan_undo(&journal.join(FILES), place.workspace, limits)?;
        files.stage(&undo_journal.join(FILES), place.workspace)?;
    }
    Shift { does: Does::Unmake, index, ..made }.stage(undo_journal)?;
    reached("staged");
    shift::carry_out(&repository, undo_journal, reached)
}

/// What taking a commit back would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoPlan {
    /// The commit that goes.
    pub commit: Oid,
    /// What names it.
    pub reference: String,
    /// What happens to the person's files; none for a branch.
    pub files: Vec<Edit>,
}

impl UndoPlan {
    /// What it comes to, as bytes for a digest.
    pub fn describe(&self) -> Vec<u8> {
        serde_json::to_vec(&("undo", 1, &self.commit, &self.reference, &self.files)).unwrap_or_default()
    }
}

/// Whether a journal is that of a commit.
pub fn is_there(journal: &Path) -> bool {
    Shift::is_there(journal)
}

/// Says what taking a commit back would do.
pub fn plan_undo(place: Place<'_>, journal: &Path, limits: &ApplyLimits) -> Result<UndoPlan, ApplyError> {
    let made = Shift::read(journal)?;
    let files = match made.has_files {
        true => apply::plan_undo(&journal.join(FILES), place.workspace, limits)?.edits,
        false => Vec::new(),
    };
    Ok(UndoPlan { commit: made.commit, reference: made.reference, files })
}

/// A path from the top of the repository.
fn at_top(prefix: &[u8], path: &RelPath) -> Result<RelPath, CheckoutError> {
    Ok(RelPath::parse(&[prefix, path.as_bytes()].concat())?)
}
