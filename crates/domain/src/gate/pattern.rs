//! Patterns of rules: globs on paths, hosts and names, and words of commands.
//!
//! `*` stands for any characters and `?` for one; nothing else is special. A relative path pattern never matches an absolute
//! path, so a rule about the workspace says nothing about the rest of the machine.

use super::command::{SimpleCommand, Word};

/// The longest pattern, in characters.
pub const PATTERN_CHARS_MAX: usize = 512;

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// Nothing in it.
    #[error("a pattern is not empty; leave `match` out to match everything")]
    Empty,
    /// Too long.
    #[error("a pattern has at most {PATTERN_CHARS_MAX} characters")]
    TooLong,
    /// Control characters never match what they seem to.
    #[error("a pattern holds no control characters")]
    ControlCharacter,
    /// A path that leaves where it begins.
    #[error("a path pattern is written without `.`, `..` and empty parts, as in `src/**` or `/etc/hosts`")]
    Path,
    /// `**` beside other characters.
    #[error("`**` stands alone between slashes, as in `src/**` or `**/*.md`")]
    Stars,
    /// Not a host.
    #[error("a host pattern is a name or an address without scheme, port and path, as in `*.example.com`")]
    Host,
    /// `**` in something that has no parts.
    #[error("`**` is for paths; in commands a last `*` already stands for all further arguments")]
    Words,
}

/// How far something matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// It does not.
    No,
    /// It may: part of it is not known.
    Maybe,
    /// It does.
    Yes,
}

impl Fit {
    pub(super) const fn of(matches: bool) -> Self {
        if matches { Fit::Yes } else { Fit::No }
    }
}

/// What kind of thing a pattern is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Path,
    Host,
    Command,
    Words,
    Text,
}

/// A pattern that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    text: String,
    words: Vec<String>,
}

