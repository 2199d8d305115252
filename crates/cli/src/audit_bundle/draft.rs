//! A file that is whole or not there: written beside its place, made durable, then given its name.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// So many names are tried for a draft.
const ATTEMPTS_MAX: u32 = 64;

/// A file without its name yet. It is removed unless it is published.
pub(crate) struct Draft {
    file: File,
    draft: PathBuf,
    path: PathBuf,
}

impl Draft {
    /// Begins a file, for its owner alone, that will have this name.
    pub(crate) fn beside(path: &Path) -> std::io::Result<Self> {
        if path.file_name().is_none() {
            return Err(Error::new(ErrorKind::InvalidInput, "it names no file"));
        }
        for attempt in 0..ATTEMPTS_MAX {
            let name = format!(".runyard-{}-{attempt}.draft", std::process::id());
            let draft = path.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft) {
                // What a process that was killed left.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                opened => return Ok(Draft { file: opened?, draft, path: path.to_owned() }),
            }
        }
        Err(Error::other("too many drafts are left beside it; remove .runyard-*.draft there"))
    }

    /// Where to write.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Makes it durable and gives it its name; false where that is taken and may not be replaced.
    pub(crate) fn publish(self, replace: bool) -> std::io::Result<bool> {
        self.file.sync_all()?;
        let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match renameat_with(CWD, &self.draft, CWD, &self.path, flags) {
            Err(Errno::EXIST) => return Ok(false),
            renamed => renamed?,
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(true)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It has its name already, and then there is nothing to remove.
        let _ = std::fs::remove_file(&self.draft);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_draft_that_was_left_is_in_nobodys_way_and_is_not_written_over() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let left = Draft::beside(&path).unwrap();
        let mut draft = Draft::beside(&path).unwrap();
        draft.file().write_all(b"whole").unwrap();
        assert!(draft.publish(false).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert!(!Draft::beside(&path).unwrap().publish(false).unwrap(), "it is there already");
        assert!(left.publish(true).unwrap() && std::fs::read(&path).unwrap().is_empty());
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "no draft stays");
    }
}
