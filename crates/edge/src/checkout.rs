//! A run's own copy of its workspace, so that nothing that a run does reaches a person's files by surprise.
//!
//! Every file is opened by its name in the directory that was opened before it, and no symbolic link is followed, so nothing
//! outside the root is read, whatever changes meanwhile. Nothing of it is executed, and hooks are files like others. It is a
//! plain copy: a clone that borrows a repository's objects is not made here.

use std::fs::{self, File, FileTimes};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, readlinkat, statat,
    symlinkat,
};
use rustix::io::Errno;

use crate::private;

/// How many files, directories and links a workspace holds at most.
pub(crate) const FILES_MAX: u64 = 200_000;
/// How large its files are at most, together.
pub(crate) const BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// How deep its directories are nested at most: two open files for each level.
pub(crate) const DEPTH_MAX: usize = 128;

/// So many of what was left out are named; the others are counted.
const NAMED_MAX: usize = 5;

/// What a copy may hold at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) files_max: u64,
    pub(crate) bytes_max: u64,
    pub(crate) depth_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { files_max: FILES_MAX, bytes_max: BYTES_MAX, depth_max: DEPTH_MAX }
    }
}

/// Why there is no copy. The paths in it are relative to the workspace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckoutError {
    #[error("the workspace holds more than {0} files, which is the limit of a checkout")]
    TooManyFiles(u64),
    #[error("the workspace holds more than {0} bytes, which is the limit of a checkout")]
    TooLarge(u64),
    #[error("{path} lies more than {max} directories deep, which is the limit of a checkout")]
    TooDeep { path: String, max: usize },
    #[error("the copy was stopped")]
    Stopped,
    #[error("cannot copy {path}: {source}")]
    Io {
        path: String,
        #[source]
        source: io::Error,
    },
}

/// What was copied, and what was not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Files, directories and links.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Sockets, pipes and devices, which are never copied.
    pub(crate) special: u64,
    /// What could not be read.
    pub(crate) unreadable: Listed,
    /// Links that lead out of the copy.
    pub(crate) leaving: Listed,
}

impl Copied {
    /// What of the copy cannot be relied on.
    pub(crate) fn degraded(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.unreadable.count > 0 {
            reasons.push(format!("the checkout lacks what could not be read: {}", self.unreadable));
        }
        if self.leaving.count > 0 {
            reasons.push(format!("links in the checkout lead out of it: {}", self.leaving));
        }
        reasons
    }
}

/// Some paths, the first of them by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) count: u64,
    named: Vec<String>,
}

impl Listed {
    fn add(&mut self, path: String) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(path);
        }
    }
}

impl std::fmt::Display for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.named.join(", "))?;
        match self.count.saturating_sub(self.named.len() as u64) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Makes `to` a copy of `root`. It appears under its name when it is whole; what was there before is thrown away.
pub(crate) fn make(
    root: &Path,
    to: &Path,
    limits: Limits,
    stop: &AtomicBool,
) -> Result<Copied, CheckoutError> {
    let own = |source| CheckoutError::Io { path: "the checkout".to_owned(), source };
    let draft = to.with_extension("draft");
    discard(&draft).map_err(own)?;
    if to.try_exists().map_err(own)? {
        // Out of the way in one step, so that nobody takes a half removed one for a checkout.
        fs::rename(to, &draft).and_then(|()| discard(&draft)).map_err(own)?;
    }
    private::make_directory(&draft).map_err(own)?;
    let mut copy = Copy { copied: Copied::default(), limits, stop, at: PathBuf::new() };
    let done = copy.tree(root, &draft).and_then(|()| fs::rename(&draft, to).map_err(own));
    if done.is_err() {
        let _ = discard(&draft);
    }
    done.map(|()| copy.copied)
}

