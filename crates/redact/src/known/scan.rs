//! Finds known values in a text that arrives in pieces.
//!
//! It looks at the text without line breaks and without the indentation after them, and keeps where each of its lines
//! came from. What may be the start of a pattern is held back, and nothing else.

use super::KnownValues;
use super::encodings::{Gap, Look, Step};
use super::index::{GRAM, Index, STRIDE};
use crate::placeholder::Tag;

/// All looks at one text.
#[derive(Debug)]
pub(crate) struct KnownScans(Vec<KnownScan>);

impl KnownScans {
    pub(crate) fn of_text() -> Self {
        KnownScans([Look::WithoutIndentation, Look::WithIndentation].map(KnownScan::new).into())
    }

    /// For what may be a diff, or no diff.
    pub(crate) fn of_content() -> Self {
        let mut scans = KnownScans::of_text();
        scans.0.push(KnownScan::new(Look::WithoutDiffMarks));
        scans
    }

    /// Forgets the text, for a new one.
    pub(crate) fn reset(&mut self) {
        self.0.iter_mut().for_each(KnownScan::reset);
    }

    pub(crate) fn push(&mut self, text: &[u8], known: &KnownValues) {
        self.looks(known).for_each(|(scan, _)| scan.push(text));
    }

    /// Tells every match in the text so far (start, end, tag), and gives the place before which all is settled; `end` is
    /// the end of the text.
    pub(crate) fn scan(
        &mut self,
        known: &KnownValues,
        end: usize,
        ended: bool,
        mut tell: impl FnMut(usize, usize, Tag),
    ) -> usize {
        self.looks(known).map(|(scan, index)| scan.scan(index, ended, &mut tell)).fold(end, usize::min)
    }

    /// Each look with what it looks for, where there is something.
    fn looks<'a>(
        &'a mut self,
        known: &'a KnownValues,
    ) -> impl Iterator<Item = (&'a mut KnownScan, &'a Index)> {
        let looks = self.0.iter_mut().map(|scan| {
            let index = known.index(scan.gap.look());
            (scan, index)
        });
        looks.filter(|(_, index)| !index.is_empty())
    }
}

/// The state between two pieces of a text.
#[derive(Debug, Default)]
struct KnownScan {
    /// The text without line breaks, from `base` on.
    flat: Vec<u8>,
    base: usize,
    gap: Gap,
    /// Where runs of the flat text came from: (place in the flat text, place in the text).
    lines: Vec<(usize, usize)>,
    /// The end of the text so far.
    end: usize,
    /// The next place to look at, a multiple of the stride.
    next: usize,
    /// Places where a pattern has started that may go on, and how much of the text was compared.
    open: Vec<(usize, usize)>,
}

impl KnownScan {
    fn new(look: Look) -> Self {
        KnownScan { gap: Gap::new(look), ..KnownScan::default() }
    }

    /// Forgets the text, for a new one.
    fn reset(&mut self) {
        self.flat.clear();
        self.lines.clear();
        self.open.clear();
        (self.base, self.end, self.next, self.gap) = (0, 0, 0, Gap::new(self.gap.look()));
    }

