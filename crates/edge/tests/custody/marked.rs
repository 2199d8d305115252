//! Finding what a test started: by a mark in its environment, or by an argument.

use std::path::Path;
use std::time::Duration;

use rustix::process::Pid;

/// So long is waited for something that must come; only a broken test waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The live processes that have `mark` in a file of theirs.
fn with_in(mark: &str, file: &str) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    ids.filter(|id| {
        let bytes = std::fs::read(format!("/proc/{}/{file}", id.as_raw_nonzero())).unwrap_or_default();
        bytes.windows(mark.len()).any(|window| window == mark.as_bytes())
    })
    .collect()
}

/// The processes below a program that was started with `MARK` in its environment.
pub(crate) fn marked(mark: &str) -> Vec<Pid> {
    with_in(mark, "environ")
}

/// The supervisors of a lock in a role: `guard`, `keeper`, or the empty text for all.
pub(crate) fn supervisors(lock: &Path, role: &str) -> Vec<Pid> {
    with_in(&format!("{role}\0{}", lock.display()), "cmdline")
}

/// Waits until there is no supervisor of this lock.
pub(crate) async fn no_supervisor_left(lock: &Path) {
    let waited = async {
        while !supervisors(lock, "").is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.expect("a supervisor is left");
}
