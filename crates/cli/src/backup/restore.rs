//! Putting a backup in the place of the data directory: copied beside it, checked there, then exchanged for it in one step.

use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use runyard::{ActionError, Code, Issue};
use runyard_domain::Timestamp;
use runyard_store::{Clock, Hash, SystemClock};
use runyard_store_sqlite::SqliteStore;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde_json::json;

use super::{
    DATA, DIGEST, FORMAT, Kept, MANIFEST, MANIFEST_BYTES_MAX, Manifest, Unfinished, VERSION, blocking,
    directory, show, sized, tree, unwritten,
};
use crate::database::refused;
use crate::home::Home;
use crate::hub_file::HubFile;

/// How many differences are named.
const DIFFERENCES_MAX: usize = 20;

pub(super) async fn restore(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    let from = directory(&matches);
    let manifest = read_manifest(&from)?;
    let look = || match Found::at(&home)? {
        Found::Full if !matches.get_flag("force") => Err(ActionError::conflict(format!(
            "{} holds data already. Say --force to move it aside, or set RUNYARD_HOME to another place.",
            home.path().display()
        ))),
        found => Ok(found),
    };
    // Held until the end: no hub starts meanwhile.
    let (found, _mine) = match look()? {
        Found::Absent => (Found::Absent, None),
        _ => {
            let mine = HubFile::claim(&home).map_err(running)?;
            // A hub may have come and gone since.
            (look()?, Some(mine))
        }
    };
    let place = stage(&home)?;
    let staged = place.path.join(DATA);
    let (source, target) = (from.join(DATA), staged.clone());
    let copied =
        blocking(move || tree::copy(&source, &target, &|_| false).and_then(|()| tree::entries(&target)));
    let copied = copied.await?.map_err(unwritten(&staged))?;
    compare(&from, &manifest, &copied)?;
    if manifest.database == Kept::Sqlite {
        check_database(&from, &staged.join("runyard.db")).await?;
    }
    let aside = publish(&staged, home.path(), found)?;
    let mut text = format!(
        "{} is as it was on {}: {} files, {}.",
        home.path().display(),
        manifest.made_at,
        manifest.files(),
        sized(manifest.bytes())
    );
    if let Some(aside) = &aside {
        text.push_str(&format!("\nWhat was there before is in {}.", aside.display()));
    }
    if manifest.database == Kept::Postgresql {
        text.push_str(
            "\nThe database is PostgreSQL's and was not in it: restore that with pg_restore or psql.",
        );
    }
    if !manifest.has_secrets() {
        text.push_str(
            "\nNo keys to model providers were in it. See which are to be set again with: runyard secrets check",
        );
    }
    text.push_str("\nLook at it with: runyard log verify, runyard doctor. Go on with: runyard up");
    let data = json!({
        "home": home.path().display().to_string(),
        "from": from.display().to_string(),
        "madeAt": manifest.made_at,
        "files": manifest.files(),
        "bytes": manifest.bytes(),
        "database": manifest.database,
        "checkouts": manifest.checkouts,
        "secrets": manifest.has_secrets(),
        "movedAside": aside.map(|aside| aside.display().to_string()),
    });
    Ok(show(&matches, data, text))
}

fn running(error: ActionError) -> ActionError {
    match *error.code() == Code::Conflict {
        true => ActionError::conflict(format!("{} Stop it first.", error.message())),
        false => error,
    }
}

/// What is in the place of the data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Absent,
    Empty,
    Full,
}

impl Found {
    fn at(home: &Home) -> Result<Self, ActionError> {
        match std::fs::read_dir(home.path()) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Absent),
            Err(error) => Err(unwritten(home.path())(error)),
            Ok(listed) => {
                // A hub that was never there leaves this.
                let mut others =
                    listed.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path() != home.hub_lock()));
                Ok(if others.next().is_some() { Found::Full } else { Found::Empty })
            }
        }
    }
}

