//! The writer's side of the database: one transaction at a time, with a savepoint for every job in it.

use std::collections::HashSet;
use std::sync::Arc;

use runyard_domain::{BlobId, RunId, Timestamp};
use runyard_store::{Clock, RunRow, StorageError};
use rusqlite::Connection;

use crate::fault::Trouble;
use crate::run_cache::{CachedRun, RunCache, Unwritten};
use crate::run_row::{self, StoredRun};

/// How far the time in the database may be behind while nothing asks for more: the last event's time is known anyway.
const TIME_BEHIND_MAX_MS: i64 = 1_000;

/// The writing connection, and what is known about what it wrote.
pub(crate) struct Ledger {
    pub(crate) connection: Connection,
    pub(crate) runs: RunCache,
    /// Blobs whose files go once the open transaction is durable. They look as if they were there, and are not.
    pub(crate) doomed: HashSet<BlobId>,
    clock: Arc<dyn Clock>,
    time: SavedTime,
}

/// The latest time that something in the database was written at.
#[derive(Clone, Copy, Debug)]
struct SavedTime {
    saved_ms: i64,
    latest_ms: i64,
    exactly: bool,
}

impl Ledger {
    pub(crate) fn new(connection: Connection, clock: Arc<dyn Clock>) -> Self {
        let time = SavedTime { saved_ms: i64::MIN, latest_ms: i64::MIN, exactly: false };
        Ledger { connection, runs: RunCache::default(), doomed: HashSet::new(), clock, time }
    }

    /// The database's time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn begin(&mut self) -> rusqlite::Result<()> {
        self.runs.rotate();
        self.doomed.clear();
        self.run("BEGIN IMMEDIATE")
    }

    /// Writes the runs' rows, each once however often it changed, and makes everything durable.
    pub(crate) fn commit(&mut self) -> Result<(), CommitError> {
        self.write_rows().map_err(CommitError::Before)?;
        self.run("COMMIT").map_err(CommitError::AtCommit)?;
        if self.time.exactly || self.time.is_due() {
            self.time.saved_ms = self.time.latest_ms;
        }
        self.time.exactly = false;
        Ok(())
    }

    fn write_rows(&mut self) -> rusqlite::Result<()> {
        let Ledger { connection, runs, time, .. } = self;
        runs.write(|known| match known.unwritten {
            Unwritten::Nothing => Ok(()),
            Unwritten::Head => run_row::update_head(connection, &known.stored),
            Unwritten::Row => run_row::update(connection, &known.stored),
            Unwritten::Status => run_row::update(connection, &known.stored)
                .and_then(|()| run_row::update_status(connection, &known.stored)),
        })?;
        if time.exactly || time.is_due() {
            save_time(connection, time.latest_ms)?;
        }
        Ok(())
    }

    /// Takes the transaction back. Says whether that worked: SQLite may have done so already.
    pub(crate) fn roll_back(&mut self) -> bool {
        self.runs.clear();
        self.time.exactly = false;
        self.connection.is_autocommit() || self.run("ROLLBACK").is_ok()
    }

    /// Does a job whole or not at all, without touching what others wrote in the same transaction.
    pub(crate) fn in_savepoint<T>(
        &mut self,
        job: impl FnOnce(&mut Self) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        self.run("SAVEPOINT job")?;
        match job(self) {
            Ok(done) => {
                self.run("RELEASE job")?;
                Ok(done)
            }
            Err(Trouble::Refused(error)) => {
                self.run("ROLLBACK TO job")?;
                self.run("RELEASE job")?;
                Err(Trouble::Refused(error))
            }
            Err(failed) => Err(failed),
        }
    }

    /// The run's row.
    pub(crate) fn stored_run(&mut self, run: RunId) -> rusqlite::Result<Option<&StoredRun>> {
        // Asked twice, since a found row would keep the cache borrowed.
        if self.runs.get(run).is_none() {
            let Some(stored) = run_row::find(&self.connection, run)? else { return Ok(None) };
            self.runs.remember(CachedRun { stored, unwritten: Unwritten::Nothing });
        }
        Ok(self.runs.get(run).map(|known| &known.stored))
    }

    /// The row of a run that must be there.
    pub(crate) fn existing_run(&mut self, run: RunId) -> Result<&RunRow, Trouble> {
        match self.stored_run(run)? {
            Some(stored) => Ok(&stored.row),
            None => Err(StorageError::not_found(format!("run {run}")).into()),
        }
    }

    /// Something is written that happened at this time.
    pub(crate) fn note_time(&mut self, now: Timestamp) {
        self.time.latest_ms = self.time.latest_ms.max(now.unix_ms());
    }

    /// Something is written whose time nothing else in the database tells.
    pub(crate) fn keep_time(&mut self, now: Timestamp) {
        self.note_time(now);
        self.time.exactly = self.time.latest_ms > self.time.saved_ms;
    }

    /// Writes the time by itself, at the end.
    pub(crate) fn save_time(&mut self) -> rusqlite::Result<()> {
        if self.time.latest_ms > self.time.saved_ms {
            save_time(&self.connection, self.time.latest_ms)?;
        }
        Ok(())
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }
}

impl SavedTime {
    fn is_due(&self) -> bool {
        self.latest_ms.saturating_sub(self.saved_ms) > TIME_BEHIND_MAX_MS
    }
}

/// Where a commit failed.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// Before anything could be durable.
    Before(rusqlite::Error),
    /// Where it may or may not be durable.
    AtCommit(rusqlite::Error),
}

fn save_time(connection: &Connection, latest_ms: i64) -> rusqlite::Result<()> {
    let mut save = connection.prepare_cached(
        "INSERT INTO meta (name, value) VALUES ('time', ?1)
         ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)",
    )?;
    save.execute([latest_ms]).map(drop)
}

/// The latest time that anything in the database was written at.
pub(crate) fn latest_time(connection: &Connection) -> rusqlite::Result<Timestamp> {
    let latest = connection.query_row(
        "SELECT max(
             coalesce((SELECT value FROM meta WHERE name = 'time'), 0),
             coalesce((SELECT updated FROM runs WHERE key =
                 (SELECT run FROM events ORDER BY pos DESC LIMIT 1)), 0))",
        [],
        |row| row.get(0),
    )?;
    Ok(Timestamp::from_unix_ms(latest))
}
