//! Paths below a root, as bytes: names need not be text.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// How long a path is at most, as the kernel has it.
const PATH_BYTES_MAX: usize = 4_095;
/// How long each of its names is at most.
const NAME_BYTES_MAX: usize = 255;

/// A path below a root: no `..`, no `.`, no empty name, not absolute. What it names is looked up beneath the root only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Box<[u8]>);

/// Why bytes are no path below a root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// It is empty, or one of its names is.
    #[error("a path has an empty name")]
    Empty,
    /// It leads elsewhere.
    #[error("a path leads out of its root or to itself")]
    Leads,
    /// It holds a zero byte.
    #[error("a path holds a zero byte")]
    Zero,
    /// It is longer than the system takes.
    #[error("a path is too long")]
    TooLong,
}

impl RelPath {
    /// Takes bytes for a path below a root.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadPath> {
        if bytes.len() > PATH_BYTES_MAX {
            return Err(BadPath::TooLong);
        }
        for name in bytes.split(|byte| *byte == b'/') {
            match name {
                b"" => return Err(BadPath::Empty),
                b"." | b".." => return Err(BadPath::Leads),
                name if name.contains(&0) => return Err(BadPath::Zero),
                name if name.len() > NAME_BYTES_MAX => return Err(BadPath::TooLong),
                _ => {}
            }
        }
        Ok(RelPath(bytes.into()))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// It, for the system's calls.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// Its names, from the root on.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    /// The directory it lies in; none where that is the root.
    pub fn parent(&self) -> Option<RelPath> {
        let end = self.0.iter().rposition(|byte| *byte == b'/')?;
        Some(RelPath(self.0[..end].into()))
    }

    /// Its last name.
    pub fn name(&self) -> &[u8] {
        self.names().next_back().unwrap_or_default()
    }

    /// It, with a further name.
    pub fn join(&self, name: &[u8]) -> Result<RelPath, BadPath> {
        RelPath::parse(&[&self.0[..], b"/", name].concat())
    }

    /// What names it in the API.
    pub fn id(&self) -> FileId {
        FileId::of(self)
    }

    /// Whether it lies in a repository's own directory, which nothing is ever written to.
    pub fn is_git(&self) -> bool {
        self.names().any(is_git_name)
    }

    /// Whether it holds an environment, and so most likely secrets: `.env` and its kin.
    pub fn is_environment(&self) -> bool {
        is_environment(self.name())
    }

    /// Whether it configures who may do what: such a change counts only where a person chose that very file.
    pub fn is_protected(&self) -> bool {
        self.is_git() || runyard_domain::gate::is_protected(&String::from_utf8_lossy(&self.0))
    }
}

/// `.git` in every spelling that some file system takes for it.
fn is_git_name(name: &[u8]) -> bool {
    let trimmed = name.trim_ascii_end();
    let end = trimmed.iter().rposition(|byte| *byte != b'.').map_or(0, |at| at + 1);
    let plain = &trimmed[..end];
    plain.eq_ignore_ascii_case(b".git") || plain.eq_ignore_ascii_case(b"git~1")
}

/// `.env` and its kin, but not the examples that hold no secret.
fn is_environment(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    let example = [b".example".as_slice(), b".sample", b".template"].iter().any(|end| lower.ends_with(end));
    (lower == b".env" || lower.starts_with(b".env.") || lower == b".envrc") && !example
}

/// As text, with what is no text or cannot be seen escaped.
impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    '\\' => f.write_str("\\\\")?,
                    character if character.is_control() => write!(f, "{}", character.escape_default())?,
                    character => write!(f, "{character}")?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// As text, or as the numbers of its bytes: every path survives, whatever its bytes.
impl Serialize for RelPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.collect_seq(self.0.iter()),
        }
    }
}

impl<'de> Deserialize<'de> for RelPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            Bytes(Vec<u8>),
        }
        let bytes = match Written::deserialize(deserializer)? {
            Written::Text(text) => text.into_bytes(),
            Written::Bytes(bytes) => bytes,
        };
        RelPath::parse(&bytes).map_err(serde::de::Error::custom)
    }
}

/// Names a file in a diff: the same for the same path, and plain enough for an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileId(String);

impl FileId {
    fn of(path: &RelPath) -> Self {
        let digest = Sha256::digest(path.as_bytes());
        FileId(digest[..10].iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// It, as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn c15_what_leads_elsewhere_is_no_path_below_a_root() {
        for (bytes, wrong) in [
            (&b""[..], BadPath::Empty),
            (b"/etc/passwd", BadPath::Empty),
            (b"a//b", BadPath::Empty),
            (b"a/", BadPath::Empty),
            (b"..", BadPath::Leads),
            (b"a/../b", BadPath::Leads),
            (b"./a", BadPath::Leads),
            (b"a\0b", BadPath::Zero),
            (&[b'a'; 256], BadPath::TooLong),
            (&b"a/".repeat(2_048), BadPath::TooLong),
        ] {
            assert_eq!(RelPath::parse(bytes), Err(wrong), "{}", String::from_utf8_lossy(bytes));
        }
        for fine in ["a", "a/b", "...", "..a", "a/.b", "-rf", " "] {
            assert_eq!(path(fine).to_string(), fine);
        }
    }

    #[test]
    fn a_name_that_is_no_text_is_shown_escaped_and_survives_being_stored() {
        let odd = RelPath::parse(b"caf\xe9/new\nline\\x").unwrap();
        assert_eq!(odd.to_string(), "caf\\xe9/new\\nline\\\\x");
        let stored = serde_json::to_string(&odd).unwrap();
        assert_eq!(serde_json::from_str::<RelPath>(&stored).unwrap(), odd);
        assert!(serde_json::from_str::<RelPath>("\"../a\"").is_err());
        assert_eq!((odd.name(), odd.parent().unwrap().as_bytes()), (&b"new\nline\\x"[..], &b"caf\xe9"[..]));
        assert_eq!(path("a").parent(), None);
        assert_ne!(odd.id(), path("caf").id());
    }

    #[test]
    fn c11_what_configures_who_may_do_what_is_protected_in_every_spelling() {
        for protected in [
            ".git",
            ".git/config",
            ".GIT/hooks/pre-commit",
            "sub/.git",
            ".git./x",
            "git~1/config",
            "runyard.toml",
            "sub/Runyard.toml",
            ".env",
            ".env.local",
            "app/.ENV",
            ".envrc",
            ".mcp.json",
            ".claude/settings.json",
            ".codex/config.toml",
            ".gitmodules",
            ".gitattributes",
            "AGENTS.md",
            "sub/.runyard/x",
            ".husky/pre-commit",
            ".env.example",
            ".vscode/tasks.json",
        ] {
            assert!(path(protected).is_protected(), "{protected}");
        }
        for plain in [".gitignore", "git", "a.git", "src/env", "environment", "runyard"] {
            assert!(!path(plain).is_protected(), "{plain}");
        }
        assert!(path("a/.Git/b").is_git() && !path("runyard.toml").is_git());
    }
}
