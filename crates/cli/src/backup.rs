//! `runyard backup` and `runyard restore`: a whole installation as one directory, and back again.
//!
//! A backup is a directory and no archive: it can be looked into, checked, copied by any tool and restored by hand, and nothing has
//! to be unpacked to learn whether it is whole. `data/` is what the data directory was; `manifest.json` names every file in it with
//! its digest, and `manifest.sha256` holds the digest of that. It is there whole or not at all.
//!
//! PostgreSQL has its own backups: then the database is no part of this one, and both commands say so. So they do of the keys to
//! model providers, which are in it only where that is asked for.

mod content;
mod restore;
mod tree;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use runyard::{ActionError, Code};
use runyard_domain::Timestamp;
use runyard_store::{Clock, Hash, StorageError, SystemClock};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, show_data};
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::content::{Content, is_secret};
use self::tree::Entry;
use crate::configuration::Configuration;
use crate::database::{Database, Opened, refused};
use crate::home::Home;
use crate::views::is_text;

/// The name of the format, and its version.
const FORMAT: &str = "runyard.backup";
const VERSION: u32 = 1;
/// What the data directory was.
const DATA: &str = "data";
const MANIFEST: &str = "manifest.json";
const DIGEST: &str = "manifest.sha256";
/// Locked while a backup is made; it also tells that a directory that is not finished is ours.
const MARK: &str = ".runyard-backup";
/// The largest manifest that is read.
const MANIFEST_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Manifest {
    format: String,
    version: u32,
    made_at: Timestamp,
    runyard: String,
    /// Whether the database is in it, is PostgreSQL's own affair, or was not there yet.
    database: Kept,
    checkouts: bool,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kept {
    Sqlite,
    Postgresql,
    None,
}

impl Manifest {
    fn files(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_file()).count()
    }

    fn bytes(&self) -> u64 {
        self.entries.iter().map(Entry::bytes).sum()
    }

    /// Whether a secret of a backend profile is in it.
    fn has_secrets(&self) -> bool {
        self.entries.iter().any(|entry| entry.is_file() && is_secret(&entry.path))
    }
}

pub(crate) fn commands(home: &Home) -> Vec<ExtraCommand> {
    let directory = |help: &'static str| {
        Arg::new("directory").value_name("DIR").required(true).value_parser(value_parser!(PathBuf)).help(help)
    };
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let backup = Command::new("backup")
        .about("Copy the whole installation into a new directory, also while it is used")
        .arg(directory("The backup; it must not be there yet"))
        .arg(flag("checkouts", "With the copies that agents work in, as they are at that moment"))
        .arg(flag("secrets", "With the keys to model providers, as readable as they are in the data directory"))
        .after_help(
            "It holds the record, workspaces, trust, the installation's own keys and token, configuration and the agents' own \
             threads: keep it as safe as the data directory.\n\
             Without --secrets the keys to model providers are left out, and set again after a restore. The files by which an agent \
             was given them for a run are never in it, nor are secrets that \"secrets_directory\" of [edge] puts elsewhere. An agent \
             that has its key, without the gateway, may have written it into its own thread.\n\
             Without --checkouts a run that has not ended when it is made ends after a restore, and its changes are lost; so are \
             changes of ended runs that were not applied yet.\n\
             With PostgreSQL the database is not in it: use pg_dump for that.",
        );
    let restore = Command::new("restore")
        .about("Put a backup in the place of the data directory, after checking all of it")
        .arg(directory("The backup"))
        .arg(flag("force", "Also where there is data already: it is moved aside, and never removed"));
    let (from, to) = (home.clone(), home.clone());
    vec![
        ExtraCommand {
            command: backup,
            run: Box::new(move |matches| Box::pin(back_up(from, matches)) as ExtraRun),
        },
        ExtraCommand {
            command: restore,
            run: Box::new(move |matches| Box::pin(restore::restore(to, matches)) as ExtraRun),
        },
    ]
}

