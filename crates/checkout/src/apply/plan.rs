//! What would be written where, found without writing anything.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::draft::Draft;
use super::folders::{Earlier, Folder, Layout};
use super::place::{Held, held};
use super::three_way::{Side, three_way};
use super::{ApplyError, ApplyLimits, Edit, Selection, Why};
use crate::{
    Base, Change, ChangeKind, Changes, CheckoutError, ContentId, Contents, FileId, FileMode, Kind, LineKind,
    RelPath, Root, hunks, is_text, take,
};

/// What a plan is made from.
#[derive(Debug)]
pub struct Sides<'a> {
    /// What the checkout began as.
    pub base: &'a Base,
    /// And what its files held.
    pub contents: &'a mut Contents,
    /// Where the changes are.
    pub checkout: &'a Root,
    /// Where they are to be brought.
    pub workspace: &'a Root,
}

/// What is to be written, whole: every path with what is there now and what will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// By path. None where everything that was chosen is there already.
    pub edits: Vec<Edit>,
    /// What each path will hold, in the order of the edits.
    pub(super) contents: Vec<Option<Vec<u8>>>,
    /// The directory that each path's draft lies in, in the order of the edits.
    pub(super) homes: Vec<Option<RelPath>>,
    pub(super) folders: Vec<Folder>,
}

impl Plan {
    /// What it comes to, as bytes for a digest: the same for the same result on the same files, in whatever order it was chosen.
    pub fn describe(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Described<'a> {
            version: u32,
            edits: &'a [Edit],
        }
        serde_json::to_vec(&Described { version: 1, edits: &self.edits }).unwrap_or_default()
    }
}

/// Says what applying a selection would write, or everything but what is protected where there is none.
///
/// The checkout has to be what the changes say, or it is [`ApplyError::ContentChanged`]. What the person changed since the checkout
/// was made is kept; where that does not go together it is [`ApplyError::Conflicts`], with every conflict there is.
pub fn plan(
    changes: &Changes,
    selection: Option<&Selection>,
    sides: &mut Sides<'_>,
    placeholder: &dyn Fn(&[u8]) -> bool,
    limits: &ApplyLimits,
) -> Result<Plan, ApplyError> {
    let whole;
    let selection = match selection {
        Some(selection) => selection,
        None => {
            whole = Selection::whole(changes);
            &whole
        }
    };
    let named: BTreeMap<&FileId, &Change> = changes.files.iter().map(|change| (&change.id, change)).collect();
    let kept: BTreeSet<&RelPath> =
        changes.files.iter().filter(|change| change.after.is_some()).map(|change| &change.path).collect();
    let mut chosen = Vec::new();
    for (file, hunks) in selection.merged() {
        let change = *named.get(file).ok_or_else(|| ApplyError::Unknown { file: file.clone() })?;
        for path in [Some(&change.path), change.old_path.as_ref()].into_iter().flatten() {
            if path.is_git() {
                return Err(ApplyError::Protected { path: path.clone() });
            }
        }
        if hunks.as_ref().is_none_or(|hunks| !hunks.is_empty()) {
            chosen.push((change, hunks));
        }
    }
    chosen.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
    let gone = chosen.iter().filter_map(|(change, _)| leaves(change)).cloned().collect();
    let workspace = sides.workspace;
    let mut draft = Draft::new(Layout { workspace, gone, placed: BTreeSet::new() }, limits);
    for (change, hunks) in &chosen {
        let theirs = theirs(&kept, change, hunks.as_ref(), sides, limits)?;
        if let Some(theirs) = &theirs
            && placeholder(&theirs.bytes)
            && brings(change, theirs, sides, placeholder, limits)?
        {
            return Err(ApplyError::Placeholder { path: change.path.clone() });
        }
        bring(&mut draft, change, theirs, sides)?;
    }
    draft.finish(Earlier::Nothing)
}

/// The path that a change leaves empty.
fn leaves(change: &Change) -> Option<&RelPath> {
    match change.kind {
        ChangeKind::Deleted => Some(&change.path),
        ChangeKind::Renamed => change.old_path.as_ref(),
        _ => None,
    }
}

