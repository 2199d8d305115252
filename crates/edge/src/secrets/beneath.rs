//! A file of a directory, through links that stay in it: those of a mounted Secret do (`auth.json` is `..data/auth.json`, and
//! `..data` a directory beside it), and others lead nowhere.
//!
//! The kernel resolves it in one step (`openat2`), or we do name by name, each in the directory that was opened before it.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};
use rustix::io::Errno;

use super::DIRECTORY;

/// So often a file is opened again that was renamed on the way.
const ATTEMPTS_MAX: usize = 16;
/// How many names lead to a file at most.
const NAMES_MAX: usize = 64;

/// Not waiting, should it be a pipe.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// Who resolves a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolve {
    /// The kernel; we where it cannot.
    Kernel,
    /// We.
    Walk,
}

/// Opens a name to read it. What leads out is [`Errno::XDEV`], and what leads in a circle [`Errno::LOOP`].
pub(super) fn open(directory: &OwnedFd, name: &str, resolve: Resolve) -> rustix::io::Result<OwnedFd> {
    if resolve == Resolve::Walk {
        return walk(directory, name);
    }
    for _ in 0..ATTEMPTS_MAX {
        match openat2(directory, name, READ, Mode::empty(), BENEATH) {
            // Something was renamed on the way, as when a mounted Secret changes.
            Err(Errno::AGAIN | Errno::INTR) => {}
            // An older kernel, or a sandbox that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => return walk(directory, name),
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

fn walk(root: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let mut directories: Vec<OwnedFd> = Vec::new();
    // The next name is the last one.
    let mut names = vec![name.as_bytes().to_vec()];
    for _ in 0..NAMES_MAX {
        let name = names.pop().ok_or(Errno::ISDIR)?;
        if name.is_empty() || name == b"." {
            continue;
        }
        if name == b".." {
            directories.pop().ok_or(Errno::XDEV)?;
            continue;
        }
        let at = directories.last().unwrap_or(root);
        let flags = if names.is_empty() { READ } else { DIRECTORY };
        match openat(at, &name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(file) if names.is_empty() => return Ok(file),
            Ok(directory) => directories.push(directory),
            // A link, or else what it looks like.
            Err(error @ (Errno::LOOP | Errno::NOTDIR)) => {
                let link = readlinkat(at, &name, Vec::new()).map_err(|_| error)?.into_bytes();
                if link.starts_with(b"/") {
                    return Err(Errno::XDEV);
                }
                names.extend(link.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
            }
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP)
}
