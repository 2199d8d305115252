//! Everything beneath a root, in the order of its paths.
//!
//! Each directory is opened in the one above it, so that what is swapped meanwhile leads nowhere else. Nothing is read but
//! directories.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use crate::{CheckoutError, Found, Kind, RelPath, Root};

/// How many names a walk visits at most.
pub const WALK_ENTRIES_MAX: u64 = 2_000_000;
/// How deep directories are nested at most: an open file for each level.
pub const WALK_DEPTH_MAX: usize = 128;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Whether a walk goes into a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descend {
    /// It does. For what is no directory both are the same.
    Into,
    /// It does not.
    Past,
}

/// A directory that is being visited, with what is left of it, the next one last.
struct Level {
    directory: OwnedFd,
    left: Vec<(Vec<u8>, Found)>,
}

impl Root {
    /// Visits everything beneath. Files and links come in the order of their paths; a directory comes before what is in it.
    ///
    /// A directory that may not be looked into is visited as [`Kind::Unreadable`]. What vanishes meanwhile is not visited.
    pub fn walk(
        &self,
        mut visit: impl FnMut(&RelPath, &Found) -> Result<Descend, CheckoutError>,
    ) -> Result<(), CheckoutError> {
        let root = |error: Errno| CheckoutError::root("list", error.into());
        let directory = self.directory(None).map_err(root)?;
        let mut left_max = WALK_ENTRIES_MAX;
        let left = list(&directory, &mut left_max, root)?;
        let mut at: Option<RelPath> = None;
        let mut levels = vec![Level { directory, left }];
        while let Some(level) = levels.last_mut() {
            let Some((name, found)) = level.left.pop() else {
                levels.pop();
                at = at.and_then(|at| at.parent());
                continue;
            };
            let path = match &at {
                Some(at) => at.join(&name)?,
                None => RelPath::parse(&name)?,
            };
            if found.kind != Kind::Directory {
                visit(&path, &found)?;
                continue;
            }
            let deeper = match openat(&level.directory, name.as_slice(), DIRECTORY, Mode::empty()) {
                Ok(deeper) => deeper,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(Errno::ACCESS | Errno::PERM) => {
                    visit(&path, &Found { kind: Kind::Unreadable, ..found })?;
                    continue;
                }
                Err(error) => return Err(CheckoutError::io("list", &path, error.into())),
            };
            if visit(&path, &found)? == Descend::Past {
                continue;
            }
            if levels.len() >= WALK_DEPTH_MAX {
                return Err(CheckoutError::TooDeep { path: path.to_string(), max: WALK_DEPTH_MAX });
            }
            let left = list(&deeper, &mut left_max, |error| CheckoutError::io("list", &path, error.into()))?;
            levels.push(Level { directory: deeper, left });
            at = Some(path);
        }
        Ok(())
    }
}

/// What is in a directory, the first one last.
fn list(
    directory: &OwnedFd,
    left_max: &mut u64,
    failed: impl Fn(Errno) -> CheckoutError,
) -> Result<Vec<(Vec<u8>, Found)>, CheckoutError> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(directory).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        *left_max = left_max.checked_sub(1).ok_or(CheckoutError::TooManyFiles(WALK_ENTRIES_MAX))?;
        let found = match statat(directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Found::from(&stat),
            Err(Errno::NOENT) => continue,
            Err(Errno::ACCESS | Errno::PERM) => Found::UNREADABLE,
            Err(error) => return Err(failed(error)),
        };
        entries.push((name.to_bytes().to_vec(), found));
    }
    // As if the names of directories ended with a slash: then the paths of all files are in order.
    entries.sort_unstable_by(|(left, found), (right, other)| key(right, other).cmp(key(left, found)));
    Ok(entries)
}

fn key<'a>(name: &'a [u8], found: &Found) -> impl Iterator<Item = u8> + use<'a> {
    name.iter().copied().chain((found.kind == Kind::Directory).then_some(b'/'))
}
