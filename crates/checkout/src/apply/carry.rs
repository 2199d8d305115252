//! Changing a person's files as a journal says, all of them or none.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::folders::{Does, ancestors};
use super::journal::{Entry, Journal, Phase};
use super::place::{self, Traded, held_of};
use super::restore::{self, Settled, settle};
use super::{ApplyError, Edit, Outcome, State};
use crate::{CheckoutError, RelPath, Root};

/// Changes the person's files as a staged plan says. Every path has to be what the plan began from, or nothing is written.
///
/// An error means that everything is as it was, unless it is [`ApplyError::Torn`], which says what is not. What was carried out
/// already stays so; what was interrupted is settled first. Where `stop` is set before all of it is in place, what was written is
/// taken back, and it is [`CheckoutError::Stopped`]. `reached` is told of every step between which the process may end.
pub fn carry_out(
    journal: &Path,
    workspace: &Root,
    stop: &AtomicBool,
    reached: &dyn Fn(&'static str),
) -> Result<Outcome, ApplyError> {
    let settled = settle(journal, workspace, reached)?;
    let journal = Journal::open(journal)?;
    let outcome = Outcome { paths: journal.entries.iter().map(|entry| entry.edit.path.clone()).collect() };
    match settled {
        Settled::Applied => return Ok(outcome),
        Settled::Torn { paths } => return Err(ApplyError::Torn { paths }),
        Settled::NotApplied => {}
    }
    check(&journal, workspace)?;
    reached("checked");
    let Err(error) = change(&journal, workspace, stop, reached) else { return Ok(outcome) };
    // All of it is in place, and what is left of the old is tidied up when it is settled.
    if matches!(journal.phase(), Ok(Phase::Placed | Phase::Applied)) {
        return Ok(outcome);
    }
    match restore::restore(&journal, workspace, reached) {
        Ok(Settled::Torn { paths }) => Err(ApplyError::Torn { paths }),
        Ok(Settled::NotApplied | Settled::Applied) => Err(error),
        Err(ApplyError::Checkout(source)) => Err(ApplyError::Unsettled { source }),
        Err(error) => Err(error),
    }
}

/// Whether everything is what the plan began from.
fn check(journal: &Journal, workspace: &Root) -> Result<(), ApplyError> {
    let gone: BTreeSet<&RelPath> = journal
        .entries
        .iter()
        .filter(|entry| entry.edit.after.is_none())
        .map(|entry| &entry.edit.path)
        .collect();
    for entry in &journal.entries {
        let Edit { path, before, .. } = &entry.edit;
        // What lies beneath something that goes first is not there, whatever a link seems to say.
        if before.is_none() && ancestors(path).any(|above| gone.contains(&above)) {
            continue;
        }
        if !journal.is_before(entry, &held_of(workspace, path, before.as_ref(), None)?) {
            return Err(ApplyError::ContentChanged { path: path.clone() });
        }
    }
    Ok(())
}

fn change(
    journal: &Journal,
    workspace: &Root,
    stop: &AtomicBool,
    reached: &dyn Fn(&'static str),
) -> Result<(), ApplyError> {
    let check = || match stop.load(Ordering::Relaxed) {
        true => Err(CheckoutError::Stopped),
        false => Ok(()),
    };
    journal.enter(&Phase::Writing)?;
    reached("begun");
    let mut drafts = Vec::new();
    for entry in &journal.entries {
        check()?;
        if let Some(after) = &entry.edit.after {
            place::write(workspace, &entry.draft, after, &journal.after(entry)?)?;
            reached("drafted");
            drafts.push(entry.draft.clone());
        }
    }
    place::sync(workspace, &drafts, &[])?;
    journal.enter(&Phase::Placing)?;
    reached("drafts durable");
    for entry in journal.entries.iter().filter(|entry| entry.edit.after.is_none()) {
        check()?;
        take_away(workspace, entry, reached)?;
    }
    for folder in &journal.folders {
        check()?;
        match folder.does {
            Does::Go => place::remove_folder(workspace, &folder.path)?,
            Does::Come => place::make_folder(workspace, &folder.path, folder.permissions)?,
        }
        reached("directory");
    }
    for entry in &journal.entries {
        check()?;
        match (&entry.edit.before, &entry.edit.after) {
            (_, None) => {}
            (None, Some(_)) => place_new(workspace, entry)?,
            (Some(before), Some(after)) => replace(workspace, entry, before, after, reached)?,
        }
        reached("placed");
    }
    check()?;
    finish(journal, workspace, reached)
}

/// Everything is in place: makes that last, and cleans up.
pub(super) fn finish(
    journal: &Journal,
    workspace: &Root,
    reached: &dyn Fn(&'static str),
) -> Result<(), ApplyError> {
    let paths: Vec<&RelPath> = journal.entries.iter().map(|entry| &entry.edit.path).collect();
    place::sync(workspace, &[], &paths)?;
    journal.enter(&Phase::Placed)?;
    reached("all placed");
    tidy(journal, workspace, reached)
}

/// Removes what was replaced. From here on it is applied, whatever happens.
pub(super) fn tidy(
    journal: &Journal,
    workspace: &Root,
    reached: &dyn Fn(&'static str),
) -> Result<(), ApplyError> {
    for entry in &journal.entries {
        place::discard(workspace, &entry.draft)?;
        reached("tidied");
    }
    Ok(journal.enter(&Phase::Applied)?)
}

fn take_away(workspace: &Root, entry: &Entry, reached: &dyn Fn(&'static str)) -> Result<(), ApplyError> {
    let Edit { path, before, .. } = &entry.edit;
    place::name(workspace, path, &entry.draft)?;
    reached("taken away");
    if held_of(workspace, &entry.draft, before.as_ref(), None)?.is(before.as_ref()) {
        return Ok(());
    }
    place::name(workspace, &entry.draft, path)?;
    Err(ApplyError::ContentChanged { path: path.clone() })
}

fn place_new(workspace: &Root, entry: &Entry) -> Result<(), ApplyError> {
    match place::name(workspace, &entry.draft, &entry.edit.path) {
        Err(CheckoutError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
            Err(ApplyError::ContentChanged { path: entry.edit.path.clone() })
        }
        placed => Ok(placed?),
    }
}

fn replace(
    workspace: &Root,
    entry: &Entry,
    before: &State,
    after: &State,
    reached: &dyn Fn(&'static str),
) -> Result<(), ApplyError> {
    let path = &entry.edit.path;
    let changed = || ApplyError::ContentChanged { path: path.clone() };
    match place::trade(workspace, &entry.draft, path, before)? {
        Traded::Over => return Ok(()),
        Traded::Not => return Err(changed()),
        Traded::Both => reached("traded"),
    }
    if held_of(workspace, &entry.draft, Some(before), None)?.is(Some(before)) {
        return Ok(());
    }
    place::trade(workspace, &entry.draft, path, after)?;
    Err(changed())
}
