//! Takes what is in a checkout now for what it began as: what prepared it is no change of whoever works there next.
//!
//! What is ignored stays so and is not looked at. What can be no change is left out, and is found again by whoever compares.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::{Entry, KEPT, Source};
use crate::copy::{CHUNK_BYTES, keep};
use crate::object::Hasher;
use crate::seen::{Seen, Sight};
use crate::{Base, CheckoutError, Contents, FileMode, Found, Limits, RelPath, Root};

/// What was different from the beginning before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retaken {
    /// Files that were there and are other now.
    pub changed: u64,
    /// Files that are new.
    pub added: u64,
    /// Files that are gone.
    pub removed: u64,
    /// What is there and can be no change.
    pub problems: u64,
}

/// Takes what is in `checkout` now for what it began as, durably. Nothing may be at work there.
pub fn retake(
    checkout: &Path,
    base_dir: &Path,
    limits: &Limits,
    stop: &AtomicBool,
) -> Result<Retaken, CheckoutError> {
    let base = Base::read(base_dir)?;
    let mut contents = Contents::open(&base, base_dir)?;
    let (root, kept) = (Root::open(checkout)?, Root::open(&base_dir.join(KEPT))?);
    let files_max = usize::try_from(limits.files_max).unwrap_or(usize::MAX);
    let seen = Seen::look(&base, &mut contents, &root, files_max, stop)?;
    let bytes_left = limits.bytes_max;
    let mut taking = Taking { root: &root, kept: &kept, limits, bytes_left, shares: true, stop };
    let (mut entries, mut retaken) = (Vec::new(), Retaken::default());
    let mut replaced: HashSet<&RelPath> = seen.gone.iter().map(|entry| &entry.path).collect();
    retaken.removed = replaced.len() as u64;
    for (entry, sight) in &seen.changed {
        if let Some(new) = taking.entry(&entry.path, *sight, Some((entry, &base)))? {
            retaken.changed += u64::from((new.mode, &new.source) != (entry.mode, &entry.source));
            replaced.insert(&entry.path);
            entries.push(new);
        }
    }
    for (path, sight) in &seen.come {
        if let Some(new) = taking.entry(path, *sight, None)? {
            retaken.added += 1;
            entries.push(new);
        }
    }
    retaken.problems = seen.problems.len() as u64;
    entries.extend(base.entries.iter().filter(|entry| !replaced.contains(&entry.path)).cloned());
    let taken = Base::new(base.head.clone(), base.git.clone(), base.exclude.clone(), entries)?;
    taken.write(base_dir)?;
    Ok(retaken)
}

struct Taking<'a> {
    root: &'a Root,
    kept: &'a Root,
    limits: &'a Limits,
    bytes_left: u64,
    /// Whether the checkout's files can share their content with what is kept, as far as is known.
    shares: bool,
    stop: &'a AtomicBool,
}

impl Taking<'_> {
    /// What a path is now; none where it cannot be read, which is then a problem for whoever compares.
    fn entry(
        &mut self,
        path: &RelPath,
        sight: Sight,
        was: Option<(&Entry, &Base)>,
    ) -> Result<Option<Entry>, CheckoutError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(CheckoutError::Stopped);
        }
        let taken = match sight {
            Sight::Link => self.link(path),
            Sight::File => self.file(path, was),
        };
        match taken {
            Ok(entry) => Ok(Some(entry)),
            Err(CheckoutError::NotAFile { .. } | CheckoutError::Escapes { .. }) => Ok(None),
            Err(error) if error.is_missing() || error.is_denied() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn link(&mut self, path: &RelPath) -> Result<Entry, CheckoutError> {
        let target = self.root.read_link(path)?;
        let found = self.root.look(path)?.ok_or(CheckoutError::NotAFile { path: path.to_string() })?;
        let (bytes, stamp) = (target.len() as u64, found.stamp);
        Ok(Entry { path: path.clone(), mode: FileMode::Link, bytes, stamp, source: Source::Link(target) })
    }

    fn file(&mut self, path: &RelPath, was: Option<(&Entry, &Base)>) -> Result<Entry, CheckoutError> {
        let failed = |error| CheckoutError::io("keep", path, error);
        let (mut file, Found { executable, bytes, stamp, .. }) = self.root.open_file(path)?;
        self.bytes_left =
            self.bytes_left.checked_sub(bytes).ok_or(CheckoutError::TooLarge(self.limits.bytes_max))?;
        let source = match was {
            Some((entry, base)) if is_same(entry, base, bytes, &mut file).map_err(failed)? => {
                entry.source.clone()
            }
            _ => {
                file.rewind().map_err(failed)?;
                let mut buffer = vec![0; CHUNK_BYTES];
                Source::Kept(keep(self.kept, &mut self.shares, &mut buffer, &mut file).map_err(failed)?)
            }
        };
        let mode = if executable { FileMode::Executable } else { FileMode::Plain };
        Ok(Entry { path: path.clone(), mode, bytes, stamp, source })
    }
}

/// Whether a file that was only touched is still what the repository has.
fn is_same(entry: &Entry, base: &Base, bytes: u64, file: &mut File) -> std::io::Result<bool> {
    let (Source::Git(oid), Some(git), true) = (&entry.source, &base.git, entry.bytes == bytes) else {
        return Ok(false);
    };
    let (mut hasher, mut buffer) = (Hasher::blob(git.format, bytes), vec![0; CHUNK_BYTES]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish() == *oid),
            read => hasher.update(&buffer[..read]),
        }
    }
}
