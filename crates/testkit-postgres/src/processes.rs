//! Which processes there are, and ending them.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// So long is waited for a process, or for what it should bring about.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// So often is looked.
const PAUSE: Duration = Duration::from_millis(5);

/// The children of a process, without those that have ended.
pub(crate) fn children(parent: u32) -> Result<Vec<u32>> {
    let all = list()?;
    Ok(all.into_iter().filter(|entry| entry.parent == parent).map(|entry| entry.id).collect())
}

/// Whether a process runs; one that has ended and was not yet waited for does not.
pub(crate) fn is_running(id: u32) -> Result<bool> {
    Ok(list()?.iter().any(|entry| entry.id == id))
}

/// Sends a signal. That the process is gone is no failure.
pub(crate) fn signal(id: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).context("no process has that id")?;
    match kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot send a signal to process {id}")),
    }
}

/// Waits until something is there, for a bounded time.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            bail!("waited {} seconds in vain for {what}", PATIENCE.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
}

struct Entry {
    id: u32,
    parent: u32,
}

fn list() -> Result<Vec<Entry>> {
    let output =
        Command::new("ps").args(["-A", "-o", "pid=,ppid=,stat="]).output().context("cannot start ps")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let entries = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (id, parent) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let has_ended = words.next()?.starts_with('Z');
        (!has_ended).then_some(Entry { id, parent })
    });
    Ok(entries.collect())
}
