//! What takes how much of the disk.

use std::path::{Path, PathBuf};

use super::Finding;
use crate::configuration::Configuration;
use crate::database::Database;
use crate::home::Home;

/// From this part of the budget on it is said to be nearly used, in percent.
const NEARLY_PERCENT: u64 = 80;
const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// What the record, the checkouts and the archive take, and whether the budget of checkouts is nearly used.
pub(super) fn disk(home: &Home) -> Vec<Finding> {
    let Ok(configuration) = Configuration::of_data(home) else { return Vec::new() };
    if !home.path().is_dir() {
        return Vec::new();
    }
    let mut parts = Vec::new();
    if let Database::Sqlite(database) = Database::of(home, &configuration) {
        let beside = |suffix: &str| {
            let mut path = database.clone().into_os_string();
            path.push(suffix);
            PathBuf::from(path)
        };
        let files = ["", "-wal", "-shm"].map(|suffix| size(&beside(suffix)));
        parts.push(format!("database {}", shown(files.iter().sum())));
        parts.push(format!("blobs {}", shown(size(&beside(".blobs")))));
    }
    parts.push(format!("archive {}", shown(size(&home.archive()))));
    let mut findings = vec![Finding::ok("disk", parts.join(", "))];
    let max = configuration.hub().checkouts_max_bytes;
    findings.push(match runyard_edge::usage(&home.edge()) {
        Err(error) => Finding::note("checkouts", format!("cannot be counted: {error}"), "Look with: du -sh"),
        Ok(usage) => {
            let found = format!("{} of runs, {} of {}", usage.checkouts, shown(usage.bytes), shown(max));
            match usage.bytes {
                bytes if bytes > max => {
                    let next = "No run begins before \"runyard gc\" has collected some, or checkouts_max_bytes of [hub] is raised.";
                    Finding::note("checkouts", found, next)
                }
                bytes if bytes >= max / 100 * NEARLY_PERCENT => {
                    Finding::note("checkouts", found, "Collect those of runs that have ended with \"runyard gc\".")
                }
                _ => Finding::ok("checkouts", found),
            }
        }
    });
    findings
}

/// What a file takes, or a directory with all that is in it; nothing where it is not there.
fn size(path: &Path) -> u64 {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => runyard_edge::size_of_directory(path).unwrap_or_default(),
        Ok(found) => std::os::unix::fs::MetadataExt::blocks(&found) * 512,
        Err(_) => 0,
    }
}

fn shown(bytes: u64) -> String {
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}
