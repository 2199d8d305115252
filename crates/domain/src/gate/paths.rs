//! Where paths lead, by their text alone: no file is looked at, so a link can lead elsewhere. The sandbox bounds that.

use super::command::Word;

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// Into the workspace: relative to it.
    Inside(String),
    /// Anywhere else.
    Outside(String),
    /// Only the running shell knows.
    Unknown,
}

/// Files and directories that configure agents, commands or Runyard itself, or hold keys.
const PROTECTED: [&str; 21] = [
    ".git",
    ".gitmodules",
    ".gitattributes",
    ".gitconfig",
    "runyard.toml",
    ".runyard",
    ".codex",
    ".claude",
    ".claude.json",
    ".mcp.json",
    "mcp.json",
    "opencode.json",
    "opencode.jsonc",
    ".opencode",
    ".gemini",
    ".cursor",
    ".vscode",
    ".husky",
    ".aider.conf.yml",
    "agents.md",
    "claude.md",
];

/// Files and directories that hold keys.
const SENSITIVE: [&str; 13] = [
    ".ssh",
    ".aws",
    ".gnupg",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".kube",
    ".docker",
    ".git-credentials",
    "id_rsa",
    "id_ed25519",
    "credentials.json",
    "shadow",
];

/// The path of a request relative to the workspace, or nothing if it leads outside.
pub(super) fn inside(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let leaves = path.is_empty() || path.starts_with(['/', '~']) || parts.contains(&"..");
    (!leaves).then(|| parts.join("/"))
}

/// Where a word of a command leads from a directory; without one, the directory is not known.
pub(super) fn locate(directory: Option<&str>, word: &Word) -> Spot {
    match word {
        Word::Expanding(text) if is_home(text) => Spot::Outside(text.clone()),
        Word::Expanding(_) => Spot::Unknown,
        Word::Literal(text) if text.starts_with('/') => Spot::Outside(normal(text)),
        Word::Literal(text) => match directory {
            Some(directory) => join(directory, text),
            None => Spot::Unknown,
        },
    }
}

/// Whether it is somebody's home or below, and not a directory that the shell was in.
fn is_home(text: &str) -> bool {
    text.strip_prefix('~')
        .is_some_and(|rest| !rest.starts_with(|c: char| matches!(c, '+' | '-') || c.is_ascii_digit()))
}

fn join(directory: &str, path: &str) -> Spot {
    let joined = normal(&format!("{directory}/{path}"));
    let climbs = joined == ".." || joined.starts_with("../");
    if joined.starts_with(['/', '~']) || climbs { Spot::Outside(joined) } else { Spot::Inside(joined) }
}

/// The path without `.`, `..` and empty parts, as far as its text says.
pub(super) fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let absolute = path.starts_with('/');
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        let above = parts.last().is_some_and(|last| *last != "..");
        match part {
            ".." if above => drop(parts.pop()),
            ".." if absolute => {}
            part => parts.push(part),
        }
    }
    format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"))
}

/// The part of the path that makes it protected.
pub(super) fn protected(path: &str) -> Option<&str> {
    path.split('/').find(|part| {
        let part = part.to_ascii_lowercase();
        PROTECTED.contains(&part.as_str()) || is_environment(&part)
    })
}

/// Whether it configures agents, commands or Runyard itself, or holds keys: such a change counts only where a person chose that very
/// file.
pub fn is_protected(path: &str) -> bool {
    protected(path).is_some()
}

/// Whether reading it can give keys away.
pub(super) fn is_sensitive(path: &str) -> bool {
    path.split('/').any(|part| {
        let part = part.to_ascii_lowercase();
        SENSITIVE.contains(&part.as_str()) || is_environment(&part)
    })
}

fn is_environment(part: &str) -> bool {
    part == ".envrc" || part == ".env" || part.starts_with(".env.")
}
