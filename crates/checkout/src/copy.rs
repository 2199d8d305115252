//! Brings files from a workspace to a checkout, one by one, and remembers what they were.
//!
//! Each file is opened in a directory that was opened beneath its root, and what is known about it is asked of the open file. Where
//! the file system can share content, it is shared until one side changes. What the repository does not have byte for byte is kept
//! a second time, where no agent writes. Nothing is followed and nothing is executed.

use std::fs::{File, FileTimes};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, Mode, OFlags, Stat, fstat, ioctl_ficlone, openat, readlinkat, renameat, statat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::base::{Entry, ObjectFormat, Oid, Source, Stamp};
use crate::beneath::Durable;
use crate::made::{Limits, Made};
use crate::object::Hasher;
use crate::{CheckoutError, ContentId, FileMode, Found, Kind, RelPath, Root};

/// So much is read at once.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;
/// The name of what is not kept yet.
const DRAFT: &str = "draft";

/// Not waiting, should a file have become a pipe since it was looked at.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const MAKE: OFlags =
    OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What git says that a path holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known<'a> {
    /// Nothing.
    Untracked,
    /// This.
    Blob(&'a Oid, ObjectFormat),
}

/// A file or a link in the checkout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here {
    /// What it is.
    pub(crate) mode: FileMode,
    /// Whether it is byte for byte what git says.
    pub(crate) same: bool,
    /// The workspace's.
    pub(crate) from: Stat,
    /// The checkout's.
    pub(crate) to: Stat,
}

/// What brings files.
pub(crate) struct Copier<'a> {
    from: &'a Root,
    to: &'a Root,
    kept: &'a Root,
    limits: Limits,
    stop: &'a AtomicBool,
    pub(crate) made: Made,
    pub(crate) entries: Vec<Entry>,
    /// The directories of the last file: most files lie beside the one before.
    last: Option<(Option<RelPath>, OwnedFd, OwnedFd)>,
    /// Whether the workspace's files can share their content with the checkout's, as far as is known.
    shares: bool,
    /// Whether the checkout's files can share it with what is kept.
    keeps_shared: bool,
    buffer: Vec<u8>,
}

impl<'a> Copier<'a> {
    pub(crate) fn new(
        from: &'a Root,
        to: &'a Root,
        kept: &'a Root,
        limits: Limits,
        stop: &'a AtomicBool,
        made: Made,
    ) -> Self {
        let buffer = vec![0; CHUNK_BYTES];
        let (entries, last, shares, keeps_shared) = (Vec::new(), None, true, true);
        Copier { from, to, kept, limits, stop, made, entries, last, shares, keeps_shared, buffer }
    }

    /// Brings what has this path, if it is a file or a link that is there and can be read.
    pub(crate) fn bring(&mut self, path: &RelPath, known: Known<'_>) -> Result<Option<Here>, CheckoutError> {
        self.go_on()?;
        let (from, to) = match self.directories(path)? {
            Some(directories) => directories,
            None => return Ok(None),
        };
        let brought = self.bring_between(&from, &to, path, known);
        self.last = Some((path.parent(), from, to));
        brought
    }

    /// Makes a directory in the checkout.
    pub(crate) fn directory(&mut self, path: &RelPath) -> Result<(), CheckoutError> {
        self.go_on()?;
        self.count(path)?;
        self.to.made_directory(path, Durable::Later).map(drop)
    }

    /// Remembers another repository, whose content stays where it is.
    pub(crate) fn submodule(&mut self, path: RelPath, commit: Oid) -> Result<(), CheckoutError> {
        self.directory(&path)?;
        self.made.submodules.add(&path);
        let bytes = commit.as_str().len() as u64;
        let (mode, source) = (FileMode::Submodule, Source::Submodule(commit));
        self.entries.push(Entry { path, mode, bytes, stamp: Stamp::default(), source });
        Ok(())
    }

    fn go_on(&self) -> Result<(), CheckoutError> {
        if self.stop.load(Ordering::Relaxed) { Err(CheckoutError::Stopped) } else { Ok(()) }
    }

    fn count(&mut self, path: &RelPath) -> Result<(), CheckoutError> {
        let (files_max, max) = (self.limits.files_max, self.limits.depth_max);
        if self.made.files >= files_max {
            return Err(CheckoutError::TooManyFiles(files_max));
        }
        if path.names().count() > max + 1 {
            return Err(CheckoutError::TooDeep { path: path.to_string(), max });
        }
        self.made.files += 1;
        Ok(())
    }

