//! The lines between codex and us as they are, for whoever looks for a fault. Bounded; what is beyond the bounds is counted.

use runyard_backend::Signal;

use super::bounds;
use crate::process::clip;

/// How much of a line is kept, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 16 * 1024;
/// How much of a session is kept, in bytes.
const SESSION_BYTES_MAX: usize = 1024 * 1024;

/// What was kept of a session, and what not.
#[derive(Debug, Default)]
pub(super) struct Raw {
    bytes: usize,
    left_out: u64,
    /// How much of what was left out was told.
    told_of: u64,
}

impl Raw {
    /// A line, unless there is no room left.
    pub(super) fn line(&mut self, told: bool, line: &str) -> Option<Signal> {
        let line = bounds::text(clip(line, LINE_BYTES_MAX));
        if self.bytes + line.len() > SESSION_BYTES_MAX {
            // Also later, shorter ones are left out: what is kept is the beginning.
            self.bytes = SESSION_BYTES_MAX + 1;
            self.left_out += 1;
            return None;
        }
        self.bytes += line.len();
        Some(Signal::Raw { told, line })
    }

    /// How many lines were left out, if that is news.
    pub(super) fn left_out(&mut self) -> Option<Signal> {
        let news = self.left_out > self.told_of;
        self.told_of = self.left_out;
        news.then(|| Signal::Raw { told: false, line: format!("{} more lines were left out", self.left_out) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c09_raw_lines_are_bounded_each_and_together_and_what_is_left_out_is_counted() {
        let mut raw = Raw::default();
        let Some(Signal::Raw { line, told: true }) = raw.line(true, &"x".repeat(100_000)) else { panic!() };
        assert!(line.len() <= LINE_BYTES_MAX + 4);
        assert_eq!(raw.left_out(), None);
        let kept = (0..100).filter_map(|_| raw.line(false, &"y".repeat(LINE_BYTES_MAX))).count();
        assert!(kept < 64, "{kept}");
        assert_eq!(raw.line(false, "short"), None, "what is kept is the beginning");
        let left_out = 100 - kept + 1;
        let line = format!("{left_out} more lines were left out");
        assert_eq!(raw.left_out(), Some(Signal::Raw { told: false, line }));
        assert_eq!(raw.left_out(), None);
    }
}
