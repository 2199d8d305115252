//! Places where a test kills the process, to prove that a run survives a death anywhere. Debug builds only.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names the failpoint to die at, and at which time it is reached: `record.committed:3`.
const VARIABLE: &str = "RUNYARD_FAILPOINT";
/// Names a file that gets a line for every failpoint that is passed, so that a test knows how often it can kill at each.
const COUNTS: &str = "RUNYARD_FAILPOINT_COUNTS";

/// Every failpoint: on both sides of what a hub and its edge commit, of what puts a file in place, and of what starts a process during a
/// run of the scripted agent. What is left out is named, with the reason, in `xtask/src/failpoints.rs`: what a checkout does inside one
/// step of its edge, what codex's adapter keeps, and commands of a person's.
pub const FAILPOINTS: &[&str] = &[
    "record.commit",
    "record.committed",
    "head.commit",
    "head.committed",
    "link.open",
    "link.recorded",
    "link.decision",
    "link.close",
    "lease.acquire",
    "lease.acquired",
    "lease.renew",
    "lease.renewed",
    "lease.release",
    "lease.released",
    "hub.tell",
    "hub.told",
    "key.make",
    "key.made",
    "places.make",
    "places.made",
    "home.entered",
    "home.left",
    "owner.write",
    "owner.written",
    "checkout.make",
    "checkout.made",
    "setup.ran",
    "setup.done",
    "session.opened",
    "session.answer",
    "process.start",
    "process.spawned",
    "process.started",
    "process.stop",
    "process.ended",
    "file.write",
    "file.prepared",
    "file.written",
    "blob.put",
    "blob.kept",
    "workspaces.write",
    "workspaces.written",
    "result.keep",
    "result.kept",
    "result.forgotten",
    "installation.commit",
    "installation.committed",
    "audit.delivered",
    "outbox.deliver",
    "outbox.delivered",
    "apply.stage",
    "apply.staged",
    "apply.begin",
    "apply.checked",
    "apply.begun",
    "apply.drafted",
    "apply.durable",
    "apply.placed",
    "apply.whole",
    "apply.tidied",
    "apply.done",
    "run.tidy",
    "run.tidied",
];

struct Armed {
    name: String,
    /// How often it is still passed.
    left: AtomicU64,
}

/// Dies by SIGKILL here, if the environment says so.
pub fn reach(name: &'static str) {
    debug_assert!(FAILPOINTS.contains(&name), "a failpoint that is not listed: {name}");
    if !cfg!(debug_assertions) {
        return;
    }
    note(name);
    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
    let armed = ARMED.get_or_init(|| {
        let text = std::env::var(VARIABLE).ok()?;
        let (name, count) = text.split_once(':').unwrap_or((&text, "1"));
        Some(Armed { name: name.to_owned(), left: AtomicU64::new(count.parse().unwrap_or(1)) })
    });
    if let Some(armed) = armed
        && armed.name == name
        && armed.left.fetch_sub(1, Ordering::SeqCst) == 1
    {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        // The signal is on its way; nothing may happen in the meantime.
        loop {
            std::thread::park();
        }
    }
}

/// Notes that a failpoint is passed, where somebody counts them.
fn note(name: &'static str) {
    static COUNTED: OnceLock<Option<File>> = OnceLock::new();
    let counted = COUNTED.get_or_init(|| {
        let path = std::env::var_os(COUNTS)?;
        OpenOptions::new().create(true).append(true).open(path).ok()
    });
    if let Some(mut file) = counted.as_ref() {
        // One write, so that lines of several threads do not mix.
        let _ = file.write_all(format!("{name}\n").as_bytes());
    }
}
