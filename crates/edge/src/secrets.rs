//! Where secrets live: a directory with one directory per backend profile, and in it one file per key.
//!
//! A directory of a person's own, or a mounted Secret whose keys are links into `..data`: a link counts as long as it stays in its
//! profile's directory. Only the edge and `runyard secrets` open these files. Nothing here caches a value, falls back to another
//! profile, or looks into the environment.

mod beneath;
mod error;
mod form;
mod name;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, unlinkat};
use zeroize::Zeroizing;

use self::beneath::Resolve;
pub use self::error::SecretsError;
pub use self::form::{BadForm, check_form};
pub(crate) use self::form::{json_of, toml_of};
use self::name::{checked, is_name};
use crate::{Secret, private};

/// How long a secret may be, in bytes.
pub const SECRET_BYTES_MAX: u64 = 1024 * 1024;
/// How many entries of a directory are looked at, at most.
const ENTRIES_MAX: usize = 10_000;
/// What a mounted Secret keeps its files in.
const MOUNTED: &str = "..data";
/// What is not whole yet. No key has such a name.
const DRAFT: &str = ".draft";

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The secrets of all backend profiles.
#[derive(Clone, Debug)]
pub struct Secrets {
    directory: PathBuf,
    resolve: Resolve,
}

/// The names of what a profile has, without any value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileSecrets {
    /// The backend profile.
    pub profile: String,
    /// Its keys, in order.
    pub keys: Vec<String>,
}

/// A secret that is there and can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Whether its permissions let others than its owner at it.
    pub open_to_others: bool,
}

