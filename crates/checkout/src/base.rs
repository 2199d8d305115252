//! What a checkout began as: every file with its stamp, and where its content is found later.
//!
//! It is kept in a directory of the run's own that lies outside the checkout, where no agent writes. It holds no content itself;
//! [`crate::Contents`] gives that.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::repository::borrowed_from;
use crate::{CheckoutError, ContentId, FileMode, RelPath};

/// How long one line of it is at most.
const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How many files it lists at most.
const ENTRIES_MAX: u64 = 5_000_000;

const MANIFEST: &str = "base.jsonl";
const DRAFT: &str = "base.draft";
/// Where what git does not have is kept, below the base's directory.
pub(crate) const KEPT: &str = "kept";
/// The names that the checkout's repository began with, below the base's directory.
pub(crate) const REFS: &str = "refs";
/// The repository of our own that borrows the workspace's objects, below the base's directory.
pub(crate) const GIT: &str = "git";

/// Tells whether a file is still the same: nobody can set when it was last changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// How long it is.
    pub bytes: u64,
    /// When its content was last written, in nanoseconds, as it claims.
    pub modified_ns: i64,
    /// When anything about it last changed, in nanoseconds.
    pub changed_ns: i64,
    /// Which file of the file system it is.
    pub inode: u64,
}

impl Stamp {
    pub(crate) fn of(stat: &Stat) -> Stamp {
        let time = |seconds: i64, nanoseconds: i64| {
            seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
        };
        Stamp {
            bytes: stat.st_size as u64,
            modified_ns: time(stat.st_mtime, stat.st_mtime_nsec as i64),
            changed_ns: time(stat.st_ctime, stat.st_ctime_nsec as i64),
            inode: stat.st_ino,
        }
    }
}

/// Names an object of git.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Oid(Box<str>);

impl Oid {
    /// Takes what git writes for one.
    pub fn parse(text: &str) -> Option<Oid> {
        let plain = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (plain && matches!(text.len(), 40 | 64)).then(|| Oid(text.into()))
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Oid {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
        Oid(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
    }

    /// It, without letters.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let value = |digit: u8| if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 };
        self.0.as_bytes().chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
    }

    /// It, as git writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Oid {
    type Error = CheckoutError;

    fn try_from(text: String) -> Result<Self, CheckoutError> {
        Oid::parse(&text).ok_or(CheckoutError::Damaged("a name of an object is none"))
    }
}

/// Where the content of a file at the beginning is found later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The repository has it, byte for byte.
    Git(Oid),
    /// A second copy is kept.
    Kept(ContentId),
    /// It is a link, and leads there.
    Link(#[serde(with = "bytes_as_text")] Vec<u8>),
    /// It is another repository, at that commit.
    Submodule(Oid),
}

/// One file that was there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Where.
    pub path: RelPath,
    /// What it was.
    pub mode: FileMode,
    /// How long its content was.
    pub bytes: u64,
    /// The checkout's own file, as it was left. A submodule's says nothing.
    pub stamp: Stamp,
    /// Where its content is.
    pub source: Source,
}

/// Whose objects a base borrows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Borrowed {
    /// The workspace's directory of objects. It is the person's, and only read.
    #[serde(with = "path_as_bytes")]
    pub objects: PathBuf,
    /// How its objects are named.
    pub format: ObjectFormat,
}

/// How a repository names its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectFormat {
    /// By SHA-1.
    Sha1,
    /// By SHA-256.
    Sha256,
}

/// What a checkout began as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// Stands for all of it.
    pub id: String,
    /// The commit that the person's work was based on, where there was one.
    pub head: Option<String>,
    /// Where the repository's objects are, where it was one.
    pub git: Option<Borrowed>,
    /// What is ignored besides what `.gitignore` files say: lines of the repository's own and of the person's.
    pub exclude: Vec<u8>,
    /// By path.
    pub entries: Vec<Entry>,
}

/// The directories of objects that a checkout borrows, as its base says.
pub fn borrowed(base_dir: &Path) -> Result<Vec<PathBuf>, CheckoutError> {
    let file = File::open(base_dir.join(MANIFEST)).map_err(|error| manifest("read", error))?;
    let head: Head = line(&mut BufReader::new(file))?.ok_or(CheckoutError::Damaged("it is empty"))?;
    Ok(head.git.map(|git| borrowed_from(&git.objects)).unwrap_or_default())
}

/// The first line of the manifest.
#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    id: String,
    head: Option<String>,
    git: Option<Borrowed>,
    #[serde(with = "bytes_as_text")]
    exclude: Vec<u8>,
    entries: u64,
}

