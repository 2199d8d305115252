//! Looking for damage: the tables and indexes, and the files of the blobs. The chain of a run's events is checked by
//! [`runyard_store::verify`].

use std::fmt;

use runyard_domain::{BlobId, RunId};
use runyard_store::StorageError;
use rusqlite::Connection;

use crate::blobs::{blocking, read_checked, without_row};
use crate::fault::Kind;
use crate::places::{Enough, walk};
use crate::run_row::{self, StoredRun, select_runs, signed};
use crate::store::SqliteStore;

const DOING: &str = "checking the database";
/// How many faults of the tables are named.
const FAULTS_MAX: u32 = 100;

/// Something that is wrong with a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A table or an index is damaged, in SQLite's words.
    Damaged(String),
    /// An event of a run is not where it should be. It is the first one; there may be more.
    Misplaced {
        /// The run.
        run: RunId,
        /// The event's place in its log.
        sequence: u64,
    },
    /// The file of a blob is missing.
    BlobMissing(BlobId),
    /// The file of a blob has another content than it should.
    BlobDamaged(BlobId),
    /// A run refers to a blob that nothing is known of.
    BlobUnknown(BlobId),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Damaged(what) => write!(f, "the database is damaged: {what}"),
            Finding::Misplaced { run, sequence } => {
                write!(f, "event {sequence} of {run} is not where it should be")
            }
            Finding::BlobMissing(id) => write!(f, "the file of blob {id} is missing"),
            Finding::BlobDamaged(id) => write!(f, "the file of blob {id} has another content"),
            Finding::BlobUnknown(id) => write!(f, "a run refers to blob {id}, which is not there"),
        }
    }
}

impl SqliteStore {
    /// Everything that is wrong with the database, up to a limit; nothing when it is whole.
    pub async fn check(&self) -> Result<Vec<Finding>, StorageError> {
        let mut findings = self.readers.read(DOING, |connection| Ok(damages(connection)?)).await?;
        if findings.is_empty() {
            findings = self.readers.read(DOING, |connection| Ok(misplaced(connection)?)).await?;
        }
        let (stored, unknown) = match self.readers.read(DOING, |connection| Ok(blobs(connection)?)).await {
            Ok(found) => found,
            // What is damaged there has been named already.
            Err(StorageError::Corrupt { .. }) if !findings.is_empty() => return Ok(findings),
            Err(error) => return Err(error),
        };
        findings.extend(unknown.into_iter().map(Finding::BlobUnknown));
        for id in stored {
            if findings.len() >= FAULTS_MAX as usize {
                break;
            }
            findings.extend(self.check_blob(id).await?);
        }
        Ok(findings)
    }

    async fn check_blob(&self, id: BlobId) -> Result<Option<Finding>, StorageError> {
        let files = self.blobs.clone();
        match blocking(DOING, move || read_checked(&files, id)).await {
            Ok(Some(_)) => Ok(None),
            // Its owner may have collected it since it was listed.
            Ok(None) if self.has_no_row(id).await? => Ok(None),
            Ok(None) => Ok(Some(Finding::BlobMissing(id))),
            Err(StorageError::Corrupt { .. }) => Ok(Some(Finding::BlobDamaged(id))),
            Err(error) => Err(error),
        }
    }

    async fn has_no_row(&self, id: BlobId) -> Result<bool, StorageError> {
        self.readers.read(DOING, move |connection| Ok(!without_row(connection, &[id])?.is_empty())).await
    }
}

fn damages(connection: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let mut check = connection.prepare(&format!("PRAGMA integrity_check({FAULTS_MAX})"))?;
    let said = check.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>();
    match said {
        Ok(said) if said == ["ok"] => Ok(Vec::new()),
        Ok(said) => Ok(said.into_iter().map(Finding::Damaged).collect()),
        // Where the damage is such that not even the check can go on, that is what it found.
        Err(error) if Kind::of(&error) == Kind::Corrupt => Ok(vec![Finding::Damaged(error.to_string())]),
        Err(error) => Err(error),
    }
}

/// Runs whose events are not where their places say, which SQLite cannot know.
fn misplaced(connection: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let moment = connection.unchecked_transaction()?;
    let mut runs = moment.prepare(select_runs!("ORDER BY key"))?;
    let mut event = moment.prepare("SELECT 1 FROM events WHERE pos = ?1 AND run = ?2 AND sequence = ?3")?;
    let mut findings = Vec::new();
    let mut rows = runs.query([])?;
    while let Some(row) = rows.next()? {
        let StoredRun { key, row, places } = run_row::read(row)?;
        let (mut found, mut first_wrong) = (0, None);
        walk(&moment, key, 0, row.sequence, &places, |stretch| {
            for (position, sequence) in (stretch.first..=stretch.last).zip(stretch.sequence..) {
                if !event.exists([position, key, signed(sequence)])? {
                    first_wrong.get_or_insert(sequence);
                }
                found += 1;
            }
            Ok(Enough::No)
        })?;
        if found != row.sequence {
            first_wrong.get_or_insert(found + 1);
        }
        if let Some(sequence) = first_wrong {
            findings.push(Finding::Misplaced { run: row.run, sequence });
            if findings.len() as u32 == FAULTS_MAX {
                break;
            }
        }
    }
    Ok(findings)
}

/// The blobs that there should be, and those that runs refer to and nothing is known of.
fn blobs(connection: &Connection) -> rusqlite::Result<(Vec<BlobId>, Vec<BlobId>)> {
    let mut stored = connection.prepare("SELECT id FROM blobs")?;
    let stored = stored.query_map([], |row| Ok(BlobId::from_bytes(row.get(0)?)))?;
    let mut unknown =
        connection.prepare("SELECT DISTINCT blob FROM blob_refs WHERE blob NOT IN (SELECT id FROM blobs)")?;
    let unknown = unknown.query_map([], |row| Ok(BlobId::from_bytes(row.get(0)?)))?;
    Ok((stored.collect::<rusqlite::Result<_>>()?, unknown.collect::<rusqlite::Result<_>>()?))
}
