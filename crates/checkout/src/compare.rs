//! What changed in a checkout since it began.
//!
//! Every name in it is looked at; content is read only where a file's stamp is not what it was, which nobody can forge. Nothing that the
//! checkout's own repository says is believed, and nothing that an agent says is asked for. What can be no change is listed as a
//! problem; what is too much for one comparison is an error: the answer is never that nothing changed because it was not looked at.

use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest, Sha256};

use crate::lines::{Extent, TEXT_BYTES_MAX, extent, has_zero, is_text};
use crate::renames::{self, Of, Origin};
use crate::seen::{Seen, Sight};
use crate::similar::SIMILAR_BYTES_MAX;
use crate::{
    Base, Change, ChangeKind, Changes, CheckoutError, ContentChange, ContentId, Contents, Entry, FileMode,
    Kind, Problem, ProblemKind, RelPath, Root, Source, Version,
};

/// How long a file is at most that is a change, where nothing else is said. What is longer is a problem.
pub const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How much of a file is read at once where it is not held whole.
const READ_BYTES: usize = 256 * 1024;

/// How much one comparison takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompareLimits {
    /// So many changes and problems; more are [`CheckoutError::TooManyFiles`].
    pub changes_max: usize,
    /// So many bytes in a file that is a change. A larger one is a problem.
    pub file_bytes_max: u64,
    /// So many bytes in all files that are read because they may have changed; more are [`CheckoutError::TooLarge`].
    pub bytes_max: u64,
    /// So many bytes in a file that is compared line by line. A larger one is a change as a whole.
    pub text_bytes_max: u64,
}

impl Default for CompareLimits {
    fn default() -> Self {
        CompareLimits {
            changes_max: 200_000,
            file_bytes_max: FILE_BYTES_MAX,
            bytes_max: 4 * 1024 * 1024 * 1024,
            text_bytes_max: TEXT_BYTES_MAX,
        }
    }
}

/// Finds what changed in a checkout since it began.
pub fn compare(
    base: &Base,
    contents: &mut Contents,
    checkout: &Root,
    limits: &CompareLimits,
    stop: &AtomicBool,
) -> Result<Changes, CheckoutError> {
    let seen = Seen::look(base, contents, checkout, limits.changes_max, stop)?;
    let bytes_left = limits.bytes_max;
    let mut comparison =
        Comparison { base, contents, checkout, limits, stop, bytes_left, problems: seen.problems };
    let mut files = comparison.changed(&seen.changed)?;
    let gone = comparison.gone(&seen.gone)?;
    let come = comparison.come(&seen.come)?;
    comparison.moves(gone, come, &mut files)?;
    if files.len() + comparison.problems.len() > limits.changes_max {
        return Err(CheckoutError::TooManyFiles(limits.changes_max as u64));
    }
    files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    comparison.problems.sort_by(|one, other| one.path.cmp(&other.path));
    let target = target(&base.id, &files);
    Ok(Changes { base: base.id.clone(), target, files, problems: comparison.problems, ignored: seen.ignored })
}

struct Comparison<'a> {
    base: &'a Base,
    contents: &'a mut Contents,
    checkout: &'a Root,
    limits: &'a CompareLimits,
    stop: &'a AtomicBool,
    bytes_left: u64,
    problems: Vec<Problem>,
}

/// One side of a change, with its content where that is short enough to be compared.
struct Loaded {
    version: Version,
    bytes: Option<Vec<u8>>,
}

/// A file that is gone, or was there before it changed.
struct Old<'a> {
    entry: &'a Entry,
    version: Version,
}

/// A file that is new.
struct New<'a> {
    path: &'a RelPath,
    version: Version,
    content: ContentChange,
}

impl<'a> Comparison<'a> {
    fn go_on(&self) -> Result<(), CheckoutError> {
        if self.stop.load(Ordering::Relaxed) { Err(CheckoutError::Stopped) } else { Ok(()) }
    }

    fn problem(&mut self, path: &RelPath, why: ProblemKind) {
        self.problems.push(Problem { path: path.clone(), why });
    }

