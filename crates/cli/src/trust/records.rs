//! Which project files a person trusts: `trust.json` of the data directory.
//!
//! A record is for a path and the digest of exactly its bytes. It says nothing about the programs that such a file names.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runyard_domain::{AppendId, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::configuration::{Fault, Origin, Place, Problem};

/// How many files can be trusted at a time.
pub(crate) const RECORDS_MAX: usize = 1_000;

/// The SHA-256 of a file's bytes, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest(String);

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let digits = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Digest(format!("sha256:{digits}"))
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// That a person trusts a file: what an audit keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trusted {
    /// The file.
    pub(crate) path: PathBuf,
    /// Of exactly these bytes.
    pub(crate) digest: Digest,
    /// Since when.
    pub(crate) at: Timestamp,
    /// Who said so.
    pub(crate) by: String,
}

impl Trusted {
    /// Stands for what this record says was done, in the audit, so that it is there once.
    pub(crate) fn append_id(&self, done: &str) -> AppendId {
        append_id(&format!("{done}\n{}\n{}\n{}", self.digest, self.at, self.path.display()))
    }
}

/// Stands for something in the audit: the same for the same words.
pub(crate) fn append_id(said: &str) -> AppendId {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(Sha256::digest(said)).for_each(|(byte, digest)| *byte = digest);
    AppendId::from_bytes(bytes)
}

/// How a file stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A person trusts exactly these bytes.
    Trusted,
    /// Nobody ever trusted it.
    Unknown,
    /// A person trusted other bytes.
    Changed,
    /// Whatever is recorded, others can write it.
    WritableByOthers,
}

/// All records.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustRecords {
    trusted: Vec<Trusted>,
    /// Whose trust ended, when and by whom: kept until a hub has it in its audit, the latest ones.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    revoked: Vec<Trusted>,
    /// Those in whose place a later one stands: kept for the audit too.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    replaced: Vec<Trusted>,
}

impl TrustRecords {
    /// Those in a data directory. What cannot be read is a problem and trusts nothing.
    pub(crate) fn read(data: &Path) -> Result<Self, Problem> {
        let path = TrustRecords::file(data);
        let wrong = |fault| {
            let place = Place::new(&Arc::new(path.clone()), 1);
            Problem { origin: Origin::Data(place), fault }
        };
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(TrustRecords::default()),
            text => text.map_err(|error| wrong(Fault::Unreadable(error)))?,
        };
        let mode = std::fs::metadata(&path).map_err(|error| wrong(Fault::Unreadable(error)))?.permissions();
        if mode.mode() & 0o022 != 0 {
            return Err(wrong(Fault::WritableByOthers));
        }
        serde_json::from_slice(&text).map_err(|error| wrong(Fault::TrustRecord(error)))
    }

    /// Where they are.
    pub(crate) fn file(data: &Path) -> PathBuf {
        data.join("trust.json")
    }

    pub(crate) fn all(&self) -> &[Trusted] {
        &self.trusted
    }

    pub(crate) fn revoked(&self) -> &[Trusted] {
        &self.revoked
    }

    pub(crate) fn replaced(&self) -> &[Trusted] {
        &self.replaced
    }

    /// What is recorded of a path.
    pub(crate) fn of(&self, path: &Path) -> Option<&Trusted> {
        self.trusted.iter().find(|record| record.path == path)
    }

    /// How a file with these bytes stands.
    pub(crate) fn standing(&self, path: &Path, digest: &Digest) -> Standing {
        match self.of(path) {
            None => Standing::Unknown,
            Some(record) if record.digest == *digest => Standing::Trusted,
            Some(_) => Standing::Changed,
        }
    }

    /// Adds a record in place of an older one of the same path.
    pub(crate) fn add(data: &Path, record: Trusted) -> Result<(), TrustError> {
        TrustRecords::change(data, |records| {
            let (replaced, mut trusted): (Vec<Trusted>, Vec<Trusted>) =
                std::mem::take(&mut records.trusted).into_iter().partition(|other| other.path == record.path);
            if trusted.len() >= RECORDS_MAX {
                return Err(TrustError::TooMany);
            }
            trusted.push(record);
            records.trusted = trusted;
            replaced.into_iter().for_each(|replaced| keep_latest(&mut records.replaced, replaced));
            Ok(())
        })
    }

    /// Takes the record of a path away, if there is one, and notes who did so.
    pub(crate) fn revoke(
        data: &Path,
        path: &Path,
        by: &str,
        at: Timestamp,
    ) -> Result<Option<Trusted>, TrustError> {
        TrustRecords::change(data, |records| {
            let position = records.trusted.iter().position(|record| record.path == path);
            let Some(record) = position.map(|position| records.trusted.remove(position)) else {
                return Ok(None);
            };
            keep_latest(&mut records.revoked, Trusted { at, by: by.to_owned(), ..record.clone() });
            // That it was trusted before may be in no audit yet either.
            keep_latest(&mut records.replaced, record.clone());
            Ok(Some(record))
        })
    }

    /// One process at a time, and written beside and moved into place: nobody reads half of it or loses another's record.
    fn change<T>(
        data: &Path,
        change: impl FnOnce(&mut TrustRecords) -> Result<T, TrustError>,
    ) -> Result<T, TrustError> {
        let path = TrustRecords::file(data);
        let lock = path.with_extension("lock");
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock)?;
        lock.lock()?;
        let mut records = TrustRecords::read(data)?;
        let changed = change(&mut records)?;
        let draft = path.with_extension("draft");
        let _ = std::fs::remove_file(&draft);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        let text = serde_json::to_vec_pretty(&records).map_err(io::Error::from)?;
        file.write_all(&text).and_then(|()| file.sync_all())?;
        std::fs::rename(&draft, &path)?;
        File::open(data)?.sync_all()?;
        Ok(changed)
    }
}

/// Keeps one more, and forgets the oldest where there are too many.
fn keep_latest(records: &mut Vec<Trusted>, record: Trusted) {
    if records.len() >= RECORDS_MAX {
        records.remove(0);
    }
    records.push(record);
}

/// Why trust cannot be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("the records cannot be written: {0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Records(Problem),
    #[error("{RECORDS_MAX} files are trusted already; revoke some with --revoke")]
    TooMany,
}

impl From<Problem> for TrustError {
    fn from(problem: Problem) -> Self {
        TrustError::Records(problem)
    }
}
