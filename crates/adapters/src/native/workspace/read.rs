//! Reading a file and listing a directory, as far as a model can use it: what is left out is said to be.

use runyard_actions::{ActionError, Context, action};
use runyard_backend::beneath::{self, EntryKind};
use serde::{Deserialize, Serialize};

use super::{FILE_BYTES_MAX, Workspace, failed, here};

/// So much of a file is read for the model.
const READ_BYTES_MAX: usize = 64 * 1024;
/// So many entries of a directory are listed.
const ENTRIES_MAX: usize = 1_000;

#[derive(Deserialize, schemars::JsonSchema)]
struct ReadInput {
    /// The file, from the root of the workspace on.
    path: String,
    /// The first line that is wanted, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    from_line: usize,
    /// How many lines are wanted.
    #[serde(default = "many")]
    #[schemars(range(min = 1, max = 5000))]
    lines: usize,
}

fn first() -> usize {
    1
}

fn many() -> usize {
    2_000
}

/// Reads a text file of the workspace. What is not shown of it is named at the end, in brackets.
#[action(crate = "runyard_actions")]
pub(super) async fn read(input: ReadInput, ctx: &Context) -> Result<String, ActionError> {
    let workspace = ctx.service::<Workspace>()?;
    let path = input.path.clone();
    let (bytes, whole) = ctx
        .blocking(move || workspace.beginning(&path))
        .await?
        .map_err(|error| failed(format!("cannot read {}: {error}", input.path)))?;
    Ok(excerpt(&String::from_utf8_lossy(&bytes), whole, input.from_line, input.lines))
}

/// Some lines of a text, which is all of its file or the beginning of it.
fn excerpt(text: &str, whole: bool, from: usize, wanted: usize) -> String {
    let all = text.lines().count();
    let before = from.saturating_sub(1);
    let (mut shown, mut last, mut cut) = (String::new(), before, None);
    for line in text.lines().skip(before).take(wanted) {
        let room = READ_BYTES_MAX.saturating_sub(shown.len() + 1);
        if last > before {
            if line.len() > room {
                // It comes whole when it is the first one.
                break;
            }
            shown.push('\n');
        }
        let end = line.floor_char_boundary(READ_BYTES_MAX);
        shown.push_str(&line[..end]);
        last += 1;
        if end < line.len() {
            cut = Some(format!(
                "of line {last} the last {} of {} bytes are left out",
                line.len() - end,
                line.len()
            ));
            break;
        }
    }
    let mut left_out = Vec::new();
    if last == before {
        if whole && all > 0 {
            left_out.push(format!("it has {all} lines"));
        }
    } else if whole && last < all {
        left_out.push(format!("lines {from} to {last} of {all}"));
    } else if !whole {
        left_out.push(format!("lines {from} to {last}"));
    }
    left_out.extend(cut);
    if !whole {
        let broken = if last == all && !text.ends_with('\n') {
            format!(", and line {last} is cut there")
        } else {
            String::new()
        };
        left_out.push(format!("only the first {FILE_BYTES_MAX} bytes of it can be read{broken}"));
    }
    if !left_out.is_empty() {
        shown.push_str(&format!("\n[{}]", left_out.join("; ")));
    }
    shown
}

#[derive(Deserialize, schemars::JsonSchema)]
struct ListInput {
    /// The directory, from the root of the workspace on.
    #[serde(default = "here")]
    path: String,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Listing {
    /// Their names, in order. Those of directories end with a slash.
    entries: Vec<String>,
    /// Whether there are more, behind these.
    more: bool,
}

/// Lists a directory of the workspace.
#[action(crate = "runyard_actions")]
pub(super) async fn list(input: ListInput, ctx: &Context) -> Result<Listing, ActionError> {
    let workspace = ctx.service::<Workspace>()?;
    let path = input.path.clone();
    let found = ctx
        .blocking(move || beneath::entries(&workspace.root, &path, ENTRIES_MAX))
        .await?
        .map_err(|error| failed(format!("cannot list {}: {error}", input.path)))?;
    let name = |entry: beneath::Entry| match entry.kind {
        EntryKind::Directory => format!("{}/", entry.name),
        EntryKind::File | EntryKind::Other => entry.name,
    };
    Ok(Listing { entries: found.entries.into_iter().map(name).collect(), more: found.more })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b09_what_is_read_is_all_of_it_or_says_what_is_not() {
        assert_eq!(excerpt("a\nb\n", true, 1, 2_000), "a\nb");
        assert_eq!(excerpt("", true, 1, 2_000), "");
        assert_eq!(excerpt("a\nb\nc", true, 2, 1), "b\n[lines 2 to 2 of 3]");
        assert_eq!(excerpt("a\nb\nc", true, 3, 9), "c");
        assert_eq!(excerpt("a\nb\nc", true, 4, 9), "\n[it has 3 lines]");
        let (x, y) = ("x".repeat(READ_BYTES_MAX), "y".repeat(READ_BYTES_MAX + 7));
        assert_eq!(excerpt(&x, true, 1, 1), x, "exactly as much as there is room for");
        let cut = format!("{}\n[of line 1 the last 7 of 65543 bytes are left out]", &y[..READ_BYTES_MAX]);
        assert_eq!(excerpt(&y, true, 1, 9), cut, "a file of one line");
        // In the midst of a file no line is shown in part that comes whole with the next reading.
        let text = format!("a\n{x}\nb");
        assert_eq!(excerpt(&text, true, 1, 9), "a\n[lines 1 to 1 of 3]");
        assert_eq!(excerpt(&text, true, 2, 9), format!("{x}\n[lines 2 to 2 of 3]"));
        let text = format!("a\n{y}\nb");
        assert_eq!(excerpt(&text, true, 1, 9), "a\n[lines 1 to 1 of 3]");
        let cut = "[lines 2 to 2 of 3; of line 2 the last 7 of 65543 bytes are left out]";
        assert_eq!(excerpt(&text, true, 2, 9), format!("{}\n{cut}", &y[..READ_BYTES_MAX]));
        assert_eq!(excerpt(&text, true, 3, 9), "b");
        let beginning = "[lines 1 to 2; only the first 4194304 bytes of it can be read";
        assert_eq!(excerpt("a\nb\n", false, 1, 9), format!("a\nb\n{beginning}]"));
        assert_eq!(excerpt("a\nb", false, 1, 9), format!("a\nb\n{beginning}, and line 2 is cut there]"));
    }

    #[test]
    fn b09_reading_on_from_where_it_ended_shows_all_of_a_file() {
        let lines: Vec<String> = (0..3_000).map(|n| format!("{n} {}", "ü".repeat(n % 97))).collect();
        let text = lines.join("\n");
        let (mut read, mut from) = (Vec::new(), 1);
        while from <= lines.len() {
            let shown = excerpt(&text, true, from, 5_000);
            assert!(shown.len() <= READ_BYTES_MAX + 64);
            let shown = shown.split("\n[").next().unwrap();
            read.extend(shown.split('\n').map(str::to_owned));
            from = read.len() + 1;
        }
        assert!(read == lines);
    }
}
