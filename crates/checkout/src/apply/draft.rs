//! A plan that is being put together, path by path.

use std::collections::{BTreeMap, BTreeSet};

use super::folders::{Does, Earlier, Layout};
use super::place::{Held, held};
use super::three_way::{Side, permissions};
use super::{ApplyError, ApplyLimits, Edit, FileConflict, Plan, State, Why};
use crate::{FileMode, RelPath};

/// A plan that is being put together.
pub(super) struct Draft<'a> {
    pub(super) layout: Layout<'a>,
    pub(super) limits: &'a ApplyLimits,
    edits: BTreeMap<RelPath, Drafted>,
    conflicts: Vec<FileConflict>,
    bytes: u64,
}

struct Drafted {
    before: Option<State>,
    after: Option<(State, Vec<u8>)>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(layout: Layout<'a>, limits: &'a ApplyLimits) -> Self {
        Draft { layout, limits, edits: BTreeMap::new(), conflicts: Vec::new(), bytes: 0 }
    }

    /// What is at a path now.
    pub(super) fn ours(&self, path: &RelPath) -> Result<Held, ApplyError> {
        match self.layout.look(path)? {
            None => Ok(Held::Nothing),
            Some(_) => Ok(held(self.layout.workspace, path, self.limits.file_bytes_max)?),
        }
    }

    /// Whether something new can come to a path: nothing is there, or what is there goes. Whether all that is in a directory goes is
    /// seen at the end.
    pub(super) fn is_free(&self, path: &RelPath, there: &Held) -> bool {
        matches!(there, Held::Nothing | Held::Directory) || self.layout.gone.contains(path)
    }

    pub(super) fn conflict(&mut self, path: &RelPath, why: Why) {
        self.conflicts.push(FileConflict { path: path.clone(), why });
    }

    /// Takes away what is at a path, unless something else comes there.
    pub(super) fn take_away(&mut self, path: &RelPath, there: &Held) {
        if there.state().is_some() && !self.layout.placed.contains(path) {
            self.edits.entry(path.clone()).or_insert(Drafted { before: there.state(), after: None });
        }
    }

    /// Puts something at a path. It may be used for what it could be used for before, as far as its mode allows.
    pub(super) fn place(
        &mut self,
        path: &RelPath,
        there: &Held,
        new: Option<Side>,
        had: Option<State>,
    ) -> Result<(), ApplyError> {
        let Some(new) = new else {
            self.take_away(path, there);
            return Ok(());
        };
        let permissions = match had {
            Some(had) if had.mode == new.mode => had.permissions,
            Some(had) if had.mode != FileMode::Link => permissions(new.mode, had.permissions),
            _ => permissions(new.mode, self.layout.usual(path)?),
        };
        self.put(path, there, new, permissions)
    }

    /// Puts something at a path, with exactly these permissions.
    pub(super) fn put(
        &mut self,
        path: &RelPath,
        there: &Held,
        new: Side,
        permissions: u32,
    ) -> Result<(), ApplyError> {
        let state =
            State { mode: new.mode, permissions, bytes: new.bytes.len() as u64, content: new.content() };
        self.layout.placed.insert(path.clone());
        self.bytes += state.bytes;
        if self.bytes > self.limits.bytes_max {
            return Err(ApplyError::TooMuch { of: "bytes", max: self.limits.bytes_max });
        }
        if there.is(Some(&state)) {
            self.edits.remove(path);
        } else {
            self.edits
                .insert(path.clone(), Drafted { before: there.state(), after: Some((state, new.bytes)) });
        }
        Ok(())
    }

    /// The plan, if nothing is in its way.
    pub(super) fn finish(mut self, earlier: Earlier<'_>) -> Result<Plan, ApplyError> {
        if self.edits.len() > self.limits.paths_max {
            return Err(ApplyError::TooMuch { of: "paths", max: self.limits.paths_max as u64 });
        }
        // What was to go and does not is still in the way.
        self.layout.gone = self
            .edits
            .iter()
            .filter(|(_, edit)| edit.after.is_none())
            .map(|(path, _)| path.clone())
            .collect();
        let (folders, in_the_way) = self.layout.folders(earlier)?;
        self.conflicts.extend(in_the_way);
        if !self.conflicts.is_empty() {
            self.conflicts.sort_by(|one, other| one.path.cmp(&other.path));
            self.conflicts.dedup();
            return Err(ApplyError::Conflicts(self.conflicts));
        }
        let going: BTreeSet<&RelPath> =
            folders.iter().filter(|folder| folder.does == Does::Go).map(|folder| &folder.path).collect();
        let homes = self.edits.keys().map(|path| self.layout.home(path, &going)).collect::<Result<_, _>>()?;
        let mut plan = Plan { edits: Vec::new(), contents: Vec::new(), homes, folders };
        for (path, edit) in self.edits {
            let (after, content) = edit.after.unzip();
            plan.edits.push(Edit { path, before: edit.before, after });
            plan.contents.push(content);
        }
        Ok(plan)
    }
}
