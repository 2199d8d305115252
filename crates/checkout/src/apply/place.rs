//! What is under a path, and the few steps by which that changes. Each step is one call that happens or does not.
//!
//! A draft lies near the path it is for, under a name that only its journal gives. Trading the two puts the new thing in place and
//! keeps the old one, so that what was there is looked at after it was taken away: nothing that somebody wrote at the last moment is
//! lost. Where the file system cannot trade, the look comes before, and that moment is left.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, Mode, OFlags, RawMode, RenameFlags, chmodat, fchmod, fstat, fsync, mkdirat, openat, renameat,
    renameat_with, statat, symlinkat, syncfs, unlinkat,
};
use rustix::io::Errno;

use super::State;
use super::three_way::Side;
use crate::{CheckoutError, ContentId, FileMode, Kind, RelPath, Root};

/// So many files and directories are made durable one by one; with more of them the whole file system is.
const SYNC_EACH_MAX: usize = 64;

const MAKE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What there is under a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Nothing,
    There(State, Vec<u8>),
    Directory,
    /// Nothing that an edit begins from or leads to.
    Special,
}

impl Held {
    /// What an edit can begin from or lead to.
    pub(super) fn state(&self) -> Option<State> {
        match self {
            Held::There(state, _) => Some(*state),
            _ => None,
        }
    }

    /// Whether it is exactly that.
    pub(super) fn is(&self, state: Option<&State>) -> bool {
        match (self, state) {
            (Held::Nothing, None) => true,
            (Held::There(found, _), Some(state)) => found == state,
            _ => false,
        }
    }

    pub(super) fn side(self) -> Option<Side> {
        match self {
            Held::There(state, bytes) => Some(Side { mode: state.mode, bytes }),
            _ => None,
        }
    }
}

/// Reads what there is under a path.
pub(super) fn held(root: &Root, path: &RelPath, bytes_max: u64) -> Result<Held, CheckoutError> {
    let Some(found) = root.look(path)? else { return Ok(Held::Nothing) };
    let (mode, permissions, bytes) = match found.kind {
        Kind::Directory => return Ok(Held::Directory),
        Kind::Special | Kind::Unreadable => return Ok(Held::Special),
        Kind::Link => (FileMode::Link, 0, root.read_link(path)?),
        Kind::File => {
            let read = root.read(path, bytes_max)?;
            let mode = if read.found.executable { FileMode::Executable } else { FileMode::Plain };
            (mode, read.found.permissions, read.bytes)
        }
    };
    let state = State { mode, permissions, bytes: bytes.len() as u64, content: ContentId::of(&bytes) };
    Ok(Held::There(state, bytes))
}

/// [`held`], of what is expected to be one of two states: what is longer than both is neither.
pub(super) fn held_of(
    root: &Root,
    path: &RelPath,
    one: Option<&State>,
    other: Option<&State>,
) -> Result<Held, CheckoutError> {
    let bytes_max = [one, other].into_iter().flatten().map(|state| state.bytes).max().unwrap_or_default();
    match held(root, path, bytes_max) {
        Err(CheckoutError::FileTooLarge { .. } | CheckoutError::NotAFile { .. }) => Ok(Held::Special),
        held => held,
    }
}

/// The directory that a path lies in, and what it is called there.
struct Spot<'a> {
    directory: OwnedFd,
    name: &'a [u8],
}

fn spot<'a>(root: &Root, path: &'a RelPath) -> Result<Spot<'a>, CheckoutError> {
    let directory = root
        .directory(path.parent().as_ref())
        .map_err(|error| failed(root, "open the directory of", path, error))?;
    Ok(Spot { directory, name: path.name() })
}

/// A link in the way is said as such.
fn failed(root: &Root, doing: &'static str, path: &RelPath, error: Errno) -> CheckoutError {
    match root.look(path) {
        Err(escapes @ CheckoutError::Escapes { .. }) => escapes,
        _ => CheckoutError::io(doing, path, error.into()),
    }
}

/// Writes something new under the name of a draft. It is not durable yet.
pub(super) fn write(root: &Root, draft: &RelPath, state: &State, bytes: &[u8]) -> Result<(), CheckoutError> {
    let spot = spot(root, draft)?;
    if state.mode == FileMode::Link {
        return symlinkat(bytes, &spot.directory, spot.name)
            .map_err(|error| failed(root, "write", draft, error));
    }
    // Nobody but its owner sees it before it is whole.
    let file = openat(&spot.directory, spot.name, MAKE, Mode::RUSR | Mode::WUSR)
        .map_err(|error| failed(root, "write", draft, error))?;
    let mut file = File::from(file);
    file.write_all(bytes).map_err(|error| CheckoutError::io("write", draft, error))?;
    fchmod(&file, Mode::from_raw_mode(state.permissions as RawMode))
        .map_err(|error| failed(root, "give its permissions to", draft, error))
}

