//! Files of a run's directory, opened beneath it: part by part, following no link. Nothing here reaches outside.

use std::collections::BinaryHeap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};

use crate::failpoint;

/// What lies in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What something in a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A link, a pipe, or something else that is not gone into.
    Other,
}

/// What lies in a directory, in the order of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries {
    /// The first of them.
    pub entries: Vec<Entry>,
    /// Whether there are more.
    pub more: bool,
}

/// What a file holds, at most `bytes_max` of it.
pub fn read(root: &Path, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
    let (folder, name) = folder_of(root, path, Missing::Refuse)?;
    let file = open_regular(&folder, &name, OFlags::RDONLY)?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file whole, with the folders on the way to it. Whenever the process dies, what it held before or all that it is to
/// hold stands there.
pub fn write(root: &Path, path: &str, content: &[u8]) -> io::Result<()> {
    // Two writers of one file never share what they prepare.
    static WRITING: Mutex<()> = Mutex::new(());
    failpoint::reach("file.write");
    let (folder, name) = folder_of(root, path, Missing::Make)?;
    let mode = match open_regular(&folder, &name, OFlags::WRONLY) {
        Ok(file) => Some(file.metadata()?.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    // The same name each time, so that what a death left is used up by the next attempt.
    let prepared = format!(".runyard-{:016x}", hash_of(&name));
    let prepare = || -> io::Result<()> {
        let mut file = open_regular(&folder, &prepared, OFlags::WRONLY | OFlags::CREATE)?;
        file.set_len(0)?;
        if let Some(mode) = mode {
            file.set_permissions(mode)?;
        }
        file.write_all(content)?;
        failpoint::reach("file.prepared");
        fs::renameat(&folder, &prepared, &folder, &name)?;
        failpoint::reach("file.written");
        Ok(())
    };
    if let Err(error) = prepare() {
        // Not what was wrong: that it could not be tidied up.
        let _ = fs::unlinkat(&folder, &prepared, AtFlags::empty());
        return Err(error);
    }
    Ok(())
}

fn hash_of(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// What lies in a directory, the first `entries_max` by name; `.` is the root itself. However many there are, no more are kept.
pub fn entries(root: &Path, path: &str, entries_max: usize) -> io::Result<Entries> {
    let parts = parts(path)?;
    let folder = descend(root, &parts, Missing::Refuse)?;
    let (mut found, mut more) = (BinaryHeap::new(), false);
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            _ => EntryKind::Other,
        };
        found.push(Entry { name, kind });
        if found.len() > entries_max {
            // The last one by name.
            found.pop();
            more = true;
        }
    }
    Ok(Entries { entries: found.into_sorted_vec(), more })
}

#[derive(Clone, Copy, PartialEq)]
enum Missing {
    Refuse,
    Make,
}

fn parts(path: &str) -> io::Result<Vec<String>> {
    let mut parts = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::CurDir => {}
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path leaves the directory")),
        }
    }
    Ok(parts)
}

/// The folder that a path lies in, opened, and the name within it.
fn folder_of(root: &Path, path: &str, missing: Missing) -> io::Result<(OwnedFd, String)> {
    let mut parts = parts(path)?;
    let Some(name) = parts.pop() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    };
    Ok((descend(root, &parts, missing)?, name))
}

fn descend(root: &Path, parts: &[String], missing: Missing) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let mut folder = fs::open(root, flags, Mode::empty())?;
    for part in parts {
        if missing == Missing::Make {
            match fs::mkdirat(&folder, part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        folder = fs::openat(&folder, part, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(folder)
}

fn open_regular(folder: &OwnedFd, name: &str, flags: OFlags) -> io::Result<File> {
    // Without waiting: a pipe in the file's place would keep the opener for ever.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(fs::openat(folder, name, flags, Mode::from_raw_mode(0o666))?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn root() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("in")).unwrap();
        root
    }

    #[test]
    fn c11_nothing_is_written_or_read_outside_of_the_directory() {
        let root = root();
        let inside = root.path().join("in");
        std::fs::write(root.path().join("secret"), "x\n").unwrap();
        std::os::unix::fs::symlink("..", inside.join("up")).unwrap();
        std::os::unix::fs::symlink("../secret", inside.join("link")).unwrap();
        let absolute = root.path().join("secret");
        for path in ["../secret", "a/../../secret", "up/secret", "link", absolute.to_str().unwrap(), "", "."]
        {
            assert!(write(&inside, path, b"changed").is_err(), "{path}");
            assert!(read(&inside, path, 100).is_err(), "{path}");
        }
        for path in ["..", "up", "a/../..", absolute.parent().unwrap().to_str().unwrap()] {
            assert!(entries(&inside, path, 10).is_err(), "{path}");
        }
        assert_eq!(std::fs::read_to_string(root.path().join("secret")).unwrap(), "x\n");
    }

    #[test]
    fn a_file_is_written_with_its_folders_and_twice_is_the_same_as_once() {
        let root = root();
        for content in ["a longer text\nof two lines", "short", "short"] {
            write(root.path(), "a/b/c.txt", content.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(root.path().join("a/b/c.txt")).unwrap(), content);
        }
        assert_eq!(read(root.path(), "a/b/c.txt", 3).unwrap(), b"sho");
        assert_eq!(entries(root.path(), "a/b", 10).unwrap().entries.len(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_file_keeps_its_mode_and_one_that_cannot_be_written_is_left_as_it_is() {
        let root = root();
        let script = root.path().join("run.sh");
        std::fs::write(&script, "true\n").unwrap();
        std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
        write(root.path(), "run.sh", b"false\n").unwrap();
        assert_eq!(std::fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o755);
        assert!(write(root.path(), "in", b"x").is_err(), "a directory stands there");
        let names = entries(root.path(), ".", 10).unwrap().entries.into_iter().map(|entry| entry.name);
        assert_eq!(names.collect::<Vec<_>>(), ["in", "run.sh"]);
    }

    #[test]
    fn a_directory_is_listed_by_name_with_what_each_is_and_no_more_than_asked_for() {
        let root = root();
        std::fs::write(root.path().join("a"), "").unwrap();
        std::os::unix::fs::symlink("a", root.path().join("z")).unwrap();
        let entry = |name: &str, kind| Entry { name: name.to_owned(), kind };
        let all =
            [entry("a", EntryKind::File), entry("in", EntryKind::Directory), entry("z", EntryKind::Other)];
        let found = |path: &str, entries_max| {
            let Entries { entries, more } = entries(root.path(), path, entries_max).unwrap();
            (entries, more)
        };
        assert_eq!(found(".", 10), (all.to_vec(), false));
        assert_eq!(found("in", 10), (Vec::new(), false));
        assert_eq!(found("", 3), (all.to_vec(), false));
        assert_eq!(found("", 2), (all[..2].to_vec(), true));
        assert_eq!(found("", 0), (Vec::new(), true));
    }

    #[test]
    fn b09_the_first_by_name_are_listed_in_whatever_order_the_directory_gives_them() {
        let root = root();
        for n in 0..300 {
            std::fs::write(root.path().join("in").join(format!("{:03}", n * 7 % 300)), "").unwrap();
        }
        let Entries { entries, more } = entries(root.path(), "in", 100).unwrap();
        let names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
        assert_eq!((names, more), ((0..100).map(|n| format!("{n:03}")).collect(), true));
    }
}