    /// The directories that a path lies in on both sides; none where the workspace has no such directory.
    fn directories(&mut self, path: &RelPath) -> Result<Option<(OwnedFd, OwnedFd)>, CheckoutError> {
        let parent = path.parent();
        if let Some((at, from, to)) = self.last.take()
            && at == parent
        {
            return Ok(Some((from, to)));
        }
        let from = match self.from.directory(parent.as_ref()) {
            Ok(from) => from,
            // Where a link stands, git sees the link and nothing behind it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(Errno::ACCESS | Errno::PERM) => {
                self.made.unreadable.add(path);
                return Ok(None);
            }
            Err(error) => return Err(CheckoutError::io("open", path, error.into())),
        };
        let to = match &parent {
            Some(parent) => self.to.made_directory(parent, Durable::Later)?,
            None => self.to.directory(None).map_err(|error| CheckoutError::io("open", path, error.into()))?,
        };
        Ok(Some((from, to)))
    }

    fn bring_between(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        path: &RelPath,
        known: Known<'_>,
    ) -> Result<Option<Here>, CheckoutError> {
        let stat = match statat(from, path.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(error) => return self.passed_over(path, error),
        };
        match Found::from(&stat).kind {
            Kind::File => self.file(from, to, path, known),
            Kind::Link => self.link(from, to, path, stat, known),
            Kind::Directory => Ok(None),
            Kind::Special | Kind::Unreadable => {
                self.made.special += 1;
                Ok(None)
            }
        }
    }

    fn link(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        path: &RelPath,
        stat: Stat,
        known: Known<'_>,
    ) -> Result<Option<Here>, CheckoutError> {
        let target = match readlinkat(from, path.name(), Vec::new()) {
            Ok(target) => target.into_bytes(),
            Err(error) => return self.passed_over(path, error),
        };
        self.count(path)?;
        if leads_out(path, &target) {
            self.made.leaving.add(path);
        }
        let failed = |error: Errno| CheckoutError::io("copy", path, error.into());
        symlinkat(target.as_slice(), to, path.name()).map_err(failed)?;
        let made = statat(to, path.name(), AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        let same = match known {
            Known::Untracked => false,
            Known::Blob(oid, format) => {
                let mut hasher = Hasher::blob(format, target.len() as u64);
                hasher.update(&target);
                hasher.finish() == *oid
            }
        };
        self.entries.push(Entry {
            path: path.clone(),
            mode: FileMode::Link,
            bytes: target.len() as u64,
            stamp: Stamp::of(&made),
            source: Source::Link(target),
        });
        Ok(Some(Here { mode: FileMode::Link, same, from: stat, to: made }))
    }

    fn file(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        path: &RelPath,
        known: Known<'_>,
    ) -> Result<Option<Here>, CheckoutError> {
        let opened =
            openat(from, path.name(), READ, Mode::empty()).and_then(|from| Ok((fstat(&from)?, from)));
        let (stat, mut from) = match opened {
            Ok((stat, from)) if Found::from(&stat).kind == Kind::File => (stat, File::from(from)),
            Ok(_) => return Ok(None),
            Err(error) => return self.passed_over(path, error),
        };
        self.count(path)?;
        let failed = |source| CheckoutError::io("copy", path, source);
        let usual = Mode::from_raw_mode(stat.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
        let made = openat(to, path.name(), MAKE, usual | Mode::RUSR | Mode::WUSR);
        let mut to = File::from(made.map_err(|error| failed(error.into()))?);
        let hasher = match known {
            Known::Untracked => None,
            Known::Blob(_, format) => Some(Hasher::blob(format, stat.st_size as u64)),
        };
        let (bytes, name) = self.fill(&mut from, &mut to, hasher).map_err(failed)?;
        self.made.bytes += bytes;
        if self.made.bytes > self.limits.bytes_max {
            return Err(CheckoutError::TooLarge(self.limits.bytes_max));
        }
        let same = matches!((known, name), (Known::Blob(oid, _), Some(name)) if *oid == name);
        let source = match known {
            Known::Blob(oid, _) if same => Source::Git(oid.clone()),
            _ => {
                let kept = keep(self.kept, &mut self.keeps_shared, &mut self.buffer, &mut to);
                Source::Kept(kept.map_err(failed)?)
            }
        };
        // Builds go by these times.
        to.set_times(FileTimes::new().set_modified(modified(&stat))).map_err(failed)?;
        let made = fstat(&to).map_err(|error| failed(error.into()))?;
        let mode = if Found::from(&stat).executable { FileMode::Executable } else { FileMode::Plain };
        self.entries.push(Entry { path: path.clone(), mode, bytes, stamp: Stamp::of(&made), source });
        Ok(Some(Here { mode, same, from: stat, to: made }))
    }

    /// Gives one file what another holds; how much that is, and how git would name it.
    fn fill(
        &mut self,
        from: &mut File,
        to: &mut File,
        mut hasher: Option<Hasher>,
    ) -> io::Result<(u64, Option<Oid>)> {
        let shared = share(&mut self.shares, from, to);
        let left = self.limits.bytes_max.saturating_sub(self.made.bytes).saturating_add(1);
        let bytes = if shared {
            match &mut hasher {
                None => to.metadata()?.len(),
                Some(hasher) => each_chunk(to, &mut self.buffer, left, |chunk| {
                    hasher.update(chunk);
                    Ok(())
                })?,
            }
        } else {
            each_chunk(from, &mut self.buffer, left, |chunk| {
                if let Some(hasher) = &mut hasher {
                    hasher.update(chunk);
                }
                to.write_all(chunk)
            })?
        };
        Ok((bytes, hasher.map(Hasher::finish)))
    }

    /// What vanished meanwhile was never there; what may not be read is left out and listed; everything else is an error.
    fn passed_over(&mut self, path: &RelPath, error: Errno) -> Result<Option<Here>, CheckoutError> {
        match error {
            Errno::NOENT | Errno::NOTDIR => Ok(None),
            Errno::ACCESS | Errno::PERM | Errno::LOOP | Errno::IO | Errno::NXIO => {
                self.made.unreadable.add(path);
                Ok(None)
            }
            error => Err(CheckoutError::io("copy", path, error.into())),
        }
    }
}

/// Keeps what a file of the checkout holds where no agent writes. `can_share` is whether it can share its content with what is kept.
pub(crate) fn keep(
    kept: &Root,
    can_share: &mut bool,
    buffer: &mut [u8],
    file: &mut File,
) -> io::Result<ContentId> {
    let kept = kept.directory(None)?;
    match unlinkat(&kept, DRAFT, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let mut draft = File::from(openat(&kept, DRAFT, MAKE, Mode::RUSR | Mode::WUSR)?);
    let shared = share(can_share, file, &draft);
    file.rewind()?;
    let mut hasher = Sha256::new();
    each_chunk(file, buffer, u64::MAX, |chunk| {
        hasher.update(chunk);
        if shared { Ok(()) } else { draft.write_all(chunk) }
    })?;
    let content = ContentId::from_hasher(hasher);
    renameat(&kept, DRAFT, kept.as_fd(), content.to_string())?;
    Ok(content)
}

/// Whether two files share their content now. Where that went wrong once it is not tried again.
fn share(can: &mut bool, from: &File, to: &File) -> bool {
    *can = *can && ioctl_ficlone(to, from).is_ok();
    *can
}

/// Reads at most so many bytes, bit by bit.
fn each_chunk(
    file: &mut File,
    buffer: &mut [u8],
    bytes_max: u64,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let mut all = 0;
    while all < bytes_max {
        match file.read(buffer) {
            Ok(0) => break,
            Ok(read) => {
                take(&buffer[..read])?;
                all += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

#[allow(clippy::unnecessary_cast, reason = "how wide these are differs between machines")]
fn modified(stat: &Stat) -> SystemTime {
    let nanoseconds = Duration::from_nanos(stat.st_mtime_nsec as u64);
    let seconds = Duration::from_secs(stat.st_mtime.unsigned_abs());
    let whole = match stat.st_mtime {
        0.. => SystemTime::UNIX_EPOCH.checked_add(seconds),
        _ => SystemTime::UNIX_EPOCH.checked_sub(seconds),
    };
    whole.and_then(|whole| whole.checked_add(nanoseconds)).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Whether a link leads out of the tree, as far as its text says.
fn leads_out(path: &RelPath, target: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let mut depth = path.names().count() - 1;
    for part in Path::new(std::ffi::OsStr::from_bytes(target)).components() {
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
