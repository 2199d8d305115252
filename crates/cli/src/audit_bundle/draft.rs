//! A file that is whole or not there: written beside its place, made durable, then given its name.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// A file without its name yet. It is removed unless it is published.
pub(super) struct Draft {
    file: File,
    draft: PathBuf,
    path: PathBuf,
}

impl Draft {
    /// Begins a file, for its owner alone, that will have this name.
    pub(super) fn beside(path: &Path) -> std::io::Result<Self> {
        let name = path.file_name().ok_or_else(|| Error::new(ErrorKind::InvalidInput, "it names no file"))?;
        let name = format!(".{}.{}.draft", name.to_string_lossy(), std::process::id());
        let draft = path.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        Ok(Draft { file, draft, path: path.to_owned() })
    }

    /// Where to write.
    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Makes it durable and gives it its name; false where that is taken and may not be replaced.
    pub(super) fn publish(self, replace: bool) -> std::io::Result<bool> {
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
