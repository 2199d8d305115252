//! Where the parts of a database lie.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Who may read and write what is made here: its owner.
pub(crate) const FILE_MODE: u32 = 0o600;
/// The same for folders.
const FOLDER_MODE: u32 = 0o700;

/// As many links are followed as the system itself follows.
const LINKS_MAX: u32 = 40;

/// A database and what lies beside it.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// The database file.
    pub(crate) database: PathBuf,
    /// Its name, as errors show it: not the whole path, which says more about the machine than a client needs.
    pub(crate) name: String,
}

impl Paths {
    /// A link to a database is the database itself: whoever comes by either name meets the same lock.
    pub(crate) fn of(database: &Path) -> Self {
        let database = resolved(database, LINKS_MAX);
        let name = database.file_name().unwrap_or(database.as_os_str()).to_string_lossy().into_owned();
        Paths { database, name }
    }

    /// The file that says who owns the database.
    pub(crate) fn lock(&self) -> PathBuf {
        self.beside(".lock")
    }

    /// The folder of the blobs. It carries the database's name, so that collecting for one database never takes what
    /// belongs to another in the same folder.
    pub(crate) fn blobs(&self) -> PathBuf {
        self.beside(".blobs")
    }

    /// The folder that the database is in.
    pub(crate) fn folder(&self) -> &Path {
        match self.database.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }

    /// The path of the database with something more at its end.
    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = self.database.clone().into_os_string();
        path.push(suffix);
        path.into()
    }
}

/// What a link leads to, also where there is nothing yet.
fn resolved(path: &Path, links_left: u32) -> PathBuf {
    match fs::read_link(path) {
        Ok(target) if links_left > 0 => {
            let folder = path.parent().unwrap_or(Path::new(""));
            resolved(&folder.join(target), links_left - 1)
        }
        _ => path.to_owned(),
    }
}

/// Makes a folder and those above it, for the owner alone; it is fine when it is there.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Makes an empty file for the owner alone, unless it is there.
pub(crate) fn make_file(path: &Path) -> io::Result<()> {
    fs::OpenOptions::new().create(true).truncate(false).write(true).mode(FILE_MODE).open(path).map(drop)
}

/// Makes the entries of a folder durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}
