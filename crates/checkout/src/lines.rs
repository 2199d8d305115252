//! Texts as lines: where two of them differ, and the hunks that a person chooses from.
//!
//! The same two texts always give the same hunks, so a hunk's number means the same when it is shown and when it is brought back.
//! Nothing here looks at words within a line, at white space or at line endings: a line is its bytes, with the newline.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, IndentHeuristic, IndentLevel, NoSliderHeuristic, Token};

use crate::change::{Hunk, Line, LineKind};

/// How long a text is at most to be looked at line by line.
pub const TEXT_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// How many lines it has at most.
pub const TEXT_LINES_MAX: usize = 400_000;
/// In how many of the first bytes a zero says that it is no text, as git has it.
const ZERO_LOOK_MAX: usize = 8_000;
/// How many lines of both texts are compared at once. In the worst case that takes the square of it, so longer texts are first cut
/// at the lines that are in both exactly once; what is longer even then counts as replaced from its first to its last line.
const PIECE_LINES_MAX: usize = 10_000;
/// How many lines around a change belong to its hunk, as git has it.
const CONTEXT: usize = 3;
/// How wide a tab is where the place of a change is chosen by indentation.
const TAB_WIDTH: u8 = 8;

/// Whether it is looked at line by line: it has no zero byte where git looks for one, and is neither too long nor of too many lines.
pub fn is_text(bytes: &[u8]) -> bool {
    !has_zero(bytes) && bytes.len() as u64 <= TEXT_BYTES_MAX && split(bytes).count() <= TEXT_LINES_MAX
}

/// Whether there is a zero byte where git looks for one.
pub(crate) fn has_zero(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(ZERO_LOOK_MAX)].contains(&0)
}

/// A text's lines, each with its newline, which the last need not have.
pub(crate) fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Lines of the old text that others stand for in the new one. Between two of them at least one line is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) before: Range<usize>,
    pub(crate) after: Range<usize>,
}

/// What the edits are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A person reads them: where an edit can lie in more than one place, it lies where the indentation suggests.
    Reading,
    /// They are merged: found and placed as `git merge-file` does.
    Merging,
}

/// Where two texts differ.
pub(crate) fn edits(before: &[&[u8]], after: &[&[u8]], purpose: Purpose) -> Vec<Edit> {
    let mut edits = Vec::new();
    if before.len() + after.len() <= PIECE_LINES_MAX {
        piece_edits(before, after, purpose, (0, 0), &mut edits);
        return edits;
    }
    let mut from = (0, 0);
    let end = [(before.len(), after.len())];
    for at in anchors(before, after).into_iter().chain(end) {
        let (old, new) = (&before[from.0..at.0], &after[from.1..at.1]);
        if old.len() + new.len() <= PIECE_LINES_MAX {
            piece_edits(old, new, purpose, from, &mut edits);
        } else {
            edits.extend(whole_edit(old, new, from));
        }
        from = (at.0 + 1, at.1 + 1);
    }
    edits
}

/// Where two texts of few lines differ.
fn piece_edits(
    before: &[&[u8]],
    after: &[&[u8]],
    purpose: Purpose,
    at: (usize, usize),
    into: &mut Vec<Edit>,
) {
    if before == after {
        return;
    }
    let mut numbers: HashMap<&[u8], Token> = HashMap::new();
    let mut known: Vec<&[u8]> = Vec::new();
    let mut number = |line| match numbers.entry(line) {
        Entry::Occupied(there) => *there.get(),
        Entry::Vacant(free) => {
            known.push(line);
            // There are fewer lines than `PIECE_LINES_MAX`.
            *free.insert(Token(known.len() as u32 - 1))
        }
    };
    let old: Vec<Token> = before.iter().map(|line| number(line)).collect();
    let new: Vec<Token> = after.iter().map(|line| number(line)).collect();
    let mut diff = Diff::default();
    match purpose {
        Purpose::Reading => {
            diff.compute_with(Algorithm::Histogram, &old, &new, known.len() as u32);
            let indent = |token: Token| {
                IndentLevel::for_ascii_line(known[token.0 as usize].iter().copied(), TAB_WIDTH)
            };
            diff.postprocess_with(&old, &new, IndentHeuristic::new(indent));
        }
        Purpose::Merging => {
            diff.compute_with(Algorithm::Myers, &old, &new, known.len() as u32);
            diff.postprocess_with(&old, &new, NoSliderHeuristic);
        }
    }
    let range = |range: Range<u32>, from: usize| from + range.start as usize..from + range.end as usize;
    into.extend(
        diff.hunks().map(|hunk| Edit { before: range(hunk.before, at.0), after: range(hunk.after, at.1) }),
    );
}

