//! What git lists as tracked, and the index that a checkout gets.
//!
//! The index is written as git documents it, with the stamps of the checkout's own files where they are known to be as git says:
//! then the first look at the checkout does not read every file again. Extensions are not written, and git's own index is never
//! read as a file.

use rustix::fs::Stat;

use crate::base::{ObjectFormat, Oid};
use crate::object::Hasher;
use crate::{CheckoutError, RelPath};

const ASSUME_VALID: u32 = 0x8000;
const INTENT_TO_ADD: u32 = 1 << 29;
const SKIP_WORKTREE: u32 = 1 << 30;
/// So the length of a name is written that is longer.
const NAME_LENGTH_MAX: usize = 0xfff;

/// One line of what git tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tracked {
    pub(crate) path: RelPath,
    pub(crate) mode: u32,
    pub(crate) oid: Oid,
    /// Which side of a conflict it is; 0 where there is none.
    pub(crate) stage: u8,
    /// What git last saw of the person's file.
    pub(crate) seen: Seen,
    flags: u32,
}

/// What git last saw of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    changed: (u32, u32),
    modified: (u32, u32),
    inode: u32,
    bytes: u32,
}

impl Tracked {
    /// Whether the person has taken it out of what is checked out.
    pub(crate) fn is_skipped(&self) -> bool {
        self.flags & SKIP_WORKTREE != 0
    }

    /// Whether the person only said that it will be added.
    pub(crate) fn is_intended(&self) -> bool {
        self.flags & INTENT_TO_ADD != 0
    }

    /// Whether it is another repository.
    pub(crate) fn is_submodule(&self) -> bool {
        self.mode == 0o160_000
    }
}

impl Seen {
    /// Whether a file looks as it did.
    pub(crate) fn looks_like(&self, stat: &Stat) -> bool {
        let modified = (stat.st_mtime as u32, stat.st_mtime_nsec as u32);
        self.bytes == stat.st_size as u32 && same_time(self.modified, modified)
    }

    /// Whether a file cannot have changed since git looked at it, given when git last wrote that down.
    pub(crate) fn is(&self, stat: &Stat, written: i64) -> bool {
        let changed = (stat.st_ctime as u32, stat.st_ctime_nsec as u32);
        self.looks_like(stat)
            && same_time(self.changed, changed)
            && self.inode == stat.st_ino as u32
            && stat.st_mtime < written
    }
}

/// Some file systems, and some versions of git, know no nanoseconds.
fn same_time(one: (u32, u32), other: (u32, u32)) -> bool {
    one.0 == other.0 && (one.1 == other.1 || one.1 == 0 || other.1 == 0)
}

/// What is tracked, or a path that is none beneath a root.
pub(crate) type Line = Result<Tracked, Vec<u8>>;

/// Reads `git ls-files --stage --debug -z`.
pub(crate) fn parse(mut listing: &[u8]) -> Result<Vec<Line>, CheckoutError> {
    let mut tracked = Vec::new();
    while !listing.is_empty() {
        let (line, rest) = split(listing, 0).ok_or_else(unreadable)?;
        let (entry, rest) = parse_one(line, rest).ok_or_else(unreadable)?;
        tracked.push(entry);
        listing = rest;
    }
    Ok(tracked)
}

fn unreadable() -> CheckoutError {
    CheckoutError::Git { doing: "list what it tracks", said: "a line is not as expected".to_owned() }
}

/// One entry: a line, and the numbers behind it.
fn parse_one<'a>(line: &[u8], mut rest: &'a [u8]) -> Option<(Line, &'a [u8])> {
    let (head, path) = split(line, b'\t')?;
    let mut head = std::str::from_utf8(head).ok()?.split(' ');
    let mode = u32::from_str_radix(head.next()?, 8).ok()?;
    let oid = Oid::parse(head.next()?)?;
    let stage = head.next()?.parse().ok()?;
    let mut numbers = Vec::with_capacity(10);
    // ctime, mtime, dev and ino, uid and gid, size and flags: two numbers in each line.
    for _ in 0..5 {
        let (line, after) = split(rest, b'\n')?;
        rest = after;
        let words = std::str::from_utf8(line).ok()?.split([' ', '\t', ':']).filter(|word| !word.is_empty());
        numbers.extend(words.filter(|word| word.bytes().all(|byte| byte.is_ascii_hexdigit())));
    }
    let [ctime, ctime_ns, mtime, mtime_ns, _, inode, _, _, size, flags] = numbers[..] else { return None };
    let number = |text: &str| text.parse::<u32>().ok();
    let seen = Seen {
        changed: (number(ctime)?, number(ctime_ns)?),
        modified: (number(mtime)?, number(mtime_ns)?),
        inode: number(inode)?,
        bytes: number(size)?,
    };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    let entry = match RelPath::parse(path) {
        Ok(path) => Ok(Tracked { path, mode, oid, stage, seen, flags }),
        Err(_) => Err(path.to_vec()),
    };
    Some((entry, rest))
}

fn split(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == at)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// An index under construction. Entries come in the order that git lists them in.
pub(crate) struct Index {
    format: ObjectFormat,
    count: u32,
    extended: bool,
    entries: Vec<u8>,
}

impl Index {
    pub(crate) fn new(format: ObjectFormat) -> Index {
        Index { format, count: 0, extended: false, entries: Vec::new() }
    }

    /// Adds what is tracked, with the stamp of the checkout's file where that is known to be as git says.
    pub(crate) fn add(&mut self, tracked: &Tracked, stat: Option<&Stat>) {
        let begin = self.entries.len();
        let numbers = stat.map_or([0; 9], |stat| {
            [
                stat.st_ctime as u32,
                stat.st_ctime_nsec as u32,
                stat.st_mtime as u32,
                stat.st_mtime_nsec as u32,
                stat.st_dev as u32,
                stat.st_ino as u32,
                stat.st_uid,
                stat.st_gid,
                stat.st_size as u32,
            ]
        });
        for (at, number) in numbers.into_iter().enumerate() {
            if at == 6 {
                self.entries.extend(tracked.mode.to_be_bytes());
            }
            self.entries.extend(number.to_be_bytes());
        }
        self.entries.extend(tracked.oid.to_bytes());
        let path = tracked.path.as_bytes();
        let extended = tracked.flags & (INTENT_TO_ADD | SKIP_WORKTREE);
        let flags = u32::from(tracked.stage) << 12
            | tracked.flags & ASSUME_VALID
            | u32::from(extended != 0) << 14
            | path.len().min(NAME_LENGTH_MAX) as u32;
        self.entries.extend((flags as u16).to_be_bytes());
        if extended != 0 {
            self.extended = true;
            self.entries.extend(((extended >> 16) as u16).to_be_bytes());
        }
        self.entries.extend(path);
        let padding = 8 - (self.entries.len() - begin) % 8;
        self.entries.resize(self.entries.len() + padding, 0);
        self.count += 1;
    }

    /// All of it, as git reads it.
    pub(crate) fn finish(self) -> Vec<u8> {
        let version: u32 = if self.extended { 3 } else { 2 };
        let mut bytes = Vec::with_capacity(self.entries.len() + 64);
        bytes.extend(b"DIRC");
        bytes.extend(version.to_be_bytes());
        bytes.extend(self.count.to_be_bytes());
        bytes.extend(self.entries);
        let mut hasher = Hasher::plain(self.format);
        hasher.update(&bytes);
        bytes.extend(hasher.into_bytes());
        bytes
    }
}