async fn back_up(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    let target = directory(&matches);
    let configuration = Configuration::of_data(&home)?;
    if home.path().symlink_metadata().is_err() {
        return Err(ActionError::new(
            Code::NotFound,
            "There is nothing to back up yet: there is no data directory.",
        ));
    }
    let content = Content::of(&home, &configuration, &matches)?;
    let unfinished = Unfinished::begin(&home, &target)?;
    let data = unfinished.path.join(DATA);
    make_directory(&data).map_err(unwritten(&target))?;
    // Before the other files: what they say may then be later than the record, as after a crash, and never earlier.
    let database = copy_database(&Database::of(&home, &configuration), &data.join("runyard.db")).await?;
    let wanted = content.clone();
    let manifest = blocking(move || {
        tree::copy(home.path(), &data, &|path| wanted.leaves_out(path))?;
        let entries = tree::entries(&data)?;
        let runyard = env!("CARGO_PKG_VERSION").to_owned();
        let (format, made_at, checkouts) = (FORMAT.to_owned(), SystemClock.now(), wanted.checkouts);
        Ok(Manifest { format, version: VERSION, made_at, runyard, database, checkouts, entries })
    });
    let manifest = manifest.await?.map_err(unwritten(&target))?;
    unfinished.publish(&manifest, &target)?;
    let data = json!({
        "directory": target.display().to_string(),
        "files": manifest.files(),
        "bytes": manifest.bytes(),
        "database": database,
        "checkouts": content.checkouts,
        "secrets": manifest.has_secrets(),
        "secretsElsewhere": content.elsewhere.as_ref().map(|place| place.display().to_string()),
        "madeAt": manifest.made_at,
    });
    Ok(show(&matches, data, told(&target, &manifest, &content)))
}

/// What was made, for people: what is in it, and what is not.
fn told(target: &Path, manifest: &Manifest, content: &Content) -> String {
    let mut text = format!(
        "{} holds {} files, {}.\nPut it back with: runyard restore {}",
        target.display(),
        manifest.files(),
        sized(manifest.bytes()),
        target.display()
    );
    if manifest.database == Kept::Postgresql {
        text.push_str("\nThe database is PostgreSQL's and not in it: back it up with pg_dump.");
    }
    if !content.checkouts {
        text.push_str(
            "\nThe copies that agents work in are not in it, nor what was changed there and not applied yet (--checkouts).",
        );
    }
    match (&content.elsewhere, manifest.has_secrets()) {
        (Some(place), _) => text.push_str(&format!(
            "\nThe keys to model providers are not in it: they lie in {}, which is yours to back up.",
            place.display()
        )),
        (None, true) => text.push_str("\nThe keys to model providers are in it: whoever reads it has them."),
        (None, false) if content.secrets => {
            text.push_str("\nNo keys to model providers are in it: there are none.");
        }
        (None, false) => text.push_str("\nThe keys to model providers are not in it (--secrets)."),
    }
    text
}

fn directory(matches: &ArgMatches) -> PathBuf {
    let given = matches.get_one::<PathBuf>("directory").cloned().unwrap_or_default();
    // Without what would make its parent or its name another.
    std::path::absolute(&given).map_or(given, |path| path.components().collect())
}

fn show(matches: &ArgMatches, data: Value, text: String) -> u8 {
    let form = matches.get_one::<String>("output").map(String::as_str);
    show_data(matches, if is_text(form) { text.into() } else { data })
}

async fn copy_database(database: &Database, to: &Path) -> Result<Kept, ActionError> {
    let Database::Sqlite(_) = database else { return Ok(Kept::Postgresql) };
    match database.open_to_read().await {
        Ok(Opened::Sqlite(store)) => {
            let copied = store.backup_to(to, |_| {}).await;
            store.close().await;
            copied.map_err(refused).map(|()| Kept::Sqlite)
        }
        Ok(Opened::Postgres(_)) => Ok(Kept::Postgresql),
        Err(error) if *error.code() == Code::StorageNotFound => Ok(Kept::None),
        Err(error) => Err(error),
    }
}

/// A backup that has no name yet. It is removed unless it is published; what a process that was killed left is used up by the next.
struct Unfinished {
    path: PathBuf,
    _mine: File,
}

