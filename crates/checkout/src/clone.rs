//! Makes a checkout: a repository of its own that borrows the workspace's objects, or a copy where that cannot be.
//!
//! The person's repository is only read: no lock, no hook, no filter, no new object. The checkout begins as the person's files are
//! now, committed or not, so that `git status` there says what it says in the workspace. It appears under its name when it is
//! whole. What is ignored stays behind, and so does what holds an environment's secrets, unless it is tracked or asked for.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::base::{Borrowed, GIT, KEPT, ObjectFormat, REFS};
use crate::copy::{Copier, Here, Known};
use crate::dotgit;
use crate::index::{Index, Tracked};
use crate::made::{How, Made, Options, Why};
use crate::repository::{Listing, Repository, Stand, borrowed_from};
use crate::{Base, CheckoutError, Descend, Kind, RelPath, Root};

/// Makes `checkout` from `workspace`, and `base_dir` what tells later what it began as. Both are made anew, whatever was there.
pub fn make(
    workspace: &Path,
    checkout: &Path,
    base_dir: &Path,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Made, CheckoutError> {
    let (to, base) = (draft(checkout), draft(base_dir));
    let done = clear(checkout, &to).and_then(|()| clear(base_dir, &base)).map_err(own);
    let done = done.and_then(|()| {
        make_directory(&to).and_then(|()| make_directory(&base.join(KEPT))).map_err(own)?;
        let made = Making { workspace, to: &to, base: &base, options, stop }.fill()?;
        // The checkout comes last: whoever finds it finds its base too.
        fs::rename(&base, base_dir).and_then(|()| fs::rename(&to, checkout)).map_err(own)?;
        Ok(made)
    });
    if done.is_err() {
        let _ = discard(&to);
        let _ = discard(&base);
        let _ = discard(base_dir);
    }
    done
}

/// Removes a directory with all that is in it, if it is there. Links in it are removed, not followed. What whoever worked there
/// closed to themselves is opened first.
pub fn discard(directory: &Path) -> io::Result<()> {
    let mut removed = fs::remove_dir_all(directory);
    if removed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        removed = open_up(directory).and_then(|()| fs::remove_dir_all(directory));
    }
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Lets the owner into every directory beneath, and change it.
fn open_up(directory: &Path) -> io::Result<()> {
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        fs::set_permissions(&next, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&next)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                left.push(entry.path());
            }
        }
    }
    Ok(())
}

/// Out of the way in one step, so that nobody takes a half removed one for a whole one.
fn clear(directory: &Path, draft: &Path) -> io::Result<()> {
    discard(draft)?;
    match fs::rename(directory, draft) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed.and_then(|()| discard(draft)),
    }
}

/// The name of what is not whole yet, beside the other.
pub(crate) fn draft(directory: &Path) -> PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(OsString::from(".draft"));
    name.into()
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn own(source: io::Error) -> CheckoutError {
    CheckoutError::Io { doing: "make", path: "the checkout".to_owned(), source }
}

struct Making<'a> {
    workspace: &'a Path,
    to: &'a Path,
    base: &'a Path,
    options: &'a Options,
    stop: &'a AtomicBool,
}

