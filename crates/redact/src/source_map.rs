//! Where each byte of a text came from in the raw input, for texts whose escapes were undone.

/// A run of the text with one rule for where its bytes came from.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Where it starts in the text.
    at: usize,
    /// Where it starts in the raw input.
    raw: usize,
    /// The length of the escape sequence that all of it came from; zero where each byte came from one byte.
    escape: usize,
}

/// The runs of a text, in order.
#[derive(Debug)]
pub(crate) struct SourceMap {
    runs: Vec<Run>,
    raw_end: usize,
}

impl SourceMap {
    pub(crate) fn starting_at(raw: usize) -> Self {
        SourceMap { runs: vec![Run { at: 0, raw, escape: 0 }], raw_end: raw }
    }

    pub(crate) fn reset(&mut self, raw: usize) {
        self.runs.clear();
        self.runs.push(Run { at: 0, raw, escape: 0 });
        self.raw_end = raw;
    }

    /// Bytes that stand in the raw input as they are.
    pub(crate) fn plain(&mut self, length: usize) {
        self.raw_end += length;
    }

    /// What one escape sequence stands for, at this place of the text.
    pub(crate) fn escape(&mut self, at: usize, length: usize, raw_length: usize) {
        if length > 0 {
            self.runs.push(Run { at, raw: self.raw_end, escape: raw_length });
        }
        self.raw_end += raw_length;
        self.runs.push(Run { at: at + length, raw: self.raw_end, escape: 0 });
    }

    /// Where the byte at this place of the text starts in the raw input.
    pub(crate) fn start(&self, at: usize) -> usize {
        let run = self.run(at);
        if run.escape > 0 { run.raw } else { run.raw + (at - run.at) }
    }

    /// Where the byte before this place of the text ends in the raw input.
    pub(crate) fn end(&self, at: usize) -> usize {
        let Some(last) = at.checked_sub(1) else { return self.start(0) };
        let run = self.run(last);
        if run.escape > 0 { run.raw + run.escape } else { run.raw + (last - run.at) + 1 }
    }

    fn run(&self, at: usize) -> Run {
        let after = self.runs.partition_point(|run| run.at <= at);
        self.runs[after.saturating_sub(1)]
    }

    /// Forgets what came before a place of the text.
    pub(crate) fn forget(&mut self, at: usize) {
        let after = self.runs.partition_point(|run| run.at <= at);
        self.runs.drain(..after.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ab\u00e9c` and a colour of five bytes before `d`, from place 10 of the raw input on.
    fn map() -> SourceMap {
        let mut map = SourceMap::starting_at(10);
        map.plain(2);
        map.escape(2, 2, 6);
        map.plain(1);
        map.escape(5, 0, 5);
        map.plain(1);
        map
    }

    #[test]
    fn every_byte_is_found_where_it_came_from() {
        let map = map();
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|at| map.start(at)), [10, 11, 12, 12, 18, 24, 25]);
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|at| map.end(at)), [10, 11, 12, 18, 18, 19, 25]);
    }

    #[test]
    fn what_is_forgotten_takes_no_room_and_the_rest_is_found_as_before() {
        let mut map = map();
        map.forget(4);
        assert_eq!(map.runs.len(), 2);
        assert_eq!([4, 5, 6].map(|at| map.start(at)), [18, 24, 25]);
        map.reset(3);
        assert_eq!((map.runs.len(), map.start(2), map.end(2)), (1, 5, 5));
    }
}