    fn push(&mut self, text: &[u8]) {
        let mut rest = text;
        while let Some(first) = rest.first() {
            if self.gap.is_open() || matches!(first, b'\n' | b'\r' | b'\\') {
                let mut gap = self.gap;
                gap.step(*first, &mut |step| self.take(step));
                self.gap = gap;
                rest = &rest[1..];
                continue;
            }
            let line = memchr::memchr3(b'\n', b'\r', b'\\', rest).unwrap_or(rest.len());
            self.keep(&rest[..line]);
            rest = &rest[line..];
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Kept(byte) => self.keep(&[byte]),
            Step::Passed => self.end += 1,
            Step::Break => self.keep(b"\n"),
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let at = self.base + self.flat.len();
        let continues = self.lines.last().is_some_and(|(flat, text)| text + (at - flat) == self.end);
        if !continues {
            self.lines.push((at, self.end));
        }
        self.flat.extend_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Tells every match in the text so far (start, end, tag), and gives the place before which all is settled.
    fn scan(&mut self, index: &Index, ended: bool, mut tell: impl FnMut(usize, usize, Tag)) -> usize {
        if ended {
            let mut gap = self.gap;
            gap.finish(&mut |step| self.take(step));
            self.gap = gap;
        }
        for (start, compared) in std::mem::take(&mut self.open) {
            self.compare(index, start, compared, ended, &mut tell);
        }
        let mut at = self.next - self.base;
        while let Some(gram) = self.flat.get(at..at + GRAM) {
            let gram = u32::from_le_bytes([gram[0], gram[1], gram[2], gram[3]]);
            let mut offsets = index.offsets(gram);
            while offsets != 0 {
                let offset = offsets.trailing_zeros() as usize;
                offsets &= offsets - 1;
                if let Some(start) = at.checked_sub(offset) {
                    self.compare(index, self.base + start, 0, ended, &mut tell);
                }
            }
            at += STRIDE;
        }
        self.next = self.base + at;
        let settled = self.settled(index, ended);
        let frontier =
            if settled == self.base + self.flat.len() { self.end } else { self.text_place(settled) };
        self.forget(settled);
        frontier
    }

    /// Compares what starts at a place with the patterns that start so, and tells those longer than what was compared
    /// before.
    fn compare(
        &mut self,
        index: &Index,
        start: usize,
        compared: usize,
        ended: bool,
        tell: &mut impl FnMut(usize, usize, Tag),
    ) {
        let text = &self.flat[start - self.base..];
        for (pattern, tag) in index.starting_like(text) {
            if pattern.len() > compared && text.starts_with(pattern) {
                tell(self.text_place(start), self.text_place(start + pattern.len() - 1) + 1, *tag);
            }
        }
        if !ended && index.goes_on_from(text) {
            self.open.push((start, text.len()));
        }
    }

    /// The place in the flat text before which no further match can start.
    fn settled(&self, index: &Index, ended: bool) -> usize {
        let end = self.base + self.flat.len();
        if ended {
            return end;
        }
        let first_open = self.open.iter().map(|(start, _)| *start).min().unwrap_or(end);
        // Starts that no looked-at place covers yet, and the last that one does; fewer than nine bytes follow each.
        let unseen = self.next.saturating_sub(STRIDE).max(self.base);
        let first_unseen =
            (unseen..end).find(|start| index.goes_on_from(&self.flat[start - self.base..])).unwrap_or(end);
        first_open.min(first_unseen)
    }

    fn text_place(&self, flat: usize) -> usize {
        let line = self.lines.partition_point(|(from, _)| *from <= flat);
        let (from, text) = self.lines[line.saturating_sub(1)];
        text + (flat - from)
    }

    /// Forgets what lies before a place, once it is worth it. A looked-at place can point a few bytes back.
    fn forget(&mut self, settled: usize) {
        let keep = settled.min(self.next.saturating_sub(STRIDE));
        let gone = keep.saturating_sub(self.base);
        if gone < 4096 {
            return;
        }
        self.flat.drain(..gone);
        self.base += gone;
        let line = self.lines.partition_point(|(from, _)| *from <= self.base);
        self.lines.drain(..line.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much is kept of a text that ends in the start of a pattern, so much of it before that, and from where on.
    fn kept(settled: usize) -> (usize, usize) {
        let index = Index::new([(b"abcdefghijklmnop".to_vec(), *b"01234567")]);
        let mut scan = KnownScan::new(Look::WithoutIndentation);
        scan.push(&[&vec![b'z'; settled], &b"abcdefghijk"[..]].concat());
        assert_eq!(scan.scan(&index, false, |_, _, _| {}), settled);
        (scan.flat.len(), scan.base)
    }

    #[test]
    fn what_was_looked_at_is_forgotten_once_it_is_much() {
        assert_eq!(kept(100), (111, 0));
        assert_eq!(kept(4095), (4106, 0));
        assert_eq!(kept(4096), (11, 4096));
        let index = Index::new([(b"abcdefgh".to_vec(), *b"01234567")]);
        let mut scan = KnownScan::new(Look::WithoutIndentation);
        scan.push("zzzz\n".repeat(2000).as_bytes());
        scan.scan(&index, false, |_, _, _| {});
        assert!(scan.lines.len() <= 3, "{}", scan.lines.len());
    }

    #[test]
    fn a_pattern_that_another_goes_on_from_is_told_once() {
        let index =
            Index::new([(b"abcdefgh".to_vec(), *b"01234567"), (b"abcdefghij".to_vec(), *b"89abcdef")]);
        let mut scan = KnownScan::new(Look::WithoutIndentation);
        let mut told = Vec::new();
        for piece in ["abcdefgh", "ij"] {
            scan.push(piece.as_bytes());
            scan.scan(&index, false, |start, end, _| told.push((start, end)));
        }
        assert_eq!(told, [(0, 8), (0, 10)]);
    }

    #[test]
    fn a_line_is_one_run_in_however_many_pieces_it_came() {
        let mut scan = KnownScan::new(Look::WithoutIndentation);
        for piece in ["ab", "cd", "e\n", "fg", "h"] {
            scan.push(piece.as_bytes());
        }
        assert_eq!((scan.lines, scan.flat), (vec![(0, 0), (5, 6)], b"abcdefgh".to_vec()));
    }
}
