//! Two changes of the same text as one, line by line, as `git merge-file` does it.
//!
//! It never writes conflict markers: where two changes meet and are not the same, it says where, and there is no result.

use std::ops::Range;

use crate::lines::{Edit, Purpose, edits, split};

/// What became of two changes of one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// Both, in one text.
    Clean(Vec<u8>),
    /// They meet, in these places.
    Conflict(Vec<Conflict>),
}

/// Where two changes of one text meet: lines of each of the three, of which the first is 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Lines of the text that both began from.
    pub base: Range<u64>,
    /// What is there in ours.
    pub ours: Range<u64>,
    /// What is there in theirs.
    pub theirs: Range<u64>,
}

/// Lines of the base that one side changed, or both, with what each side has there.
struct Region {
    base: Range<usize>,
    ours: Range<usize>,
    theirs: Range<usize>,
    by_ours: bool,
    by_theirs: bool,
}

/// Brings two changes of one text together. Changes meet where no unchanged line is between them; the same change on both sides
/// is no conflict.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Merged {
    let [base, ours, theirs] = [base, ours, theirs].map(|text| split(text).collect::<Vec<_>>());
    let by_ours = edits(&base, &ours, Purpose::Merging);
    let by_theirs = edits(&base, &theirs, Purpose::Merging);
    let mut text: Vec<&[u8]> = Vec::new();
    let mut conflicts = Vec::new();
    let mut passed = 0;
    for region in regions(&by_ours, &by_theirs) {
        text.extend(&base[passed..region.base.start]);
        passed = region.base.end;
        let (one, other) = (&ours[region.ours.clone()], &theirs[region.theirs.clone()]);
        match (region.by_ours, region.by_theirs) {
            (true, true) if one != other => conflicts.push(Conflict {
                base: numbers(region.base),
                ours: numbers(region.ours),
                theirs: numbers(region.theirs),
            }),
            (true, _) => text.extend(one),
            (false, _) => text.extend(other),
        }
    }
    text.extend(&base[passed..]);
    if conflicts.is_empty() { Merged::Clean(text.concat()) } else { Merged::Conflict(conflicts) }
}

fn numbers(range: Range<usize>) -> Range<u64> {
    range.start as u64..range.end as u64
}

/// The edits of both sides in the order of the base, those that touch as one.
fn regions(ours: &[Edit], theirs: &[Edit]) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    let (mut one, mut other) = (ours.iter().peekable(), theirs.iter().peekable());
    // Where a line of the base is on each side, after the edits so far.
    let (mut one_at, mut other_at) = (Offset::default(), Offset::default());
    loop {
        let (edit, is_ours) = match (one.peek(), other.peek()) {
            (None, None) => return regions,
            (Some(left), Some(right)) if right.before.start < left.before.start => (*right, false),
            (Some(left), _) => (*left, true),
            (None, Some(right)) => (*right, false),
        };
        if is_ours {
            one.next();
            one_at.pass(edit);
        } else {
            other.next();
            other_at.pass(edit);
        }
        let touches = regions.last().is_some_and(|region| edit.before.start <= region.base.end);
        if !touches {
            let at = edit.before.start;
            let (mut left, mut right) = (one_at.of(at), other_at.of(at));
            if is_ours {
                left = edit.after.start;
            } else {
                right = edit.after.start;
            }
            regions.push(Region {
                base: at..at,
                ours: left..left,
                theirs: right..right,
                by_ours: false,
                by_theirs: false,
            });
        }
        if let Some(region) = regions.last_mut() {
            region.base.end = region.base.end.max(edit.before.end);
            region.ours.end = one_at.of(region.base.end);
            region.theirs.end = other_at.of(region.base.end);
            region.by_ours |= is_ours;
            region.by_theirs |= !is_ours;
        }
    }
}

/// How lines of the base lie on one side, after its last edit.
#[derive(Clone, Copy, Default)]
struct Offset {
    base: usize,
    side: usize,
}

impl Offset {
    fn pass(&mut self, edit: &Edit) {
        *self = Offset { base: edit.before.end, side: edit.after.end };
    }

    /// Where a line at or after the last edit lies.
    fn of(self, line: usize) -> usize {
        self.side + line.saturating_sub(self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn clean(base: &str, ours: &str, theirs: &str, expected: &str) {
        for (one, other) in [(ours, theirs), (theirs, ours)] {
            let merged = merge(base.as_bytes(), one.as_bytes(), other.as_bytes());
            assert_eq!(merged, Merged::Clean(expected.into()), "{expected}");
        }
    }

    #[test]
    fn changes_with_a_line_between_them_are_both_taken() {
        clean("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n");
        clean("a\nb\nc\n", "a\nb\nc\nd\n", "b\nc\n", "b\nc\nd\n");
        clean("a\nb\nc", "a\nb\nC", "x\na\nb\nc", "x\na\nb\nC");
        clean("", "a\n", "", "a\n");
    }

    #[test]
    fn the_same_change_on_both_sides_is_taken_once() {
        clean("a\nb\n", "x\nb\n", "x\nb\n", "x\nb\n");
        clean("a\nb\n", "", "", "");
    }

    #[test]
    fn changes_that_touch_are_a_conflict_that_says_where() {
        let merged = merge(b"a\nb\nc\nd\n", b"a\nB\nc\nd\nnew\n", b"0\na\nb\nC\nC\nd\n");
        let there = Conflict { base: 1..3, ours: 1..3, theirs: 2..5 };
        assert_eq!(merged, Merged::Conflict(vec![there]));
        let appended = merge(b"a\n", b"a\nx\n", b"a\ny\n");
        assert_eq!(appended, Merged::Conflict(vec![Conflict { base: 1..1, ours: 1..2, theirs: 1..2 }]));
    }
}
