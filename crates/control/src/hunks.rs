//! The hunks of a unified diff, for people to look at and choose from. What is applied never comes from here.

use schemars::JsonSchema;
use serde::Serialize;

/// A piece of a file that changed, with the lines around it.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HunkView {
    /// Names it in its file: 1, 2, 3, …
    id: u32,
    /// Where it begins in the old text.
    old_start: u64,
    /// Where it begins in the new text.
    new_start: u64,
    /// Its lines.
    lines: Vec<LineView>,
}

/// A line of a hunk.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LineView {
    /// Context, added or removed.
    kind: &'static str,
    /// Its number in the old text; absent where it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<u64>,
    /// Its number in the new text; absent where it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<u64>,
    /// What it says.
    text: String,
}

/// The hunks of a patch. What stands before the first is its head.
pub(crate) fn hunks(patch: &str) -> Vec<HunkView> {
    let mut hunks: Vec<HunkView> = Vec::new();
    let (mut old, mut new) = (0, 0);
    for line in patch.lines() {
        // No line of a hunk begins like this: each has its mark in front.
        if let Some((old_start, new_start)) = line.strip_prefix("@@ ").and_then(starts) {
            (old, new) = (old_start, new_start);
            let id = u32::try_from(hunks.len() + 1).unwrap_or(u32::MAX);
            hunks.push(HunkView { id, old_start, new_start, lines: Vec::new() });
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        let Some(mark) = line.chars().next() else { continue };
        let text = line.get(mark.len_utf8()..).unwrap_or_default().to_owned();
        let (kind, in_old, in_new) = match mark {
            ' ' => ("context", true, true),
            '-' => ("removed", true, false),
            '+' => ("added", false, true),
            // "No newline at end of file", or what a redaction made of a line.
            _ => continue,
        };
        hunk.lines.push(LineView { kind, old: in_old.then_some(old), new: in_new.then_some(new), text });
        old += u64::from(in_old);
        new += u64::from(in_new);
    }
    hunks
}

/// `-12,3 +14,5 @@ …`: where the hunk begins on both sides.
fn starts(head: &str) -> Option<(u64, u64)> {
    let mut words = head.split(' ');
    let start = |word: &str, mark: char| word.strip_prefix(mark)?.split(',').next()?.parse().ok();
    Some((start(words.next()?, '-')?, start(words.next()?, '+')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@ fn\n a\n-b\n+@@ c\n d\n@@ -10 +10,2 @@\n x\n+y\n\\ No newline at end of file\n";

    #[test]
    fn hunks_are_numbered_from_one_and_their_lines_know_where_they_are() {
        let found = hunks(PATCH);
        let shape: Vec<(u32, u64, u64, usize)> =
            found.iter().map(|hunk| (hunk.id, hunk.old_start, hunk.new_start, hunk.lines.len())).collect();
        assert_eq!(shape, [(1, 1, 1, 4), (2, 10, 10, 2)]);
        let lines = |hunk: &HunkView| {
            hunk.lines
                .iter()
                .map(|line| (line.kind, line.old, line.new, line.text.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            lines(&found[0])[1..3],
            [("removed", Some(2), None, "b".to_owned()), ("added", None, Some(2), "@@ c".to_owned())]
        );
        assert_eq!(lines(&found[1])[1], ("added", None, Some(11), "y".to_owned()));
    }

    #[test]
    fn what_is_no_patch_has_no_hunks() {
        for text in ["", "Binary files a/f and b/f differ\n", "@@ nonsense\n+a", "@@ -1 +\n"] {
            assert_eq!(hunks(text), [], "{text}");
        }
    }
}
