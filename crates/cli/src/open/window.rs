//! The console in a window of its own, without a browser's bars: browsers built on Chromium can do that.
//!
//! It has a profile of its own in the data directory, so that no extension of the person's browser reads along, and what a session
//! needs lies where the token does.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use tokio::process::Command as Process;

use crate::home::Home;

/// The browsers that can, by the names of their programs.
const BROWSERS: [&str; 9] = [
    "google-chrome",
    "google-chrome-stable",
    "chromium",
    "chromium-browser",
    "microsoft-edge",
    "microsoft-edge-stable",
    "msedge",
    "brave-browser",
    "brave",
];
/// A browser that cannot show anything ends within this time.
const FAILS_WITHIN: Duration = Duration::from_secs(2);

/// Whether a window shows the address by now.
pub(super) async fn shown(home: &Home, url: &str) -> bool {
    if !super::has_screen() {
        return false;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(browser) = find(&std::env::split_paths(&path).collect::<Vec<_>>()) else { return false };
    let Ok(profile) = profile(home.path()) else { return false };
    let mut program = Process::new(browser);
    program
        .arg(format!("--app={url}"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--no-first-run", "--no-default-browser-check"]);
    super::goes_on(&mut program, FAILS_WITHIN).await
}

/// The first browser of the list that is in one of these folders.
fn find(folders: &[PathBuf]) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    // Only what is named from the root: what lies in the current folder is anybody's.
    let absolute = || folders.iter().filter(|folder| folder.is_absolute());
    BROWSERS.iter().find_map(|name| absolute().map(|folder| folder.join(name)).find(is_program))
}

/// The profile's folder, which only its owner can look into.
fn profile(data: &Path) -> io::Result<PathBuf> {
    let folder = data.join("browser");
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => return other.map(|()| folder),
    }
    if !fs::symlink_metadata(&folder)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_a_program_in_a_folder_that_is_named_from_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [PathBuf::from("."), folder.path().to_owned()];
        fs::write(folder.path().join("google-chrome"), "not a program").unwrap();
        fs::create_dir(folder.path().join("chromium")).unwrap();
        assert_eq!(find(&folders), None);
        let edge = folder.path().join("microsoft-edge");
        fs::write(&edge, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&edge, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(&folders), Some(edge));
    }

    #[test]
    fn the_profile_is_its_owners_alone_and_never_a_link() {
        let data = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = profile(data.path()).unwrap();
        assert_eq!(mode(&folder), 0o700);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(mode(&profile(data.path()).unwrap()), 0o700);
        fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink("/tmp", &folder).unwrap();
        assert!(profile(data.path()).is_err());
    }
}
