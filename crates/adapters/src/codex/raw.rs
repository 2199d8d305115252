//! The lines between codex and us as they are, for whoever looks for a fault. Bounded; what is beyond the bounds is counted.

use runyard_backend::Signal;
use serde_json::Value;

use super::bounds;
use crate::cut::clip;

/// How much of a line is kept, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 16 * 1024;
/// How much of a session is kept, in bytes.
const SESSION_BYTES_MAX: usize = 1024 * 1024;

/// The field that holds a piece of a text.
const PIECE: &str = "delta";

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
        let whole = without_pieces(line);
        let line = bounds::text(clip(whole.as_deref().unwrap_or(line), LINE_BYTES_MAX));
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

/// The same line without a piece of a text, where it brings one: pieces of a secret are none, and could be put together again. What they
/// come to is in the line that ends the item.
fn without_pieces(line: &str) -> Option<String> {
    if !line.contains(PIECE) {
        return None;
    }
    let mut message: Value = serde_json::from_str(line).ok()?;
    let piece = message.get_mut("params")?.get_mut(PIECE)?;
    *piece = format!("{} bytes", piece.as_str()?.len()).into();
    Some(message.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::tests::{SECRET, holds_no_part};

    #[test]
    fn b12_no_raw_line_ends_with_part_of_a_secret() {
        for before in LINE_BYTES_MAX - SECRET.len() - 8..LINE_BYTES_MAX {
            let line = format!("{} \"{SECRET}\" {}", "-".repeat(before), "and so on".repeat(100));
            let Some(Signal::Raw { line, .. }) = Raw::default().line(false, &line) else { panic!() };
            holds_no_part(&line.replace(SECRET, ""));
        }
    }

    #[test]
    fn c09_a_piece_of_a_text_is_not_kept_since_pieces_can_be_put_together() {
        let line = r#"{"method":"item/agentMessage/delta","params":{"itemId":"m","delta":"sk-par"}}"#;
        let Some(Signal::Raw { line, .. }) = Raw::default().line(false, line) else { panic!() };
        assert_eq!(line, r#"{"method":"item/agentMessage/delta","params":{"itemId":"m","delta":"6 bytes"}}"#);
        let other = r#"{"method":"turn/diff/updated","params":{"diff":"delta"}}"#;
        let Some(Signal::Raw { line, .. }) = Raw::default().line(false, other) else { panic!() };
        assert_eq!(line, other);
    }

    #[test]
    fn c09_raw_lines_are_bounded_each_and_together_and_what_is_left_out_is_counted() {
        let mut raw = Raw::default();
        let Some(Signal::Raw { line, told: true }) = raw.line(true, &"x".repeat(100_000)) else { panic!() };
        assert!(line.len() <= LINE_BYTES_MAX);
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
