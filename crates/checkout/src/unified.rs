//! One file's change as patch text, as git writes it and `git apply` takes it.
//!
//! For reading, what is no text or too large is only said to differ; for keeping, it is there whole. Bringing changes back never
//! goes through a patch.

use std::borrow::Cow;
use std::io::Write;

use crate::RelPath;
use crate::base::ObjectFormat;
use crate::binary;
use crate::change::{Change, ChangeKind, ContentChange, FileMode, Hunk, LineKind, Version};
use crate::lines::{hunks, is_text};
use crate::similar::similarity;

/// One file's patch. `before` and `after` are its contents; empty where there is none.
pub fn unified(change: &Change, before: &[u8], after: &[u8]) -> Vec<u8> {
    patch(change, before, after, Binary::Said)
}

/// One file's patch with all that it takes to make the one from the other, in a repository that names its objects so.
pub(crate) fn complete(change: &Change, before: &[u8], after: &[u8], format: ObjectFormat) -> Vec<u8> {
    patch(change, before, after, Binary::Held(format))
}

/// What is put for content that is no text.
#[derive(Clone, Copy)]
enum Binary {
    /// That it differs.
    Said,
    /// The content, for a repository that names its objects so.
    Held(ObjectFormat),
}

fn patch(change: &Change, before: &[u8], after: &[u8], binary: Binary) -> Vec<u8> {
    let mut patch = Vec::new();
    // Git has no patch that turns one kind of thing into another: the one goes, the other comes.
    if let (ChangeKind::Retyped, Some(old), Some(new)) = (change.kind, change.before, change.after) {
        let gone = Side { change, kind: ChangeKind::Deleted, before: Some(old), after: None, binary };
        gone.write(before, b"", &mut patch);
        let come = Side { change, kind: ChangeKind::Added, before: None, after: Some(new), binary };
        come.write(b"", after, &mut patch);
    } else {
        let (before_is, after_is) = (change.before, change.after);
        let whole = Side { change, kind: change.kind, before: before_is, after: after_is, binary };
        whole.write(before, after, &mut patch);
    }
    patch
}

/// A change, or one half of it.
struct Side<'a> {
    change: &'a Change,
    kind: ChangeKind,
    before: Option<Version>,
    after: Option<Version>,
    binary: Binary,
}

impl Side<'_> {
    fn write(&self, before: &[u8], after: &[u8], patch: &mut Vec<u8>) {
        let new = &self.change.path;
        let old = self.change.old_path.as_ref().unwrap_or(new);
        patch.extend_from_slice(b"diff --git ");
        patch.extend_from_slice(&name(b"a/", old));
        patch.push(b' ');
        patch.extend_from_slice(&name(b"b/", new));
        patch.push(b'\n');
        self.write_modes(patch);
        if matches!(self.kind, ChangeKind::Renamed | ChangeKind::Copied) {
            self.write_origin(old, before, after, patch);
        }
        if self.change.content == ContentChange::Same {
            return;
        }
        let from = self.before.map(|_| name(b"a/", old));
        let to = self.after.map(|_| name(b"b/", new));
        if self.is_whole(before, after) {
            if let Binary::Held(format) = self.binary {
                let [before, after] = [(self.before, before), (self.after, after)]
                    .map(|(version, bytes)| version.map(|_| bytes));
                binary::write(before, after, format, patch);
                return;
            }
            let [from, to] = [from, to].map(|name| name.unwrap_or_else(|| b"/dev/null".to_vec()));
            patch.extend_from_slice(&[b"Binary files ", &from[..], b" and ", &to, b" differ\n"].concat());
            return;
        }
        let hunks = hunks(&content(before, self.before), &content(after, self.after));
        if !hunks.is_empty() {
            write_name(b"--- ", from, patch);
            write_name(b"+++ ", to, patch);
        }
        hunks.iter().for_each(|hunk| write_hunk(hunk, patch));
    }

    /// Whether it is only said to differ. A link and a submodule are always short text.
    fn is_whole(&self, before: &[u8], after: &[u8]) -> bool {
        let is_file = |version: &Version| matches!(version.mode, FileMode::Plain | FileMode::Executable);
        let sides = [(self.before.filter(is_file), before), (self.after.filter(is_file), after)];
        match self.change.content {
            // What became another kind of thing changes as a whole, and may still be text on this side.
            _ if self.change.kind == ChangeKind::Retyped => sides.iter().any(|(version, bytes)| {
                version.is_some_and(|version| version.bytes != bytes.len() as u64 || !is_text(bytes))
            }),
            ContentChange::Same | ContentChange::Text { .. } => false,
            ContentChange::Binary | ContentChange::TooLarge => {
                sides.iter().any(|(version, _)| version.is_some())
            }
        }
    }

    fn write_modes(&self, patch: &mut Vec<u8>) {
        let mut line = |what: &str, mode: FileMode| {
            patch.extend_from_slice(what.as_bytes());
            patch.extend_from_slice(mode.as_git().as_bytes());
            patch.push(b'\n');
        };
        match (self.before.map(|version| version.mode), self.after.map(|version| version.mode)) {
            (Some(old), None) => line("deleted file mode ", old),
            (None, Some(new)) => line("new file mode ", new),
            (Some(old), Some(new)) if old != new => {
                line("old mode ", old);
                line("new mode ", new);
            }
            _ => {}
        }
    }

    fn write_origin(&self, old: &RelPath, before: &[u8], after: &[u8], patch: &mut Vec<u8>) {
        let percent = match self.change.content {
            ContentChange::Same => Some(100),
            ContentChange::Text { .. } => similarity(before, after),
            ContentChange::Binary | ContentChange::TooLarge => None,
        };
        if let Some(percent) = percent {
            // Writing to memory does not fail.
            let _ = writeln!(patch, "similarity index {percent}%");
        }
        let verb: &[u8] = if self.kind == ChangeKind::Renamed { b"rename" } else { b"copy" };
        for (which, path) in [(&b" from "[..], old), (b" to ", &self.change.path)] {
            patch.extend_from_slice(&[verb, which, &name(b"", path), b"\n"].concat());
        }
    }
}