impl Pattern {
    pub(super) fn new(shape: Shape, text: &str) -> Result<Self, InvalidPattern> {
        if text.trim().is_empty() {
            return Err(InvalidPattern::Empty);
        }
        if text.chars().nth(PATTERN_CHARS_MAX).is_some() {
            return Err(InvalidPattern::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(InvalidPattern::ControlCharacter);
        }
        let words = match shape {
            Shape::Path => path_parts(text)?,
            Shape::Host => vec![host(text)?],
            Shape::Command | Shape::Words => words(text)?,
            Shape::Text => vec![text.to_owned()],
        };
        Ok(Pattern { text: text.to_owned(), words })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it begins at the root of the machine.
    pub(super) fn is_absolute(&self) -> bool {
        self.text.starts_with('/')
    }

    /// Whether one of its words is exactly this one.
    pub(super) fn names(&self, word: &str) -> bool {
        !word.contains(['*', '?']) && self.words.iter().any(|mine| mine == word)
    }

    /// Whether the path matches.
    pub(super) fn matches_path(&self, path: &str) -> bool {
        if self.is_absolute() != path.starts_with('/') {
            return false;
        }
        let parts: Vec<&str> = parts_of(path).collect();
        if !self.text.contains('/') && self.text != "**" {
            return parts.last().is_some_and(|name| wildcard(&self.text, name));
        }
        parts_match(&self.words, &parts)
    }

    /// Whether the path, or a directory that it is in, matches.
    pub(super) fn covers_path(&self, path: &str) -> bool {
        self.covers(path, false)
    }

    /// Whether it matches a directory that an absolute path leads through, from wherever that lies on.
    pub(super) fn covers_path_below(&self, path: &str) -> bool {
        self.covers(path, true)
    }

    fn covers(&self, path: &str, is_below: bool) -> bool {
        let is_anywhere = is_below && !self.is_absolute();
        if self.is_absolute() != path.starts_with('/') && !is_anywhere {
            return false;
        }
        let parts: Vec<&str> = parts_of(path).collect();
        if !self.text.contains('/') && self.text != "**" {
            return parts.iter().any(|name| wildcard(&self.text, name));
        }
        reach(&self.words, &parts, is_anywhere).contains(&true)
    }

    /// Whether a path that a shell finds by this text may be one that the pattern covers, or a directory above one.
    pub(super) fn may_meet(&self, glob: &str) -> bool {
        if !self.text.contains('/') && self.text != "**" {
            return parts_of(glob).any(|part| may_be_same(&self.text, part));
        }
        let fixed = self.words.iter().take_while(|part| *part != "**");
        fixed.zip(parts_of(glob)).all(|(mine, part)| may_be_same(mine, part))
    }

    /// Whether something below the directory could match.
    pub(super) fn reaches_below(&self, directory: &str) -> bool {
        if self.is_absolute() != directory.starts_with('/') {
            return false;
        }
        let fixed = self.words.iter().take_while(|part| !part.contains(['*', '?']));
        let floating = !self.text.contains('/');
        floating || parts_of(directory).zip(fixed).all(|(above, mine)| above == mine)
    }

    /// Whether the host matches.
    pub(super) fn matches_host(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let pattern = self.words.first().map_or("", String::as_str);
        match pattern.strip_prefix("*.") {
            _ if pattern == "*" => true,
            // One label or more stand before.
            Some(parent) => {
                name.match_indices('.').any(|(at, _)| at > 0 && labels_match(parent, &name[at + 1..]))
            }
            None => labels_match(pattern, &name),
        }
    }

    /// Whether the text matches.
    pub(super) fn matches_text(&self, text: &str) -> bool {
        wildcard(&self.text, text)
    }

    /// How far the words match, one by one; a last `*` stands for all further ones.
    pub(super) fn fits_words(&self, words: &[Word]) -> Fit {
        fits(&self.words, words)
    }

    /// How far a command matches.
    pub(super) fn fits_command(&self, command: &SimpleCommand) -> Fit {
        let Some(wanted) = self.words.first() else { return Fit::No };
        if let [only] = self.words.as_slice()
            && only == "*"
        {
            return Fit::Yes;
        }
        let Some(program) = &command.program else { return Fit::No };
        let Some(written) = program.literal() else { return Fit::Maybe };
        let name = if wanted.contains('/') { written } else { command.name().unwrap_or(written) };
        if !wildcard(wanted, name) {
            return Fit::No;
        }
        fits(&self.words[1..], &command.arguments)
    }

    /// Whether the program of a command is the one that the pattern means, and not another one of its name: without a path it means
    /// what the system installed, never a file that an agent may have written.
    pub(super) fn means_program_of(&self, command: &SimpleCommand) -> bool {
        let wanted = self.words.first().map_or("", String::as_str);
        wanted == "*" || wanted.contains('/') || command.is_installed()
    }

    /// The program that a command pattern is about.
    pub(super) fn program(&self) -> &str {
        let program = self.words.first().map_or("", String::as_str);
        program.rsplit('/').next().unwrap_or(program)
    }

    /// The words of a command pattern after its program.
    pub(super) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }
}

fn fits(pattern: &[String], words: &[Word]) -> Fit {
    // After a word that may become several or none, positions are no longer known.
    let mut shifted = false;
    for (at, wanted) in pattern.iter().enumerate() {
        if wanted == "*" && at + 1 == pattern.len() {
            return Fit::Yes;
        }
        let fit = match words.get(at) {
            Some(Word::Literal(text)) => Fit::of(wildcard(wanted, text)),
            Some(Word::Expanding(_)) if wanted == "*" => Fit::Yes,
            Some(Word::Expanding(_)) => Fit::Maybe,
            None => Fit::No,
        };
        shifted |= matches!(words.get(at), Some(Word::Expanding(_)));
        match fit {
            Fit::Yes => {}
            Fit::Maybe => return Fit::Maybe,
            Fit::No if shifted => return Fit::Maybe,
            Fit::No => return Fit::No,
        }
    }
    let more = words.get(pattern.len()..).unwrap_or_default();
    if more.is_empty() {
        Fit::Yes
    } else if shifted || more.iter().any(|word| word.literal().is_none()) {
        Fit::Maybe
    } else {
        Fit::No
    }
}

fn path_parts(text: &str) -> Result<Vec<String>, InvalidPattern> {
    let relative = text.strip_prefix('/').unwrap_or(text);
    relative
        .split('/')
        .map(|part| match part {
            "" | "." | ".." => Err(InvalidPattern::Path),
            "**" => Ok(part.to_owned()),
            part if part.contains("**") => Err(InvalidPattern::Stars),
            part => Ok(part.to_owned()),
        })
        .collect()
}

fn host(text: &str) -> Result<String, InvalidPattern> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.contains("**")
            && label.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '*' | '?'))
    };
    if is_address || name.split('.').all(is_label) { Ok(name) } else { Err(InvalidPattern::Host) }
}

