//! Raw lines between an adapter and its program, where a profile keeps them: redacted, bounded, and put together into reports.

use runyard_backend::link::Report;
use runyard_redact::{Kind, Redactor};

/// How much is put together into one report, in bytes.
const REPORT_BYTES_MAX: usize = 256 * 1024;
/// How much of one line is kept, in bytes.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// How much of one session is kept, in bytes.
const SESSION_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The lines of one session that were not reported yet.
pub(crate) struct Raw {
    redactor: Redactor,
    text: String,
    lines: u64,
    omitted: u64,
    kept: usize,
}

impl Raw {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Raw { redactor, text: String::new(), lines: 0, omitted: 0, kept: 0 }
    }

    /// Keeps a line. Gives those that are enough for a report.
    pub(crate) fn keep(&mut self, told: bool, line: &str) -> Option<Report> {
        if self.kept >= SESSION_BYTES_MAX {
            self.omitted += 1;
            return None;
        }
        // Redacted first: what is cut in the middle is no secret any more, to a redactor.
        let mut safe = self.redactor.text(Kind::Text, line).into_inner();
        let end = safe.floor_char_boundary(LINE_BYTES_MAX);
        let cut =
            if end < safe.len() { format!(" … {} bytes more", safe.len() - end) } else { String::new() };
        safe.truncate(end);
        let mark = if told { "> " } else { "< " };
        let before = self.text.len();
        self.text.extend([mark, safe.as_str(), cut.as_str(), "\n"]);
        self.kept += self.text.len() - before;
        self.lines += 1;
        if self.text.len() >= REPORT_BYTES_MAX { self.take() } else { None }
    }

    /// What was not reported yet.
    pub(crate) fn take(&mut self) -> Option<Report> {
        if self.lines == 0 && self.omitted == 0 {
            return None;
        }
        let (text, lines, omitted) = (
            std::mem::take(&mut self.text),
            std::mem::take(&mut self.lines),
            std::mem::take(&mut self.omitted),
        );
        Some(Report::Debug { text, lines, omitted })
    }
}
