//! What the machine offers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::Finding;
use crate::configuration::Configuration;
use crate::home::Home;
use crate::hub;

/// A clock that stands before this was never set: 2026-01-01.
const EARLIEST: Duration = Duration::from_secs(1_767_225_600);
/// A file may be so much from the future.
const AHEAD_MAX: Duration = Duration::from_secs(60);

/// Whether processes of agents can be held and stopped.
pub(super) fn custody() -> Finding {
    let what = "custody";
    if pidfd_open(getpid(), PidfdFlags::empty()).is_err() {
        let next =
            "Use Linux 5.3 or newer, and allow pidfd_open where a container's seccomp profile denies it.";
        return Finding::to_do(what, "the kernel gives no handles on processes (pidfd)", next);
    }
    if std::fs::read_to_string("/proc/self/stat").is_err() {
        let next = "Mount /proc: it is how the processes of an agent are found.";
        return Finding::to_do(what, "/proc cannot be read", next);
    }
    Finding::ok(what, "every process that an agent starts is stopped with its run")
}

/// What confines the processes of agents.
pub(super) async fn sandbox(home: &Home) -> Finding {
    let what = "sandbox";
    let Ok(configuration) = Configuration::of_data(home) else {
        return Finding::note(what, "not looked at", "Correct the configuration first.");
    };
    let sandboxes = hub::sandboxes(home, &configuration).await;
    match sandboxes.why_absent() {
        None => Finding::ok(what, sandboxes.to_string()),
        Some(why) => {
            let found = format!("none is in force, and runs are degraded for it: {why}");
            let next =
                format!("{} Until then approve only commands that you would run yourself.", why.next());
            Finding::note(what, found, next)
        }
    }
}

/// Whether the clock can be right.
pub(super) fn clock(home: &Home) -> Finding {
    let now = SystemTime::now();
    let newest = std::fs::metadata(home.database()).and_then(|file| file.modified()).ok();
    let next =
        "Set the machine's clock, for example with NTP: expiry and the order of what people read go by it.";
    if now.duration_since(UNIX_EPOCH).is_ok_and(|since| since < EARLIEST) {
        return Finding::to_do("clock", "it was never set", next);
    }
    if newest.is_some_and(|newest| newest > now + AHEAD_MAX) {
        return Finding::to_do("clock", "it stands before what was recorded last", next);
    }
    Finding::ok("clock", "plausible")
}
