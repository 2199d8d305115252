//! Which new files the workspace's own rules say to ignore.
//!
//! The rules are those of `.gitignore` files in the checkout as they are now, as git has it, and those that the base brings along from
//! outside the tree. A `.gitignore` that was removed counts as it was: otherwise removing it would make a change of everything that a
//! build leaves behind. What lies in the checkout's own `.git` is not asked, and what was there at the beginning is never ignored.
//! Rules that cannot be understood, are no text or are too many ignore nothing.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::{Base, CheckoutError, Contents, Kind, RelPath, Root};

/// How long a file of rules is at most.
const RULES_BYTES_MAX: u64 = 256 * 1024;
/// How many rules are taken in one walk at most, of all files together.
const RULES_MAX: usize = 20_000;
/// What a file of rules is called.
const RULES: &[u8] = b".gitignore";

/// The rules on the way from the root to where a walk is.
pub(crate) struct Ignored {
    exclude: Gitignore,
    levels: Vec<Level>,
    rules_left: usize,
}

/// The rules of one directory; none for the root.
struct Level {
    directory: Option<RelPath>,
    rules: Gitignore,
}

impl Ignored {
    /// At the root.
    pub(crate) fn at_root(
        base: &Base,
        contents: &mut Contents,
        checkout: &Root,
    ) -> Result<Ignored, CheckoutError> {
        let mut rules_left = RULES_MAX;
        let exclude = rules(&base.exclude, &mut rules_left);
        let mut ignored = Ignored { exclude, levels: Vec::new(), rules_left };
        ignored.enter(None, base, contents, checkout)?;
        Ok(ignored)
    }

    /// Goes into a directory, out of those that it does not lie in.
    pub(crate) fn enter(
        &mut self,
        directory: Option<&RelPath>,
        base: &Base,
        contents: &mut Contents,
        checkout: &Root,
    ) -> Result<(), CheckoutError> {
        if let Some(directory) = directory {
            self.levels.retain(|level| below(directory, level.directory.as_ref()).is_some());
        }
        let path = match directory {
            Some(directory) => directory.join(RULES)?,
            None => RelPath::parse(RULES)?,
        };
        if let Some(text) = rules_text(&path, base, contents, checkout)? {
            let rules = rules(&text, &mut self.rules_left);
            if !rules.is_empty() {
                self.levels.push(Level { directory: directory.cloned(), rules });
            }
        }
        Ok(())
    }

    /// Whether a new file or directory is ignored, provided that the directories it lies in are not.
    pub(crate) fn matches(&self, path: &RelPath, is_directory: bool) -> bool {
        for level in self.levels.iter().rev() {
            let Some(rest) = below(path, level.directory.as_ref()) else { continue };
            match level.rules.matched(Path::new(OsStr::from_bytes(rest)), is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        self.exclude.matched(path.as_path(), is_directory).is_ignore()
    }
}

/// What is left of a path below a directory; none where it lies elsewhere.
fn below<'a>(path: &'a RelPath, directory: Option<&RelPath>) -> Option<&'a [u8]> {
    match directory {
        None => Some(path.as_bytes()),
        Some(directory) => path.as_bytes().strip_prefix(directory.as_bytes())?.strip_prefix(b"/"),
    }
}

/// The text of a file of rules. A link is never followed for one.
fn rules_text(
    path: &RelPath,
    base: &Base,
    contents: &mut Contents,
    checkout: &Root,
) -> Result<Option<Vec<u8>>, CheckoutError> {
    match checkout.look(path)? {
        Some(found) if found.kind == Kind::File => match checkout.read(path, RULES_BYTES_MAX) {
            Ok(read) => Ok(Some(read.bytes)),
            Err(error) if error.is_missing() || error.is_denied() => Ok(None),
            Err(CheckoutError::FileTooLarge { .. } | CheckoutError::NotAFile { .. }) => Ok(None),
            Err(error) => Err(error),
        },
        Some(_) => Ok(None),
        None => match base.find(path).filter(|entry| entry.bytes <= RULES_BYTES_MAX) {
            Some(entry) => contents.read(entry, RULES_BYTES_MAX).map(Some),
            None => Ok(None),
        },
    }
}

/// Takes rules for as long as some are left to be taken.
fn rules(text: &[u8], left: &mut usize) -> Gitignore {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut builder = GitignoreBuilder::new("");
    for line in text.split(|byte| *byte == b'\n').take(*left) {
        *left -= 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Ok(line) = std::str::from_utf8(line) {
            // One rule that cannot be understood does not take the others with it.
            let _ = builder.add_line(None, &without_alternatives(line));
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Git knows no alternatives in braces.
fn without_alternatives(rule: &str) -> Cow<'_, str> {
    if !rule.contains(['{', '}']) {
        return rule.into();
    }
    let mut plain = String::with_capacity(rule.len() + 4);
    let (mut escaped, mut in_class) = (false, false);
    for character in rule.chars() {
        if matches!(character, '{' | '}') && !escaped && !in_class {
            plain.push('\\');
        }
        in_class = !escaped && (character == '[' || (in_class && character != ']'));
        escaped = !escaped && character == '\\';
        plain.push(character);
    }
    plain.into()
}