fn read_manifest(from: &Path) -> Result<Manifest, ActionError> {
    let read = |name: &str| {
        let mut text = Vec::new();
        let file = File::open(from.join(name))?;
        file.take(MANIFEST_BYTES_MAX).read_to_end(&mut text).map(|_| text)
    };
    let unreadable = |error: std::io::Error| {
        let message = format!("{} is no backup that can be read: {error}.", from.display());
        ActionError::new(
            if error.kind() == ErrorKind::NotFound { Code::NotFound } else { Code::StorageIo },
            message,
        )
    };
    let (text, digest) = (read(MANIFEST).map_err(unreadable)?, read(DIGEST).map_err(unreadable)?);
    if digest != format!("{}  {MANIFEST}\n", Hash::of(&text)).into_bytes() {
        return Err(broken(from, vec![format!("{MANIFEST} was changed.")]));
    }
    let manifest: Manifest = serde_json::from_slice(&text)
        .map_err(|error| broken(from, vec![format!("{MANIFEST} cannot be read: {error}.")]))?;
    if manifest.format != FORMAT || manifest.version != VERSION {
        let message = format!(
            "{} is {} {}, and this version of Runyard restores only {FORMAT} {VERSION}: use the one that made it, {}.",
            from.display(),
            manifest.format,
            manifest.version,
            manifest.runyard
        );
        return Err(ActionError::new(Code::StorageValidation, message));
    }
    Ok(manifest)
}

/// Whether exactly what the manifest names was copied.
fn compare(from: &Path, manifest: &Manifest, copied: &[tree::Entry]) -> Result<(), ActionError> {
    let find = |among: &[tree::Entry], path: &str| {
        among.binary_search_by(|entry| entry.path.as_str().cmp(path)).ok().map(|at| among[at].clone())
    };
    let mut differences = Vec::new();
    for entry in &manifest.entries {
        match find(copied, &entry.path) {
            None => differences.push(format!("{} is missing.", entry.path)),
            Some(found) if found != *entry => differences.push(format!("{} was changed.", entry.path)),
            Some(_) => {}
        }
    }
    let more = copied.iter().filter(|entry| find(&manifest.entries, &entry.path).is_none());
    differences.extend(more.map(|entry| format!("{} was added.", entry.path)));
    if differences.is_empty() { Ok(()) } else { Err(broken(from, differences)) }
}

fn broken(from: &Path, differences: Vec<String>) -> ActionError {
    let message = format!("The backup {} is not as it was made; nothing was changed.", from.display());
    let issues = differences.into_iter().take(DIFFERENCES_MAX).map(Issue::root).collect();
    ActionError::new(Code::StorageCorrupt, message).with_issues(issues)
}

async fn check_database(from: &Path, database: &Path) -> Result<(), ActionError> {
    let path = database.to_owned();
    let store = blocking(move || SqliteStore::open_read_only(path)).await?.map_err(refused)?;
    let findings = store.check().await;
    store.close().await;
    let findings: Vec<String> = findings.map_err(refused)?.iter().map(ToString::to_string).collect();
    if findings.is_empty() { Ok(()) } else { Err(broken(from, findings)) }
}

/// A place for the backup beside the data directory. What a process that was killed left there is used up by the next.
fn stage(home: &Home) -> Result<Unfinished, ActionError> {
    let path = beside(home.path(), "restoring");
    let parent = home.path().parent().unwrap_or(Path::new("/"));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
    let taken = made.and_then(|()| Unfinished::take(&path)).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => ActionError::conflict("Another restore is under way."),
        ErrorKind::AlreadyExists => super::in_the_way(&path),
        _ => unwritten(&path)(error),
    })?;
    super::make_directory(&taken.path.join(DATA)).map_err(unwritten(&path))?;
    Ok(taken)
}

/// Puts what was staged in the place of the data directory; where what was there is now, if it held something.
fn publish(staged: &Path, home: &Path, found: Found) -> Result<Option<PathBuf>, ActionError> {
    let put = || -> std::io::Result<Option<PathBuf>> {
        rustix::fs::syncfs(File::open(staged)?)?;
        let was = match found {
            Found::Absent => {
                renameat_with(CWD, staged, CWD, home, RenameFlags::NOREPLACE)?;
                None
            }
            Found::Empty | Found::Full => Some(exchange(staged, home)?),
        };
        let parent = home.parent().unwrap_or(Path::new("/"));
        File::open(parent)?.sync_all()?;
        Ok(was)
    };
    let was = put().map_err(unwritten(home))?;
    // What held nothing but the lock of a hub goes, unless somebody wrote into it meanwhile.
    Ok(was.filter(|was| found == Found::Full || !is_removed(was)))
}

