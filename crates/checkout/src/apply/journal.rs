//! The journal of one plan: what was there, what will be there, and how far it came.
//!
//! It is a directory of three files. `contents` holds everything that is taken away and everything that comes, one after the other;
//! `plan` says what belongs where; `phase` is replaced at each step. The first two are durable before `plan` has its name, and that is
//! before anything of the person's changes.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};

use super::folders::{Does, Folder};
use super::place::{Held, held_of};
use super::{ApplyError, Edit, Plan, State};
use crate::{CheckoutError, ContentId, RelPath, Root};

const VERSION: u32 = 1;
const CONTENTS: &str = "contents";
const PLAN: &str = "plan";
const PHASE: &str = "phase";
/// What drafts beside the person's files are called; [`Root::is_draft`] knows them.
const DRAFT: &str = ".runyard-draft-";

/// A plan whose contents are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staged {
    /// How many paths it changes.
    pub paths: usize,
    /// How many bytes it keeps for that.
    pub bytes: u64,
}

/// How far it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub(super) enum Phase {
    /// Nothing of the person's was touched.
    Staged,
    /// Drafts are being written, nothing else.
    Writing,
    /// Drafts are durable, and are being put in place.
    Placing,
    /// All of them are in place.
    Placed,
    /// And nothing is left to do.
    Applied,
    /// Everything is as it was before.
    Restored,
    /// So is everything but these, which somebody else wrote.
    Torn { paths: Vec<RelPath> },
}

/// One path of a journal.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    #[serde(flatten)]
    pub(super) edit: Edit,
    /// Where the draft lies.
    pub(super) draft: RelPath,
    /// Where in `contents` the old and the new content begin.
    before_at: Option<u64>,
    after_at: Option<u64>,
}

impl Entry {
    /// What lies beside the draft, should the old content have to be written anew.
    pub(super) fn spare(&self) -> Result<RelPath, CheckoutError> {
        Ok(RelPath::parse(&[self.draft.as_bytes(), b"-old"].concat())?)
    }
}

#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    entries: Vec<Entry>,
    folders: Vec<Folder>,
}

/// A journal that is open.
#[derive(Debug)]
pub(super) struct Journal {
    directory: PathBuf,
    contents: File,
    pub(super) entries: Vec<Entry>,
    pub(super) folders: Vec<Folder>,
    going: BTreeSet<RelPath>,
    coming: BTreeSet<RelPath>,
}

impl Plan {
    /// Puts everything on disk that carrying it out and taking it back need, in a directory of the journal's own. The person's files
    /// are read once more, and have to be what the plan says.
    pub fn stage(&self, journal: &Path, workspace: &Root) -> Result<Staged, ApplyError> {
        if Journal::is_there(journal) {
            // Nothing came of an earlier one, or it is still needed.
            if !matches!(get(journal, PHASE)?, Phase::Staged | Phase::Restored) {
                return Err(failed("begin", io::ErrorKind::AlreadyExists.into()).into());
            }
            fs::remove_file(journal.join(PLAN)).map_err(|error| failed("clear", error))?;
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(journal)
            .map_err(|error| failed("make", error))?;
        let token = token()?;
        let mut pack = Pack::create(&journal.join(CONTENTS)).map_err(|error| failed("write", error))?;
        let mut entries = Vec::with_capacity(self.edits.len());
        for (number, edit) in self.edits.iter().enumerate() {
            let held = held_of(workspace, &edit.path, edit.before.as_ref(), None);
            let bytes = match (held, &edit.before) {
                (Ok(held), Some(before)) if held.is(Some(before)) => held.side().map(|side| side.bytes),
                // Whether nothing is there is looked at when it is carried out; a link may still be in the way that goes first.
                (_, None) => None,
                (Err(error), _) => return Err(error.into()),
                _ => return Err(ApplyError::ContentChanged { path: edit.path.clone() }),
            };
            let mut add = |bytes: Option<&Vec<u8>>| bytes.map(|bytes| pack.add(bytes)).transpose();
            let before_at = add(bytes.as_ref()).map_err(|error| failed("write", error))?;
            let after_at = add(self.contents[number].as_ref()).map_err(|error| failed("write", error))?;
            let name = format!("{DRAFT}{token}-{number}");
            let draft = match &self.homes[number] {
                Some(home) => home.join(name.as_bytes()),
                None => RelPath::parse(name.as_bytes()),
            };
            entries.push(Entry {
                edit: edit.clone(),
                draft: draft.map_err(CheckoutError::from)?,
                before_at,
                after_at,
            });
        }
        let staged = Staged { paths: entries.len(), bytes: pack.length };
        pack.finish().map_err(|error| failed("write", error))?;
        set(journal, PHASE, &Phase::Staged)?;
        set(journal, PLAN, &Written { version: VERSION, entries, folders: self.folders.clone() })?;
        Ok(staged)
    }
}

impl Journal {
    /// Whether something is staged there.
    pub(super) fn is_there(directory: &Path) -> bool {
        directory.join(PLAN).exists()
    }

