//! A name that moves, with the files and the index that go with it: all of them, or none.
//!
//! The files are journalled by themselves and come first; the name decides. After a crash it is looked at: if it moved, the rest
//! follows, and if not, the files go back.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::index::{Expect, IndexEdit, Locked, unlock};
use super::repository::Repository;
use super::{Committed, FILES, FILES_BACK, RepositoryError};
use crate::apply::{self, ApplyError, ApplyLimits, Settled, journal_failed, journal_get, journal_set};
use crate::{CheckoutError, ContentId, Oid, RelPath};

const SHIFT: &str = "shift";
const PHASE: &str = "shift-phase";

/// What a name, files and index are moved to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shift {
    pub(super) does: Does,
    /// The commit that was made.
    pub(super) commit: Oid,
    pub(super) parent: Option<Oid>,
    pub(super) reference: String,
    pub(super) index: Vec<IndexEdit>,
    /// Whether the person's files go with it: then the name is what is checked out.
    pub(super) has_files: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Does {
    /// The name goes to the commit.
    Make,
    /// The name goes back to where it was.
    Unmake,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
enum Phase {
    Staged,
    Moved,
    Restored,
    Torn { paths: Vec<RelPath> },
}

impl Shift {
    pub(super) fn is_there(journal: &Path) -> bool {
        journal.join(SHIFT).exists()
    }

    pub(super) fn read(journal: &Path) -> Result<Shift, CheckoutError> {
        journal_get(journal, SHIFT)
    }

    pub(super) fn stage(&self, journal: &Path) -> Result<(), CheckoutError> {
        journal_set(journal, PHASE, &Phase::Staged)?;
        journal_set(journal, SHIFT, self)
    }

    /// Where the name is before, and after.
    fn ends(&self) -> (Option<&Oid>, Option<&Oid>) {
        match self.does {
            Does::Make => (self.parent_there(), Some(&self.commit)),
            Does::Unmake => (Some(&self.commit), self.parent_there()),
        }
    }

    /// A branch of its own was not there before.
    fn parent_there(&self) -> Option<&Oid> {
        if self.has_files { self.parent.as_ref() } else { None }
    }

    /// Names the lock and the drafts beside the person's index.
    fn token(&self) -> String {
        let does = format!("{:?} {}", self.does, self.commit.as_str());
        ContentId::of(does.as_bytes()).to_string().chars().take(16).collect()
    }

    /// Whether the name moved, wherever it is by now.
    fn is_moved(&self, repository: &Repository<'_>) -> Result<bool, ApplyError> {
        let leads = repository.leads_to(&self.reference, &self.commit)?;
        Ok(leads == (self.does == Does::Make))
    }

    fn committed(&self, journal: &Path) -> Result<Committed, ApplyError> {
        let paths = if self.has_files { apply::paths_of(&journal.join(FILES))? } else { Vec::new() };
        Ok(Committed { commit: self.commit.clone(), reference: self.reference.clone(), paths })
    }
}

/// Makes room for another try, if nothing came of an earlier one.
pub(super) fn clear(repository: &Repository<'_>, journal: &Path) -> Result<(), ApplyError> {
    if settle(repository, journal, &|_| {})? != Settled::NotApplied {
        return Err(journal_failed("begin", io::ErrorKind::AlreadyExists.into()).into());
    }
    let gone = |removed: io::Result<()>| match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(journal_failed("clear", error)),
        _ => Ok(()),
    };
    gone(fs::remove_file(journal.join(SHIFT)))?;
    gone(fs::remove_dir_all(journal.join(FILES)))?;
    Ok(gone(fs::remove_dir_all(journal.join(FILES_BACK)))?)
}