/// A version's content as git has it in a patch.
fn content(bytes: &[u8], version: Option<Version>) -> Cow<'_, [u8]> {
    match version.map(|version| version.mode) {
        None => Cow::Borrowed(b""),
        Some(FileMode::Submodule) => Cow::Owned([b"Subproject commit ", bytes, b"\n"].concat()),
        Some(_) => Cow::Borrowed(bytes),
    }
}

fn write_name(mark: &[u8], name: Option<Vec<u8>>, patch: &mut Vec<u8>) {
    patch.extend_from_slice(mark);
    match name {
        None => patch.extend_from_slice(b"/dev/null"),
        Some(name) => {
            let spaced = !name.starts_with(b"\"") && name.contains(&b' ');
            patch.extend_from_slice(&name);
            // Where a name ends that holds a space.
            patch.extend_from_slice(if spaced { b"\t" } else { b"" });
        }
    }
    patch.push(b'\n');
}

fn write_hunk(hunk: &Hunk, patch: &mut Vec<u8>) {
    let range =
        |start: u64, lines: u64| if lines == 1 { start.to_string() } else { format!("{start},{lines}") };
    let (old, new) = (range(hunk.old_start, hunk.old_lines), range(hunk.new_start, hunk.new_lines));
    // Writing to memory does not fail.
    let _ = writeln!(patch, "@@ -{old} +{new} @@");
    for line in &hunk.lines {
        patch.push(match line.kind {
            LineKind::Context => b' ',
            LineKind::Added => b'+',
            LineKind::Removed => b'-',
        });
        patch.extend_from_slice(&line.bytes);
        if !line.bytes.ends_with(b"\n") {
            patch.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

/// A path as it stands in a patch: in quotes, and its bytes as numbers, where something in it cannot be seen for what it is.
fn name(prefix: &[u8], path: &RelPath) -> Vec<u8> {
    let plain = [prefix, path.as_bytes()].concat();
    let visible = std::str::from_utf8(&plain).is_ok_and(|text| text.chars().all(is_visible));
    if visible {
        return plain;
    }
    let mut quoted = vec![b'"'];
    for byte in plain {
        match byte {
            b'"' | b'\\' => quoted.extend_from_slice(&[b'\\', byte]),
            b'\n' => quoted.extend_from_slice(b"\\n"),
            b'\t' => quoted.extend_from_slice(b"\\t"),
            b'\r' => quoted.extend_from_slice(b"\\r"),
            b' '..=b'~' => quoted.push(byte),
            byte => quoted.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
        }
    }
    quoted.push(b'"');
    quoted
}

/// Whether a character is seen and does not move others about.
fn is_visible(character: char) -> bool {
    const TURNS: [std::ops::RangeInclusive<char>; 4] =
        ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}', '\u{feff}'..='\u{feff}'];
    !character.is_control()
        && !matches!(character, '"' | '\\')
        && !TURNS.iter().any(|range| range.contains(&character))
}
