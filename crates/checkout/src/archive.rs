//! All that changed in a checkout, kept as one patch that `git apply` takes, and the proof that nothing of it is missing.
//!
//! The proof is git's: the patch is applied to what the checkout began with, in a place of its own, and what comes out must be what
//! the checkout holds, byte for byte. A patch that is not proven does not get its name.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::ObjectFormat;
use crate::clone::{discard, draft};
use crate::git::Git;
use crate::unified::complete;
use crate::{
    Base, Change, ChangeKind, Changes, CheckoutError, ContentId, Contents, FILE_BYTES_MAX, FileMode, RelPath,
    Root, Version,
};

/// Nothing that a file in the checkout says about line endings or filters counts.
const ATTRIBUTES: &str = "* -text -filter -ident -working-tree-encoding -whitespace\n";

/// What a patch is made from.
pub struct Archived<'a> {
    /// What the checkout began as.
    pub base: &'a Base,
    /// What its files held then.
    pub contents: &'a mut Contents,
    /// The checkout.
    pub checkout: &'a Root,
    /// What changed.
    pub changes: &'a Changes,
}

impl Archived<'_> {
    /// Writes the patch under this name, durably, once it is proven to hold all that changed. Gives how long it is.
    ///
    /// What can be in no patch is [`CheckoutError::NotInPatch`], and nothing is written.
    pub fn keep(mut self, patch: &Path, stop: &AtomicBool) -> Result<u64, CheckoutError> {
        if let Some(problem) = self.changes.problems.first() {
            return Err(CheckoutError::NotInPatch { path: problem.path.to_string() });
        }
        let (draft, proof) = (draft(patch), patch.with_extension("proof"));
        discard(&proof).map_err(own)?;
        let kept = self.write(&draft, stop).and_then(|bytes| {
            self.prove(&draft, &proof, stop)?;
            Ok(bytes)
        });
        let cleared = discard(&proof).map_err(own);
        let kept = kept.and_then(|bytes| {
            cleared?;
            fs::rename(&draft, patch).map_err(own)?;
            let directory = patch.parent().unwrap_or(Path::new("/"));
            File::open(directory).and_then(|directory| directory.sync_all()).map_err(own)?;
            Ok(bytes)
        });
        if kept.is_err() {
            let _ = fs::remove_file(&draft);
        }
        kept
    }

    fn format(&self) -> ObjectFormat {
        self.base.git.as_ref().map_or(ObjectFormat::Sha1, |git| git.format)
    }

    fn write(&mut self, to: &Path, stop: &AtomicBool) -> Result<u64, CheckoutError> {
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(to);
        let mut out = BufWriter::new(file.map_err(own)?);
        let (mut bytes, format, changes) = (0, self.format(), self.changes);
        for change in &changes.files {
            go_on(stop)?;
            let (before, after) = (self.before(change)?, self.after(change)?);
            let text = complete(change, &before.unwrap_or_default(), &after.unwrap_or_default(), format);
            bytes += text.len() as u64;
            out.write_all(&text).map_err(own)?;
        }
        let file = out.into_inner().map_err(|error| own(error.into_error()))?;
        file.sync_all().map_err(own)?;
        Ok(bytes)
    }

    fn before(&mut self, change: &Change) -> Result<Option<Vec<u8>>, CheckoutError> {
        let path = change.old_path.as_ref().unwrap_or(&change.path);
        let Some(before) = change.before else { return Ok(None) };
        let entry = self.base.find(path).ok_or(CheckoutError::Damaged("a file is not in it"))?;
        checked(change, before, self.contents.read(entry, FILE_BYTES_MAX)?).map(Some)
    }

    fn after(&self, change: &Change) -> Result<Option<Vec<u8>>, CheckoutError> {
        let Some(after) = change.after else { return Ok(None) };
        let bytes = match after.mode {
            FileMode::Link => self.checkout.read_link(&change.path)?,
            _ => self.checkout.read(&change.path, FILE_BYTES_MAX)?.bytes,
        };
        checked(change, after, bytes).map(Some)
    }

    /// Lets git apply the patch to what was there at the beginning, and looks whether what comes out is what is in the checkout.
    fn prove(&mut self, patch: &Path, proof: &Path, stop: &AtomicBool) -> Result<(), CheckoutError> {
        let (tree, git_dir) = (proof.join("tree"), proof.join("git"));
        fs::create_dir_all(&tree).map_err(own)?;
        make_repository(&git_dir, self.format()).map_err(own)?;
        let (changes, mut put) = (self.changes, BTreeSet::new());
        for change in &changes.files {
            go_on(stop)?;
            let path = change.old_path.as_ref().unwrap_or(&change.path);
            if let (Some(before), Some(bytes)) = (change.before, self.before(change)?)
                && put.insert(path.clone())
            {
                lay(&tree.join(path.as_path()), before.mode, &bytes).map_err(own)?;
            }
        }
        if !changes.files.is_empty() {
            let mut work_tree = OsString::from("--work-tree=");
            work_tree.push(&tree);
            let mut arguments: Vec<OsString> = vec!["-C".into(), tree.clone().into(), work_tree];
            arguments.extend(["apply", "--whitespace=nowarn", "--"].map(OsString::from));
            arguments.push(patch.into());
            Git::own(&git_dir).run("check the archived patch", &arguments, b"", stop)?;
        }
        let placed: BTreeSet<&RelPath> =
            changes.files.iter().filter(|change| change.after.is_some()).map(|change| &change.path).collect();
        for change in &changes.files {
            go_on(stop)?;
            let same = match change.after {
                Some(after) => holds(&tree.join(change.path.as_path()), after).map_err(own)?,
                None => true,
            };
            let left = left_empty(change).filter(|path| !placed.contains(path));
            let gone = left.is_none_or(|path| tree.join(path.as_path()).symlink_metadata().is_err());
            if !same || !gone {
                return Err(CheckoutError::NotInPatch { path: change.path.to_string() });
            }
        }
        Ok(())
    }
}