impl Making<'_> {
    fn fill(&self) -> Result<Made, CheckoutError> {
        let (from, to) = (Root::open(self.workspace)?, Root::open(self.to)?);
        let kept = Root::open(&self.base.join(KEPT))?;
        let copier = |how| Copier::new(&from, &to, &kept, self.options.limits, self.stop, Made::new(how));
        match Repository::find(self.workspace, self.stop)? {
            Err(why) => self.copy(&from, copier(How::Copy(why))),
            Ok(repository) => {
                let listing = repository.list(&self.options.copy, self.stop)?;
                if repository.whole {
                    let stand = repository.stand(self.stop)?;
                    self.listed(&repository, listing, Some(&stand), copier(stand.how()))
                } else if listing.is_empty() {
                    // Then the repository around it ignores it, and it is something of its own.
                    self.copy(&from, copier(How::Copy(Why::NoRepository)))
                } else {
                    self.listed(&repository, listing, None, copier(How::Copy(Why::Inside)))
                }
            }
        }
    }

    /// Brings what git lists.
    fn listed(
        &self,
        repository: &Repository,
        listing: Listing,
        stand: Option<&Stand>,
        mut copier: Copier<'_>,
    ) -> Result<Made, CheckoutError> {
        copier.made.left_out = listing.left_out;
        copier.made.unreadable = listing.unreadable;
        let index = self.tracked(repository, &listing.tracked, &mut copier)?;
        for path in &listing.untracked {
            if copier.bring(path, Known::Untracked)?.is_some() {
                copier.made.untracked += 1;
            }
        }
        let settings = repository.settings(self.stop)?;
        let exclude = repository.excluded(&settings);
        dotgit::objects(&self.base.join(GIT), &repository.borrowed).map_err(own)?;
        let mut head = None;
        if let Some(stand) = stand {
            copier.made.borrowed = borrowed_from(&repository.borrowed.objects);
            dotgit::write(&self.to.join(".git"), repository, stand, &settings, &exclude, &index.finish())
                .map_err(own)?;
            fs::write(self.base.join(REFS), dotgit::packed(stand)).map_err(own)?;
            head = stand.head.as_ref().map(|head| head.as_str().to_owned());
        }
        self.finish(copier, head, Some(repository.borrowed.clone()), exclude)
    }

    /// Brings what is tracked, and makes the index that goes with it.
    fn tracked(
        &self,
        repository: &Repository,
        tracked: &[Tracked],
        copier: &mut Copier<'_>,
    ) -> Result<Index, CheckoutError> {
        let staged = repository.staged(self.stop)?;
        let mut uncommitted: HashSet<&RelPath> = staged.iter().flatten().collect();
        let (written, format) = (repository.written(), repository.borrowed.format);
        let mut index = Index::new(format);
        let mut last: Option<&RelPath> = None;
        for entry in tracked {
            // The other sides of a conflict have no file of their own.
            let again = last == Some(&entry.path);
            last = Some(&entry.path);
            let here = if again { None } else { bring_tracked(entry, format, copier)? };
            let clean = here.is_some_and(|here| is_clean(entry, &here, written));
            let left = here.is_none() && (again || entry.is_submodule() || entry.is_skipped());
            if staged.is_none() || !(clean || left) {
                uncommitted.insert(&entry.path);
            }
            let stamp = here.filter(|here| clean && entry.stage == 0 && entry.seen.looks_like(&here.from));
            index.add(entry, stamp.as_ref().map(|here| &here.to));
        }
        copier.made.uncommitted = uncommitted.len() as u64;
        Ok(index)
    }

    /// Brings everything there is.
    fn copy(&self, from: &Root, mut copier: Copier<'_>) -> Result<Made, CheckoutError> {
        let chosen = chosen(&self.options.copy);
        from.walk(|path, found| {
            if path.is_git() {
                copier.made.left_out.add(path);
                return Ok(Descend::Past);
            }
            match found.kind {
                Kind::Directory => copier.directory(path)?,
                Kind::Unreadable => copier.made.unreadable.add(path),
                Kind::Special => copier.made.special += 1,
                Kind::File | Kind::Link => {
                    let wanted = chosen.matched_path_or_any_parents(path.as_path(), false).is_ignore();
                    if path.is_environment() && !wanted {
                        copier.made.left_out.add(path);
                    } else {
                        copier.bring(path, Known::Untracked)?;
                    }
                }
            }
            Ok(Descend::Into)
        })?;
        self.finish(copier, None, None, Vec::new())
    }

    fn finish(
        &self,
        copier: Copier<'_>,
        head: Option<String>,
        git: Option<Borrowed>,
        exclude: Vec<u8>,
    ) -> Result<Made, CheckoutError> {
        let (mut made, entries) = (copier.made, copier.entries);
        let base = Base::new(head, git, exclude, entries)?;
        base.write(self.base)?;
        made.base = base.id;
        Ok(made)
    }
}

fn bring_tracked(
    entry: &Tracked,
    format: ObjectFormat,
    copier: &mut Copier<'_>,
) -> Result<Option<Here>, CheckoutError> {
    if entry.is_submodule() {
        return copier.submodule(entry.path.clone(), entry.oid.clone()).map(|()| None);
    }
    let known = if entry.is_intended() { Known::Untracked } else { Known::Blob(&entry.oid, format) };
    copier.bring(&entry.path, known)
}

/// Whether git takes a file for unchanged: because it is, or because it looks as it did and what git has of it is another form.
fn is_clean(entry: &Tracked, here: &Here, written: i64) -> bool {
    let mode = entry.mode == u32::from_str_radix(here.mode.as_git(), 8).unwrap_or_default();
    !entry.is_intended() && mode && (here.same || entry.seen.is(&here.from, written))
}

/// What was asked for by pattern.
fn chosen(patterns: &[String]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    for pattern in patterns {
        // A pattern that is none matches nothing, as for git.
        let _ = builder.add_line(None, pattern);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
