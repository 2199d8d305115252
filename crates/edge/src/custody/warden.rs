//! What every `git` of the edge is started through: it ends with all that it started when it is done, when the edge wants it to, and
//! when the edge dies.
//!
//! One process where an agent's program has two above it, since a checkout asks `git` some ten times. So there is nobody to look after
//! the warden: where somebody kills that one, `git` ends with its pipes, and what it started may be left.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use runyard_backend::Exit;
use runyard_checkout::{NO_PROGRAM, NOT_LOOKED_AFTER};
use rustix::process::{Pid, PidfdFlags, getpid, getppid, pidfd_open};
use signal_hook::consts::SIGTERM;

use super::supervisor::{FAILED, MISUSED, NAME};
use super::tree::Tree;
use super::{COMMAND, THIS_BINARY};

/// Its role.
pub(super) const WARDEN: &str = "warden";
/// Names the edge in the environment of what it looks after, so that somebody who looks for it finds it.
const STARTED_BY: &str = "RUNYARD_STARTED_BY";

/// From here on every `git` of this process ends with it. This binary's `main` must call [`supervise`](super::supervise) for
/// [`COMMAND`].
pub fn look_after_git() {
    let edge = getpid().as_raw_nonzero().to_string();
    runyard_checkout::start_git_through([THIS_BINARY, COMMAND, WARDEN, &edge].map(OsString::from));
}

/// Runs a program with this process's standard input and outputs; `arguments` are the edge's number, the program and what it is
/// given. Returns how it ended, a signal as 128 and its number, once nothing of it is left.
pub(super) fn watch_over(mut arguments: impl Iterator<Item = OsString>) -> u8 {
    let edge = arguments.next().and_then(|edge| Pid::from_raw(edge.to_str()?.parse().ok()?));
    let (Some(edge), Some(program)) = (edge, arguments.next()) else { return MISUSED };
    let _ = rustix::thread::set_name(NAME);
    match run(edge, Command::new(program).args(arguments)) {
        Ok(Some(Exit::Code(code))) => u8::try_from(code).unwrap_or(FAILED),
        Ok(Some(Exit::Signal(signal))) => u8::try_from(128 + signal).unwrap_or(FAILED),
        Err(error) if error.kind() == io::ErrorKind::NotFound => NO_PROGRAM,
        Ok(None) | Err(_) => NOT_LOOKED_AFTER,
    }
}

fn run(edge: Pid, command: &mut Command) -> io::Result<Option<Exit>> {
    let (asked, asking) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(SIGTERM, asking)?;
    let mut tree = Tree::adopt()?;
    let handle = pidfd_open(edge, PidfdFlags::empty())?;
    // It may have died before that, and its number be somebody else's.
    if getppid() != Some(edge) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    let child = command.env(STARTED_BY, edge.as_raw_nonzero().to_string()).spawn()?;
    tree.watch(Pid::from_child(&child));
    // From here on only the program has them, so that they end with it.
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    tree.wait(&[&asked, &handle])?;
    tree.stop(&[], Duration::ZERO);
    Ok(tree.exit())
}
