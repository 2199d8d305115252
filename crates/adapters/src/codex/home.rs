//! The private home of codex: its own directory, with files that are written anew each time a session opens, so that what an
//! agent wrote in their place does not count.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use runyard_backend::{BackendError, SecretFile};
use runyard_domain::run::FailureKind;

/// What is ours in the home: it is removed where it is not written.
const OURS: &[&str] = &["auth.json", "config.toml", "models.json"];

/// A private home for codex.
pub(super) struct Home {
    pub(super) path: PathBuf,
    /// Whether an earlier session of the run left it here.
    pub(super) was_there: bool,
}

impl Home {
    /// Where it is in a session's home.
    pub(super) fn of(parent: &Path) -> PathBuf {
        parent.join("codex")
    }

    /// Makes it, or takes the one that is there, and writes the files.
    pub(super) fn prepare(parent: &Path, files: &[SecretFile]) -> Result<Self, BackendError> {
        let path = Home::of(parent);
        let made = || -> io::Result<bool> {
            let was_there = directory(&path)?;
            for name in OURS {
                clear(&path.join(name))?;
            }
            for SecretFile { key, content } in files {
                let file = path.join(key);
                let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
                file.write_all(content)?;
            }
            Ok(was_there)
        };
        let was_there = made().map_err(|error| {
            let message = format!("cannot prepare the home of codex: {error}");
            BackendError::new(FailureKind::BackendSpawnFailed, message)
        })?;
        Ok(Home { path, was_there })
    }
}

/// Makes the directory, and says whether it was there. A link in its place could lead anywhere.
fn directory(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(data) if data.is_dir() => {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
            Ok(true)
        }
        Ok(_) => Err(io::Error::new(io::ErrorKind::NotADirectory, "something else is in its place")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Removes whatever is there.
fn clear(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn file(key: &str, content: &str) -> SecretFile {
        SecretFile { key: key.to_owned(), content: content.as_bytes().to_vec() }
    }

    #[test]
    fn b12_the_home_is_private_and_its_files_are_written_anew() {
        let run = tempfile::tempdir().unwrap();
        let both = [file("config.toml", "a = 1"), file("auth.json", "{}")];
        let home = Home::prepare(run.path(), &both).unwrap();
        assert!(!home.was_there);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (config, auth) = (home.path.join("config.toml"), home.path.join("auth.json"));
        assert_eq!((mode(&home.path), mode(&config), mode(&auth)), (0o700, 0o600, 0o600));

        let outside = run.path().join("outside");
        fs::write(&outside, "mine").unwrap();
        fs::remove_file(&config).unwrap();
        symlink(&outside, &config).unwrap();
        fs::remove_file(&auth).unwrap();
        fs::create_dir(&auth).unwrap();
        let home = Home::prepare(run.path(), &both).unwrap();
        assert!(home.was_there);
        assert_eq!(fs::read_to_string(&config).unwrap(), "a = 1");
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
        Home::prepare(run.path(), &both[..1]).unwrap();
        assert!(!auth.exists(), "what is not given any more is not there any more");
    }

    #[test]
    fn b12_a_home_that_leads_elsewhere_is_not_used() {
        let run = tempfile::tempdir().unwrap();
        let elsewhere = run.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, run.path().join("codex")).unwrap();
        let error = Home::prepare(run.path(), &[file("auth.json", "{}")]).err().unwrap();
        assert_eq!(error.failure_kind, FailureKind::BackendSpawnFailed);
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}
