//! Taking back what was applied: the same as applying, the other way round.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::draft::Draft;
use super::folders::{Earlier, Layout};
use super::journal::{Entry, Journal};
use super::place::Held;
use super::restore::{Settled, settle};
use super::three_way::{Side, three_way};
use super::{ApplyError, ApplyLimits, Outcome, Plan, Why, carry_out};
use crate::{CheckoutError, Root};

/// Says what taking back an applied plan would write. What is still as it was left becomes exactly what it was before; what was
/// changed since keeps those changes, and where that does not go together it is [`ApplyError::Conflicts`].
pub fn plan_undo(journal: &Path, workspace: &Root, limits: &ApplyLimits) -> Result<Plan, ApplyError> {
    match settle(journal, workspace, &|_| {})? {
        Settled::Applied => {}
        Settled::NotApplied => return Err(ApplyError::NotApplied),
        Settled::Torn { paths } => return Err(ApplyError::Torn { paths }),
    }
    let journal = Journal::open(journal)?;
    let came = journal.entries.iter().filter(|entry| entry.edit.before.is_none());
    let gone = came.map(|entry| entry.edit.path.clone()).collect();
    let mut draft = Draft::new(Layout { workspace, gone, placed: Default::default() }, limits);
    for entry in &journal.entries {
        take_back(&mut draft, &journal, entry)?;
    }
    draft.finish(Earlier::Did(&journal.folders))
}

/// Takes back an applied plan, with a journal of its own for that. If that journal is there already, it goes on from there.
pub fn undo(
    journal: &Path,
    undo_journal: &Path,
    workspace: &Root,
    limits: &ApplyLimits,
    reached: &dyn Fn(&'static str),
) -> Result<Outcome, ApplyError> {
    if !Journal::is_there(undo_journal) {
        plan_undo(journal, workspace, limits)?.stage(undo_journal, workspace)?;
        reached("staged");
    }
    carry_out(undo_journal, workspace, &AtomicBool::new(false), reached)
}

fn take_back(draft: &mut Draft<'_>, journal: &Journal, entry: &Entry) -> Result<(), ApplyError> {
    let path = &entry.edit.path;
    let (before, after) = (entry.edit.before, entry.edit.after);
    let old = before.map(|state| side(state.mode, journal.before(entry))).transpose()?;
    let there = draft.ours(path)?;
    match (&there, old) {
        (there, Some(old)) if journal.is_after(entry, there) => {
            let permissions = before.map_or(0, |before| before.permissions);
            draft.put(path, there, old, permissions)?;
        }
        (there, None) if journal.is_after(entry, there) => draft.take_away(path, there),
        (Held::Directory | Held::Special, _) => {
            draft.conflict(path, if after.is_some() { Why::ChangedBoth } else { Why::Exists });
        }
        (there, old) => {
            let new = after.map(|state| side(state.mode, journal.after(entry))).transpose()?;
            match three_way(new, there.clone().side(), old) {
                Ok(result) => {
                    let had = there.state().or(before);
                    draft.place(path, there, result, had)?;
                }
                Err(why) => draft.conflict(path, why),
            }
        }
    }
    Ok(())
}

fn side(mode: crate::FileMode, bytes: Result<Vec<u8>, CheckoutError>) -> Result<Side, CheckoutError> {
    Ok(Side { mode, bytes: bytes? })
}