/// The lines between what is the same at both ends, as one edit.
fn whole_edit(before: &[&[u8]], after: &[&[u8]], at: (usize, usize)) -> Option<Edit> {
    let same = |pair: &(&&[u8], &&[u8])| pair.0 == pair.1;
    let head = before.iter().zip(after).take_while(same).count();
    let (old, new) = (&before[head..], &after[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let edit = Edit {
        before: at.0 + head..at.0 + before.len() - tail,
        after: at.1 + head..at.1 + after.len() - tail,
    };
    (!edit.before.is_empty() || !edit.after.is_empty()).then_some(edit)
}

/// The lines that are in both texts exactly once, as many of them as are in the same order in both.
fn anchors(before: &[&[u8]], after: &[&[u8]]) -> Vec<(usize, usize)> {
    /// Where a line is, as long as it is there at most once.
    #[derive(Clone, Copy, Default)]
    struct Places {
        old: Option<usize>,
        new: Option<usize>,
        often: bool,
    }
    let mut places: HashMap<&[u8], Places> = HashMap::new();
    for (at, line) in before.iter().enumerate() {
        let place = places.entry(line).or_default();
        place.often |= place.old.replace(at).is_some();
    }
    for (at, line) in after.iter().enumerate() {
        let place = places.entry(line).or_default();
        place.often |= place.new.replace(at).is_some();
    }
    let in_both = before.iter().filter_map(|line| match places.get(line) {
        Some(Places { old: Some(old), new: Some(new), often: false }) => Some((*old, *new)),
        _ => None,
    });
    longest_rising(&in_both.collect::<Vec<_>>())
}

/// Of pairs whose first numbers rise, as many as possible whose second numbers rise too.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // `ends[n]` is where the best chain of n + 1 pairs ends: the one with the smallest second number.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < pair.1);
        previous.push(length.checked_sub(1).map(|before| ends[before]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut chain: Vec<_> =
        std::iter::successors(ends.last().copied(), |at| previous[*at]).map(|at| pairs[at]).collect();
    chain.reverse();
    chain
}

/// How much of a text changed, without the lines themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) insertions: u64,
    pub(crate) deletions: u64,
    pub(crate) hunks: u32,
}

/// How much of a text changed.
pub(crate) fn extent(before: &[u8], after: &[u8]) -> Extent {
    let (old, new): (Vec<_>, Vec<_>) = (split(before).collect(), split(after).collect());
    let edits = edits(&old, &new, Purpose::Reading);
    Extent {
        insertions: edits.iter().map(|edit| edit.after.len() as u64).sum(),
        deletions: edits.iter().map(|edit| edit.before.len() as u64).sum(),
        hunks: groups(&edits).count() as u32,
    }
}

/// The hunks that lead from one text to another, in order. None where they are the same.
pub fn hunks(before: &[u8], after: &[u8]) -> Vec<Hunk> {
    let (old, new): (Vec<_>, Vec<_>) = (split(before).collect(), split(after).collect());
    let edits = edits(&old, &new, Purpose::Reading);
    groups(&edits).map(|group| hunk(&old, &new, group)).collect()
}

/// Edits so near each other that their contexts touch.
fn groups(edits: &[Edit]) -> impl Iterator<Item = &[Edit]> {
    edits.chunk_by(|one, next| next.before.start - one.before.end <= 2 * CONTEXT)
}

fn hunk(old: &[&[u8]], new: &[&[u8]], edits: &[Edit]) -> Hunk {
    let (first, last) = match edits {
        [first, .., last] => (first, last),
        [only] => (only, only),
        [] => return Hunk { old_start: 0, old_lines: 0, new_start: 0, new_lines: 0, lines: Vec::new() },
    };
    let head = first.before.start.min(CONTEXT);
    let tail = (old.len() - last.before.end).min(CONTEXT);
    let covered = first.before.start - head..last.before.end + tail;
    let covered_new = first.after.start - head..last.after.end + tail;
    let line = |kind, bytes: &&[u8]| Line { kind, bytes: bytes.to_vec() };
    let mut lines = Vec::with_capacity(covered.len() + covered_new.len());
    let mut at = covered.start;
    for edit in edits {
        lines.extend(old[at..edit.before.start].iter().map(|bytes| line(LineKind::Context, bytes)));
        lines.extend(old[edit.before.clone()].iter().map(|bytes| line(LineKind::Removed, bytes)));
        lines.extend(new[edit.after.clone()].iter().map(|bytes| line(LineKind::Added, bytes)));
        at = edit.before.end;
    }
    lines.extend(old[at..covered.end].iter().map(|bytes| line(LineKind::Context, bytes)));
    // A range of no lines is named by the line before it.
    let start = |range: &Range<usize>| (range.start + usize::from(!range.is_empty())) as u64;
    Hunk {
        old_start: start(&covered),
        old_lines: covered.len() as u64,
        new_start: start(&covered_new),
        new_lines: covered_new.len() as u64,
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_git_takes_for_one_and_not_too_long() {
        assert!(is_text(b"") && is_text(b"a\r\n") && is_text(&[0xff; 10]));
        assert!(!is_text(b"a\0") && is_text(&[&[b'a'; 8_000][..], b"\0"].concat()));
        assert!(is_text(&b"\n".repeat(TEXT_LINES_MAX)) && !is_text(&b"\n".repeat(TEXT_LINES_MAX + 1)));
        let long = vec![b'a'; TEXT_BYTES_MAX as usize + 1];
        assert!(is_text(&long[1..]) && !is_text(&long));
    }

    #[test]
    fn a_hunk_says_where_it_begins_as_git_does() {
        let begins = |before: &[u8], after: &[u8]| {
            let starts = hunks(before, after);
            starts
                .iter()
                .map(|hunk| (hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines))
                .collect::<Vec<_>>()
        };
        assert_eq!(begins(b"", b"a\nb\n"), [(0, 0, 1, 2)]);
        assert_eq!(begins(b"a\n", b""), [(1, 1, 0, 0)]);
        assert_eq!(begins(b"1\n2\n3\n4\n5\n", b"1\n2\n3\n4\nx\n5\n"), [(2, 4, 2, 5)]);
        assert_eq!(begins(b"same\n", b"same\n"), []);
        // Six lines between two edits join their hunks, seven part them.
        assert_eq!(begins(b"a\n1\n2\n3\n4\n5\n6\nb\n", b"A\n1\n2\n3\n4\n5\n6\nB\n").len(), 1);
        assert_eq!(begins(b"a\n1\n2\n3\n4\n5\n6\n7\nb\n", b"A\n1\n2\n3\n4\n5\n6\n7\nB\n").len(), 2);
    }

    #[test]
    fn a_text_too_long_for_one_piece_is_cut_where_lines_are_unique() {
        let line = |at: usize| format!("line {at}\n").into_bytes();
        let before: Vec<u8> = (0..60_000).flat_map(line).collect();
        let changed = |at: usize| if at % 10_000 == 7 { b"new\n".to_vec() } else { line(at) };
        let after: Vec<u8> = (0..60_000).flat_map(changed).collect();
        let found = extent(&before, &after);
        assert_eq!(found, Extent { insertions: 6, deletions: 6, hunks: 6 });
    }

    #[test]
    fn a_long_text_without_unique_lines_counts_as_replaced_between_its_equal_ends() {
        let before = [&b"head\nhead\n"[..], &b"a\nb\n".repeat(6_000), b"tail\ntail\n"].concat();
        let after = [&b"head\nhead\n"[..], &b"c\nd\n".repeat(6_000), b"tail\ntail\n"].concat();
        assert_eq!(extent(&before, &after), Extent { insertions: 12_000, deletions: 12_000, hunks: 1 });
    }

    #[test]
    fn the_longest_rising_chain_is_found() {
        assert_eq!(longest_rising(&[(0, 5), (1, 1), (2, 2), (3, 9), (4, 3)]), [(1, 1), (2, 2), (4, 3)]);
        assert_eq!(longest_rising(&[]), []);
    }
}
