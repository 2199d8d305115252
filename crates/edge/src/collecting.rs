//! Collects the checkout of a run that is over, when nothing can be lost by it.
//!
//! It is looked at under a lock that every session of the run shares. Nothing can be lost where nothing changed, where all that
//! changed is in the person's files by now, or where it is kept as a patch that git has proven to be whole. Right before anything is
//! removed it is looked at again. That the run is over is for the caller to know; what it applied stays, so that it can be taken back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use runyard_checkout::{
    Archived, Base, Change, ChangeKind, Changes, CheckoutError, CompareLimits, ContentId, Contents,
    FILE_BYTES_MAX, FileMode, Kind, Root, compare, discard, put_aside,
};
use runyard_domain::RunId;
use runyard_store::{Clock, SystemClock};

use crate::owner::{self, Gone};
use crate::places::Places;
use crate::{private, usage};

/// What may go, and where to.
#[derive(Clone, Debug)]
pub struct Collecting<'a> {
    /// The edge's home.
    pub home: &'a Path,
    /// The person's files, where they are known: what is there already need not be kept again.
    pub workspace: Option<&'a Path>,
    /// Where patches are kept. Without it, what has to be kept first is not collected.
    pub archive: Option<&'a Path>,
    /// What becomes of what the run applied.
    pub applied: AppliedJournal,
    /// Whether anything is done, or only said.
    pub carry_out: CarryOut,
}

/// What becomes of the journal of what a run applied, by which that can be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliedJournal {
    /// It stays.
    Kept,
    /// It goes too.
    Removed,
}

/// Whether anything is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarryOut {
    /// It is.
    Really,
    /// It is only said what would be done.
    OnlySaid,
}

/// Why nothing is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Safe {
    /// Nothing had changed, or there was no checkout.
    Unchanged,
    /// All that changed is in the person's files.
    InFiles,
    /// What changed is in this patch of the archive; where only said, it would be.
    Archived(PathBuf),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Why nothing is lost.
    pub safe: Safe,
    /// How much of the disk is free again, in bytes; where only said, at most so much would be.
    pub bytes: u64,
    /// How many ignored files and directories went with it.
    pub ignored: u64,
    /// Whether what it applied can still be taken back.
    pub undo: bool,
}

/// Why a checkout is not collected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Kept {
    /// The run has no directory, or was collected before.
    #[error("there is nothing to collect")]
    Nothing,
    /// A session or a process uses it.
    #[error("it is in use")]
    InUse,
    /// What changed would have to be kept first.
    #[error("{files} changed files are not in your files")]
    Unarchived {
        /// How many.
        files: usize,
    },
    /// Something is there that can be in no patch.
    #[error("{path} can be in no patch; take it out of {directory} or remove that yourself")]
    NotInPatch {
        /// What.
        path: String,
        /// The checkout.
        directory: PathBuf,
    },
    /// Its own repository has work that is not in its files.
    #[error(
        "its repository has {what}, which is not in its files; look at {directory} and remove that yourself"
    )]
    Aside {
        /// What.
        what: String,
        /// The checkout.
        directory: PathBuf,
    },
    /// It changed while it was looked at.
    #[error("it changed while it was looked at")]
    Changed,
    /// What it began as is not known, so nobody can say what changed.
    #[error("what it began as is not known; look at {directory} and remove it yourself")]
    Unknown {
        /// The checkout.
        directory: PathBuf,
    },
    /// It cannot be looked at.
    #[error("it cannot be looked at: {0}")]
    Unreadable(#[from] CheckoutError),
    /// A file of the edge cannot be used.
    #[error("cannot be done: {0}")]
    Io(#[from] io::Error),
}

/// A checkout that was looked at.
struct Looked {
    base: Base,
    contents: Contents,
    checkout: Root,
    changes: Changes,
    /// What its repository has that is not in its files.
    aside: Option<String>,
}

impl Collecting<'_> {
    /// Collects the checkout of a run that is over.
    pub fn collect(&self, run: RunId, stop: &AtomicBool) -> Result<Collected, Kept> {
        let places = Places::of(self.home, run);
        if !places.directory().is_dir() {
            return Err(Kept::Nothing);
        }
        let _alone = places.alone()?.ok_or(Kept::InUse)?;
        let before = usage::size_of_directory(places.directory())?;
        if places.gone()?.is_some() {
            return self.finish_earlier(&places, before);
        }
        let (safe, ignored) = match places.checkout().is_dir() {
            true => self.secure(run, &places, stop)?,
            false => (Safe::Unchanged, 0),
        };
        let undo = places.applied().is_dir() && self.applied == AppliedJournal::Kept;
        if self.carry_out == CarryOut::OnlySaid {
            return Ok(Collected { safe, bytes: before, ignored, undo });
        }
        let patch = match &safe {
            Safe::Archived(path) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
            Safe::Unchanged | Safe::InFiles => None,
        };
        owner::write(&places.gone_file(), &Gone { at: SystemClock.now(), patch })?;
        self.remove(&places)?;
        let bytes = before.saturating_sub(usage::size_of_directory(places.directory())?);
        Ok(Collected { safe, bytes, ignored, undo })
    }

    /// One that died on the way left something behind, or what was applied may go by now.
    fn finish_earlier(&self, places: &Places, before: u64) -> Result<Collected, Kept> {
        let applied = self.applied == AppliedJournal::Removed && places.applied().is_dir();
        if !applied && !places.checkout().exists() && !places.base().exists() {
            return Err(Kept::Nothing);
        }
        if self.carry_out == CarryOut::Really {
            self.remove(places)?;
        }
        let bytes = before.saturating_sub(usage::size_of_directory(places.directory())?);
        let undo = places.applied().is_dir() && self.applied == AppliedJournal::Kept;
        Ok(Collected { safe: Safe::Unchanged, bytes, ignored: 0, undo })
    }

    fn remove(&self, places: &Places) -> io::Result<()> {
        for directory in [places.checkout(), places.base(), places.home()] {
            discard(&directory)?;
        }
        if self.applied == AppliedJournal::Removed {
            discard(&places.applied())?;
        }
        places.ended()
    }

    /// Sees to it that nothing can be lost, and how. Gives also how many ignored files go with it.
    fn secure(&self, run: RunId, places: &Places, stop: &AtomicBool) -> Result<(Safe, u64), Kept> {
        if !places.base().is_dir() {
            let empty = fs::read_dir(places.checkout())?.next().is_none();
            let directory = places.checkout();
            return if empty { Ok((Safe::Unchanged, 0)) } else { Err(Kept::Unknown { directory }) };
        }
        let mut looked = look(places, stop)?;
        let ignored = looked.changes.ignored;
        if let Some(problem) = looked.changes.problems.first() {
            let (path, directory) = (problem.path.to_string(), places.checkout());
            return Err(Kept::NotInPatch { path, directory });
        }
        if let Some(what) = looked.aside.take() {
            return Err(Kept::Aside { what, directory: places.checkout() });
        }
        let files = looked.changes.files.len();
        let safe = match (self.workspace, self.archive) {
            _ if files == 0 => Safe::Unchanged,
            (Some(workspace), _) if is_in(&looked.changes, workspace)? => Safe::InFiles,
            (_, None) => return Err(Kept::Unarchived { files }),
            (_, Some(archive)) => {
                let patch = archive.join(format!("{run}.patch"));
                if self.carry_out == CarryOut::Really {
                    private::make_directory(archive)?;
                    // Else the patch could vanish with its directory, when the checkout is long gone.
                    private::sync_directory(archive.parent().unwrap_or(archive))?;
                    looked.keep(&patch, stop).map_err(|error| not_kept(error, places))?;
                }
                Safe::Archived(patch)
            }
        };
        // Nothing that was done meanwhile may be lost either.
        let again = look(places, stop)?;
        match again.changes == looked.changes && again.aside.is_none() {
            true => Ok((safe, ignored)),
            false => Err(Kept::Changed),
        }
    }
}

