//! Online backup: the database as it stood at one moment, and the blobs that it refers to, while writing goes on.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use runyard_domain::BlobId;
use runyard_store::StorageError;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::blob_files::{self, BlobFault, BlobFiles};
use crate::blobs::blocking;
use crate::connection::open_for_reading;
use crate::fault::{translate, translate_io};
use crate::paths::{Paths, make_file, sync_folder};
use crate::run_row::number;
use crate::store::SqliteStore;

const DOING: &str = "making a backup";
/// How many pages are copied between two words on the progress.
const STEP_PAGES: i32 = 256;

/// How far a backup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupProgress {
    /// Pages that are copied.
    pub done: u64,
    /// Pages that there are.
    pub pages: u64,
}

impl SqliteStore {
    /// Writes the database as it stands now to `target`, which must not be there, and its blobs to `target.blobs/`. When
    /// this returns, all of it is durable; until then there is no `target`.
    ///
    /// It holds up nobody. While it runs the write-ahead log cannot start anew, so it grows by what is written meanwhile.
    pub async fn backup_to(
        &self,
        target: impl Into<PathBuf>,
        progress: impl FnMut(BackupProgress) + Send + 'static,
    ) -> Result<(), StorageError> {
        let from = (*self.paths).clone();
        let target = Paths::of(&target.into());
        blocking(DOING, move || back_up(&from, &target, progress)).await
    }
}

fn back_up(from: &Paths, target: &Paths, progress: impl FnMut(BackupProgress)) -> Result<(), StorageError> {
    let fault = |error| translate_io(DOING, &target.name, error);
    let exists = || StorageError::exists(target.name.clone());
    if target.database.try_exists().map_err(fault)? {
        return Err(exists());
    }
    let unfinished = target.beside(".unfinished");
    let _mine = take(&unfinished)
        .map_err(fault)?
        .ok_or_else(|| StorageError::Locked { owner: format!("another backup to {}", target.name) })?;
    let copied = copy(from, target, &unfinished, progress).and_then(|()| {
        File::open(&unfinished).and_then(|file| file.sync_all()).map_err(fault)?;
        match renameat_with(CWD, &unfinished, CWD, &target.database, RenameFlags::NOREPLACE) {
            Ok(()) => sync_folder(target.folder()).map_err(fault),
            Err(rustix::io::Errno::EXIST) => Err(exists()),
            Err(error) => Err(fault(error.into())),
        }
    });
    if copied.is_err() {
        // What is left of it is overwritten the next time.
        let _ = remove_if_there(&unfinished);
    }
    copied
}

/// Takes the file for this backup alone, as long as what is given back is kept. What an earlier one left in it is gone.
fn take(unfinished: &Path) -> std::io::Result<Option<File>> {
    make_file(unfinished)?;
    let file = File::options().write(true).open(unfinished)?;
    match file.try_lock() {
        Ok(()) => file.set_len(0).map(|()| Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn copy(
    from: &Paths,
    target: &Paths,
    unfinished: &Path,
    mut progress: impl FnMut(BackupProgress),
) -> Result<(), StorageError> {
    let fault = |error| translate(DOING, &target.name, error);
    let source = open_for_reading(from)?;
    let mut copy = Connection::open(unfinished).map_err(fault)?;
    // Held from the first page to the last, so that all of them are of the same moment.
    let moment = source.unchecked_transaction().map_err(fault)?;
    let _: i64 = moment.query_row("SELECT count(*) FROM meta", [], |row| row.get(0)).map_err(fault)?;
    {
        let backup = Backup::new(&moment, &mut copy).map_err(fault)?;
        loop {
            let step = backup.step(STEP_PAGES).map_err(fault)?;
            let left = backup.progress();
            let pages = u64::try_from(left.pagecount).unwrap_or(0);
            progress(BackupProgress { done: pages - u64::try_from(left.remaining).unwrap_or(0), pages });
            match step {
                StepResult::Done => break,
                StepResult::More => {}
                _ => std::thread::yield_now(),
            }
        }
    }
    drop(moment);
    // One file, without a log beside it.
    let _: String =
        copy.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0)).map_err(fault)?;
    // What nothing refers to may be collected at any moment, so it is no part of a backup.
    copy.execute("DELETE FROM blobs WHERE id NOT IN (SELECT blob FROM blob_refs)", []).map_err(fault)?;
    let blobs = blobs(&copy).map_err(fault)?;
    copy.close().map_err(|(_, error)| fault(error))?;
    copy_blobs(&BlobFiles::of(from), &BlobFiles::of(target), &blobs)
}

fn copy_blobs(from: &BlobFiles, to: &BlobFiles, blobs: &[(BlobId, u64)]) -> Result<(), StorageError> {
    for (id, bytes) in blobs {
        match blob_files::copy(from, to, *id, *bytes) {
            Ok(true) => {}
            Ok(false) => {
                let detail = format!("the file of blob {id} is missing");
                return Err(StorageError::Corrupt { doing: DOING, detail });
            }
            Err(BlobFault::Io(error) | BlobFault::Unsynced(error)) => return Err(to.fault(DOING, error)),
        }
    }
    Ok(())
}

fn blobs(connection: &Connection) -> rusqlite::Result<Vec<(BlobId, u64)>> {
    let mut select = connection.prepare("SELECT id, bytes FROM blobs")?;
    select.query_map([], |row| Ok((BlobId::from_bytes(row.get(0)?), number(row, 1)?)))?.collect()
}

fn remove_if_there(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
