//! The directories that come and go with a plan's files, as git has it: one that is needed is made, one that is left empty is
//! removed. A directory that was empty before is nobody's business.

use std::collections::{BTreeMap, BTreeSet};

use rustix::fs::fstat;
use serde::{Deserialize, Serialize};

use super::{ApplyError, FileConflict, Why};
use crate::{CheckoutError, Descend, Kind, RelPath, Root};

/// A directory that comes or goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Folder {
    pub(super) path: RelPath,
    pub(super) permissions: u32,
    pub(super) does: Does,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Does {
    Come,
    Go,
}

/// What an earlier plan did, which this one takes back.
#[derive(Clone, Copy, Debug)]
pub(super) enum Earlier<'a> {
    /// Nothing: every directory that is left empty goes.
    Nothing,
    /// These directories: only those that came go, and those that went come with the permissions they had.
    Did(&'a [Folder]),
}

/// Where the paths of a plan lie.
pub(super) struct Layout<'a> {
    pub(super) workspace: &'a Root,
    /// What is taken away.
    pub(super) gone: BTreeSet<RelPath>,
    /// What is there afterwards.
    pub(super) placed: BTreeSet<RelPath>,
}

impl Layout<'_> {
    /// Directories that go, deepest first, then those that come, deepest last; and what is in their way.
    pub(super) fn folders(
        &self,
        earlier: Earlier<'_>,
    ) -> Result<(Vec<Folder>, Vec<FileConflict>), ApplyError> {
        let emptied = self.emptied(earlier)?;
        let mut conflicts = Vec::new();
        let mut made = BTreeMap::new();
        for path in &self.placed {
            self.make_way(path, earlier, &mut made, &mut conflicts)?;
            let is_folder = self.look(path)?.is_some_and(|found| found.kind == Kind::Directory);
            if is_folder && !emptied.contains_key(path) {
                conflicts.push(FileConflict { path: path.clone(), why: Why::Exists });
            }
        }
        let go =
            emptied.into_iter().rev().map(|(path, permissions)| Folder { path, permissions, does: Does::Go });
        let come = made.into_iter().map(|(path, permissions)| Folder { path, permissions, does: Does::Come });
        Ok((go.chain(come).collect(), conflicts))
    }

    /// The nearest directory above a path that is there before and after, where its draft can lie.
    pub(super) fn home(
        &self,
        path: &RelPath,
        going: &BTreeSet<&RelPath>,
    ) -> Result<Option<RelPath>, CheckoutError> {
        let mut above = path.parent();
        while let Some(directory) = above {
            let is_there = self.look(&directory)?.is_some_and(|found| found.kind == Kind::Directory);
            if is_there && !going.contains(&directory) {
                return Ok(Some(directory));
            }
            above = directory.parent();
        }
        Ok(None)
    }

    /// What a file that is new at a path may be used for: what its directory may, but for strangers' writing.
    pub(super) fn usual(&self, path: &RelPath) -> Result<u32, CheckoutError> {
        let permissions = match self.home(path, &BTreeSet::new())? {
            Some(home) => self.workspace.look(&home)?.map_or(0o700, |found| found.permissions),
            None => {
                let stat = self.workspace.directory(None).and_then(fstat);
                let stat = stat.map_err(|error| CheckoutError::root("look at", error.into()))?;
                (stat.st_mode & 0o777) as u32
            }
        };
        Ok(permissions & 0o775 | 0o700)
    }

    /// Nothing is beneath what is no directory yet, even if it is a link that seems to lead somewhere.
    pub(super) fn look(&self, path: &RelPath) -> Result<Option<crate::Found>, CheckoutError> {
        if ancestors(path).any(|above| self.gone.contains(&above)) {
            Ok(None)
        } else {
            self.workspace.look(path)
        }
    }

    /// Directories of which nothing is left, and their permissions.
    fn emptied(&self, earlier: Earlier<'_>) -> Result<BTreeMap<RelPath, u32>, ApplyError> {
        let mut kept: BTreeSet<RelPath> = self.placed.iter().flat_map(ancestors).collect();
        let left: BTreeSet<RelPath> =
            self.gone.iter().filter(|path| !self.placed.contains(path)).flat_map(ancestors).collect();
        let mut emptied = BTreeMap::new();
        // What lies deeper comes first.
        for directory in left.iter().rev() {
            if kept.contains(directory) || !earlier.lets_go(directory) {
                kept.extend(ancestors(directory));
                continue;
            }
            let Some(found) = self.workspace.look(directory)?.filter(|found| found.kind == Kind::Directory)
            else {
                continue;
            };
            let mut is_empty = true;
            self.workspace.beneath(directory)?.walk(|name, _| {
                let path = directory.join(name.as_bytes())?;
                is_empty &=
                    self.gone.contains(&path) && !self.placed.contains(&path) || emptied.contains_key(&path);
                Ok(Descend::Past)
            })?;
            if is_empty {
                emptied.insert(directory.clone(), found.permissions);
            }
        }
        Ok(emptied)
    }

    fn make_way(
        &self,
        path: &RelPath,
        earlier: Earlier<'_>,
        made: &mut BTreeMap<RelPath, u32>,
        conflicts: &mut Vec<FileConflict>,
    ) -> Result<(), ApplyError> {
        for above in ancestors(path) {
            let kind = self.look(&above)?.map(|found| found.kind);
            let is_taken = self.placed.contains(&above) || (kind.is_some() && !self.gone.contains(&above));
            match kind {
                Some(Kind::Directory) => {}
                _ if is_taken => conflicts.push(FileConflict { path: above, why: Why::Exists }),
                _ if made.contains_key(&above) => {}
                _ => {
                    let permissions = match earlier.had(&above) {
                        Some(permissions) => permissions,
                        None => self.usual(&above)?,
                    };
                    made.insert(above, permissions);
                }
            }
        }
        Ok(())
    }
}

impl Earlier<'_> {
    fn lets_go(self, directory: &RelPath) -> bool {
        match self {
            Earlier::Nothing => true,
            Earlier::Did(folders) => {
                folders.iter().any(|folder| folder.does == Does::Come && folder.path == *directory)
            }
        }
    }

    fn had(self, directory: &RelPath) -> Option<u32> {
        match self {
            Earlier::Nothing => None,
            Earlier::Did(folders) => folders
                .iter()
                .find(|folder| folder.does == Does::Go && folder.path == *directory)
                .map(|folder| folder.permissions),
        }
    }
}

/// The directories above a path, from the root on.
pub(super) fn ancestors(path: &RelPath) -> impl Iterator<Item = RelPath> + use<> {
    let above: Vec<RelPath> = std::iter::successors(path.parent(), RelPath::parent).collect();
    above.into_iter().rev()
}