fn words(text: &str) -> Result<Vec<String>, InvalidPattern> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if words.iter().any(|word| word.contains("**")) { Err(InvalidPattern::Words) } else { Ok(words) }
}

fn labels_match(pattern: &str, name: &str) -> bool {
    let (wanted, labels): (Vec<&str>, Vec<&str>) = (pattern.split('.').collect(), name.split('.').collect());
    wanted.len() == labels.len()
        && wanted.iter().zip(&labels).all(|(wanted, label)| !label.is_empty() && wildcard(wanted, label))
}

fn parts_of(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

/// Matches part by part; `**` stands for any number of parts, also none.
fn parts_match(pattern: &[String], parts: &[&str]) -> bool {
    reach(pattern, parts, false)[parts.len()]
}

/// Whether two texts, in which `*` and `?` stand for others, may be the same.
fn may_be_same(a: &str, b: &str) -> bool {
    let is_wild = |text: &str| text.contains(['*', '?', '[']);
    match (is_wild(a), is_wild(b)) {
        _ if a.contains('[') || b.contains('[') => true,
        (true, true) => true,
        (true, false) => wildcard(a, b),
        (false, _) => wildcard(b, a),
    }
}

/// Up to which parts the pattern matches, from the first one on or, `anywhere`, from any.
fn reach(pattern: &[String], parts: &[&str], anywhere: bool) -> Vec<bool> {
    // reached[n]: the pattern so far matches parts up to the n-th.
    let mut reached = vec![anywhere; parts.len() + 1];
    reached[0] = true;
    for wanted in pattern {
        let mut next = vec![false; parts.len() + 1];
        let mut any = false;
        for at in 0..=parts.len() {
            any |= reached[at];
            next[at] = if wanted == "**" {
                any
            } else {
                at > 0 && reached[at - 1] && wildcard(wanted, parts[at - 1])
            };
        }
        reached = next;
    }
    reached
}

/// Whether the text matches a pattern of `*` and `?`, in time proportional to both lengths multiplied.
pub(super) fn wildcard(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern == text;
    }
    let (mut pattern, mut text) = (pattern, text);
    let mut star: Option<(&str, &str)> = None;
    while let Some(c) = text.chars().next() {
        match pattern.chars().next() {
            Some('*') => {
                pattern = &pattern[1..];
                star = Some((pattern, text));
            }
            Some(wanted) if wanted == '?' || wanted == c => {
                pattern = &pattern[wanted.len_utf8()..];
                text = &text[c.len_utf8()..];
            }
            _ => {
                // The star is read again, and takes one character more.
                let Some((behind, from)) = star else { return false };
                let from = &from[from.chars().next().map_or(0, char::len_utf8)..];
                star = Some((behind, from));
                (pattern, text) = (behind, from);
            }
        }
    }
    pattern.chars().all(|c| c == '*')
}
