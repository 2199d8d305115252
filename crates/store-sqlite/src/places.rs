//! Where in the log of all runs the events of one run are.
//!
//! The positions of 64 events make one row; those after the last full row are kept in the run's own row, which every commit
//! writes anyway.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension};

/// How many events one row says the positions of. Part of the schema.
const CHUNK: u64 = 64;

/// The positions of a run's events after the last full row, as its row holds them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    positions: Vec<i64>,
    /// Positions that were completed to rows but not written yet: the chunk, and its bytes.
    full: Vec<(i64, Vec<u8>)>,
}

impl Places {
    /// Adds the position of the event `sequence`.
    pub(crate) fn push(&mut self, sequence: u64, position: i64) {
        self.positions.push(position);
        if sequence.is_multiple_of(CHUNK) {
            self.full.push((chunk_of(sequence), encode(&self.positions)));
            self.positions.clear();
        }
    }

    /// Writes the rows that are full.
    pub(crate) fn write_full(&mut self, connection: &Connection, run: i64) -> rusqlite::Result<()> {
        for (chunk, positions) in self.full.drain(..) {
            connection
                .prepare_cached("INSERT INTO places (run, chunk, positions) VALUES (?1, ?2, ?3)")?
                .execute(rusqlite::params![run, chunk, positions])?;
        }
        Ok(())
    }

    /// As the run's row holds them.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        encode(&self.positions)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Places { positions: decode(bytes)?, full: Vec::new() })
    }

    /// Where the event `sequence` of a run is, the run being at `head` with these places.
    pub(crate) fn find(
        &self,
        connection: &Connection,
        run: i64,
        head: u64,
        sequence: u64,
    ) -> rusqlite::Result<Option<i64>> {
        let first_of_tail = head - head % CHUNK + 1;
        if sequence >= first_of_tail {
            return Ok(index(sequence - first_of_tail).and_then(|index| self.positions.get(index)).copied());
        }
        let positions = connection
            .prepare_cached("SELECT positions FROM places WHERE run = ?1 AND chunk = ?2")?
            .query_row([run, chunk_of(sequence)], |row| decode_column(row, 0))
            .optional()?;
        let index = index((sequence - 1) % CHUNK);
        Ok(positions.zip(index).and_then(|(positions, index)| positions.get(index).copied()))
    }
}

/// A stretch of events of one run that lie one right after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The place of the first one in its run.
    pub(crate) sequence: u64,
    /// The position of the first one.
    pub(crate) first: i64,
    /// The position of the last one.
    pub(crate) last: i64,
}

/// Gives the positions of the events after `after` to `take`, in order, until it says that it has enough.
pub(crate) fn walk(
    connection: &Connection,
    run: i64,
    after: u64,
    head: u64,
    tail: &Places,
    mut take: impl FnMut(Stretch) -> rusqlite::Result<Enough>,
) -> rusqlite::Result<()> {
    if after >= head {
        return Ok(());
    }
    let mut sequence = after + 1;
    let mut skipped = index(after % CHUNK).unwrap_or(0);
    let mut select = connection
        .prepare_cached("SELECT positions FROM places WHERE run = ?1 AND chunk >= ?2 ORDER BY chunk")?;
    let mut rows = select.query([run, chunk_of(after + 1)])?;
    while let Some(row) = rows.next()? {
        let positions = decode_column(row, 0)?;
        let positions = positions.get(skipped..).unwrap_or_default();
        if each_stretch(sequence, positions, &mut take)? == Enough::Yes {
            return Ok(());
        }
        sequence += positions.len() as u64;
        skipped = 0;
    }
    each_stretch(sequence, tail.positions.get(skipped..).unwrap_or_default(), &mut take).map(drop)
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enough {
    Yes,
    No,
}

fn each_stretch(
    mut sequence: u64,
    mut positions: &[i64],
    take: &mut impl FnMut(Stretch) -> rusqlite::Result<Enough>,
) -> rusqlite::Result<Enough> {
    while let Some(first) = positions.first().copied() {
        let length = positions.iter().zip(first..).take_while(|(found, wanted)| *found == wanted).count();
        let (stretch, rest) = positions.split_at(length);
        let last = stretch.last().copied().unwrap_or(first);
        if take(Stretch { sequence, first, last })? == Enough::Yes {
            return Ok(Enough::Yes);
        }
        sequence += length as u64;
        positions = rest;
    }
    Ok(Enough::No)
}

fn chunk_of(sequence: u64) -> i64 {
    i64::try_from((sequence - 1) / CHUNK).unwrap_or(i64::MAX)
}

fn index(within: u64) -> Option<usize> {
    usize::try_from(within).ok()
}

/// The first position and the steps from each to the next, seven bits to a byte, the lowest first.
fn encode(positions: &[i64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(positions.len() * 2 + 8);
    let mut last = 0;
    for position in positions {
        let mut step = position.abs_diff(last);
        while step >= 0x80 {
            bytes.push(step as u8 | 0x80);
            step >>= 7;
        }
        bytes.push(step as u8);
        last = *position;
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<Vec<i64>> {
    let mut positions = Vec::with_capacity(CHUNK as usize);
    let (mut last, mut step, mut shift) = (0_i64, 0_u64, 0_u32);
    for byte in bytes {
        step |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            last = last.checked_add_unsigned(step)?;
            positions.push(last);
            (step, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(positions)
}

fn decode_column(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Vec<i64>> {
    decode(row.get_ref(column)?.as_blob()?).ok_or_else(|| unreadable(column))
}

/// A column that holds no positions.
pub(crate) fn unreadable(column: usize) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, "these are no positions".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_read_back_and_cut_ones_do_not() {
        for positions in [vec![], vec![1], vec![1, 2, 3, 1_000, i64::MAX], (5..300).collect()] {
            let bytes = encode(&positions);
            assert_eq!(decode(&bytes), Some(positions));
        }
        assert_eq!(decode(&[0x80]), None);
        assert_eq!(decode(&[0xff; 12]), None);
    }

    #[test]
    fn a_full_chunk_becomes_a_row() {
        let mut places = Places::default();
        (1..=130).for_each(|sequence| places.push(sequence, 10 * sequence as i64));
        assert_eq!(places.positions, [1290, 1300]);
        assert_eq!(places.full.iter().map(|(chunk, _)| *chunk).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(Places::from_bytes(&places.to_bytes()).unwrap().positions, [1290, 1300]);
    }
}
