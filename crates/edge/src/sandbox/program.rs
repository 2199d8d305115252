//! The program that is started in a sandbox: where it is, and what must be shown for it to run.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use runyard_backend::Launch;

use super::system::{System, overlap};

/// The program of a launch, by its whole path; else the error that starting it would have given.
pub(super) fn find(launch: &Launch) -> io::Result<PathBuf> {
    if launch.program.as_os_str().as_bytes().contains(&b'/') {
        let path = launch.directory.join(&launch.program);
        return executable(&path).map(|()| path);
    }
    let name = launch.program.to_str().unwrap_or_default();
    let search_path = launch.environment.get("PATH").map(String::as_str).unwrap_or_default();
    on_path(name, search_path).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The first program of this name in these directories; a directory that is not named from the root does not count.
pub(super) fn on_path(name: &str, search_path: &str) -> Option<PathBuf> {
    let directories = search_path.split(':').map(Path::new).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(name)).find(|path| executable(path).is_ok())
}

fn executable(path: &Path) -> io::Result<()> {
    let found = path.metadata()?;
    match found.is_file() && found.permissions().mode() & 0o111 != 0 {
        true => Ok(()),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// What must be shown for the program to run: its directory, the one that it really lies in, and the npm package around it. Where
/// such a directory would show something else that is private or `hidden`, only the program itself.
pub(super) fn shown(program: &Path, system: &System, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let mut shown = Vec::new();
    for path in [program, &real] {
        let around = package(path).or_else(|| path.parent().map(Path::to_owned));
        let reveals = |directory: &PathBuf| {
            system.reveals(directory) || hidden.iter().any(|hidden| overlap(hidden, directory))
        };
        let path = around.filter(|directory| !reveals(directory)).unwrap_or_else(|| path.to_owned());
        if !shown.contains(&path) {
            shown.push(path);
        }
    }
    shown
}

/// The npm package that a program belongs to: it comes with what it needs, beside its own directory.
fn package(program: &Path) -> Option<PathBuf> {
    let parts: Vec<Component<'_>> = program.parent()?.components().collect();
    let modules = parts.iter().rposition(|part| part.as_os_str() == "node_modules")?;
    let name = parts.get(modules + 1)?;
    let length = if name.as_os_str().as_bytes().starts_with(b"@") { 3 } else { 2 };
    Some(parts.get(..modules + length)?.iter().collect())
}