fn not_kept(error: CheckoutError, places: &Places) -> Kept {
    match error {
        CheckoutError::NotInPatch { path } => Kept::NotInPatch { path, directory: places.checkout() },
        error => error.into(),
    }
}

fn look(places: &Places, stop: &AtomicBool) -> Result<Looked, CheckoutError> {
    let base = Base::read(&places.base())?;
    let mut contents = Contents::open(&base, &places.base())?;
    let checkout = Root::open(&places.checkout())?;
    let changes = compare(&base, &mut contents, &checkout, &CompareLimits::default(), stop)?;
    let aside = put_aside(&checkout, &places.base())?;
    Ok(Looked { base, contents, checkout, changes, aside })
}

impl Looked {
    fn keep(&mut self, patch: &Path, stop: &AtomicBool) -> Result<u64, CheckoutError> {
        let Looked { base, contents, checkout, changes, .. } = self;
        Archived { base, contents, checkout, changes }.keep(patch, stop)
    }
}

/// Whether everything that changed is in the person's files as it is in the checkout.
fn is_in(changes: &Changes, workspace: &Path) -> Result<bool, CheckoutError> {
    let workspace = Root::open(workspace)?;
    // What cannot be looked at there is not known to be there.
    Ok(changes.files.iter().all(|change| is_there(change, &workspace).unwrap_or(false)))
}

fn is_there(change: &Change, workspace: &Root) -> Result<bool, CheckoutError> {
    let is_gone = |path| workspace.look(path).map(|found| found.is_none());
    if let (ChangeKind::Renamed, Some(old)) = (change.kind, &change.old_path)
        && !is_gone(old)?
    {
        return Ok(false);
    }
    let Some(after) = change.after else { return is_gone(&change.path) };
    let (mode, bytes) = match workspace.look(&change.path)? {
        Some(found) if found.kind == Kind::Link => (FileMode::Link, workspace.read_link(&change.path)?),
        Some(found) if found.kind == Kind::File && found.bytes == after.bytes => {
            let mode = if found.executable { FileMode::Executable } else { FileMode::Plain };
            (mode, workspace.read(&change.path, FILE_BYTES_MAX)?.bytes)
        }
        _ => return Ok(false),
    };
    Ok((mode, ContentId::of(&bytes)) == (after.mode, after.content))
}