    pub(super) fn open(directory: &Path) -> Result<Journal, CheckoutError> {
        let written: Written = get(directory, PLAN)?;
        if written.version != VERSION {
            return Err(CheckoutError::Damaged("the journal is of another version"));
        }
        let contents = File::open(directory.join(CONTENTS)).map_err(|error| failed("read", error))?;
        let that = |does| written.folders.iter().filter(move |folder| folder.does == does);
        Ok(Journal {
            directory: directory.to_owned(),
            contents,
            going: that(Does::Go).map(|folder| folder.path.clone()).collect(),
            coming: that(Does::Come).map(|folder| folder.path.clone()).collect(),
            entries: written.entries,
            folders: written.folders,
        })
    }

    /// Whether a path is as it was: a directory that goes is nothing to its files.
    pub(super) fn is_before(&self, entry: &Entry, held: &Held) -> bool {
        let Edit { path, before, .. } = &entry.edit;
        held.is(before.as_ref()) || before.is_none() && *held == Held::Directory && self.going.contains(path)
    }

    /// Whether a path is as it will be.
    pub(super) fn is_after(&self, entry: &Entry, held: &Held) -> bool {
        let Edit { path, after, .. } = &entry.edit;
        held.is(after.as_ref()) || after.is_none() && *held == Held::Directory && self.coming.contains(path)
    }

    pub(super) fn phase(&self) -> Result<Phase, CheckoutError> {
        get(&self.directory, PHASE)
    }

    /// Goes on to a phase, durably.
    pub(super) fn enter(&self, phase: &Phase) -> Result<(), CheckoutError> {
        set(&self.directory, PHASE, phase)
    }

    /// What was at a path.
    pub(super) fn before(&self, entry: &Entry) -> Result<Vec<u8>, CheckoutError> {
        self.content(entry.edit.before.as_ref(), entry.before_at)
    }

    /// What comes to a path.
    pub(super) fn after(&self, entry: &Entry) -> Result<Vec<u8>, CheckoutError> {
        self.content(entry.edit.after.as_ref(), entry.after_at)
    }

    fn content(&self, state: Option<&State>, at: Option<u64>) -> Result<Vec<u8>, CheckoutError> {
        let (Some(state), Some(at)) = (state, at) else {
            return Err(CheckoutError::Damaged("the journal lacks a content"));
        };
        let mut bytes = vec![0; usize::try_from(state.bytes).unwrap_or(usize::MAX)];
        self.contents.read_exact_at(&mut bytes, at).map_err(|error| failed("read", error))?;
        match ContentId::of(&bytes) == state.content {
            true => Ok(bytes),
            false => Err(CheckoutError::Damaged("a content of the journal is not what was written")),
        }
    }
}

/// Contents, one after the other.
struct Pack {
    file: BufWriter<File>,
    length: u64,
}

impl Pack {
    fn create(path: &Path) -> io::Result<Pack> {
        Ok(Pack { file: BufWriter::new(private(path)?), length: 0 })
    }

    /// Adds some, and says where it begins.
    fn add(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.length;
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(at)
    }

    fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()
    }
}

/// Replaces a file of the journal, at once and durably.
pub(crate) fn set(directory: &Path, name: &str, value: &impl Serialize) -> Result<(), CheckoutError> {
    let draft = directory.join(format!("{name}.draft"));
    let write = || {
        let mut file = BufWriter::new(private(&draft)?);
        serde_json::to_writer(&mut file, value)?;
        file.flush()?;
        file.get_ref().sync_all()?;
        fs::rename(&draft, directory.join(name))?;
        File::open(directory)?.sync_all()
    };
    write().map_err(|error| failed("write", error))
}

/// The paths that a journal is about.
pub(crate) fn paths_of(directory: &Path) -> Result<Vec<RelPath>, CheckoutError> {
    Ok(Journal::open(directory)?.entries.into_iter().map(|entry| entry.edit.path).collect())
}

/// Reads a file of the journal.
pub(crate) fn get<T: for<'de> Deserialize<'de>>(directory: &Path, name: &str) -> Result<T, CheckoutError> {
    let bytes = fs::read(directory.join(name)).map_err(|error| failed("read", error))?;
    serde_json::from_slice(&bytes).map_err(|_| CheckoutError::Damaged("the journal cannot be read"))
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn token() -> Result<String, CheckoutError> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty()).map_err(|error| failed("name", error.into()))?;
    Ok(format!("{:016x}", u64::from_ne_bytes(random)))
}

pub(crate) fn failed(doing: &'static str, source: io::Error) -> CheckoutError {
    CheckoutError::Io { doing, path: "the journal".to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beside_a_persons_files_is_known_as_a_draft() {
        assert!(Root::is_draft(format!("{DRAFT}{}-1", token().unwrap()).as_bytes()));
    }
}
