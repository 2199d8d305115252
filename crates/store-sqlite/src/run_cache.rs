//! The rows of the runs that were written to last. Only the writer writes, so what it remembers is exact.

use std::collections::HashMap;

use runyard_domain::RunId;
use runyard_store::RunRow;

use crate::places::Places;
use crate::run_row::StoredRun;

/// The most rows of one generation; there are two.
const ROWS_MAX: usize = 4_096;
/// The most bytes of states in one generation.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// A run's row, and whether the table has it yet.
#[derive(Debug)]
pub(crate) struct CachedRun {
    pub(crate) stored: StoredRun,
    pub(crate) unwritten: Unwritten,
}

/// What of a row is not in the table yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unwritten {
    /// Everything is.
    Nothing,
    /// How far the log is.
    Head,
    /// Anything but the status.
    Row,
    /// Anything. By the status there is an index, which is left alone as long as it stays the same.
    Status,
}

/// Two generations of rows: what is used moves to the young one; when that is full, it becomes the old one.
#[derive(Debug, Default)]
pub(crate) struct RunCache {
    young: HashMap<RunId, CachedRun>,
    old: HashMap<RunId, CachedRun>,
    bytes: usize,
    /// The runs with something unwritten, each once.
    changed: Vec<RunId>,
}

impl RunCache {
    /// The run's row, if it is remembered.
    pub(crate) fn get(&mut self, run: RunId) -> Option<&CachedRun> {
        if !self.young.contains_key(&run) {
            let found = self.old.remove(&run)?;
            self.remember(found);
        }
        self.young.get(&run)
    }

    /// Remembers a row.
    pub(crate) fn remember(&mut self, found: CachedRun) {
        self.bytes += found.stored.row.state.len();
        let run = found.stored.row.run;
        if found.unwritten != Unwritten::Nothing {
            self.changed.push(run);
        }
        self.young.insert(run, found);
    }

    /// The row of a run that is remembered is this from now on, and must be written before the commit.
    pub(crate) fn change(&mut self, row: RunRow, places: Option<Places>, unwritten: Unwritten) {
        if let Some(known) = self.young.get_mut(&row.run) {
            if known.unwritten == Unwritten::Nothing {
                self.changed.push(row.run);
            }
            let is_same = known.stored.row.status == row.status;
            known.unwritten = known.unwritten.max(if is_same { unwritten } else { Unwritten::Status });
            self.bytes = (self.bytes + row.state.len()).saturating_sub(known.stored.row.state.len());
            known.stored.row = row;
            if let Some(places) = places {
                known.stored.places = places;
            }
        }
    }

    /// Writes what is unwritten.
    pub(crate) fn write(
        &mut self,
        mut write: impl FnMut(&CachedRun) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        for run in &self.changed {
            if let Some(known) = self.young.get_mut(run) {
                write(known)?;
                known.unwritten = Unwritten::Nothing;
            }
        }
        self.changed.clear();
        Ok(())
    }

    /// Makes room. Only between two groups: until its group is committed, a row must not be forgotten.
    pub(crate) fn rotate(&mut self) {
        if self.young.len() > ROWS_MAX || self.bytes > BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
    }

    /// Forgets everything, since what was written was taken back.
    pub(crate) fn clear(&mut self) {
        *self = RunCache::default();
    }
}
