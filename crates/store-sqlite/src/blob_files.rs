//! The files of the blobs: `name.blobs/ab/abcd…`, named by digest. A file is complete and on the disk before it gets its name.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runyard_domain::BlobId;
use runyard_store::StorageError;

use crate::fault::translate_io;
use crate::paths::{FILE_MODE, Paths, make_folder};

/// Where files are that have no name yet.
const UNFINISHED: &str = "unfinished";

/// Tells unfinished files apart.
static UNFINISHED_COUNT: AtomicU64 = AtomicU64::new(0);

/// The folder of the blobs.
#[derive(Clone, Debug)]
pub(crate) struct BlobFiles {
    root: PathBuf,
    name: String,
    /// The folders that were made durable already.
    folders: Arc<Mutex<HashSet<PathBuf>>>,
}

/// Why a file could not be stored.
#[derive(Debug)]
pub(crate) enum BlobFault {
    /// It may not be on the disk, and asking again would not tell.
    Unsynced(io::Error),
    /// Anything else.
    Io(io::Error),
}

impl From<io::Error> for BlobFault {
    fn from(error: io::Error) -> Self {
        BlobFault::Io(error)
    }
}

impl BlobFiles {
    pub(crate) fn of(paths: &Paths) -> Self {
        BlobFiles { root: paths.blobs(), name: format!("{}.blobs", paths.name), folders: Arc::default() }
    }

    /// The system's error, for a caller.
    pub(crate) fn fault(&self, doing: &'static str, error: io::Error) -> StorageError {
        translate_io(doing, &self.name, error)
    }

    /// Where a blob's file is.
    pub(crate) fn path(&self, id: BlobId) -> PathBuf {
        let digits = digits(id);
        self.root.join(&digits[..2]).join(digits)
    }

    /// Whether a file of the right size is there.
    pub(crate) fn is_there(&self, id: BlobId, bytes: u64) -> bool {
        fs::metadata(self.path(id)).is_ok_and(|found| found.is_file() && found.len() == bytes)
    }

    /// Stores a blob's file durably.
    pub(crate) fn write(&self, id: BlobId, content: &[u8]) -> Result<(), BlobFault> {
        let unfinished = self.root.join(UNFINISHED);
        self.make_durable(&self.root)?;
        make_folder(&unfinished)?;
        let unnamed = unfinished.join(UNFINISHED_COUNT.fetch_add(1, Ordering::Relaxed).to_string());
        let written = self.write_as(&unnamed, &self.path(id), content);
        if written.is_err() {
            // It is swept at the next start if this does not work.
            let _ = fs::remove_file(&unnamed);
        }
        written
    }

    fn write_as(&self, unnamed: &Path, path: &Path, content: &[u8]) -> Result<(), BlobFault> {
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(unnamed)?;
        file.write_all(content)?;
        file.sync_all().map_err(BlobFault::Unsynced)?;
        let folder = path.parent().unwrap_or(&self.root);
        self.make_durable(folder)?;
        fs::rename(unnamed, path)?;
        sync_folder(folder)
    }

    /// Makes a folder that is found again after a crash.
    fn make_durable(&self, folder: &Path) -> Result<(), BlobFault> {
        let known = || self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if known().contains(folder) {
            return Ok(());
        }
        make_folder(folder)?;
        sync_folder(folder.parent().unwrap_or(folder))?;
        known().insert(folder.to_owned());
        Ok(())
    }

    /// A blob's content, unless there is no file.
    pub(crate) fn read(&self, id: BlobId) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path(id)) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes a file away. What stays behind by an error is found by the next collection.
    pub(crate) fn remove(&self, id: BlobId) {
        match fs::remove_file(self.path(id)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, %id, "a blob's file could not be taken away"),
        }
    }

    /// The blobs whose files are at least so old.
    pub(crate) fn older_than(&self, age: Duration) -> io::Result<Vec<BlobId>> {
        let mut found = Vec::new();
        for folder in entries(&self.root)? {
            if folder.file_name() == UNFINISHED || !folder.file_type()?.is_dir() {
                continue;
            }
            for file in entries(&folder.path())? {
                let Ok(id) = format!("sha256:{}", file.file_name().to_string_lossy()).parse() else {
                    continue;
                };
                // It may be gone by now. A time in the future is no age.
                let modified = file.metadata().and_then(|found| found.modified());
                if modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|found| found >= age)) {
                    found.push(id);
                }
            }
        }
        Ok(found)
    }

    /// Takes away what was not finished when the last owner ended. Nobody else writes here now.
    pub(crate) fn sweep_unfinished(&self) -> io::Result<()> {
        for file in entries(&self.root.join(UNFINISHED))? {
            fs::remove_file(file.path())?;
        }
        Ok(())
    }
}

/// Copies a blob's file durably, if it is not there yet.
pub(crate) fn copy(from: &BlobFiles, to: &BlobFiles, id: BlobId, bytes: u64) -> Result<bool, BlobFault> {
    if to.is_there(id, bytes) {
        File::open(to.path(id))?.sync_all().map_err(BlobFault::Unsynced)?;
        return Ok(true);
    }
    match from.read(id)? {
        Some(content) => to.write(id, &content).map(|()| true),
        None => Ok(false),
    }
}

/// Makes the entries of a folder durable. That it cannot be opened says nothing about the disk.
fn sync_folder(folder: &Path) -> Result<(), BlobFault> {
    File::open(folder)?.sync_all().map_err(BlobFault::Unsynced)
}

fn entries(folder: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn digits(id: BlobId) -> String {
    let text = id.to_string();
    text.strip_prefix("sha256:").unwrap_or(&text).to_owned()
}