impl Unfinished {
    fn begin(home: &Home, target: &Path) -> Result<Self, ActionError> {
        let taken =
            || ActionError::conflict(format!("{} is there already; name a new directory.", target.display()));
        if target.symlink_metadata().is_ok() {
            return Err(taken());
        }
        let parent = target.parent().and_then(|parent| parent.canonicalize().ok());
        let Some((parent, name)) = parent.zip(target.file_name()) else {
            let message =
                format!("{} cannot be made: the directory above it is not there.", target.display());
            return Err(ActionError::new(Code::NotFound, message));
        };
        if home.path().canonicalize().is_ok_and(|home| parent.starts_with(home)) {
            let message = "A backup cannot lie in the data directory that it is of.";
            return Err(ActionError::new(Code::ValidationError, message));
        }
        let mut unfinished = name.to_owned();
        unfinished.push(".unfinished");
        let path = parent.join(unfinished);
        Unfinished::take(&path).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => {
                ActionError::conflict(format!("Another backup to {} is being made.", target.display()))
            }
            ErrorKind::AlreadyExists => in_the_way(&path),
            _ => unwritten(target)(error),
        })
    }

    /// Makes the directory, or takes what a process that was killed left of it. `AlreadyExists` where it is neither.
    fn take(path: &Path) -> std::io::Result<Self> {
        let mark = path.join(MARK);
        match DirBuilder::new().mode(0o700).create(path) {
            // Also where the process that made it was killed before it could mark it.
            Err(error)
                if error.kind() == ErrorKind::AlreadyExists
                    && is_ours(&path.symlink_metadata()?)
                    && (mark.symlink_metadata().is_ok() || fs::read_dir(path)?.next().is_none()) => {}
            made => made?,
        }
        let no_link = OFlags::NOFOLLOW.bits().cast_signed();
        let mut opening = OpenOptions::new();
        opening.write(true).create(true).truncate(false).mode(0o600).custom_flags(no_link);
        let file = opening.open(&mark)?;
        file.try_lock()?;
        for left in [DATA, MANIFEST, DIGEST] {
            tree::remove(&path.join(left))?;
        }
        Ok(Unfinished { path: path.to_owned(), _mine: file })
    }

    /// Writes what it holds, makes all of it durable and gives it its name.
    fn publish(self, manifest: &Manifest, target: &Path) -> Result<(), ActionError> {
        let written = || -> std::io::Result<bool> {
            let text = serde_json::to_vec_pretty(manifest)?;
            write(&self.path.join(MANIFEST), &text)?;
            write(&self.path.join(DIGEST), format!("{}  {MANIFEST}\n", Hash::of(&text)).as_bytes())?;
            rustix::fs::syncfs(File::open(&self.path)?)?;
            match renameat_with(CWD, &self.path, CWD, target, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => return Ok(false),
                renamed => renamed?,
            }
            tree::remove(&target.join(MARK))?;
            for changed in [Some(target), target.parent()].into_iter().flatten() {
                File::open(changed)?.sync_all()?;
            }
            Ok(true)
        };
        match written().map_err(unwritten(target))? {
            true => Ok(()),
            false => Err(ActionError::conflict(format!(
                "{} is there by now; name a new directory.",
                target.display()
            ))),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Nothing is there any more where it has its name.
        let _ = tree::remove(&self.path);
    }
}

/// Whether it is a real directory of whoever runs this, which nobody else writes into.
fn is_ours(found: &fs::Metadata) -> bool {
    found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0
}

fn in_the_way(path: &Path) -> ActionError {
    ActionError::conflict(format!(
        "{} is in the way and is no backup of yours that was not finished; move it away.",
        path.display()
    ))
}

fn make_directory(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)
}

/// Runs what waits for the disk where it may wait.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ActionError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ActionError::internal(error.to_string()))
}

fn unwritten(path: &Path) -> impl Fn(std::io::Error) -> ActionError {
    let path = path.display().to_string();
    move |error| {
        let error = match error.kind() {
            ErrorKind::StorageFull => StorageError::DiskFull { doing: "copying the installation" },
            _ => return ActionError::new(Code::StorageIo, format!("{path} cannot be written: {error}.")),
        };
        refused(error)
    }
}

fn sized(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        10_000_000.. => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_another_could_have_put_there_is_not_taken_for_an_unfinished_backup() {
        let place = tempfile::tempdir().unwrap();
        let (path, other) = (place.path().join("a.unfinished"), place.path().join("other"));
        make_directory(&other).unwrap();
        fs::write(other.join(MARK), "").unwrap();
        make_directory(&other.join(DATA)).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let is_refused =
            || Unfinished::take(&path).is_err_and(|error| error.kind() == ErrorKind::AlreadyExists);
        assert!(is_refused() && other.join(DATA).exists(), "a link");
        fs::remove_file(&path).unwrap();
        make_directory(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(is_refused(), "anybody writes there");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(Unfinished::take(&path).is_ok());
    }
}
