//! The person's index, which follows a commit for exactly the paths that it changed.
//!
//! What they staged otherwise stays staged. While it is replaced it is locked as git locks it; the lock says whose it is, so that one
//! that a crash left is known again.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::RepositoryError;
use super::repository::{Repository, Stored};
use crate::apply::{ApplyError, Side, three_way};
use crate::{CheckoutError, FileMode, Oid, RelPath};

/// What becomes of one path of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IndexEdit {
    /// From the top of the repository.
    path: RelPath,
    from: Option<Stored>,
    to: Option<Stored>,
}

/// What the index has to become so that it follows a commit.
pub(super) fn follow(
    repository: &Repository<'_>,
    parent: Option<&Oid>,
    commit: &Oid,
) -> Result<Vec<IndexEdit>, ApplyError> {
    let old = parent.map(|parent| repository.tree(parent)).transpose()?.unwrap_or_default();
    let new = repository.tree(commit)?;
    let paths = old.keys().chain(new.keys().filter(|path| !old.contains_key(path)));
    let changed = paths.filter(|path| old.get(path) != new.get(path));
    edits(repository, changed.map(|path| (path, old.get(path), new.get(path))))
}

/// What it has to become so that it follows a commit that is taken back.
pub(super) fn back(repository: &Repository<'_>, made: &[IndexEdit]) -> Result<Vec<IndexEdit>, ApplyError> {
    edits(repository, made.iter().map(|edit| (&edit.path, edit.to.as_ref(), edit.from.as_ref())))
}

fn edits<'e>(
    repository: &Repository<'_>,
    changed: impl Iterator<Item = (&'e RelPath, Option<&'e Stored>, Option<&'e Stored>)>,
) -> Result<Vec<IndexEdit>, ApplyError> {
    let staged = repository.staged()?;
    let mut edits = Vec::new();
    for (path, old, new) in changed {
        let now = staged.get(path);
        let to = if now == old {
            new.cloned()
        } else if now == new {
            continue;
        } else {
            together(repository, path, old, now, new)?
        };
        edits.push(IndexEdit { path: path.clone(), from: now.cloned(), to });
    }
    Ok(edits)
}

/// What is staged and what is committed, in one.
fn together(
    repository: &Repository<'_>,
    path: &RelPath,
    old: Option<&Stored>,
    now: Option<&Stored>,
    new: Option<&Stored>,
) -> Result<Option<Stored>, ApplyError> {
    let in_the_way = || ApplyError::from(RepositoryError::Staged { path: path.clone() });
    let side = |stored: Option<&Stored>| -> Result<Option<Side>, ApplyError> {
        let Some(stored) = stored else { return Ok(None) };
        let modes = [FileMode::Plain, FileMode::Executable, FileMode::Link];
        let mode = modes.into_iter().find(|mode| mode.as_git() == stored.mode).ok_or_else(in_the_way)?;
        Ok(Some(Side { mode, bytes: repository.blob(&stored.oid)? }))
    };
    match three_way(side(old)?, side(now)?, side(new)?).map_err(|_| in_the_way())? {
        None => Ok(None),
        Some(both) => {
            Ok(Some(Stored { mode: both.mode.as_git().to_owned(), oid: repository.write_blob(&both.bytes)? }))
        }
    }
}

/// The index, locked, with what will take its place.
pub(super) struct Locked<'a> {
    repository: &'a Repository<'a>,
    lock: PathBuf,
    draft: PathBuf,
}

/// How far what is staged has to be what it was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    /// Everywhere, or nothing is done.
    All,
    /// Where it is not, it stays as it is.
    Where,
}

impl<'a> Locked<'a> {
    /// Locks the index.
    pub(super) fn take(repository: &'a Repository<'a>, token: &str) -> Result<Locked<'a>, ApplyError> {
        let lock = repository.git_dir.join("index.lock");
        let ticket = repository.git_dir.join(format!("runyard-lock-{token}"));
        let draft = repository.git_dir.join(format!("runyard-index-{token}"));
        let take = || {
            fs::write(&ticket, token)?;
            // It says whose it is from the first moment on.
            let taken = fs::hard_link(&ticket, &lock);
            fs::remove_file(&ticket)?;
            taken
        };
        match take() {
            Ok(()) => Ok(Locked { repository, lock, draft }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(RepositoryError::Locked.into()),
            Err(error) => Err(failed("lock", error).into()),
        }
    }

    /// Writes what will take its place.
    pub(super) fn prepare(&self, edits: &[IndexEdit], expect: Expect) -> Result<(), ApplyError> {
        let staged = self.repository.staged()?;
        let mut input = Vec::new();
        for edit in edits {
            if staged.get(&edit.path) != edit.from.as_ref() {
                match expect {
                    Expect::All => return Err(RepositoryError::Staged { path: edit.path.clone() }.into()),
                    Expect::Where => continue,
                }
            }
            let (mode, oid) = match (&edit.to, &edit.from) {
                (Some(to), _) => (to.mode.as_str(), to.oid.as_str().to_owned()),
                (None, from) => ("0", "0".repeat(from.as_ref().map_or(40, |from| from.oid.as_str().len()))),
            };
            input.extend_from_slice(format!("{mode} {oid}\t").as_bytes());
            input.extend_from_slice(edit.path.as_bytes());
            input.push(0);
        }
        match self.copy() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            copied => copied.map_err(|error| failed("copy", error))?,
        }
        Ok(self.repository.write_index(&self.draft, &input)?)
    }

    /// Copies the index with its time: git takes a file that was written no earlier than the index for one that may have changed
    /// unseen, and looks into it.
    fn copy(&self) -> io::Result<()> {
        let index = self.repository.git_dir.join("index");
        let modified = fs::metadata(&index)?.modified()?;
        fs::copy(&index, &self.draft)?;
        fs::File::options()
            .write(true)
            .open(&self.draft)?
            .set_times(fs::FileTimes::new().set_modified(modified))
    }

    /// Puts it in place.
    pub(super) fn replace(self) -> Result<(), ApplyError> {
        if self.draft.exists() {
            fs::rename(&self.draft, self.repository.git_dir.join("index"))
                .map_err(|error| failed("replace", error))?;
        }
        Ok(())
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.draft);
        let _ = fs::remove_file(&self.lock);
    }
}

/// Removes what a crash left of our own lock.
pub(super) fn unlock(repository: &Repository<'_>, token: &str) -> Result<(), ApplyError> {
    let lock = repository.git_dir.join("index.lock");
    let mut left = vec![
        repository.git_dir.join(format!("runyard-lock-{token}")),
        repository.git_dir.join(format!("runyard-index-{token}.lock")),
        repository.git_dir.join(format!("runyard-index-{token}")),
    ];
    if fs::read(&lock).is_ok_and(|holds| holds == token.as_bytes()) {
        left.push(lock);
    }
    for path in left {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("unlock", error).into());
            }
            _ => {}
        }
    }
    Ok(())
}

fn failed(doing: &'static str, source: io::Error) -> CheckoutError {
    CheckoutError::Io { doing, path: "the index".to_owned(), source }
}