const VERSION: u32 = 1;

impl Base {
    /// Puts one together. Entries are sorted by it.
    pub fn new(
        head: Option<String>,
        git: Option<Borrowed>,
        exclude: Vec<u8>,
        mut entries: Vec<Entry>,
    ) -> Result<Base, CheckoutError> {
        entries.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        if entries.windows(2).any(|pair| pair[0].path == pair[1].path) {
            return Err(CheckoutError::Damaged("a path is there twice"));
        }
        Ok(Base { id: id_of(&entries), head, git, exclude, entries })
    }

    /// The file at a path.
    pub fn find(&self, path: &RelPath) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| entry.path.cmp(path)).ok()?;
        self.entries.get(at)
    }

    /// Reads the base of a directory.
    pub fn read(base_dir: &Path) -> Result<Base, CheckoutError> {
        let file = File::open(base_dir.join(MANIFEST)).map_err(|error| manifest("read", error))?;
        let mut lines = BufReader::new(file);
        let head: Head = line(&mut lines)?.ok_or(CheckoutError::Damaged("it is empty"))?;
        if head.version != VERSION || head.entries > ENTRIES_MAX {
            return Err(CheckoutError::Damaged("it is of another version"));
        }
        let mut entries = Vec::new();
        for _ in 0..head.entries {
            entries.push(line(&mut lines)?.ok_or(CheckoutError::Damaged("its end is missing"))?);
        }
        let base = Base::new(head.head, head.git, head.exclude, entries)?;
        match base.id == head.id {
            true => Ok(base),
            false => Err(CheckoutError::Damaged("it is not what was written")),
        }
    }

    /// Writes the base to a directory, at once and durably.
    pub fn write(&self, base_dir: &Path) -> Result<(), CheckoutError> {
        let failed = |error| manifest("write", error);
        let head = Head {
            version: VERSION,
            id: self.id.clone(),
            head: self.head.clone(),
            git: self.git.clone(),
            exclude: self.exclude.clone(),
            entries: self.entries.len() as u64,
        };
        let draft = base_dir.join(DRAFT);
        let mut to = BufWriter::with_capacity(256 * 1024, File::create(&draft).map_err(failed)?);
        put_line(&mut to, &head)?;
        for entry in &self.entries {
            put_line(&mut to, entry)?;
        }
        let file = to.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        fs::rename(&draft, base_dir.join(MANIFEST)).map_err(failed)?;
        File::open(base_dir).and_then(|directory| directory.sync_all()).map_err(failed)
    }
}

/// The same for the same files with the same content from the same place.
fn id_of(entries: &[Entry]) -> String {
    let mut hasher = Sha256::new();
    for entry in entries {
        hasher.update(entry.path.as_bytes());
        hasher.update(b"\0");
        hasher.update(entry.mode.as_git());
        match &entry.source {
            Source::Git(oid) | Source::Submodule(oid) => hasher.update(oid.as_str()),
            Source::Kept(content) => hasher.update(content.as_bytes()),
            Source::Link(target) => {
                hasher.update((target.len() as u64).to_be_bytes());
                hasher.update(target);
            }
        }
        hasher.update(b"\0");
    }
    ContentId::from_hasher(hasher).to_string()
}

fn line<T: for<'de> Deserialize<'de>>(lines: &mut impl BufRead) -> Result<Option<T>, CheckoutError> {
    let mut bytes = Vec::new();
    let read =
        lines.take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes).map_err(|error| manifest("read", error))?;
    match read {
        0 => Ok(None),
        _ => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|_| CheckoutError::Damaged("a line is not as written")),
    }
}

fn put_line(to: &mut impl Write, value: &impl Serialize) -> Result<(), CheckoutError> {
    let bytes = serde_json::to_vec(value).map_err(|error| manifest("write", error.into()))?;
    to.write_all(&bytes).and_then(|()| to.write_all(b"\n")).map_err(|error| manifest("write", error))
}

fn manifest(doing: &'static str, source: std::io::Error) -> CheckoutError {
    CheckoutError::Io { doing, path: "the checkout's base".to_owned(), source }
}

/// Bytes that mostly are text.
mod bytes_as_text {
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.collect_seq(bytes),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        Ok(match Written::deserialize(deserializer)? {
            Written::Text(text) => text.into_bytes(),
            Written::Bytes(bytes) => bytes,
        })
    }
}

/// A path of the system, which need not be text.
mod path_as_bytes {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        super::bytes_as_text::serialize(path.as_os_str().as_bytes(), serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        super::bytes_as_text::deserialize(deserializer).map(|bytes| OsString::from_vec(bytes).into())
    }
}
