//! Trees of files: copied as they are, listed with digests, and compared by that.
//!
//! It follows no link and copies nothing but files, directories and links. Everything is opened by its name in a directory that is
//! open already: who writes into the tree meanwhile, as an agent does, cannot lead it elsewhere by putting a link in the place of
//! a directory.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use runyard_store::Hash;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, readlinkat, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The most entries of a tree.
const ENTRIES_MAX: usize = 10_000_000;
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// How much of a file is read at a time.
const CHUNK_BYTES: usize = 256 * 1024;

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Entry {
    /// Its path in the tree. Bytes that are no text are written as `%ff`.
    pub(super) path: String,
    /// Who may do what with it, as an octal number; links have none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    sha256: Option<String>,
    /// Where a link leads.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    link: Option<String>,
}

impl Entry {
    pub(super) const fn is_file(&self) -> bool {
        self.sha256.is_some()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.unwrap_or_default()
    }
}

/// All entries below a directory, in the order of their paths.
pub(super) fn entries(root: &Path) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    walk(root, &|_| false, &mut |relative, node| {
        let path = shown(relative.as_os_str());
        let empty = Entry { path, mode: None, bytes: None, sha256: None, link: None };
        found.push(match node.kind {
            Kind::Link => Entry { link: Some(shown(&node.leads_to()?)), ..empty },
            Kind::Directory => Entry { mode: Some(octal(node.directory_mode()?)), ..empty },
            Kind::File => {
                let mut file = node.open()?;
                let mode = Some(octal(file.metadata()?.permissions().mode()));
                let (bytes, sha256) = digest(&mut file)?;
                Entry { mode, bytes: Some(bytes), sha256: Some(sha256), ..empty }
            }
        });
        Ok(())
    })?;
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Copies what is below a directory into another one that is there, but for what is left out. What goes away meanwhile is left
/// out too.
pub(super) fn copy(from: &Path, to: &Path, left_out: &dyn Fn(&Path) -> bool) -> io::Result<()> {
    let mut modes = Vec::new();
    walk(from, left_out, &mut |relative, node| {
        let target = to.join(relative);
        let copied = match node.kind {
            Kind::Link => node.leads_to().and_then(|leads| symlink(leads, &target)),
            // It gets its own mode when everything is in it.
            Kind::Directory => node.directory_mode().and_then(|mode| {
                modes.push((target.clone(), mode));
                DirBuilder::new().mode(0o700).create(&target)
            }),
            Kind::File => node.open().and_then(|file| copy_file(file, &target)),
        };
        match copied {
            Err(error) if is_gone(&error) => Ok(()),
            copied => copied,
        }
    })?;
    modes
        .iter()
        .rev()
        .try_for_each(|(path, mode)| fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o777)))
}

fn copy_file(mut from: File, to: &Path) -> io::Result<()> {
    let metadata = from.metadata()?;
    let mode = metadata.permissions().mode() & 0o777;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    // What grows meanwhile ends where it ended.
    io::copy(&mut (&mut from).take(metadata.len()), &mut file)?;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

/// Removes whatever is there, if something is.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            // A directory that nobody may write is emptied all the same.
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
            walk(path, &|_| false, &mut |_, node| match node.kind {
                Kind::Directory => Ok(chmodat(node.within, node.name, Mode::RWXU, AtFlags::empty())?),
                _ => Ok(()),
            })?;
            fs::remove_dir_all(path)
        }
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Directory,
    File,
    Link,
}

impl Kind {
    const fn of(found: FileType) -> Option<Self> {
        match found {
            FileType::Directory => Some(Kind::Directory),
            FileType::RegularFile => Some(Kind::File),
            FileType::Symlink => Some(Kind::Link),
            _ => None,
        }
    }
}

/// Something in a directory that is open, as it was when the directory was listed. Each answer is about what is there now, or none.
struct Node<'a> {
    within: &'a OwnedFd,
    name: &'a OsStr,
    kind: Kind,
}

impl Node<'_> {
    /// Opens a file, and never what a link leads to.
    fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(self.within, self.name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::NotFound.into()) }
    }

    fn leads_to(&self) -> io::Result<OsString> {
        Ok(OsString::from_vec(readlinkat(self.within, self.name, Vec::new())?.into_bytes()))
    }

    fn directory_mode(&self) -> io::Result<u32> {
        let found = statat(self.within, self.name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => Ok(found.st_mode),
            _ => Err(ErrorKind::NotFound.into()),
        }
    }
}

