//! What holds secrets in the homes of sessions, or is made of them: it goes when the processes that used it are gone.
//!
//! An agent wrote there, so no link is followed: one on the way to such a file is removed as it is. What an agent copied elsewhere in
//! its home is not looked for; it goes with the home, when the session is closed.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use runyard_checkout::discard;
use runyard_domain::SessionId;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, chmodat, openat, statat, unlinkat};
use rustix::io::Errno;
use tokio::time::Instant;

use crate::custody::wait_until_gone;
use crate::places::Places;
use crate::usage;

/// How many homes of sessions are swept at most.
const HOMES_MAX: usize = 1_000_000;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What a sweep found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Swept {
    /// Homes in which nothing private is left.
    pub(crate) clean: usize,
    /// Homes that a session uses, which cleans up itself.
    pub(crate) in_use: usize,
    /// Homes in which something could not be removed.
    pub(crate) failed: usize,
}

/// Removes these files and directories, each given beneath a home. All are tried; the first error is told.
pub(crate) fn remove(home: &Path, names: &[&str]) -> io::Result<()> {
    let home = match openat(CWD, home, DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        home => home?,
    };
    let mut done = Ok(());
    for name in names {
        done = done.and(remove_one(&home, name));
    }
    done
}

/// Removes what is private in the homes of all sessions, as after an edge that died. What its supervisors still stop has this long
/// for it; a home that a session of this edge uses by then is left to it.
pub(crate) async fn sweep(edge_home: &Path, names: &[&'static str], patience: Duration) -> io::Result<Swept> {
    // At once what nobody uses; what an earlier edge's processes write until they are gone, after that.
    let deadline = Instant::now() + patience;
    let (home, private) = (edge_home.to_owned(), names.to_vec());
    tokio::task::spawn_blocking(move || sweep_homes(&home, &private)).await??;
    for run in usage::runs(edge_home)? {
        let left = deadline.saturating_duration_since(Instant::now());
        // What cannot be stopped loses its secrets all the same.
        if let Err(error) = wait_until_gone(&Places::of(edge_home, run).lock(), left).await {
            tracing::debug!(%run, %error, "processes of a run are still there");
        }
    }
    let (edge_home, names) = (edge_home.to_owned(), names.to_vec());
    let swept = tokio::task::spawn_blocking(move || sweep_homes(&edge_home, &names)).await??;
    let Swept { clean, in_use, failed } = swept;
    tracing::debug!(clean, in_use, failed, "the homes of sessions were swept");
    Ok(swept)
}

fn sweep_homes(edge_home: &Path, names: &[&str]) -> io::Result<Swept> {
    let mut swept = Swept::default();
    for session in directories(&edge_home.join("sessions"))? {
        for home in directories(&session)? {
            if swept.clean + swept.in_use + swept.failed == HOMES_MAX {
                return Ok(swept);
            }
            match alone(&home).and_then(|held| held.map(|_held| remove(&home, names)).transpose()) {
                Ok(Some(())) => swept.clean += 1,
                Ok(None) => swept.in_use += 1,
                Err(error) => {
                    tracing::error!(%error, "what is private in a session's home could not be removed");
                    swept.failed += 1;
                }
            }
        }
    }
    Ok(swept)
}

/// Has a home alone for as long as the file is open; none where a session holds it.
fn alone(home: &Path) -> io::Result<Option<File>> {
    let home = File::from(openat(CWD, home, DIRECTORY, Mode::empty())?);
    match home.try_lock() {
        Ok(()) => Ok(Some(home)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes all homes of a session that is closed.
pub(crate) fn close(edge_home: &Path, session: SessionId) -> io::Result<()> {
    let session = edge_home.join("sessions").join(session.to_string());
    let held = directories(&session)?.iter().map(|home| alone(home)).collect::<io::Result<Vec<_>>>()?;
    if held.iter().any(Option::is_none) {
        return Err(ErrorKind::ResourceBusy.into());
    }
    discard(&session)
}

/// The directories in a directory; none where it is not there.
fn directories(path: &Path) -> io::Result<Vec<PathBuf>> {
    let listed = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut found = Vec::new();
    for entry in listed.take(HOMES_MAX) {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

fn remove_one(home: &OwnedFd, name: &str) -> io::Result<()> {
    let (parents, last) = name.rsplit_once('/').unwrap_or(("", name));
    let mut directory = home.try_clone()?;
    for parent in parents.split('/').filter(|parent| !parent.is_empty()) {
        match open_directory(&directory, parent) {
            Ok(deeper) => directory = deeper,
            Err(Errno::NOENT) => return Ok(()),
            // A link, or a file where no directory is: nothing of ours is beneath it.
            Err(Errno::LOOP | Errno::NOTDIR) => return Ok(unlinkat(&directory, parent, AtFlags::empty())?),
            Err(error) => return Err(error.into()),
        }
    }
    match unlinkat(&directory, last, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // By its open parent, whatever becomes of the way there.
        Err(Errno::ISDIR | Errno::PERM) => {
            discard(&PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(last))
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens a directory, also one that whoever worked there closed to themselves.
fn open_directory(at: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let stat = statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if is_directory && stat.st_mode & 0o700 != 0o700 {
        chmodat(at, name, Mode::RWXU, AtFlags::empty())?;
    }
    openat(at, name, DIRECTORY, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use tempfile::TempDir;

    use super::*;

    const NAMES: &[&str] = &["codex/auth.json", "codex/config.toml", "codex/shell_snapshots", "top"];

    fn write(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "sk-value").unwrap();
    }

    /// Every file beneath a directory, without links.
    fn files(directory: &Path) -> Vec<String> {
        let (mut found, mut left) = (Vec::new(), vec![directory.to_owned()]);
        while let Some(next) = left.pop() {
            for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => left.push(entry.path()),
                    false => found.push(entry.path().strip_prefix(directory).unwrap().display().to_string()),
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn b12_what_is_private_goes_and_what_the_agent_keeps_stays() {
        let home = TempDir::new().unwrap();
        let kept = ["codex/sessions/2026/rollout.jsonl", "codex/state.sqlite", "auth.json"];
        let private = ["codex/auth.json", "codex/config.toml", "codex/shell_snapshots/deep/er/a.sh", "top"];
        for name in kept.iter().chain(&private) {
            write(&home.path().join(name));
        }
        remove(home.path(), NAMES).unwrap();
        assert_eq!(
            files(home.path()),
            ["auth.json", "codex/sessions/2026/rollout.jsonl", "codex/state.sqlite"]
        );
        remove(home.path(), NAMES).unwrap();
        remove(&home.path().join("absent"), NAMES).unwrap();
    }

    #[test]
    fn b12_no_link_that_an_agent_left_leads_out_of_its_home() {
        let place = TempDir::new().unwrap();
        let (home, outside) = (place.path().join("home"), place.path().join("outside"));
        for name in ["auth.json", "config.toml", "shell_snapshots/a.sh", "top"] {
            write(&outside.join(name));
        }
        let before = files(&outside);
        // The directory itself, a file, a directory of files, and a file where a directory was.
        fs::create_dir_all(&home).unwrap();
        symlink(&outside, home.join("codex")).unwrap();
        symlink(outside.join("top"), home.join("top")).unwrap();
        remove(&home, NAMES).unwrap();
        assert_eq!(files(&home), [""; 0], "the links are gone");
        fs::create_dir_all(home.join("codex/shell_snapshots")).unwrap();
        symlink(outside.join("auth.json"), home.join("codex/auth.json")).unwrap();
        symlink(&outside, home.join("codex/config.toml")).unwrap();
        symlink(&outside, home.join("codex/shell_snapshots/inside")).unwrap();
        remove(&home, NAMES).unwrap();
        assert_eq!(files(&home), [""; 0], "the links are gone");
        fs::remove_dir(home.join("codex")).unwrap();
        fs::write(home.join("codex"), "a file").unwrap();
        remove(&home, NAMES).unwrap();
        assert_eq!(files(&outside), before);
    }

    #[test]
    fn b12_an_agent_that_closed_its_directories_keeps_nothing() {
        let home = TempDir::new().unwrap();
        write(&home.path().join("codex/auth.json"));
        write(&home.path().join("codex/shell_snapshots/a/b.sh"));
        for name in ["codex/shell_snapshots/a", "codex/shell_snapshots", "codex"] {
            fs::set_permissions(home.path().join(name), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove(home.path(), NAMES).unwrap();
        assert_eq!(files(home.path()), [""; 0]);
    }

    #[tokio::test]
    async fn b12_a_sweep_reaches_every_home_but_those_in_use_and_waits_for_what_is_being_stopped() {
        let edge = TempDir::new().unwrap();
        let homes: Vec<PathBuf> = (1..=3_u8)
            .map(|number| {
                let session = SessionId::from_parts(u64::from(number), &[number; 10]);
                Places::of_session(edge.path(), session, "codex")
            })
            .collect();
        for home in &homes {
            write(&home.join("codex/auth.json"));
            write(&home.join("codex/sessions/kept"));
        }
        let used = File::open(&homes[2]).unwrap();
        used.lock_shared().unwrap();
        let lock = Places::of(edge.path(), runyard_domain::RunId::from_parts(1, &[1; 10])).lock();
        write(&lock);
        let supervisor = File::open(&lock).unwrap();
        supervisor.lock_shared().unwrap();
        let patience = Duration::from_secs(60);
        let (path, names) = (edge.path().to_owned(), NAMES);
        let sweeping = tokio::spawn(async move { sweep(&path, names, patience).await });
        while homes[0].join("codex/auth.json").exists() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // What is still being stopped writes until it is gone.
        write(&homes[0].join("codex/auth.json"));
        drop(supervisor);
        let swept = sweeping.await.unwrap().unwrap();
        assert_eq!(swept, Swept { clean: 2, in_use: 1, failed: 0 });
        assert_eq!(files(&homes[0]), ["codex/sessions/kept"]);
        assert_eq!(files(&homes[1]), ["codex/sessions/kept"]);
        assert_eq!(files(&homes[2]), ["codex/auth.json", "codex/sessions/kept"]);
        drop(used);
        let swept = sweep(edge.path(), NAMES, Duration::ZERO).await.unwrap();
        assert_eq!(swept, Swept { clean: 3, in_use: 0, failed: 0 });
    }

    #[tokio::test]
    async fn b12_a_process_that_cannot_be_stopped_keeps_no_secret_in_its_home() {
        let edge = TempDir::new().unwrap();
        let home = Places::of_session(edge.path(), SessionId::from_parts(1, &[1; 10]), "codex");
        write(&home.join("codex/auth.json"));
        let lock = Places::of(edge.path(), runyard_domain::RunId::from_parts(1, &[1; 10])).lock();
        write(&lock);
        let supervisor = File::open(&lock).unwrap();
        supervisor.lock_shared().unwrap();
        let swept = sweep(edge.path(), NAMES, Duration::ZERO).await.unwrap();
        assert_eq!(swept, Swept { clean: 1, in_use: 0, failed: 0 });
        assert_eq!(files(&home), [""; 0]);
    }

    #[test]
    fn c22_a_closed_session_keeps_no_home_and_others_keep_theirs() {
        let edge = TempDir::new().unwrap();
        let session = |number: u8| SessionId::from_parts(u64::from(number), &[number; 10]);
        let home = |number, profile| Places::of_session(edge.path(), session(number), profile);
        for home in [home(1, "codex"), home(1, "deepseek"), home(2, "codex")] {
            write(&home.join("codex/sessions/rollout"));
        }
        close(edge.path(), session(1)).unwrap();
        assert!(!home(1, "codex").exists() && !home(1, "deepseek").exists());
        assert!(home(2, "codex").join("codex/sessions/rollout").exists());
        close(edge.path(), session(1)).unwrap();
    }
}