    /// What is still there and may be other than it was.
    fn changed(&mut self, seen: &[(&'a Entry, Sight)]) -> Result<Vec<Change>, CheckoutError> {
        let mut changes = Vec::new();
        for (entry, sight) in seen {
            self.go_on()?;
            let Some(after) = self.load_new(&entry.path, sight)? else { continue };
            // What was kept is known by its digest, so what was only touched need not be read twice.
            let kept = matches!(entry.source, Source::Kept(content) if content == after.version.content);
            if kept && entry.mode == after.version.mode {
                continue;
            }
            let Some(before) = self.load_old(entry)? else { continue };
            if before.version == after.version {
                continue;
            }
            let is_retyped = kind_of(before.version.mode) != kind_of(after.version.mode);
            let kind = if is_retyped { ChangeKind::Retyped } else { ChangeKind::Modified };
            let content = content(Some(&before), Some(&after));
            changes.push(change(&entry.path, None, kind, content, Some(before.version), Some(after.version)));
        }
        Ok(changes)
    }

    fn gone(&mut self, seen: &[&'a Entry]) -> Result<Vec<(Old<'a>, ContentChange)>, CheckoutError> {
        let mut gone = Vec::with_capacity(seen.len());
        for entry in seen {
            self.go_on()?;
            if let Some(before) = self.load_old(entry)? {
                let content = content(Some(&before), None);
                gone.push((Old { entry, version: before.version }, content));
            }
        }
        Ok(gone)
    }

    fn come<'s>(&mut self, seen: &'s [(RelPath, Sight)]) -> Result<Vec<New<'s>>, CheckoutError> {
        let mut come = Vec::with_capacity(seen.len());
        for (path, sight) in seen {
            self.go_on()?;
            if let Some(after) = self.load_new(path, sight)? {
                let content = content(None, Some(&after));
                come.push(New { path, version: after.version, content });
            }
        }
        Ok(come)
    }

    /// Finds what was renamed or copied, and makes changes of all that is gone or new.
    fn moves(
        &mut self,
        gone: Vec<(Old<'_>, ContentChange)>,
        come: Vec<New<'_>>,
        changes: &mut Vec<Change>,
    ) -> Result<(), CheckoutError> {
        let was: Vec<(RelPath, Version)> = changes.iter().filter_map(was).collect();
        let origins = {
            let old: Vec<_> = gone.iter().map(|(old, _)| file(&old.entry.path, &old.version)).collect();
            let new: Vec<_> = come.iter().map(|new| file(new.path, &new.version)).collect();
            let was: Vec<_> = was.iter().map(|(path, version)| file(path, version)).collect();
            renames::origins(&old, &new, &was, |of| {
                self.go_on()?;
                match of {
                    Of::Gone(at) => self.read_old(old[at].path),
                    Of::Come(at) => self.read_new(new[at].path),
                    Of::Changed(at) => self.read_old(was[at].path),
                }
            })?
        };
        let from_gone = |at: usize| (&gone[at].0.entry.path, gone[at].0.version);
        let mut renamed = vec![false; gone.len()];
        for (new, origin) in come.into_iter().zip(origins) {
            let (kind, from) = match origin {
                None => (ChangeKind::Added, None),
                Some(Origin::Renamed(at)) => {
                    renamed[at] = true;
                    (ChangeKind::Renamed, Some(from_gone(at)))
                }
                Some(Origin::CopiedOfGone(at)) => (ChangeKind::Copied, Some(from_gone(at))),
                Some(Origin::CopiedOfChanged(at)) => (ChangeKind::Copied, Some((&was[at].0, was[at].1))),
            };
            let (old_path, before) = from.unzip();
            let content = match from {
                Some((path, version)) => self.moved_content(path, version, &new)?,
                None => new.content,
            };
            changes.push(change(new.path, old_path, kind, content, before, Some(new.version)));
        }
        let left = gone.into_iter().zip(renamed).filter(|(_, renamed)| !renamed);
        changes.extend(left.map(|((old, content), _)| {
            change(&old.entry.path, None, ChangeKind::Deleted, content, Some(old.version), None)
        }));
        Ok(())
    }

    /// How the content of what was renamed or copied changed.
    fn moved_content(
        &mut self,
        from: &RelPath,
        before: Version,
        new: &New<'_>,
    ) -> Result<ContentChange, CheckoutError> {
        if before.content == new.version.content {
            return Ok(ContentChange::Same);
        }
        let text_bytes_max = self.limits.text_bytes_max;
        let short = |bytes: Vec<u8>| Some(bytes).filter(|bytes| bytes.len() as u64 <= text_bytes_max);
        let old = Loaded { version: before, bytes: self.read_old(from).map(short)? };
        let new = Loaded { version: new.version, bytes: self.read_new(new.path).map(short)? };
        Ok(content(Some(&old), Some(&new)))
    }

    /// What a file was that is alike to a new one, and so not long.
    fn read_old(&mut self, path: &RelPath) -> Result<Vec<u8>, CheckoutError> {
        let entry = self.base.find(path).ok_or(CheckoutError::Damaged("a file is not in it"))?;
        self.contents.read(entry, SIMILAR_BYTES_MAX as u64)
    }

    fn read_new(&self, path: &RelPath) -> Result<Vec<u8>, CheckoutError> {
        self.checkout.read(path, SIMILAR_BYTES_MAX as u64).map(|read| read.bytes)
    }

    /// What a file was. None where it is too large to say, which is then listed.
    fn load_old(&mut self, entry: &Entry) -> Result<Option<Loaded>, CheckoutError> {
        let version = |content| Version { mode: entry.mode, bytes: entry.bytes, content };
        if let (Source::Kept(content), true) = (&entry.source, entry.bytes > self.limits.text_bytes_max) {
            return Ok(Some(Loaded { version: version(*content), bytes: None }));
        }
        if entry.bytes > self.limits.file_bytes_max {
            self.problem(&entry.path, ProblemKind::TooLarge);
            return Ok(None);
        }
        let bytes = self.contents.read(entry, self.limits.file_bytes_max)?;
        let mut version = version(ContentId::of(&bytes));
        // What a submodule's content is counts, not what its directory weighs.
        version.bytes = bytes.len() as u64;
        let short = bytes.len() as u64 <= self.limits.text_bytes_max;
        Ok(Some(Loaded { version, bytes: short.then_some(bytes) }))
    }

    /// What a file is now. None where it can be no change, which is then listed.
    fn load_new(&mut self, path: &RelPath, sight: &Sight) -> Result<Option<Loaded>, CheckoutError> {
        let loaded = match sight {
            Sight::File => self.load_file(path),
            Sight::Link => self.checkout.read_link(path).map(|target| {
                let content = ContentId::of(&target);
                let version = Version { mode: FileMode::Link, bytes: target.len() as u64, content };
                Ok(Loaded { version, bytes: Some(target) })
            }),
        };
        let why = match loaded {
            Ok(Ok(loaded)) => return Ok(Some(loaded)),
            Ok(Err(why)) => why,
            // It is no longer what it was when it was found.
            Err(CheckoutError::NotAFile { .. } | CheckoutError::Escapes { .. }) => ProblemKind::Unreadable,
            Err(error) if error.is_missing() || error.is_denied() => ProblemKind::Unreadable,
            Err(error) => return Err(error),
        };
        self.problem(path, why);
        Ok(None)
    }

    /// Counts what is read of the checkout.
    fn spend(&mut self, bytes: u64) -> Result<(), CheckoutError> {
        self.bytes_left =
            self.bytes_left.checked_sub(bytes).ok_or(CheckoutError::TooLarge(self.limits.bytes_max))?;
        Ok(())
    }

    fn load_file(&mut self, path: &RelPath) -> Result<Result<Loaded, ProblemKind>, CheckoutError> {
        let (mut file, found) = self.checkout.open_file(path)?;
        if found.links > 1 {
            return Ok(Err(ProblemKind::HardLink));
        }
        if found.bytes > self.limits.file_bytes_max {
            return Ok(Err(ProblemKind::TooLarge));
        }
        let mode = if found.executable { FileMode::Executable } else { FileMode::Plain };
        let (mut hasher, mut held, mut bytes) = (Sha256::new(), Some(Vec::new()), 0);
        let mut piece = vec![0; READ_BYTES.min(usize::try_from(found.bytes).unwrap_or(READ_BYTES) + 1)];
        loop {
            self.go_on()?;
            let read = match file.read(&mut piece) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                read => read.map_err(|error| CheckoutError::io("read", path, error))?,
            };
            bytes += read as u64;
            self.spend(read as u64)?;
            if read == 0 {
                let version = Version { mode, bytes, content: ContentId::from_hasher(hasher) };
                return Ok(Ok(Loaded { version, bytes: held }));
            }
            // It may have grown since.
            if bytes > self.limits.file_bytes_max {
                return Ok(Err(ProblemKind::TooLarge));
            }
            hasher.update(&piece[..read]);
            held = held.filter(|_| bytes <= self.limits.text_bytes_max).map(|mut held| {
                held.extend_from_slice(&piece[..read]);
                held
            });
        }
    }
}

/// How content changed between two versions; what is not there is empty. What is no file changes as a whole.
fn content(before: Option<&Loaded>, after: Option<&Loaded>) -> ContentChange {
    let kind = |side: &Loaded| kind_of(side.version.mode);
    if let (Some(old), Some(new)) = (before, after)
        && kind(old) == kind(new)
        && old.version.content == new.version.content
    {
        return ContentChange::Same;
    }
    if [before, after].into_iter().flatten().any(|side| kind(side) != Kind::File) {
        return ContentChange::Binary;
    }
    let [old, new] = [before, after].map(|side| side.map_or(Some(&[][..]), |side| side.bytes.as_deref()));
    match (old, new) {
        (None, _) | (_, None) => ContentChange::TooLarge,
        (Some(old), Some(new)) if has_zero(old) || has_zero(new) => ContentChange::Binary,
        (Some(old), Some(new)) if !is_text(old) || !is_text(new) => ContentChange::TooLarge,
        (Some(old), Some(new)) => {
            let Extent { insertions, deletions, hunks } = extent(old, new);
            ContentChange::Text { insertions, deletions, hunks }
        }
    }
}

/// What a mode is in a tree of files.
fn kind_of(mode: FileMode) -> Kind {
    match mode {
        FileMode::Plain | FileMode::Executable => Kind::File,
        FileMode::Link => Kind::Link,
        FileMode::Submodule => Kind::Directory,
    }
}

/// What a file was that changed and that another may have been copied from.
fn was(change: &Change) -> Option<(RelPath, Version)> {
    let version = change.before.filter(|version| kind_of(version.mode) != Kind::Directory)?;
    Some((change.path.clone(), version))
}

fn file<'a>(path: &'a RelPath, version: &Version) -> renames::File<'a> {
    renames::File { path, version: *version }
}

fn change(
    path: &RelPath,
    old_path: Option<&RelPath>,
    kind: ChangeKind,
    content: ContentChange,
    before: Option<Version>,
    after: Option<Version>,
) -> Change {
    // Moving what is protected away changes it too.
    let protected = path.is_protected() || old_path.is_some_and(RelPath::is_protected);
    Change {
        id: path.id(),
        path: path.clone(),
        old_path: old_path.cloned(),
        kind,
        content,
        before,
        after,
        protected,
    }
}

/// The same for the same changes of the same base.
fn target(base: &str, files: &[Change]) -> String {
    let mut hasher = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
    };
    field(base.as_bytes());
    for file in files {
        field(file.path.as_bytes());
        field(file.old_path.as_ref().map_or(&[][..], RelPath::as_bytes));
        field(file.after.map_or("", |version| version.mode.as_git()).as_bytes());
        field(file.after.as_ref().map_or(&[][..], |version| version.content.as_bytes()));
    }
    ContentId::from_hasher(hasher).to_string()
}
