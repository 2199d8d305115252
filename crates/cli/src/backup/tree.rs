//! Trees of files: copied as they are, listed with digests, and compared by that.
//!
//! It follows no link and copies nothing but files, directories and links.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use runyard_store::Hash;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The most entries of a tree.
const ENTRIES_MAX: usize = 10_000_000;
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
    walk(root, &|_| false, &mut |relative, source, kind| {
        let path = shown(relative.as_os_str());
        let empty = Entry { path, mode: None, bytes: None, sha256: None, link: None };
        found.push(match kind {
            Kind::Link => Entry { link: Some(shown(fs::read_link(source)?.as_os_str())), ..empty },
            Kind::Directory => Entry { mode: Some(octal(&fs::symlink_metadata(source)?)), ..empty },
            Kind::File => {
                let mut file = open(source)?;
                let mode = Some(octal(&file.metadata()?));
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
    walk(from, left_out, &mut |relative, source, kind| {
        let target = to.join(relative);
        let copied = match kind {
            Kind::Link => fs::read_link(source).and_then(|leads| symlink(leads, &target)),
            // It gets its own mode when everything is in it.
            Kind::Directory => fs::symlink_metadata(source).and_then(|found| {
                modes.push((target.clone(), found.permissions().mode()));
                DirBuilder::new().mode(0o700).create(&target)
            }),
            Kind::File => open(source).and_then(|file| copy_file(file, &target)),
        };
        match copied {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
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
            walk(path, &|_| false, &mut |_, source, kind| match kind {
                Kind::Directory => fs::set_permissions(source, fs::Permissions::from_mode(0o700)),
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

#[derive(Clone, Copy)]
enum Kind {
    Directory,
    File,
    Link,
}

/// Visits everything below a directory, each directory before what is in it.
fn walk(
    root: &Path,
    left_out: &dyn Fn(&Path) -> bool,
    visit: &mut dyn FnMut(&Path, &Path, Kind) -> io::Result<()>,
) -> io::Result<()> {
    let (mut directories, mut visited) = (vec![PathBuf::new()], 0);
    while let Some(relative) = directories.pop() {
        let listed = match fs::read_dir(root.join(&relative)) {
            Err(error) if error.kind() == ErrorKind::NotFound && relative != Path::new("") => continue,
            listed => listed?,
        };
        for entry in listed {
            let entry = entry?;
            let relative = relative.join(entry.file_name());
            let kind = match entry.file_type() {
                Ok(found) if found.is_dir() => Kind::Directory,
                Ok(found) if found.is_file() => Kind::File,
                Ok(found) if found.is_symlink() => Kind::Link,
                _ => continue,
            };
            if left_out(&relative) {
                continue;
            }
            visited += 1;
            if visited > ENTRIES_MAX {
                return Err(io::Error::other(format!("there are more than {ENTRIES_MAX} files")));
            }
            visit(&relative, &entry.path(), kind)?;
            if matches!(kind, Kind::Directory) {
                directories.push(relative);
            }
        }
    }
    Ok(())
}

/// Opens a file, and never what a link leads to.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
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

fn octal(found: &fs::Metadata) -> String {
    format!("{:o}", found.permissions().mode() & 0o777)
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
}