/// Makes drafts and the directories of these paths durable.
pub(super) fn sync(root: &Root, drafts: &[RelPath], paths: &[&RelPath]) -> Result<(), CheckoutError> {
    let directories: BTreeSet<Option<RelPath>> =
        drafts.iter().chain(paths.iter().copied()).map(RelPath::parent).collect();
    let durable = |error: Errno| CheckoutError::root("make durable what is in", error.into());
    if drafts.len() + directories.len() <= SYNC_EACH_MAX {
        for draft in drafts {
            if root.look(draft)?.is_some_and(|found| found.kind == Kind::File) {
                let (file, _) = root.open_file(draft)?;
                file.sync_all().map_err(|error| CheckoutError::io("make durable", draft, error))?;
            }
        }
    }
    let mut systems = BTreeSet::new();
    for directory in &directories {
        let directory = match root.directory(directory.as_ref()) {
            // It went with what was in it, or somebody put something else there.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => continue,
            directory => directory.map_err(durable)?,
        };
        if drafts.len() + directories.len() <= SYNC_EACH_MAX {
            fsync(&directory).map_err(durable)?;
        } else if systems.insert(fstat(&directory).map_err(durable)?.st_dev) {
            syncfs(&directory).map_err(durable)?;
        }
    }
    Ok(())
}

/// How two names were traded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traded {
    /// Each has what the other had.
    Both,
    /// The file system cannot: the first took the place of the second, and what that had is gone.
    Over,
    /// The file system cannot, and what would be lost is not what was expected.
    Not,
}

/// Trades what two names stand for. Where the file system cannot, what is lost by it has to be this.
pub(super) fn trade(
    root: &Root,
    draft: &RelPath,
    path: &RelPath,
    expected: &State,
) -> Result<Traded, CheckoutError> {
    let (from, to) = (spot(root, draft)?, spot(root, path)?);
    let traded = renameat_with(&from.directory, from.name, &to.directory, to.name, RenameFlags::EXCHANGE)
        .map(|()| Traded::Both);
    match traded {
        Err(error) if cannot(error) => match held_of(root, path, Some(expected), None)?.is(Some(expected)) {
            true => renameat(&from.directory, from.name, &to.directory, to.name).map(|()| Traded::Over),
            false => Ok(Traded::Not),
        },
        traded => traded,
    }
    .map_err(|error| failed(root, "replace", path, error))
}

/// Gives something a name that nothing has.
pub(super) fn name(root: &Root, from: &RelPath, to: &RelPath) -> Result<(), CheckoutError> {
    let (old, new) = (spot(root, from)?, spot(root, to)?);
    match renameat_with(&old.directory, old.name, &new.directory, new.name, RenameFlags::NOREPLACE) {
        Err(error) if cannot(error) => match statat(&new.directory, new.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => renameat(&old.directory, old.name, &new.directory, new.name),
            Err(error) => Err(error),
            Ok(_) => Err(Errno::EXIST),
        },
        named => named,
    }
    .map_err(|error| failed(root, "put in place", to, error))
}

/// Whether it is the file system that does not know how.
fn cannot(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Removes a draft, where it is there.
pub(super) fn discard(root: &Root, draft: &RelPath) -> Result<(), CheckoutError> {
    let spot = match spot(root, draft) {
        Err(error) if error.is_missing() => return Ok(()),
        spot => spot?,
    };
    match unlinkat(&spot.directory, spot.name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(failed(root, "remove", draft, error)),
    }
}

/// Makes a directory with these permissions, where it is not there.
pub(super) fn make_folder(root: &Root, path: &RelPath, permissions: u32) -> Result<(), CheckoutError> {
    let spot = spot(root, path)?;
    let make = || {
        match mkdirat(&spot.directory, spot.name, Mode::RWXU) {
            Err(Errno::EXIST) => return Ok(()),
            made => made?,
        }
        // What it has from the directory it lies in, such as its group, it keeps.
        let inherited = statat(&spot.directory, spot.name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode & 0o7000;
        let mode = Mode::from_raw_mode(inherited as RawMode | (permissions & 0o777) as RawMode);
        chmodat(&spot.directory, spot.name, mode, AtFlags::empty())
    };
    make().map_err(|error| failed(root, "make the directory", path, error))
}

/// Removes a directory, if it is empty.
pub(super) fn remove_folder(root: &Root, path: &RelPath) -> Result<(), CheckoutError> {
    let spot = match spot(root, path) {
        Err(error) if error.is_missing() => return Ok(()),
        spot => spot?,
    };
    match unlinkat(&spot.directory, spot.name, AtFlags::REMOVEDIR) {
        // Something else is in it, or it is something else by now: then it is not ours to remove.
        Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::NOTDIR) => Ok(()),
        Err(error) => Err(failed(root, "remove the directory", path, error)),
    }
}
