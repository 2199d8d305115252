//! Searching the files of the workspace: those that may be read without asking.

use runyard_actions::{ActionError, Context, action};
use runyard_backend::beneath::{self, Entries, EntryKind};
use serde::{Deserialize, Serialize};

use super::{Workspace, failed, here};

/// So many files are looked through.
const FILES_SEARCHED_MAX: usize = 20_000;
/// So deep directories are gone into.
const DEPTH_MAX: usize = 64;
/// So many places are found.
const MATCHES_MAX: usize = 200;
/// The longest line that is shown of a place.
const MATCH_BYTES_MAX: usize = 300;
/// Directories that nobody wants searched.
const NOT_SEARCHED: [&str; 3] = [".git", "node_modules", "target"];

#[derive(Deserialize, schemars::JsonSchema)]
struct SearchInput {
    /// A regular expression.
    #[schemars(length(min = 1, max = 1000))]
    pattern: String,
    /// The directory, from the root of the workspace on.
    #[serde(default = "here")]
    path: String,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Found {
    /// Each as `path:line: text`.
    matches: Vec<String>,
    /// Whether there may be more: there are too many, or something is too large or too deep to be looked through.
    more: bool,
    /// How many files were left out, since reading them is not allowed without asking.
    #[serde(skip_serializing_if = "is_none")]
    left_out: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Searches the text files of the workspace for a regular expression.
#[action(crate = "runyard_actions")]
pub(super) async fn search(input: SearchInput, ctx: &Context) -> Result<Found, ActionError> {
    let workspace = ctx.service::<Workspace>()?;
    let pattern = regex::bytes::Regex::new(&input.pattern)
        .map_err(|error| failed(format!("the pattern is no regular expression: {error}")))?;
    let found = ctx.blocking(move || look(&workspace, &input.path, &pattern)).await?;
    found.map_err(|error| failed(format!("cannot search: {error}")))
}

fn look(workspace: &Workspace, path: &str, pattern: &regex::bytes::Regex) -> std::io::Result<Found> {
    let mut found = Found { matches: Vec::new(), more: false, left_out: 0 };
    let mut left = vec![(path.trim_matches('/').to_owned(), 0)];
    let mut files = 0;
    'all: while let Some((folder, depth)) = left.pop() {
        let Entries { entries, more } = match beneath::entries(&workspace.root, &folder, FILES_SEARCHED_MAX) {
            // One that went meanwhile holds nothing to be found.
            Err(_) if depth > 0 => continue,
            entries => entries?,
        };
        found.more |= more;
        for entry in entries.into_iter().rev() {
            let inner = match folder.as_str() {
                "." | "" => entry.name.clone(),
                folder => format!("{folder}/{}", entry.name),
            };
            match entry.kind {
                EntryKind::Directory if NOT_SEARCHED.contains(&entry.name.as_str()) => {}
                EntryKind::Directory if depth >= DEPTH_MAX => found.more = true,
                EntryKind::Directory => left.push((inner, depth + 1)),
                EntryKind::File => {
                    files += 1;
                    if files > FILES_SEARCHED_MAX || found.matches.len() >= MATCHES_MAX {
                        found.more = true;
                        break 'all;
                    }
                    // A rule is about each file, and this call was judged by its directory alone.
                    if !workspace.sight.may_read(&inner) {
                        found.left_out += 1;
                        continue;
                    }
                    let (bytes, whole) = workspace.beginning(&inner).unwrap_or((Vec::new(), true));
                    if !bytes.contains(&0) {
                        found.more |= !whole;
                        places(&inner, &bytes, pattern, &mut found);
                    }
                }
                EntryKind::Other => {}
            }
        }
    }
    found.matches.sort();
    Ok(found)
}

fn places(path: &str, bytes: &[u8], pattern: &regex::bytes::Regex, found: &mut Found) {
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
        if !pattern.is_match(line) {
            continue;
        }
        if found.matches.len() >= MATCHES_MAX {
            found.more = true;
            return;
        }
        let mut text = String::from_utf8_lossy(line).into_owned();
        if text.len() > MATCH_BYTES_MAX {
            text.truncate(text.floor_char_boundary(MATCH_BYTES_MAX));
            text.push('…');
        }
        found.matches.push(format!("{path}:{number}: {text}"));
    }
}
