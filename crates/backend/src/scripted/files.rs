//! Files of the run's directory, opened beneath it: part by part, following no link. Nothing here reaches outside.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{self, Mode, OFlags};

/// How much of a file is read.
const READ_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How many entries of a directory are looked at for its first file.
const ENTRIES_MAX: usize = 10_000;

/// Counts the lines of a file.
pub(super) fn count_lines(root: &Path, path: &str) -> io::Result<usize> {
    let (folder, name) = folder_of(root, path, Missing::Refuse)?;
    let file = open_regular(&folder, &name, OFlags::RDONLY)?;
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
    let unfinished = bytes.last().is_some_and(|last| *last != b'\n');
    Ok(bytes.iter().filter(|byte| **byte == b'\n').count() + usize::from(unfinished))
}

/// Writes a file whole, with the folders on the way to it.
pub(super) fn write(root: &Path, path: &str, content: &str) -> io::Result<()> {
    let (folder, name) = folder_of(root, path, Missing::Make)?;
    let mut file = open_regular(&folder, &name, OFlags::WRONLY | OFlags::CREATE)?;
    file.set_len(0)?;
    file.write_all(content.as_bytes())
}

/// The file if it is there; else, where that will do, the first file of the directory by name.
pub(super) fn choose(root: &Path, path: &str, or_first: bool) -> io::Result<Option<String>> {
    match count_lines(root, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        _ => return Ok(Some(path.to_owned())),
    }
    if !or_first {
        return Ok(None);
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root)?.take(ENTRIES_MAX) {
        let entry = entry?;
        if entry.file_type()?.is_file()
            && let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
        {
            names.push(name);
        }
    }
    Ok(names.into_iter().min())
}

#[derive(Clone, Copy, PartialEq)]
enum Missing {
    Refuse,
    Make,
}

/// The folder that a path lies in, opened, and the name within it.
fn folder_of(root: &Path, path: &str, missing: Missing) -> io::Result<(OwnedFd, String)> {
    let mut parts = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::CurDir => {}
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path leaves the directory")),
        }
    }
    let Some(name) = parts.pop() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    };
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let mut folder = fs::open(root, flags, Mode::empty())?;
    for part in parts {
        if missing == Missing::Make {
            match fs::mkdirat(&folder, &part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        folder = fs::openat(&folder, &part, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok((folder, name))
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
            assert!(write(&inside, path, "changed").is_err(), "{path}");
            assert!(count_lines(&inside, path).is_err(), "{path}");
        }
        assert_eq!(std::fs::read_to_string(root.path().join("secret")).unwrap(), "x\n");
    }

    #[test]
    fn a_file_is_written_with_its_folders_and_twice_is_the_same_as_once() {
        let root = root();
        for content in ["a longer text\nof two lines", "short", "short"] {
            write(root.path(), "a/b/c.txt", content).unwrap();
            assert_eq!(std::fs::read_to_string(root.path().join("a/b/c.txt")).unwrap(), content);
        }
        assert_eq!(count_lines(root.path(), "a/b/c.txt").unwrap(), 1);
    }

    #[test]
    fn the_first_file_stands_in_for_a_missing_one_where_that_will_do() {
        let root = root();
        assert_eq!(choose(root.path(), "README.md", true).unwrap(), None);
        for name in ["b.txt", "a.txt", ".hidden"] {
            std::fs::write(root.path().join(name), "").unwrap();
        }
        assert_eq!(choose(root.path(), "README.md", true).unwrap().as_deref(), Some("a.txt"));
        assert_eq!(choose(root.path(), "README.md", false).unwrap(), None);
        assert_eq!(choose(root.path(), "b.txt", true).unwrap().as_deref(), Some("b.txt"));
    }
}