/// Moves all of it.
pub(super) fn carry_out(
    repository: &Repository<'_>,
    journal: &Path,
    reached: &dyn Fn(&'static str),
) -> Result<Committed, ApplyError> {
    let settled = settle(repository, journal, reached)?;
    let shift = Shift::read(journal)?;
    match settled {
        Settled::Applied => return shift.committed(journal),
        Settled::Torn { paths } => return Err(ApplyError::Torn { paths }),
        // What was put back has no way forward again; it has to be planned anew.
        Settled::NotApplied if journal_get::<Phase>(journal, PHASE)? == Phase::Restored => {
            return Err(ApplyError::NotApplied);
        }
        Settled::NotApplied => {}
    }
    let Err(error) = go(&shift, repository, journal, reached) else { return shift.committed(journal) };
    match settle(repository, journal, reached) {
        Ok(Settled::Applied) => shift.committed(journal),
        Ok(Settled::NotApplied) => Err(error),
        Ok(Settled::Torn { paths }) => Err(ApplyError::Torn { paths }),
        Err(ApplyError::Checkout(source)) => Err(ApplyError::Unsettled { source }),
        Err(error) => Err(error),
    }
}

fn go(
    shift: &Shift,
    repository: &Repository<'_>,
    journal: &Path,
    reached: &dyn Fn(&'static str),
) -> Result<(), ApplyError> {
    let (from, to) = shift.ends();
    if shift.has_files && repository.head_reference()? != shift.reference {
        return Err(RepositoryError::Moved { reference: shift.reference.clone() }.into());
    }
    if repository.commit_of(&shift.reference)?.as_ref() != from {
        return Err(RepositoryError::Moved { reference: shift.reference.clone() }.into());
    }
    if !shift.has_files {
        repository.move_reference(&shift.reference, from, to)?;
        reached("reference moved");
        return Ok(journal_set(journal, PHASE, &Phase::Moved)?);
    }
    apply::carry_out(&journal.join(FILES), repository.place.workspace, repository.place.stop, reached)?;
    reached("files applied");
    let locked = Locked::take(repository, &shift.token())?;
    reached("index locked");
    locked.prepare(&shift.index, Expect::All)?;
    reached("index prepared");
    repository.move_reference(&shift.reference, from, to)?;
    reached("reference moved");
    locked.replace()?;
    reached("index replaced");
    Ok(journal_set(journal, PHASE, &Phase::Moved)?)
}

/// Finds out what became of it, and makes it all or nothing.
pub(super) fn settle(
    repository: &Repository<'_>,
    journal: &Path,
    reached: &dyn Fn(&'static str),
) -> Result<Settled, ApplyError> {
    if !Shift::is_there(journal) {
        return Ok(Settled::NotApplied);
    }
    let shift = Shift::read(journal)?;
    match journal_get(journal, PHASE)? {
        Phase::Moved => return Ok(Settled::Applied),
        Phase::Restored => return Ok(Settled::NotApplied),
        Phase::Torn { paths } => return Ok(Settled::Torn { paths }),
        Phase::Staged => {}
    }
    unlock(repository, &shift.token())?;
    if !shift.is_moved(repository)? {
        return settle_back(&shift, repository, journal, reached);
    }
    if shift.has_files {
        let locked = Locked::take(repository, &shift.token())?;
        locked.prepare(&shift.index, Expect::Where)?;
        locked.replace()?;
        reached("index replaced");
    }
    journal_set(journal, PHASE, &Phase::Moved)?;
    Ok(Settled::Applied)
}

/// The name did not move, so the files go back.
fn settle_back(
    shift: &Shift,
    repository: &Repository<'_>,
    journal: &Path,
    reached: &dyn Fn(&'static str),
) -> Result<Settled, ApplyError> {
    if !shift.has_files {
        return Ok(Settled::NotApplied);
    }
    let (files, workspace) = (journal.join(FILES), repository.place.workspace);
    let torn = match apply::settle(&files, workspace, reached)? {
        Settled::NotApplied => return Ok(Settled::NotApplied),
        Settled::Torn { paths } => paths,
        Settled::Applied => {
            let put_back =
                apply::undo(&files, &journal.join(FILES_BACK), workspace, &ApplyLimits::default(), reached);
            match put_back {
                Ok(_) => {
                    journal_set(journal, PHASE, &Phase::Restored)?;
                    return Ok(Settled::NotApplied);
                }
                // None of them goes back, if not all can.
                Err(ApplyError::Conflicts(_)) => apply::paths_of(&files)?,
                Err(ApplyError::Torn { paths }) => paths,
                Err(error) => return Err(error),
            }
        }
    };
    journal_set(journal, PHASE, &Phase::Torn { paths: torn.clone() })?;
    Ok(Settled::Torn { paths: torn })
}
