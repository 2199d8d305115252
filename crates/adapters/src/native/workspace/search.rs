//! Searching the files of the workspace: those that may be read without asking.

use std::io::ErrorKind;

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
/// Directories that are searched only where somebody names one.
const NOT_SEARCHED: [&str; 3] = [".git", "node_modules", "target"];
/// So many of them are named; the others are counted.
const NAMED_MAX: usize = 20;

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
    /// What else was not looked into.
    #[serde(skip_serializing_if = "is_nothing")]
    not_searched: NotSearched,
}

#[derive(Default, PartialEq, Serialize, schemars::JsonSchema)]
struct NotSearched {
    /// How many directories, since nobody named them.
    #[serde(skip_serializing_if = "is_none")]
    directories: usize,
    /// The first of those.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    named: Vec<String>,
    /// How many links, pipes and the like.
    #[serde(skip_serializing_if = "is_none")]
    links: usize,
    /// How many files that hold no text.
    #[serde(skip_serializing_if = "is_none")]
    binary: usize,
    /// How many files and directories that cannot be read.
    #[serde(skip_serializing_if = "is_none")]
    unreadable: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

fn is_nothing(not_searched: &NotSearched) -> bool {
    *not_searched == NotSearched::default()
}

/// Searches the text files of the workspace for a regular expression. Directories called `.git`, `node_modules` and `target` are
/// searched only where `path` leads into one.
#[action(crate = "runyard_actions")]
pub(super) async fn search(input: SearchInput, ctx: &Context) -> Result<Found, ActionError> {
    let workspace = ctx.service::<Workspace>()?;
    let pattern = regex::bytes::Regex::new(&input.pattern)
        .map_err(|error| failed(format!("the pattern is no regular expression: {error}")))?;
    let found = ctx.blocking(move || look(&workspace, &input.path, &pattern)).await?;
    found.map_err(|error| failed(format!("cannot search: {error}")))
}

fn look(workspace: &Workspace, path: &str, pattern: &regex::bytes::Regex) -> std::io::Result<Found> {
    let not_searched = NotSearched::default();
    let mut found = Found { matches: Vec::new(), more: false, left_out: 0, not_searched };
    let mut left = vec![(path.trim_matches('/').to_owned(), 0)];
    let mut files = 0;
    'all: while let Some((folder, depth)) = left.pop() {
        let Entries { entries, more } = match beneath::entries(&workspace.root, &folder, FILES_SEARCHED_MAX) {
            Err(error) if depth > 0 => {
                found.not_searched.cannot(&error);
                continue;
            }
            entries => entries?,
        };
        found.more |= more;
        for entry in entries.into_iter().rev() {
            let inner = match folder.as_str() {
                "." | "" => entry.name.clone(),
                folder => format!("{folder}/{}", entry.name),
            };
            match entry.kind {
                EntryKind::Directory if NOT_SEARCHED.contains(&entry.name.as_str()) => {
                    found.not_searched.pass_by(inner);
                }
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
                    match workspace.beginning(&inner) {
                        Ok((bytes, _)) if bytes.contains(&0) => found.not_searched.binary += 1,
                        Ok((bytes, whole)) => {
                            found.more |= !whole;
                            places(&inner, &bytes, pattern, &mut found);
                        }
                        Err(error) => found.not_searched.cannot(&error),
                    }
                }
                EntryKind::Other => found.not_searched.links += 1,
            }
        }
    }
    found.matches.sort();
    Ok(found)
}

impl NotSearched {
    /// A directory that is searched only where somebody names it.
    fn pass_by(&mut self, path: String) {
        self.directories += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(path);
        }
    }

    /// What cannot be read. What went meanwhile holds nothing to be found.
    fn cannot(&mut self, error: &std::io::Error) {
        self.unreadable += usize::from(error.kind() != ErrorKind::NotFound);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b09_what_cannot_be_read_is_counted_and_what_went_meanwhile_is_not() {
        let mut not_searched = NotSearched::default();
        for kind in [ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::Other] {
            not_searched.cannot(&kind.into());
        }
        assert_eq!(not_searched.unreadable, 2);
    }
}
