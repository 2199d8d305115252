//! A text with only some of its hunks.

use std::collections::BTreeSet;

use crate::change::{Hunk, LineKind};
use crate::lines::split;

/// The text that `before` becomes by the chosen hunks alone; the first is 0. All of them give the new text, none the old one.
///
/// The hunks must be those that lead from `before` to the new text, as [`crate::hunks`] gives them.
pub fn take(before: &[u8], hunks: &[Hunk], chosen: &BTreeSet<u32>) -> Vec<u8> {
    let mut taken = Vec::with_capacity(before.len());
    let mut old = split(before);
    let mut passed = 0;
    for (number, hunk) in (0_u32..).zip(hunks) {
        // A hunk that covers no line is named by the line before it.
        let first = if hunk.old_lines == 0 { hunk.old_start } else { hunk.old_start.saturating_sub(1) };
        while passed < first {
            let Some(line) = old.next() else { break };
            taken.extend_from_slice(line);
            passed += 1;
        }
        let left_out = if chosen.contains(&number) { LineKind::Removed } else { LineKind::Added };
        for line in hunk.lines.iter().filter(|line| line.kind != left_out) {
            taken.extend_from_slice(&line.bytes);
        }
        for _ in 0..hunk.old_lines {
            old.next();
        }
        passed += hunk.old_lines;
    }
    old.for_each(|line| taken.extend_from_slice(line));
    taken
}