/// Visits everything below a directory, each directory before what is in it. What is another thing by the time that it is opened
/// counts as gone.
fn walk(
    root: &Path,
    left_out: &dyn Fn(&Path) -> bool,
    visit: &mut dyn FnMut(&Path, &Node<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let root = openat(CWD, root, DIRECTORY, Mode::empty())?;
    let (mut directories, mut visited) = (vec![PathBuf::new()], 0);
    while let Some(above) = directories.pop() {
        let within = match open_directory(&root, &above) {
            Err(error) if is_gone(&error) => continue,
            opened => opened?,
        };
        for listed in Dir::read_from(&within)? {
            let listed = listed?;
            let name = OsStr::from_bytes(listed.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let found = match listed.file_type() {
                // Some file systems do not say it in their lists.
                FileType::Unknown => statat(&within, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode)),
                found => found,
            };
            let relative = above.join(name);
            let Some(kind) = Kind::of(found).filter(|_| !left_out(&relative)) else { continue };
            visited += 1;
            if visited > ENTRIES_MAX {
                return Err(io::Error::other(format!("there are more than {ENTRIES_MAX} files")));
            }
            visit(&relative, &Node { within: &within, name, kind })?;
            if kind == Kind::Directory {
                directories.push(relative);
            }
        }
    }
    Ok(())
}

/// Opens a directory name by name, each in the one before it and none through a link.
fn open_directory(root: &OwnedFd, relative: &Path) -> io::Result<OwnedFd> {
    let open =
        |within: &OwnedFd, name: &OsStr| openat(within, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
    let mut within = open(root, OsStr::new("."))?;
    for name in relative {
        within = open(&within, name)?;
    }
    Ok(within)
}

/// Whether something is there no longer, or another thing is in its place.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound
        || Errno::from_io_error(error).is_some_and(|errno| matches!(errno, Errno::LOOP | Errno::NOTDIR))
}

fn digest(file: &mut File) -> io::Result<(u64, String)> {
    let (mut digest, mut bytes, mut chunk) = (Sha256::new(), 0, vec![0; CHUNK_BYTES]);
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok((bytes, Hash::from_bytes(digest.finalize().into()).to_string()));
        }
        digest.update(&chunk[..read]);
        bytes += read as u64;
    }
}

fn octal(mode: u32) -> String {
    format!("{:o}", mode & 0o777)
}

/// A path as text, another one for every other path.
fn shown(path: &OsStr) -> String {
    let mut shown = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '%' => shown.push_str("%25"),
                plain => shown.push(plain),
            }
        }
        chunk.invalid().iter().for_each(|byte| shown.push_str(&format!("%{byte:02x}")));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_same_tree_with_links_modes_and_names_that_are_no_text() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("a/empty")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("a/run.sh"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(from.join("a/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(from.join(OsStr::from_bytes(b"odd\xff%")), "odd").unwrap();
        symlink("/nowhere", from.join("link")).unwrap();
        fs::set_permissions(from.join("a"), fs::Permissions::from_mode(0o500)).unwrap();
        copy(&from, &to, &|path| path == Path::new("left")).unwrap();
        let (one, other) = (entries(&from).unwrap(), entries(&to).unwrap());
        assert_eq!(one, other);
        let paths: Vec<&str> = one.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["a", "a/empty", "a/run.sh", "link", "odd%ff%25"]);
        assert_eq!(one[2].mode.as_deref(), Some("755"));
        assert_eq!((one[3].link.as_deref(), one[0].is_file()), (Some("/nowhere"), false));
        remove(&to).unwrap();
        remove(&to).unwrap();
        assert!(!to.exists());
        fs::set_permissions(from.join("a"), fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn c11_what_is_swapped_for_a_link_while_it_is_copied_leads_nowhere() {
        let place = tempfile::tempdir().unwrap();
        let [secret, from, to] = ["secret", "from", "to"].map(|name| place.path().join(name));
        for directory in [&secret, &from.join("a/b"), &to] {
            fs::create_dir_all(directory).unwrap();
        }
        for file in [secret.join("id"), from.join("a/b/id"), from.join("file")] {
            fs::write(file, "own").unwrap();
        }
        fs::write(secret.join("id"), "secret").unwrap();
        // Asked when the kind of an entry is known and nothing of it is open yet: where an agent would do it.
        let swap = |relative: &Path| {
            let (path, leads) = match relative.to_str().unwrap() {
                "a/b" => (from.join("a"), place.path().to_owned()),
                "file" => (from.join("file"), secret.join("id")),
                _ => return false,
            };
            fs::rename(&path, path.with_extension("moved")).unwrap();
            symlink(leads, &path).unwrap();
            false
        };
        fs::create_dir(place.path().join("b")).unwrap();
        fs::write(place.path().join("b/id"), "secret").unwrap();
        copy(&from, &to, &swap).unwrap();
        let copied = entries(&to).unwrap();
        assert!(copied.iter().all(|entry| entry.bytes() != "secret".len() as u64), "{copied:?}");
        assert!(!to.join("a/b/id").exists() && !to.join("file").exists());
    }
}