/// What the checkout has at a path, as far as it was chosen.
fn theirs(
    kept: &BTreeSet<&RelPath>,
    change: &Change,
    chosen: Option<&BTreeSet<u32>>,
    sides: &mut Sides<'_>,
    limits: &ApplyLimits,
) -> Result<Option<Side>, ApplyError> {
    if is_submodule(change) {
        return Ok(None);
    }
    let changed = |path: &RelPath| ApplyError::ContentChanged { path: path.clone() };
    if let Some(left) = leaves(change)
        && !kept.contains(left)
        && sides.checkout.look(left)?.is_some_and(|found| found.kind != Kind::Directory)
    {
        return Err(changed(left));
    }
    let theirs = match &change.after {
        None => None,
        Some(after) => match held(sides.checkout, &change.path, limits.file_bytes_max)? {
            Held::There(state, bytes) if (state.mode, state.content) == (after.mode, after.content) => {
                Some(Side { mode: state.mode, bytes })
            }
            _ => return Err(changed(&change.path)),
        },
    };
    let Some(chosen) = chosen else { return Ok(theirs) };
    let unknown = |hunk| ApplyError::UnknownHunk { path: change.path.clone(), hunk };
    let first = chosen.first().copied().unwrap_or_default();
    if !matches!(change.content, crate::ContentChange::Text { .. }) {
        return Err(unknown(first));
    }
    let before = base(change, sides, limits)?;
    let old = before.as_ref().map_or(&[][..], |side| &side.bytes);
    let hunks = hunks(old, theirs.as_ref().map_or(&[][..], |side| &side.bytes));
    if let Some(hunk) = chosen.iter().find(|hunk| **hunk as usize >= hunks.len()) {
        return Err(unknown(*hunk));
    }
    if chosen.len() == hunks.len() {
        return Ok(theirs);
    }
    // Some of its lines, and nothing else of it.
    let mode = before.as_ref().or(theirs.as_ref()).map_or(FileMode::Plain, |side| side.mode);
    Ok(Some(Side { mode, bytes: take(old, &hunks, chosen) }))
}

/// What the checkout began with, for a change.
fn base(change: &Change, sides: &mut Sides<'_>, limits: &ApplyLimits) -> Result<Option<Side>, ApplyError> {
    let Some(before) = &change.before else { return Ok(None) };
    let path = change.old_path.as_ref().unwrap_or(&change.path);
    let entry = sides.base.find(path).ok_or(CheckoutError::Damaged("it lacks a path that changed"))?;
    let bytes = sides.contents.read(entry, limits.file_bytes_max)?;
    if ContentId::of(&bytes) != before.content {
        return Err(CheckoutError::Damaged("a file was not what it is said to have been").into());
    }
    Ok(Some(Side { mode: before.mode, bytes }))
}

/// Whether a placeholder comes with a change, and was not there before.
fn brings(
    change: &Change,
    theirs: &Side,
    sides: &mut Sides<'_>,
    placeholder: &dyn Fn(&[u8]) -> bool,
    limits: &ApplyLimits,
) -> Result<bool, ApplyError> {
    let Some(base) = base(change, sides, limits)? else { return Ok(true) };
    if !is_text(&base.bytes) || !is_text(&theirs.bytes) {
        return Ok(true);
    }
    let added = hunks(&base.bytes, &theirs.bytes).into_iter().flat_map(|hunk| hunk.lines);
    let added: Vec<u8> =
        added.filter(|line| line.kind == LineKind::Added).flat_map(|line| line.bytes).collect();
    Ok(placeholder(&added))
}

fn is_submodule(change: &Change) -> bool {
    [change.before, change.after].into_iter().flatten().any(|version| version.mode == FileMode::Submodule)
}

/// Brings one change to the person's files.
fn bring(
    draft: &mut Draft<'_>,
    change: &Change,
    theirs: Option<Side>,
    sides: &mut Sides<'_>,
) -> Result<(), ApplyError> {
    let path = &change.path;
    let there = draft.ours(path)?;
    match (change.kind, &change.old_path) {
        _ if is_submodule(change) => draft.conflict(path, Why::Submodule),
        (ChangeKind::Renamed, Some(old)) => {
            let ours = draft.ours(old)?;
            if matches!(ours, Held::Nothing) && there.clone().side() == theirs {
                return Ok(());
            }
            if !draft.is_free(path, &there) {
                draft.conflict(path, Why::Exists);
                return Ok(());
            }
            let base = base(change, sides, draft.limits)?;
            match three_way(base, ours.clone().side(), theirs) {
                Ok(new) => {
                    draft.place(path, &there, new, ours.state())?;
                    draft.take_away(old, &ours);
                }
                Err(why) => draft.conflict(old, why),
            }
        }
        (ChangeKind::Added | ChangeKind::Copied, _) => {
            let ours = if draft.is_free(path, &there) { None } else { there.clone().side() };
            match three_way(None, ours, theirs) {
                Ok(_) if matches!(there, Held::Special) => draft.conflict(path, Why::Exists),
                Ok(new) => draft.place(path, &there, new, None)?,
                Err(why) => draft.conflict(path, why),
            }
        }
        _ if matches!(there, Held::Directory | Held::Special) => draft.conflict(path, Why::ChangedBoth),
        _ => {
            let base = base(change, sides, draft.limits)?;
            match three_way(base, there.clone().side(), theirs) {
                Ok(Some(new)) => draft.place(path, &there, Some(new), there.state())?,
                Ok(None) => draft.take_away(path, &there),
                Err(why) => draft.conflict(path, why),
            }
        }
    }
    Ok(())
}