/// Removes a directory with all that is in it, if it is there. Links in it are removed, not followed.
pub(crate) fn discard(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// A directory that is being copied.
struct Level {
    from: Dir,
    to: OwnedFd,
    mode: Mode,
}

struct Copy<'a> {
    copied: Copied,
    limits: Limits,
    stop: &'a AtomicBool,
    /// The directory that is being copied, relative to the root.
    at: PathBuf,
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Not waiting, should a file have become a pipe since it was looked at.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const MAKE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Copy<'_> {
    fn tree(&mut self, root: &Path, to: &Path) -> Result<(), CheckoutError> {
        let from = openat(CWD, root, DIRECTORY, Mode::empty())
            .map_err(|error| self.failed("the workspace", error))?;
        let to =
            openat(CWD, to, DIRECTORY, Mode::empty()).map_err(|error| self.failed("the checkout", error))?;
        let first = self.level(from, to).map_err(|error| self.failed("the workspace", error))?;
        let mut levels = vec![first];
        while let Some(level) = levels.last_mut() {
            match level.from.read() {
                None => {
                    fchmod(&level.to, level.mode | Mode::RWXU).map_err(|error| self.failed("", error))?;
                    levels.pop();
                    self.at.pop();
                }
                Some(Ok(entry)) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Some(Ok(entry)) => {
                    let name = entry.file_name();
                    let from = level.from.fd().map_err(|error| self.failed("", error))?;
                    if let Some(deeper) = self.entry(from, level.to.as_fd(), name)? {
                        if levels.len() > self.limits.depth_max {
                            let max = self.limits.depth_max;
                            return Err(CheckoutError::TooDeep { path: self.path(name), max });
                        }
                        self.at.push(text_of(name));
                        levels.push(deeper);
                    }
                }
                // What came of it before is kept.
                Some(Err(_)) => {
                    self.copied.unreadable.add(self.at.display().to_string());
                    levels.pop();
                    self.at.pop();
                }
            }
        }
        Ok(())
    }

    fn level(&self, from: OwnedFd, to: OwnedFd) -> rustix::io::Result<Level> {
        let mode = Mode::from_raw_mode(fstat(&from)?.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
        Ok(Level { from: Dir::new(from)?, to, mode })
    }

    /// Copies one entry; a directory is given back, opened on both sides.
    fn entry(
        &mut self,
        from: impl AsFd,
        to: impl AsFd,
        name: &std::ffi::CStr,
    ) -> Result<Option<Level>, CheckoutError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(CheckoutError::Stopped);
        }
        let stat = match statat(&from, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(error) => return self.passed_over(name, error).map(|()| None),
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if !matches!(kind, FileType::RegularFile | FileType::Directory | FileType::Symlink) {
            self.copied.special += 1;
            return Ok(None);
        }
        if self.copied.files >= self.limits.files_max {
            return Err(CheckoutError::TooManyFiles(self.limits.files_max));
        }
        self.copied.files += 1;
        match kind {
            FileType::Directory => self.directory(from, to, name),
            FileType::Symlink => self.link(from, to, name).map(|()| None),
            _ => self.file(from, to, name).map(|()| None),
        }
    }

    fn directory(
        &mut self,
        from: impl AsFd,
        to: impl AsFd,
        name: &std::ffi::CStr,
    ) -> Result<Option<Level>, CheckoutError> {
        let from = match openat(&from, name, DIRECTORY, Mode::empty()) {
            Ok(from) => from,
            Err(error) => return self.passed_over(name, error).map(|()| None),
        };
        let failed = |error| self.failed(text_of(name), error);
        mkdirat(&to, name, Mode::RWXU).map_err(failed)?;
        let to = openat(&to, name, DIRECTORY, Mode::empty()).map_err(failed)?;
        self.level(from, to).map(Some).map_err(failed)
    }

    fn link(&mut self, from: impl AsFd, to: impl AsFd, name: &std::ffi::CStr) -> Result<(), CheckoutError> {
        let target = match readlinkat(&from, name, Vec::new()) {
            Ok(target) => target,
            Err(error) => return self.passed_over(name, error),
        };
        if leads_out(&self.at, Path::new(&text_of(&target))) {
            let path = self.path(name);
            self.copied.leaving.add(path);
        }
        symlinkat(&target, &to, name).map_err(|error| self.failed(text_of(name), error))
    }

    fn file(&mut self, from: impl AsFd, to: impl AsFd, name: &std::ffi::CStr) -> Result<(), CheckoutError> {
        let opened = openat(&from, name, READ, Mode::empty()).and_then(|from| Ok((fstat(&from)?, from)));
        let (stat, from) = match opened {
            Ok((stat, from)) if is_file(&stat) => (stat, File::from(from)),
            Ok(_) => return Ok(()),
            Err(error) => return self.passed_over(name, error),
        };
        let failed = |source| CheckoutError::Io { path: self.path(name), source };
        let mode = Mode::from_raw_mode(stat.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
        let to =
            openat(&to, name, MAKE, mode | Mode::RUSR | Mode::WUSR).map_err(|error| failed(error.into()))?;
        let mut to = File::from(to);
        let left = self.limits.bytes_max - self.copied.bytes;
        let bytes = io::copy(&mut (&from).take(left.saturating_add(1)), &mut to).map_err(failed)?;
        if bytes > left {
            return Err(CheckoutError::TooLarge(self.limits.bytes_max));
        }
        // Builds go by these times, and nothing else does.
        if let Ok(modified) = from.metadata().and_then(|metadata| metadata.modified()) {
            to.set_times(FileTimes::new().set_modified(modified)).map_err(failed)?;
        }
        self.copied.bytes += bytes;
        Ok(())
    }

    /// What vanished meanwhile was never there; what may not be read is left out and listed; everything else is an error.
    fn passed_over(&mut self, name: &std::ffi::CStr, error: Errno) -> Result<(), CheckoutError> {
        match error {
            Errno::NOENT => Ok(()),
            Errno::ACCESS | Errno::PERM | Errno::LOOP | Errno::NOTDIR | Errno::IO | Errno::NXIO => {
                let path = self.path(name);
                self.copied.unreadable.add(path);
                Ok(())
            }
            error => Err(self.failed(text_of(name), error)),
        }
    }

    fn path(&self, name: &std::ffi::CStr) -> String {
        self.at.join(text_of(name)).display().to_string()
    }

    fn failed(&self, name: impl AsRef<Path>, error: Errno) -> CheckoutError {
        CheckoutError::Io { path: self.at.join(name).display().to_string(), source: error.into() }
    }
}

fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

fn text_of(name: &std::ffi::CStr) -> String {
    name.to_string_lossy().into_owned()
}

/// Whether a link in this directory leads out of the tree, as far as its text says.
fn leads_out(directory: &Path, target: &Path) -> bool {
    let mut depth = directory.components().count();
    for part in target.components() {
        match part {
            Component::RootDir | Component::Prefix(_) => return true,
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
        }
    }
    false
}

#[cfg(test)]
mod tests;