/// The path that a change leaves empty.
fn left_empty(change: &Change) -> Option<&RelPath> {
    match change.kind {
        ChangeKind::Deleted => Some(&change.path),
        ChangeKind::Renamed => change.old_path.as_ref(),
        _ => None,
    }
}

fn go_on(stop: &AtomicBool) -> Result<(), CheckoutError> {
    if stop.load(Ordering::Relaxed) { Err(CheckoutError::Stopped) } else { Ok(()) }
}

/// The content, if it is what was found when it was compared. A submodule's is nothing that a patch brings.
fn checked(change: &Change, version: Version, bytes: Vec<u8>) -> Result<Vec<u8>, CheckoutError> {
    let same = version.mode != FileMode::Submodule && ContentId::of(&bytes) == version.content;
    same.then_some(bytes).ok_or_else(|| CheckoutError::NotInPatch { path: change.path.to_string() })
}

/// A repository that holds nothing and believes nothing.
fn make_repository(git_dir: &Path, format: ObjectFormat) -> std::io::Result<()> {
    for directory in ["objects", "refs", "info"] {
        fs::create_dir_all(git_dir.join(directory))?;
    }
    let config = match format {
        ObjectFormat::Sha1 => "[core]\n\trepositoryformatversion = 0\n",
        ObjectFormat::Sha256 => {
            "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
        }
    };
    fs::write(git_dir.join("config"), config)?;
    fs::write(git_dir.join("info/attributes"), ATTRIBUTES)?;
    fs::write(git_dir.join("HEAD"), "ref: refs/heads/main\n")
}

/// Puts a file or a link where nothing is yet.
fn lay(path: &Path, mode: FileMode, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match mode {
        FileMode::Link => symlink(OsStr::from_bytes(bytes), path),
        FileMode::Executable => {
            fs::write(path, bytes)?;
            fs::set_permissions(path, Permissions::from_mode(0o755))
        }
        FileMode::Plain | FileMode::Submodule => fs::write(path, bytes),
    }
}

/// Whether a file or a link is this.
fn holds(path: &Path, version: Version) -> std::io::Result<bool> {
    use std::os::unix::ffi::OsStrExt;
    let found = match path.symlink_metadata() {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        found => found?,
    };
    let (mode, bytes) = if found.is_symlink() {
        (FileMode::Link, fs::read_link(path)?.as_os_str().as_bytes().to_vec())
    } else if found.permissions().mode() & 0o100 != 0 {
        (FileMode::Executable, fs::read(path)?)
    } else {
        (FileMode::Plain, fs::read(path)?)
    };
    Ok((mode, ContentId::of(&bytes)) == (version.mode, version.content))
}

fn own(source: std::io::Error) -> CheckoutError {
    CheckoutError::Io { doing: "keep", path: "the patch".to_owned(), source }
}
