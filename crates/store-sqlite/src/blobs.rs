//! Blobs: a file for the content, a row that says that it is there, and rows for the runs that refer to it.
//!
//! The row comes after the file and goes before it. Whether a file is there is looked at, and files are taken away, on the
//! writer's thread alone: so a collection and a put of the same content never cross each other.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runyard_domain::{BlobId, Timestamp};
use runyard_redact::Safe;
use runyard_store::{BLOB_BYTES_MAX, Blobs, Collected, StorageError, blob_id};
use rusqlite::{Connection, OptionalExtension, params};

use crate::blob_files::{BlobFault, BlobFiles};
use crate::fault::Trouble;
use crate::ledger::Ledger;
use crate::run_row::{number, signed};
use crate::store::SqliteStore;
use crate::writer::Writer;

const PUTTING: &str = "storing a blob";
const GETTING: &str = "reading a blob";
const COLLECTING: &str = "collecting blobs";

/// How often a put begins anew, when each time its file is collected before its row is written.
const PUT_ATTEMPTS_MAX: u32 = 16;
/// How often a get begins anew, when each time its file is collected and put again after its row is read.
const GET_ATTEMPTS_MAX: u32 = 16;
/// How many blobs are taken away in one go of the writer.
const REMOVED_AT_ONCE_MAX: usize = 64;
/// How many blobs one collection looks at in one go.
const CANDIDATES_MAX: usize = 10_000;

#[async_trait]
impl Blobs for SqliteStore {
    async fn put(&self, content: Safe<Vec<u8>>) -> Result<BlobId, StorageError> {
        let writer = self.writer(PUTTING)?;
        let bytes = content.len();
        if bytes > BLOB_BYTES_MAX {
            return Err(StorageError::invalid(format!("a blob has at most {BLOB_BYTES_MAX} bytes")));
        }
        let content = Arc::new(content.into_inner());
        let digested = Arc::clone(&content);
        let id = blocking(PUTTING, move || Ok(blob_id(&digested))).await?;
        if row(self, id).await?.is_some() && self.claim(writer, id, bytes as u64, Claim::Known).await? {
            return Ok(id);
        }
        for _ in 0..PUT_ATTEMPTS_MAX {
            self.store(writer, id, Arc::clone(&content)).await?;
            if self.claim(writer, id, bytes as u64, Claim::Stored).await? {
                return Ok(id);
            }
        }
        Err(StorageError::io(PUTTING, "its file is taken away again and again"))
    }

    async fn get(&self, id: BlobId) -> Result<Vec<u8>, StorageError> {
        for _ in 0..GET_ATTEMPTS_MAX {
            if row(self, id).await?.is_none() {
                return Err(StorageError::not_found(format!("blob {id}")));
            }
            let files = self.blobs.clone();
            if let Some(content) = blocking(GETTING, move || read_checked(&files, id)).await? {
                return Ok(content);
            }
            // Collected and perhaps put again since the row was read, unless the file is really gone.
            if self.is_gone(id).await? {
                break;
            }
        }
        Err(StorageError::Corrupt { doing: GETTING, detail: format!("the file of blob {id} is missing") })
    }

    async fn collect(&self, unused_for: Duration) -> Result<Collected, StorageError> {
        let writer = self.writer(COLLECTING)?;
        let before = earlier(self.clock.now(), unused_for);
        let mut collected = Collected::default();
        loop {
            let read = move |connection: &Connection| Ok(unused(connection, before)?);
            let candidates = self.readers.read(COLLECTING, read).await?;
            let taken_before = collected.blobs;
            for some in candidates.chunks(REMOVED_AT_ONCE_MAX) {
                let taken = self.take_away(writer, some.to_vec(), before).await?;
                collected.blobs += taken.blobs;
                collected.bytes += taken.bytes;
            }
            if candidates.len() < CANDIDATES_MAX || collected.blobs == taken_before {
                break;
            }
        }
        self.sweep_orphans(writer, unused_for).await?;
        Ok(collected)
    }
}

/// What a put knows about a blob's file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// The row says that it is there and durable.
    Known,
    /// This put has just stored it durably.
    Stored,
}

impl SqliteStore {
    /// Writes that the blob is there and was put just now. Says whether it is there.
    async fn claim(
        &self,
        writer: &Writer,
        id: BlobId,
        bytes: u64,
        claim: Claim,
    ) -> Result<bool, StorageError> {
        let files = self.blobs.clone();
        let work = move |ledger: &mut Ledger| {
            let now = ledger.now();
            if ledger.doomed.contains(&id) || !files.is_there(id, bytes) {
                return Ok(false);
            }
            let sql = match claim {
                Claim::Known => "UPDATE blobs SET put_at = max(put_at, ?3) WHERE id = ?1 AND bytes = ?2",
                Claim::Stored => {
                    "INSERT INTO blobs (id, bytes, put_at) VALUES (?1, ?2, ?3)
                     ON CONFLICT (id) DO UPDATE SET put_at = max(put_at, excluded.put_at)"
                }
            };
            let mut write = ledger.connection.prepare_cached(sql)?;
            let is_there = write.execute(params![id.as_bytes(), signed(bytes), now.unix_ms()])? > 0;
            drop(write);
            ledger.keep_time(now);
            Ok(is_there)
        };
        writer.ask(work).await
    }

