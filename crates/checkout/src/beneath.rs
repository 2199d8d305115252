//! A directory that is open, and everything beneath it.
//!
//! A path is resolved beneath the root and follows no symbolic link: by the kernel in one step (`openat2`), or name by name in the
//! directory that was opened before it, where the kernel cannot. What was opened stays what it is, whatever is swapped meanwhile:
//! what is known about a file is asked of the open file. It does not keep two writers apart, and it reads what has a second name
//! elsewhere (a hard link) like any file: [`Found::links`] says so.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawMode, ResolveFlags, Stat, fchmod, fstat, fsync, mkdirat, openat,
    openat2, readlinkat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::{CheckoutError, RelPath, Stamp};

/// So often a step is tried again that something else got in the way of.
const ATTEMPTS_MAX: usize = 16;
/// What the names of files begin with that are not whole yet.
const DRAFT: &str = ".runyard-draft-";

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Not waiting, should it be a pipe.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const MAKE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_SYMLINKS);

/// An open directory. Nothing is reached through it but what lies beneath.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    resolve: Resolve,
}

/// Who resolves a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolve {
    /// The kernel, in one step.
    Kernel,
    /// We, name by name.
    Walk,
}

/// When a directory that was made has to survive the machine's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durable {
    Now,
    Later,
}

/// What a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device.
    Special,
    /// It is there, and may not be looked at or into. Only a walk says so.
    Unreadable,
}

/// What is known about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it is.
    pub kind: Kind,
    /// Whether its owner may execute it.
    pub executable: bool,
    /// How long its content is.
    pub bytes: u64,
    /// How many names it has.
    pub links: u64,
    /// Tells whether it is still the same.
    pub stamp: Stamp,
    /// Who may do what with it.
    pub permissions: u32,
}

impl Found {
    /// What nothing is known about.
    pub(crate) const UNREADABLE: Found = Found {
        kind: Kind::Unreadable,
        executable: false,
        bytes: 0,
        links: 0,
        stamp: Stamp { bytes: 0, modified_ns: 0, changed_ns: 0, inode: 0 },
        permissions: 0,
    };
}

impl From<&Stat> for Found {
    #[allow(clippy::unnecessary_cast, reason = "how wide these are differs between machines")]
    fn from(stat: &Stat) -> Self {
        let permissions = (stat.st_mode & 0o777) as u32;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            _ => Kind::Special,
        };
        Found {
            kind,
            executable: permissions & 0o100 != 0,
            bytes: stat.st_size as u64,
            links: stat.st_nlink as u64,
            stamp: Stamp::of(stat),
            permissions,
        }
    }
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// What is known about the very file that was read.
    pub found: Found,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// What is written under a name.
#[derive(Clone, Copy, Debug)]
pub enum New<'a> {
    /// A file.
    File {
        /// What it holds.
        bytes: &'a [u8],
        /// Whether it can be executed, where no permissions are given.
        executable: bool,
        /// Who may do what with it; as is usual for the person where none are given.
        permissions: Option<u32>,
    },
    /// A symbolic link, and where it leads.
    Link(&'a [u8]),
}

impl Root {
    /// Opens a directory. Links on the way to it count, those beneath it do not.
    pub fn open(path: &Path) -> Result<Root, CheckoutError> {
        let directory = openat(CWD, path, DIRECTORY, Mode::empty())
            .map_err(|error| CheckoutError::root("open", error.into()))?;
        // Seen from some sandboxes the call is there and not allowed.
        let resolve = match openat2(&directory, ".", DIRECTORY, Mode::empty(), BENEATH) {
            Ok(_) => Resolve::Kernel,
            Err(_) => Resolve::Walk,
        };
        Ok(Root { directory, resolve })
    }

    /// It, as where the kernel cannot resolve a path beneath a directory.
    #[must_use]
    pub fn name_by_name(self) -> Root {
        Root { resolve: Resolve::Walk, ..self }
    }

    /// A directory beneath it, as a root of its own.
    pub fn beneath(&self, path: &RelPath) -> Result<Root, CheckoutError> {
        let directory = self.directory(Some(path)).map_err(|error| self.failed("open", path, error))?;
        Ok(Root { directory, resolve: self.resolve })
    }

