//! Putting everything back as it was before, and finding out what became of a plan whose process ended.
//!
//! What is neither what was there nor what was to come is somebody else's: it is left alone, and named.

use std::io;
use std::path::Path;

use super::carry::{finish, tidy};
use super::folders::Does;
use super::journal::{Entry, Journal, Phase};
use super::place::{self, Held, held_of};
use super::{ApplyError, State};
use crate::{CheckoutError, RelPath, Root};

/// What became of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// All of it is there.
    Applied,
    /// Nothing of it is there.
    NotApplied,
    /// Somebody else wrote meanwhile, and that stays: these paths are not what they were, and everything else is.
    Torn {
        /// Which.
        paths: Vec<RelPath>,
    },
}

/// Finds out what became of a staged plan, and makes it all or nothing: what is not all in place is put back. It can be called
/// whenever nothing else works on the journal, and says the same again; `reached` is as in [`carry_out`](super::carry_out).
pub fn settle(
    journal: &Path,
    workspace: &Root,
    reached: &dyn Fn(&'static str),
) -> Result<Settled, ApplyError> {
    if !Journal::is_there(journal) {
        return Ok(Settled::NotApplied);
    }
    let journal = Journal::open(journal)?;
    match journal.phase()? {
        Phase::Staged | Phase::Restored => Ok(Settled::NotApplied),
        Phase::Torn { paths } => Ok(Settled::Torn { paths }),
        Phase::Applied => Ok(Settled::Applied),
        Phase::Placed => tidy(&journal, workspace, reached).map(|()| Settled::Applied),
        Phase::Placing if is_all_there(&journal, workspace)? => {
            finish(&journal, workspace, reached).map(|()| Settled::Applied)
        }
        Phase::Writing | Phase::Placing => restore(&journal, workspace, reached),
    }
}

/// Whether only the word was missing that it is done.
fn is_all_there(journal: &Journal, workspace: &Root) -> Result<bool, ApplyError> {
    for entry in &journal.entries {
        let (before, after) = (entry.edit.before.as_ref(), entry.edit.after.as_ref());
        let draft = held_of(workspace, &entry.draft, before, after)?;
        let is_tidy = matches!(draft, Held::Nothing) || draft.is(before);
        match held_of(workspace, &entry.edit.path, before, after) {
            Ok(held) if journal.is_after(entry, &held) && is_tidy => {}
            Ok(_) | Err(CheckoutError::Escapes { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Puts everything back. An error leaves the journal as it is, to be tried again.
pub(super) fn restore(
    journal: &Journal,
    workspace: &Root,
    reached: &dyn Fn(&'static str),
) -> Result<Settled, ApplyError> {
    if journal.phase()? != Phase::Placing {
        for entry in &journal.entries {
            place::discard(workspace, &entry.draft)?;
            reached("draft discarded");
        }
        journal.enter(&Phase::Restored)?;
        return Ok(Settled::NotApplied);
    }
    let mut torn = Vec::new();
    let mut unsettled = None;
    let mut back = |entry: &Entry, put: Result<bool, CheckoutError>| match put {
        Ok(true) => {}
        Ok(false) => torn.push(entry.edit.path.clone()),
        Err(error) if is_in_the_way(&error) => torn.push(entry.edit.path.clone()),
        // The others come first; then it is said, and tried again.
        Err(error) => drop(unsettled.get_or_insert(error)),
    };
    let (placed, taken): (Vec<&Entry>, Vec<&Entry>) =
        journal.entries.iter().partition(|entry| entry.edit.after.is_some());
    for entry in placed {
        back(entry, unplace(journal, workspace, entry));
        reached("taken back");
    }
    let mut folders = Ok(());
    for folder in journal.folders.iter().rev() {
        folders = folders.and(match folder.does {
            Does::Come => place::remove_folder(workspace, &folder.path),
            Does::Go => place::make_folder(workspace, &folder.path, folder.permissions),
        });
        reached("directory back");
    }
    for entry in taken {
        back(entry, give_back(journal, workspace, entry));
        reached("given back");
    }
    // What stands in the way of a directory is somebody else's, and the path beneath it is named already.
    match (unsettled, folders) {
        (Some(error), _) => return Err(error.into()),
        (None, Err(error)) if torn.is_empty() => return Err(error.into()),
        _ => {}
    }
    let paths: Vec<&RelPath> = journal.entries.iter().map(|entry| &entry.edit.path).collect();
    place::sync(workspace, &[], &paths)?;
    if torn.is_empty() {
        journal.enter(&Phase::Restored)?;
        return Ok(Settled::NotApplied);
    }
    torn.sort();
    journal.enter(&Phase::Torn { paths: torn.clone() })?;
    Ok(Settled::Torn { paths: torn })
}

/// Whether somebody put something else where a path, or a directory above it, was.
fn is_in_the_way(error: &CheckoutError) -> bool {
    let is_taken =
        matches!(error, CheckoutError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists);
    is_taken || error.is_missing() || matches!(error, CheckoutError::Escapes { .. })
}

/// Takes back what was put at a path. Says whether it is as it was.
fn unplace(journal: &Journal, workspace: &Root, entry: &Entry) -> Result<bool, CheckoutError> {
    let path = &entry.edit.path;
    let (before, after) = (entry.edit.before.as_ref(), entry.edit.after.as_ref());
    let here = held_of(workspace, path, before, after)?;
    let draft = held_of(workspace, &entry.draft, before, after)?;
    match (before, after) {
        (Some(before), Some(after)) if here.is(Some(after)) => match draft {
            Held::There(state, _) if state != *after => {
                swap_back(workspace, &entry.draft, path, before, after)
            }
            Held::Special => swap_back(workspace, &entry.draft, path, before, after),
            _ => {
                place::discard(workspace, &entry.draft)?;
                rewrite(journal, workspace, entry, before, after)
            }
        },
        (None, Some(after)) if here.is(Some(after)) && draft == Held::Nothing => {
            place::name(workspace, path, &entry.draft)?;
            if held_of(workspace, &entry.draft, Some(after), None)?.is(Some(after)) {
                return place::discard(workspace, &entry.draft).map(|()| true);
            }
            place::name(workspace, &entry.draft, path).map(|()| false)
        }
        _ => {
            // What was in its place a moment ago, and is neither of the two, is kept under the name it has.
            if draft.is(before) || draft.is(after) {
                place::discard(workspace, &entry.draft)?;
            }
            Ok(journal.is_before(entry, &here))
        }
    }
}

/// Trades what is at a path for what was there, unless somebody else has been there.
fn swap_back(
    workspace: &Root,
    old: &RelPath,
    path: &RelPath,
    before: &State,
    after: &State,
) -> Result<bool, CheckoutError> {
    if place::trade(workspace, old, path, after)? == place::Traded::Not {
        return Ok(false);
    }
    let traded = held_of(workspace, old, Some(after), None)?;
    if traded == Held::Nothing || traded.is(Some(after)) {
        place::discard(workspace, old)?;
        return Ok(held_of(workspace, path, Some(before), None)?.is(Some(before)));
    }
    place::trade(workspace, old, path, before)?;
    Ok(false)
}

/// Writes what was at a path anew, from the journal.
fn rewrite(
    journal: &Journal,
    workspace: &Root,
    entry: &Entry,
    before: &State,
    after: &State,
) -> Result<bool, CheckoutError> {
    let spare = entry.spare()?;
    place::discard(workspace, &spare)?;
    place::write(workspace, &spare, before, &journal.before(entry)?)?;
    place::sync(workspace, std::slice::from_ref(&spare), &[])?;
    swap_back(workspace, &spare, &entry.edit.path, before, after)
}

/// Gives back what was taken away from a path. Says whether it is as it was.
fn give_back(journal: &Journal, workspace: &Root, entry: &Entry) -> Result<bool, CheckoutError> {
    let path = &entry.edit.path;
    let before = entry.edit.before.as_ref();
    let here = held_of(workspace, path, before, None)?;
    let draft = held_of(workspace, &entry.draft, before, None)?;
    match (&here, &draft, before) {
        (_, Held::Nothing, _) if here.is(before) => Ok(true),
        (Held::Nothing, Held::Nothing, Some(before)) => {
            let spare = entry.spare()?;
            place::discard(workspace, &spare)?;
            place::write(workspace, &spare, before, &journal.before(entry)?)?;
            place::sync(workspace, std::slice::from_ref(&spare), &[])?;
            place::name(workspace, &spare, path).map(|()| true)
        }
        (Held::Nothing, ..) => place::name(workspace, &entry.draft, path).map(|()| draft.is(before)),
        _ => {
            if draft.is(before) {
                place::discard(workspace, &entry.draft)?;
            }
            Ok(false)
        }
    }
}