    /// Whether there is a row without a file.
    async fn is_gone(&self, id: BlobId) -> Result<bool, StorageError> {
        // Who does not own the database cannot tell, and looks again.
        let Ok(writer) = self.writer(GETTING) else { return Ok(false) };
        let files = self.blobs.clone();
        let work = move |ledger: &mut Ledger| {
            let has_row = without_row(&ledger.connection, &[id])?.is_empty();
            Ok(has_row && !files.path(id).exists())
        };
        writer.ask(work).await
    }

    /// Writes the file.
    async fn store(&self, writer: &Writer, id: BlobId, content: Arc<Vec<u8>>) -> Result<(), StorageError> {
        let files = self.blobs.clone();
        let stored = blocking(PUTTING, move || Ok(files.write(id, &content))).await?;
        match stored {
            Ok(()) => Ok(()),
            Err(BlobFault::Io(error)) => Err(self.blobs.fault(PUTTING, error)),
            Err(BlobFault::Unsynced(error)) => {
                writer.poison().end(&error.to_string());
                Err(StorageError::Poisoned)
            }
        }
    }

    /// Takes away those of the blobs that are still unused: the rows, then the files.
    async fn take_away(
        &self,
        writer: &Writer,
        ids: Vec<BlobId>,
        before: Timestamp,
    ) -> Result<Collected, StorageError> {
        let work = move |ledger: &mut Ledger| {
            let mut taken = Vec::new();
            for id in &ids {
                if let Some(bytes) = forget_unused(&ledger.connection, *id, before)? {
                    taken.push((*id, bytes));
                    ledger.doomed.insert(*id);
                }
            }
            Ok(taken)
        };
        let files = self.blobs.clone();
        let after = move |taken: &Vec<(BlobId, u64)>| taken.iter().for_each(|(id, _)| files.remove(*id));
        let taken = writer.ask_then(work, after).await?;
        Ok(Collected { blobs: taken.len() as u64, bytes: taken.iter().map(|(_, bytes)| bytes).sum() })
    }

    /// Takes away files without a row: what a crash left between the two.
    async fn sweep_orphans(&self, writer: &Writer, unused_for: Duration) -> Result<(), StorageError> {
        let files = self.blobs.clone();
        let listed = blocking(COLLECTING, move || Ok(files.older_than(unused_for))).await?;
        let ids = listed.map_err(|error| self.blobs.fault(COLLECTING, error))?;
        let read = move |connection: &Connection| Ok(without_row(connection, &ids)?);
        let orphans = self.readers.read(COLLECTING, read).await?;
        for some in orphans.chunks(REMOVED_AT_ONCE_MAX) {
            let some = some.to_vec();
            let work = move |ledger: &mut Ledger| {
                let orphans = without_row(&ledger.connection, &some)?;
                ledger.doomed.extend(&orphans);
                Ok(orphans)
            };
            let files = self.blobs.clone();
            let after = move |orphans: &Vec<BlobId>| orphans.iter().for_each(|id| files.remove(*id));
            writer.ask_then(work, after).await?;
        }
        Ok(())
    }
}

/// The size of a blob that is there.
async fn row(store: &SqliteStore, id: BlobId) -> Result<Option<u64>, StorageError> {
    let read = move |connection: &Connection| {
        let mut select = connection.prepare_cached("SELECT bytes FROM blobs WHERE id = ?1")?;
        Ok(select.query_row([id.as_bytes()], |row| number(row, 0)).optional()?)
    };
    store.readers.read(GETTING, read).await
}

/// The content, if it is what the id says; nothing when there is no file.
pub(crate) fn read_checked(files: &BlobFiles, id: BlobId) -> Result<Option<Vec<u8>>, StorageError> {
    let content = files.read(id).map_err(|error| files.fault(GETTING, error))?;
    match content {
        Some(content) if blob_id(&content) != id => {
            let detail = format!("the file of blob {id} has another content");
            Err(StorageError::Corrupt { doing: GETTING, detail })
        }
        content => Ok(content),
    }
}

fn unused(connection: &Connection, before: Timestamp) -> rusqlite::Result<Vec<BlobId>> {
    connection
        .prepare_cached(
            "SELECT id FROM blobs WHERE put_at <= ?1
             AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob_refs.blob = blobs.id) LIMIT ?2",
        )?
        .query_map([before.unix_ms(), CANDIDATES_MAX as i64], |row| Ok(BlobId::from_bytes(row.get(0)?)))?
        .collect()
}

/// Takes a blob's row away if it is still unused, and gives its size.
fn forget_unused(connection: &Connection, id: BlobId, before: Timestamp) -> Result<Option<u64>, Trouble> {
    let mut delete = connection.prepare_cached(
        "DELETE FROM blobs WHERE id = ?1 AND put_at <= ?2
         AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob_refs.blob = ?1) RETURNING bytes",
    )?;
    let mut rows = delete.query(params![id.as_bytes(), before.unix_ms()])?;
    let bytes = rows.next()?.map(|row| number(row, 0)).transpose()?;
    // A statement that gives rows back has done its work when there are no more.
    while rows.next()?.is_some() {}
    Ok(bytes)
}

pub(crate) fn without_row(connection: &Connection, ids: &[BlobId]) -> rusqlite::Result<Vec<BlobId>> {
    let mut select = connection.prepare_cached("SELECT 1 FROM blobs WHERE id = ?1")?;
    let mut without = Vec::new();
    for id in ids {
        if !select.exists([id.as_bytes()])? {
            without.push(*id);
        }
    }
    Ok(without)
}

fn earlier(now: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_unix_ms(now.unix_ms().saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
}

/// Does what may wait for the disk, or takes long, on a thread for that.
pub(crate) async fn blocking<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| StorageError::io(doing, error))?
}