    /// What a name is; none where it is not there.
    pub fn look(&self, path: &RelPath) -> Result<Option<Found>, CheckoutError> {
        match self.in_parent(path, |parent, name| statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)) {
            Ok(stat) => Ok(Some(Found::from(&stat))),
            Err(error @ (Errno::NOENT | Errno::NOTDIR)) => match self.failed("look at", path, error) {
                escapes @ CheckoutError::Escapes { .. } => Err(escapes),
                _ => Ok(None),
            },
            Err(error) => Err(self.failed("look at", path, error)),
        }
    }

    /// Opens a file to read it.
    pub fn open_file(&self, path: &RelPath) -> Result<(File, Found), CheckoutError> {
        let failed = |error| self.failed("read", path, error);
        let file = self.open_beneath(path, READ).map_err(failed)?;
        let found = Found::from(&fstat(&file).map_err(failed)?);
        match found.kind {
            Kind::File => Ok((File::from(file), found)),
            _ => Err(CheckoutError::NotAFile { path: path.to_string() }),
        }
    }

    /// Reads a file that is not longer than so many bytes.
    pub fn read(&self, path: &RelPath, bytes_max: u64) -> Result<Read, CheckoutError> {
        let (file, found) = self.open_file(path)?;
        let too_large = || CheckoutError::FileTooLarge { path: path.to_string(), max: bytes_max };
        if found.bytes > bytes_max {
            return Err(too_large());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(found.bytes).unwrap_or_default());
        // It may have grown since.
        file.take(bytes_max.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| CheckoutError::io("read", path, error))?;
        if bytes.len() as u64 > bytes_max {
            return Err(too_large());
        }
        Ok(Read { found, bytes })
    }

    /// Where a link leads.
    pub fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, CheckoutError> {
        self.in_parent(path, |parent, name| readlinkat(parent, name, Vec::new()))
            .map(std::ffi::CString::into_bytes)
            .map_err(|error| match error {
                Errno::INVAL => CheckoutError::NotAFile { path: path.to_string() },
                error => self.failed("read the link", path, error),
            })
    }

    /// Puts a file or a link under a name, at once and durably; directories on the way to it are made. A link of that name is
    /// replaced, never followed; a directory of that name is refused, and so is everything in a `.git`.
    pub fn write(&self, path: &RelPath, new: New<'_>) -> Result<(), CheckoutError> {
        match new {
            New::File { bytes, executable, permissions } => {
                let usual = if executable { Usual::Executable } else { Usual::Plain };
                self.write_with(path, usual, permissions, |file| file.write_all(bytes))
            }
            New::Link(target) => self.put(path, |parent, draft| symlinkat(target, parent, draft)),
        }
    }

    /// [`Root::write`] of a file that is written bit by bit.
    pub fn write_file_with(
        &self,
        path: &RelPath,
        permissions: u32,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), CheckoutError> {
        self.write_with(path, Usual::Plain, Some(permissions), write)
    }

    fn write_with(
        &self,
        path: &RelPath,
        usual: Usual,
        permissions: Option<u32>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), CheckoutError> {
        let mut write = Some(write);
        let mut unwritten = None;
        let done = self.put(path, |parent, draft| {
            // The kernel takes off what the person never gives.
            let mut file = File::from(openat(parent, draft, MAKE, usual.mode())?);
            if let Some(permissions) = permissions {
                fchmod(&file, Mode::from_raw_mode((permissions & 0o777) as RawMode))?;
            }
            let written =
                write.take().map_or(Ok(()), |write| write(&mut file)).and_then(|()| file.sync_all());
            written.map_err(|error| {
                let code = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                unwritten = Some(error);
                code
            })
        });
        match unwritten {
            Some(error) => Err(CheckoutError::io("write", path, error)),
            None => done,
        }
    }

    /// Makes something under a name that nobody has, and then gives it the name it is for.
    fn put(
        &self,
        path: &RelPath,
        mut make: impl FnMut(BorrowedFd<'_>, &str) -> rustix::io::Result<()>,
    ) -> Result<(), CheckoutError> {
        let failed = |error| self.failed("write", path, error);
        self.refuse_git(path)?;
        let parent = self.make_parent(path)?;
        for _ in 0..ATTEMPTS_MAX {
            let draft = draft_name().map_err(failed)?;
            match make(parent.as_fd(), &draft) {
                Err(Errno::EXIST) => continue,
                made => {
                    let put = made.and_then(|()| renameat(&parent, &draft, &parent, path.name()));
                    if put.is_err() {
                        let _ = unlinkat(&parent, &draft, AtFlags::empty());
                    }
                    return put.and_then(|()| fsync(&parent)).map_err(failed);
                }
            }
        }
        Err(failed(Errno::EXIST))
    }

    /// Removes a file or a link. Its directory stays.
    pub fn remove(&self, path: &RelPath) -> Result<(), CheckoutError> {
        self.refuse_git(path)?;
        self.in_parent(path, |parent, name| unlinkat(parent, name, AtFlags::empty()))
            .map_err(|error| self.failed("remove", path, error))
    }

    /// Removes the directories above a path that are empty now.
    pub fn remove_empty_parents(&self, path: &RelPath) -> Result<(), CheckoutError> {
        let mut left = path.parent();
        while let Some(directory) = left {
            match self.remove_directory(&directory) {
                Ok(()) => left = directory.parent(),
                Err(CheckoutError::Io { source, .. }) if is_left(&source) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes a directory that is empty.
    pub fn remove_directory(&self, path: &RelPath) -> Result<(), CheckoutError> {
        self.refuse_git(path)?;
        self.in_parent(path, |parent, name| unlinkat(parent, name, AtFlags::REMOVEDIR))
            .map_err(|error| self.failed("remove", path, error))
    }

    /// Makes a directory, and those above it, where they are not there.
    pub fn make_directory(&self, path: &RelPath) -> Result<(), CheckoutError> {
        self.refuse_git(path)?;
        self.made_directory(path, Durable::Now).map(drop)
    }

    /// Makes what was put under or removed from a name durable.
    pub fn sync(&self, path: &RelPath) -> Result<(), CheckoutError> {
        self.directory(path.parent().as_ref())
            .and_then(fsync)
            .map_err(|error| self.failed("make durable", path, error))
    }

    /// Whether a name is one that [`Root::write`] gives to what is not whole yet.
    pub fn is_draft(name: &[u8]) -> bool {
        name.starts_with(DRAFT.as_bytes())
    }

    fn refuse_git(&self, path: &RelPath) -> Result<(), CheckoutError> {
        if path.is_git() { Err(CheckoutError::InsideGit { path: path.to_string() }) } else { Ok(()) }
    }

    /// The directory that a path lies in, made where it is not there.
    fn make_parent(&self, path: &RelPath) -> Result<OwnedFd, CheckoutError> {
        match path.parent() {
            None => self.directory(None).map_err(|error| self.failed("open", path, error)),
            Some(parent) => self.made_directory(&parent, Durable::Now),
        }
    }

    pub(crate) fn made_directory(&self, path: &RelPath, durable: Durable) -> Result<OwnedFd, CheckoutError> {
        let failed = |error| self.failed("make the directory", path, error);
        match self.directory(Some(path)) {
            Err(Errno::NOENT) => {}
            opened => return opened.map_err(failed),
        }
        let mut directory = self.directory(None).map_err(failed)?;
        for name in path.names() {
            match mkdirat(&directory, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                Ok(()) if durable == Durable::Now => fsync(&directory).map_err(failed)?,
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error)),
            }
            directory =
                openat(&directory, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).map_err(failed)?;
        }
        Ok(directory)
    }

    /// Opens a directory, the root itself where no path is given.
    pub(crate) fn directory(&self, path: Option<&RelPath>) -> rustix::io::Result<OwnedFd> {
        match path {
            None => openat(&self.directory, ".", DIRECTORY, Mode::empty()),
            Some(path) => self.open_beneath(path, DIRECTORY),
        }
    }

    fn in_parent<T>(
        &self,
        path: &RelPath,
        act: impl FnOnce(BorrowedFd<'_>, &[u8]) -> rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        match path.parent() {
            None => act(self.directory.as_fd(), path.name()),
            Some(parent) => act(self.directory(Some(&parent))?.as_fd(), path.name()),
        }
    }

    fn open_beneath(&self, path: &RelPath, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        if self.resolve == Resolve::Walk {
            return self.walk_to(path, flags);
        }
        for _ in 0..ATTEMPTS_MAX {
            match openat2(&self.directory, path.as_path(), flags, Mode::empty(), BENEATH) {
                // Something was renamed on the way.
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }

    fn walk_to(&self, path: &RelPath, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let mut directory = None;
        if let Some(parent) = path.parent() {
            for name in parent.names() {
                let at = directory.as_ref().unwrap_or(&self.directory);
                directory = Some(openat(at, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?);
            }
        }
        let at = directory.as_ref().unwrap_or(&self.directory);
        openat(at, path.name(), flags | OFlags::NOFOLLOW, Mode::empty())
    }

    /// What went wrong, and whether it was a link that was in the way.
    fn failed(&self, doing: &'static str, path: &RelPath, error: Errno) -> CheckoutError {
        match error {
            Errno::LOOP | Errno::XDEV => CheckoutError::Escapes { path: path.to_string() },
            Errno::NOTDIR if self.meets_a_link(path) => CheckoutError::Escapes { path: path.to_string() },
            error => CheckoutError::io(doing, path, error.into()),
        }
    }

    /// Only tells why something was refused; nothing is opened by it.
    fn meets_a_link(&self, path: &RelPath) -> bool {
        let mut directory = None;
        for name in path.names() {
            let at = directory.as_ref().unwrap_or(&self.directory);
            match openat(at, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(deeper) => directory = Some(deeper),
                Err(_) => {
                    return statat(at, name, AtFlags::SYMLINK_NOFOLLOW)
                        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
                }
            }
        }
        false
    }
}

/// What a new file may be used for, before the person's own mask.
#[derive(Clone, Copy)]
enum Usual {
    Plain,
    Executable,
}

impl Usual {
    const fn mode(self) -> Mode {
        match self {
            Usual::Plain => Mode::from_raw_mode(0o666),
            Usual::Executable => Mode::from_raw_mode(0o777),
        }
    }
}

/// Whether a directory was left because it is in use, or gone already.
fn is_left(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists
    )
}

fn draft_name() -> rustix::io::Result<String> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty())?;
    Ok(format!("{DRAFT}{:016x}", u64::from_ne_bytes(random)))
}
