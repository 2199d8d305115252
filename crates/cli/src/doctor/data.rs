//! The data directory and what lies in it.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Finding;
use crate::home::Home;

/// Less than this is too little for a database and checkouts.
const SPACE_BYTES_MIN: u64 = 512 * 1024 * 1024;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// Whether it is there, is its owner's alone, can be written and has room.
pub(super) fn directory(home: &Home) -> Vec<Finding> {
    let what = "data directory";
    let path = home.path();
    let shown = path.display();
    let metadata = match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return vec![Finding::ok(what, format!("{shown} is made when it is first needed"))];
        }
        Err(error) => {
            let next = "Set RUNYARD_HOME to a directory of yours.";
            return vec![Finding::to_do(what, format!("{shown} cannot be looked at: {error}"), next)];
        }
        Ok(metadata) => metadata,
    };
    if !metadata.is_dir() {
        let next = "Set RUNYARD_HOME to a directory of yours.";
        return vec![Finding::to_do(what, format!("{shown} is no directory"), next)];
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        let found = format!("{shown} is open to others, and holds the token and the record");
        return vec![Finding::to_do(what, found, format!("Run: chmod 700 {shown}"))];
    }
    if rustix::fs::access(path, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_err() {
        let found = format!("{shown} cannot be written");
        return vec![Finding::to_do(what, found, format!("Run: chmod u+rwx {shown}"))];
    }
    vec![space(what, path)]
}

fn space(what: &str, path: &Path) -> Finding {
    let shown = path.display();
    match rustix::fs::statvfs(path) {
        Ok(found) => {
            let bytes = found.f_bavail.saturating_mul(found.f_frsize);
            let room = format!("{shown}, {:.1} GiB free", bytes as f64 / GIB);
            if bytes < SPACE_BYTES_MIN {
                let next = "Make room: runs need at least 0.5 GiB for the record and their checkouts.";
                return Finding::to_do(what, room, next);
            }
            Finding::ok(what, room)
        }
        Err(error) => Finding::note(what, format!("{shown}, of unknown room: {error}"), "Look with: df -h"),
    }
}

/// The token of this installation.
pub(super) fn token(home: &Home) -> Option<Finding> {
    let path = home.token();
    let shown = path.display();
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Some(Finding::ok("token", "is made when a hub first starts"))
        }
        Err(error) => {
            let next = format!("Make {shown} readable for you, or remove it to have a new one made.");
            Some(Finding::to_do("token", format!("{shown} cannot be read: {error}"), next))
        }
        Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => {
            let next = format!("Remove {shown} and start the hub again: it makes a new one.");
            Some(Finding::to_do("token", format!("others can read {shown}"), next))
        }
        Ok(_) => Some(Finding::ok("token", shown.to_string())),
    }
}