/// Exchanges what was staged for the data directory; where what was there is now. While it is not known which of the two a
/// directory is, its name says neither.
fn exchange(staged: &Path, home: &Path) -> std::io::Result<PathBuf> {
    let at = compact(SystemClock.now());
    let (swapped, aside) =
        (beside(home, &format!("swapped-{at}")), beside(home, &format!("before-restore-{at}")));
    // Not where it was staged: what is left there, the next restore removes.
    std::fs::rename(staged, &swapped)?;
    let exchanged = match renameat_with(CWD, &swapped, CWD, home, RenameFlags::EXCHANGE) {
        // A file system that cannot exchange: for a moment there is no data directory, and both are whole.
        Err(Errno::INVAL) => std::fs::rename(home, &aside).and_then(|()| {
            std::fs::rename(&swapped, home).inspect_err(|_| {
                let _ = std::fs::rename(&aside, home);
            })
        }),
        exchanged => exchanged.map_err(std::io::Error::from),
    };
    if let Err(error) = exchanged {
        let _ = std::fs::rename(&swapped, staged);
        return Err(error);
    }
    // It is done: what came out is where it is said to be, also where it cannot get its name.
    if swapped.symlink_metadata().is_ok() && std::fs::rename(&swapped, &aside).is_err() {
        return Ok(swapped);
    }
    Ok(aside)
}

/// Removes a data directory that holds nothing but the lock of a hub; false where it holds more.
fn is_removed(was: &Path) -> bool {
    let _ = tree::remove(&was.join(Home::unknown().hub_lock()));
    std::fs::remove_dir(was).is_ok()
}

fn beside(home: &Path, suffix: &str) -> PathBuf {
    let mut path = home.as_os_str().to_owned();
    path.push(format!(".{suffix}"));
    path.into()
}

/// A time in a name.
fn compact(at: Timestamp) -> String {
    at.to_string().chars().filter(|character| !matches!(character, '-' | ':')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data directory with one file, and what is to come into its place.
    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let (home, staged) = (place.path().join("home"), place.path().join("staged"));
        for (directory, holds) in [(&home, "old"), (&staged, "new")] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join(holds), holds).unwrap();
        }
        (place, home, staged)
    }

    fn names(place: &Path) -> Vec<String> {
        let listed = std::fs::read_dir(place).unwrap();
        let mut names: Vec<_> =
            listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_was_there_has_its_own_name_once_the_backup_is_in_its_place() {
        let (place, home, staged) = place();
        let aside = publish(&staged, &home, Found::Full).unwrap().unwrap();
        assert!(aside.to_str().unwrap().contains(".before-restore-"), "{aside:?}");
        assert!(aside.join("old").exists() && home.join("new").exists());
        assert_eq!(names(place.path()).len(), 2);
    }

    #[test]
    fn a_restore_that_fails_leaves_the_backup_under_no_name_of_old_data() {
        let (place, home, staged) = place();
        std::fs::remove_dir_all(&home).unwrap();
        publish(&staged, &home, Found::Full).unwrap_err();
        assert_eq!(names(place.path()), ["staged"]);
    }

    #[test]
    fn what_is_written_into_an_empty_place_meanwhile_is_kept() {
        let (place, home, staged) = place();
        let aside = publish(&staged, &home, Found::Empty).unwrap().unwrap();
        assert_eq!(std::fs::read(aside.join("old")).unwrap(), b"old");
        std::fs::remove_dir_all(&aside).unwrap();
        std::fs::remove_dir_all(&home).unwrap();
        for directory in [&home, &staged] {
            std::fs::create_dir(directory).unwrap();
        }
        std::fs::write(home.join("hub.lock"), "").unwrap();
        assert_eq!(publish(&staged, &home, Found::Empty).unwrap(), None);
        assert_eq!(names(place.path()), ["home"]);
    }
}
