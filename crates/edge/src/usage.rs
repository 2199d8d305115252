//! How much of the disk the directories of runs take.
//!
//! A run that is over was measured then, which holds while it has its checkout; of others every file is looked at. What shares its
//! content with another file counts twice.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use runyard_domain::RunId;

use crate::places::Places;

/// How many files and directories of one run are counted at most.
const ENTRIES_MAX: u64 = 4_000_000;
/// How many directories of runs are looked at, at most.
const RUNS_MAX: usize = 1_000_000;
/// What the system counts blocks in, whatever their size.
const BLOCK_BYTES: u64 = 512;

/// What the directories of all runs take together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many runs have a checkout.
    pub checkouts: u64,
    /// How much of the disk they take, in bytes.
    pub bytes: u64,
}

/// Counts what the directories of all runs of an edge take.
pub fn usage(home: &Path) -> io::Result<Usage> {
    let mut usage = Usage::default();
    for run in runs(home)? {
        let places = Places::of(home, run);
        usage.checkouts += u64::from(places.checkout().is_dir());
        usage.bytes += of_run(&places)?;
    }
    Ok(usage)
}

/// The runs that have a directory on an edge, the oldest first.
pub fn runs(home: &Path) -> io::Result<Vec<RunId>> {
    let listed = match fs::read_dir(home.join("runs")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut runs = Vec::new();
    for entry in listed.take(RUNS_MAX) {
        runs.extend(entry?.file_name().to_str().and_then(|name| name.parse::<RunId>().ok()));
    }
    runs.sort_unstable();
    Ok(runs)
}

/// What the directory of one run takes.
pub(crate) fn of_run(places: &Places) -> io::Result<u64> {
    match places.owner()?.and_then(|owner| owner.bytes) {
        // Who collected it may have died before they measured again.
        Some(bytes) if places.checkout().is_dir() => Ok(bytes),
        _ => size_of_directory(places.directory()),
    }
}

/// What a directory takes with all that is in it. What vanishes meanwhile or may not be looked into counts for nothing.
pub fn size_of_directory(directory: &Path) -> io::Result<u64> {
    let (mut bytes, mut left, mut entries_left) = (0, vec![directory.to_owned()], ENTRIES_MAX);
    while let Some(next) = left.pop() {
        let listed = match fs::read_dir(&next) {
            Err(error) if is_passed_over(&error) => continue,
            listed => listed?,
        };
        for entry in listed {
            let entry = entry?;
            let found = match entry.path().symlink_metadata() {
                Err(error) if is_passed_over(&error) => continue,
                found => found?,
            };
            bytes += found.blocks() * BLOCK_BYTES;
            if found.is_dir() {
                left.push(entry.path());
            }
            entries_left -= 1;
            if entries_left == 0 {
                return Ok(bytes);
            }
        }
    }
    Ok(bytes)
}

fn is_passed_over(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
}
