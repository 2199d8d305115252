//! The output stage: raw bytes in, spans in, and out comes the text without what the spans cover.
//!
//! Overlapping spans become one gap; what stands in it is said by the span that starts first. Nothing is let out before
//! every scanner has said that it is settled, and covered bytes are dropped as they come, so memory stays bounded however
//! long a chain of overlapping spans becomes.

use std::collections::VecDeque;

use crate::placeholder::{self, SecretKind, Tag};
use crate::span::{Replacement, Span};

/// Raw input that was not yet let out, and what is known about it.
#[derive(Debug, Default)]
pub(crate) struct Output {
    raw: Vec<u8>,
    /// Where `raw` starts in the input.
    base: usize,
    /// Everything before it is settled, and out or dropped.
    settled: usize,
    /// The end of what the last gap covers.
    covered: usize,
    /// The last gap holds only a private path so far, and no placeholder.
    gap_is_path: bool,
    /// The known value that the last gap ends with: long ones are found in pieces, which are shown as one.
    last_known: Option<Tag>,
    spans: Vec<Span>,
    /// Escape sequences of JSON strings (start, end), which are kept or covered as a whole.
    escapes: VecDeque<(usize, usize)>,
    /// The contents of JSON strings (start, end), as far as they are not settled; the end of the last may be open.
    strings: VecDeque<(usize, usize)>,
}

impl Output {
    pub(crate) fn push(&mut self, raw: &[u8]) {
        self.raw.extend_from_slice(raw);
    }

    /// The end of the input so far.
    pub(crate) fn end(&self) -> usize {
        self.base + self.raw.len()
    }

    /// How many bytes wait.
    pub(crate) fn held(&self) -> usize {
        self.end() - self.settled
    }

    /// The raw bytes of a range that was not let out yet.
    pub(crate) fn raw(&self, start: usize, end: usize) -> &[u8] {
        self.raw.get(start.saturating_sub(self.base)..end.saturating_sub(self.base)).unwrap_or_default()
    }

    /// Where scanners put what they find. No span may start before the frontier they gave last.
    pub(crate) fn spans(&mut self) -> &mut Vec<Span> {
        &mut self.spans
    }

    pub(crate) fn escape(&mut self, start: usize, end: usize) {
        self.escapes.push_back((start, end));
    }

    pub(crate) fn string_starts(&mut self, start: usize) {
        self.strings.push_back((start, usize::MAX));
    }

    pub(crate) fn string_ends(&mut self, end: usize) {
        if let Some(last) = self.strings.back_mut() {
            last.1 = end;
        }
    }

    /// Lets everything before `frontier` out into `out`: no further span will start there.
    pub(crate) fn settle(&mut self, frontier: usize, out: &mut Vec<u8>) {
        let frontier = self.escape_around(frontier).map_or(frontier, |(start, _)| start).min(self.end());
        if frontier <= self.settled {
            return;
        }
        let mut due: Vec<Span> = Vec::new();
        if !self.spans.is_empty() {
            let (now, later): (Vec<Span>, Vec<Span>) =
                std::mem::take(&mut self.spans).into_iter().partition(|span| span.start < frontier);
            (due, self.spans) = (now, later);
            // What continues a gap belongs to what started before, so it comes before what starts there.
            let starts = |span: &Span| !matches!(span.replacement, Replacement::Continuation);
            due.sort_by(|a, b| {
                let order = (a.start, starts(a), a.layer).cmp(&(b.start, starts(b), b.layer));
                order.then_with(|| b.end.cmp(&a.end))
            });
        }
        for span in due {
            self.cover(span, out);
        }
        self.copy_until(frontier, out);
        while self.escapes.front().is_some_and(|(_, end)| *end <= frontier) {
            self.escapes.pop_front();
        }
        while self.strings.front().is_some_and(|(_, end)| *end <= frontier) {
            self.strings.pop_front();
        }
        // Moving the rest down costs as much as the rest is long: not for every byte.
        let gone = self.settled - self.base;
        if gone >= 4096 || gone == self.raw.len() {
            self.raw.drain(..gone);
            self.base = self.settled;
        }
    }

    fn cover(&mut self, mut span: Span, out: &mut Vec<u8>) {
        if let Replacement::KnownInJson(tag) = span.replacement {
            let inside = self.strings.iter().any(|(start, end)| (*start..*end).contains(&span.start));
            let kind = SecretKind::Known;
            span.replacement = match inside {
                true => Replacement::Secret { kind, tag },
                false => Replacement::QuotedSecret { kind, tag },
            };
        }
        let start = self.escape_around(span.start).map_or(span.start, |(start, _)| start);
        let known = match span.replacement {
            Replacement::Secret { kind: SecretKind::Known, tag } => Some(tag),
            _ => None,
        };
        let continues = matches!(span.replacement, Replacement::Continuation)
            || (known.is_some() && known == self.last_known);
        let joins = start < self.covered || (start == self.covered && continues);
        let is_path = matches!(span.replacement, Replacement::Path(_));
        if !joins {
            self.copy_until(start, out);
            self.gap_is_path = is_path;
            write(&span.replacement, out);
        } else if self.gap_is_path && !is_path && !matches!(span.replacement, Replacement::Continuation) {
            // A path starts first, and a secret overlaps it: that a secret was there has to be seen all the same.
            self.gap_is_path = false;
            write(&span.replacement, out);
        }
        if span.end >= self.covered {
            self.covered = span.end;
            self.last_known = known;
        }
    }

    fn copy_until(&mut self, to: usize, out: &mut Vec<u8>) {
        if let Some((_, end)) = self.escape_around(self.covered) {
            self.covered = end;
        }
        out.extend_from_slice(self.raw(self.settled.max(self.covered), to));
        self.settled = self.settled.max(to);
    }

    /// The escape sequence that `at` would cut in two.
    fn escape_around(&self, at: usize) -> Option<(usize, usize)> {
        if self.escapes.is_empty() {
            return None;
        }
        let after = self.escapes.partition_point(|(start, _)| *start < at);
        let (start, end) = *self.escapes.get(after.checked_sub(1)?)?;
        (at < end).then_some((start, end))
    }
}

fn write(replacement: &Replacement, out: &mut Vec<u8>) {
    match replacement {
        Replacement::Secret { kind, tag } => placeholder::write(out, *kind, *tag),
        Replacement::QuotedSecret { kind, tag } => {
            out.push(b'"');
            placeholder::write(out, *kind, *tag);
            out.push(b'"');
        }
        Replacement::Path(name) => out.extend_from_slice(name),
        Replacement::KnownInJson(_) | Replacement::Continuation => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settles so much of a text of this length, and gives how much of it is still kept.
    fn kept(length: usize, settled: usize) -> usize {
        let (mut output, mut out) = (Output::default(), Vec::new());
        output.push(&vec![b'a'; length]);
        output.settle(settled, &mut out);
        assert_eq!((out.len(), output.held()), (settled, length - settled));
        output.raw.len()
    }

    #[test]
    fn what_is_out_is_dropped_once_it_is_all_or_much() {
        assert_eq!(kept(100, 100), 0);
        assert_eq!(kept(100, 99), 100);
        assert_eq!(kept(5000, 4095), 5000);
        assert_eq!(kept(5000, 4096), 904);
    }
}