impl Secrets {
    /// Those in this directory, which need not be there.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Secrets { directory: directory.into(), resolve: Resolve::Kernel }
    }

    /// Where they are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// They, as where the kernel cannot resolve a path beneath a directory.
    #[must_use]
    pub fn name_by_name(self) -> Self {
        Secrets { resolve: Resolve::Walk, ..self }
    }

    /// The profiles that have secrets, and their keys. It opens no file.
    pub fn profiles(&self) -> Result<Vec<ProfileSecrets>, SecretsError> {
        let mut profiles = Vec::new();
        for (profile, _) in self.names(&self.directory)? {
            if self.directory.join(&profile).is_dir() {
                let keys = self.keys(&profile)?;
                profiles.push(ProfileSecrets { profile, keys });
            }
        }
        Ok(profiles)
    }

    /// The keys of a profile, in order; none where it has no directory.
    fn keys(&self, profile: &str) -> Result<Vec<String>, SecretsError> {
        let names = self.names(&self.directory.join(profile))?;
        Ok(names.into_iter().filter(|(_, is_directory)| !is_directory).map(|(name, _)| name).collect())
    }

    /// The names in a directory that could be a profile's or a key's, and whether each is a directory itself.
    fn names(&self, directory: &Path) -> Result<Vec<(String, bool)>, SecretsError> {
        let failed = |source| SecretsError::io("list", source);
        let listed = match fs::read_dir(directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(failed)?,
        };
        let mut names = Vec::new();
        for entry in listed.take(ENTRIES_MAX) {
            let entry = entry.map_err(failed)?;
            if let Some(name) = entry.file_name().to_str().filter(|name| is_name(name)) {
                names.push((name.to_owned(), entry.file_type().map_err(failed)?.is_dir()));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Reads one.
    pub fn read(&self, profile: &str, key: &str) -> Result<Secret, SecretsError> {
        let unreadable = |source| SecretsError::unreadable(profile, key, source);
        let (file, bytes) = self.open(profile, key)?;
        // One more than there is, so that what is read is never moved to a larger place, which would leave a copy behind.
        let room = usize::try_from(bytes).unwrap_or_default() + 1;
        let mut value = Zeroizing::new(Vec::with_capacity(room));
        file.take(SECRET_BYTES_MAX + 1).read_to_end(&mut value).map_err(unreadable)?;
        if value.len() as u64 > SECRET_BYTES_MAX {
            return Err(SecretsError::TooLarge { profile: profile.to_owned(), key: key.to_owned() });
        }
        Ok(Secret::new(std::mem::take(&mut *value)))
    }

    /// Looks whether one is there and can be read. Its value is not kept.
    pub fn look(&self, profile: &str, key: &str) -> Result<Seen, SecretsError> {
        let (mut file, _) = self.open(profile, key)?;
        let failed = |source: io::Error| SecretsError::unreadable(profile, key, source);
        file.read(&mut [0]).map_err(failed)?;
        let stat = fstat(&file).map_err(|error| failed(error.into()))?;
        Ok(Seen { open_to_others: stat.st_mode & 0o077 != 0 })
    }

    /// The file of a key, which is one and not too long.
    fn open(&self, profile: &str, key: &str) -> Result<(File, u64), SecretsError> {
        let (profile, key) = (checked("profile", profile)?, checked("key", key)?);
        let failed = |error| SecretsError::opening(profile, key, error);
        let directory = self.profile(profile).map_err(failed)?;
        let file = beneath::open(&directory, key, self.resolve).map_err(failed)?;
        let stat = fstat(&file).map_err(failed)?;
        let named = || (profile.to_owned(), key.to_owned());
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            let (profile, key) = named();
            return Err(SecretsError::NotAFile { profile, key });
        }
        match u64::try_from(stat.st_size).unwrap_or_default() {
            bytes if bytes <= SECRET_BYTES_MAX => Ok((File::from(file), bytes)),
            _ => {
                let (profile, key) = named();
                Err(SecretsError::TooLarge { profile, key })
            }
        }
    }

    /// A profile's directory. Links on the way to it count: it may be mounted anywhere.
    fn profile(&self, profile: &str) -> rustix::io::Result<OwnedFd> {
        openat(CWD, self.directory.join(profile), DIRECTORY, Mode::empty())
    }

    /// Keeps a value under a key, for its owner alone, at once and durably. What the key had before is gone.
    pub fn set(&self, profile: &str, key: &str, value: &[u8]) -> Result<(), SecretsError> {
        let (profile, key) = (checked("profile", profile)?, checked("key", key)?);
        if value.len() as u64 > SECRET_BYTES_MAX {
            return Err(SecretsError::TooLarge { profile: profile.to_owned(), key: key.to_owned() });
        }
        let directory = self.directory.join(profile);
        let failed = |source| SecretsError::writing("keep", profile, source);
        private::make_directory(&directory).map_err(failed)?;
        let _alone = self.alone(profile)?;
        let draft = directory.join(DRAFT);
        let written = absent(fs::remove_file(&draft))
            .and_then(|()| File::options().write(true).create_new(true).mode(0o600).open(&draft))
            .and_then(|mut file| file.write_all(value).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&draft, directory.join(key)));
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written.and_then(|()| private::sync_directory(&directory)).map_err(failed)
    }

    /// Removes a key, or all that a profile has, and says what is gone.
    pub fn remove(&self, profile: &str, key: Option<&str>) -> Result<Vec<String>, SecretsError> {
        let profile = checked("profile", profile)?;
        let key = key.map(|key| checked("key", key)).transpose()?;
        let there = self.keys(profile)?;
        let gone: Vec<String> = match key {
            None => there,
            Some(key) => there.into_iter().filter(|name| name == key).collect(),
        };
        if gone.is_empty() {
            let key = key.map(str::to_owned);
            return Err(SecretsError::Nothing { profile: profile.to_owned(), key });
        }
        let directory = self.alone(profile)?;
        let failed = |source: io::Error| SecretsError::writing("remove", profile, source);
        for name in gone.iter().map(String::as_str).chain([DRAFT]) {
            let removed = unlinkat(&directory, name, AtFlags::empty()).map_err(io::Error::from);
            absent(removed).map_err(failed)?;
        }
        directory.sync_all().map_err(failed)?;
        // It stays where something else is in it, or where it is a link.
        let _ = fs::remove_dir(self.directory.join(profile));
        Ok(gone)
    }

    /// A profile's directory for as long as it is open, with nobody else changing it. What is mounted is changed where it comes
    /// from.
    fn alone(&self, profile: &str) -> Result<File, SecretsError> {
        let failed = |source| SecretsError::writing("open", profile, source);
        let directory = File::from(self.profile(profile).map_err(|error| failed(error.into()))?);
        if self.directory.join(profile).join(MOUNTED).symlink_metadata().is_ok() {
            return Err(SecretsError::Mounted { profile: profile.to_owned() });
        }
        directory.lock().map_err(failed)?;
        Ok(directory)
    }
}

fn absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
