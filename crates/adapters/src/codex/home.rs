//! The private home of codex: its own directory. Commands of an agent can write there, so each time a session opens all but the
//! conversations is removed, and our files are written anew: no rule, hook, variable or word that an agent left counts.
//!
//! No link is followed: everything is done beneath the opened directory. What an agent makes of its own conversation is its matter.

use std::ffi::CStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use runyard_backend::{BackendError, SecretFile};
use runyard_domain::run::FailureKind;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmod, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;

/// Its name in a session's home.
const NAME: &str = "codex";
/// What stays of an earlier session: its conversations. Codex makes all else anew, its databases too.
const KEPT: &[&CStr] = &[c"sessions"];
/// How deep its directories are at most; deeper ones are no work of codex.
const DEPTH_MAX: usize = 64;
/// How many entries are looked at.
const ENTRIES_MAX: usize = 1_000_000;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A private home for codex.
pub(super) struct Home {
    pub(super) path: PathBuf,
    /// Whether an earlier session of the run left it here.
    pub(super) was_there: bool,
}

impl Home {
    /// Where it is in a session's home.
    pub(super) fn of(parent: &Path) -> PathBuf {
        parent.join(NAME)
    }

    /// Makes it, or takes of the one that is there what may stay, and writes the files.
    pub(super) async fn prepare(parent: &Path, files: Vec<SecretFile>) -> Result<Self, BackendError> {
        let path = Home::of(parent);
        let parent = parent.to_owned();
        // An agent may have left much to remove.
        let made = tokio::task::spawn_blocking(move || make(&parent, &files)).await;
        let was_there = made.map_err(io::Error::from).flatten().map_err(|error| {
            let message = format!("cannot prepare the home of codex: {error}");
            BackendError::new(FailureKind::BackendSpawnFailed, message)
        })?;
        Ok(Home { path, was_there })
    }
}

/// Makes the home with these files, and says whether it was there.
fn make(parent: &Path, files: &[SecretFile]) -> io::Result<bool> {
    DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    let parent = openat(CWD, parent, DIRECTORY, Mode::empty())?;
    let was_there = match mkdirat(&parent, NAME, Mode::RWXU) {
        Err(Errno::EXIST) => true,
        made => made.map(|()| false)?,
    };
    // A link in its place could lead anywhere; it is not entered.
    let home = enter(&parent, NAME)?;
    let mut sweep = Sweep { entries: 0 };
    sweep.each(&home, 0, |sweep, name| match KEPT.contains(&name) {
        true => sweep.plain(&home, name, 1),
        false => sweep.remove(&home, name, 1),
    })?;
    for SecretFile { key, content } in files {
        let file = openat(&home, key.as_str(), NEW_FILE, Mode::RUSR | Mode::WUSR)?;
        File::from(file).write_all(content)?;
    }
    Ok(was_there)
}

/// Opens a directory, also one that whoever worked there closed to themselves; never a link.
fn enter(at: &OwnedFd, name: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let found = openat(at, name, DIRECTORY.difference(OFlags::RDONLY).union(OFlags::PATH), Mode::empty())?;
    chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), Mode::RWXU)?;
    openat(&found, c".", DIRECTORY, Mode::empty())
}

/// A walk through what an agent may have left.
struct Sweep {
    entries: usize,
}

impl Sweep {
    /// Does it with each entry of a directory at this depth.
    fn each(
        &mut self,
        directory: &OwnedFd,
        depth: usize,
        mut act: impl FnMut(&mut Self, &CStr) -> io::Result<()>,
    ) -> io::Result<()> {
        if depth > DEPTH_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "its directories are too deep"));
        }
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            if entry.file_name() == c"." || entry.file_name() == c".." {
                continue;
            }
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "too much is in it"));
            }
            act(self, entry.file_name())?;
        }
        Ok(())
    }

    /// Removes it, whatever it is.
    fn remove(&mut self, at: &OwnedFd, name: &CStr, depth: usize) -> io::Result<()> {
        match unlinkat(at, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {
                let directory = enter(at, name)?;
                self.each(&directory, depth, |sweep, name| sweep.remove(&directory, name, depth + 1))?;
                Ok(unlinkat(at, name, AtFlags::REMOVEDIR)?)
            }
            removed => Ok(removed?),
        }
    }

    /// Keeps directories and regular files, and removes all else beneath, such as links.
    fn plain(&mut self, at: &OwnedFd, name: &CStr, depth: usize) -> io::Result<()> {
        let found = statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                let directory = enter(at, name)?;
                self.each(&directory, depth, |sweep, name| sweep.plain(&directory, name, depth + 1))
            }
            FileType::RegularFile => Ok(()),
            _ => self.remove(at, name, depth),
        }
    }
}

#[cfg(test)]
mod tests;
