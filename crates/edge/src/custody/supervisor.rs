//! The body of `runyard child`: guard, keeper and starter, each a fresh process of the same binary. The forwarder, which is one
//! too, has a module of its own.
//!
//! They use one thread and blocking calls only, and no more memory than that needs.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, getpid, getppid, getsid, pidfd_open, set_dumpable_behavior,
    set_parent_process_death_signal, setsid,
};

use super::forwarder::{self, FORWARDER};
use super::tree::Tree;
use super::warden::{self, WARDEN};
use super::wire::{self, Report, number_of};
use super::{COMMAND, lock};

const DONE: u8 = 0;
pub(super) const FAILED: u8 = 1;
pub(super) const MISUSED: u8 = 2;
const GUARD: &str = "guard";
const KEEPER: &str = "keeper";
const STARTER: &str = "starter";
/// Not the name of the binary: whoever kills that one by its name leaves those who clean up after it.
pub(super) const NAME: &std::ffi::CStr = c"custody";

/// Runs what `runyard child` is; `arguments` are those after the word `child`. Returns the exit code.
///
/// To be called first thing in `main`, before there is any other thread.
pub fn supervise(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let mut arguments = arguments.into_iter();
    let Some(role) = arguments.next() else { return MISUSED };
    if role == FORWARDER {
        return forwarder::forward(arguments);
    }
    if role == WARDEN {
        return warden::watch_over(arguments);
    }
    let (Some(argument), None) = (arguments.next(), arguments.next()) else { return MISUSED };
    // What a program is given passes through here: no other process of this user looks into it, and no core file holds it. The
    // program is as it would be without us, since executing it undoes this.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let Ok(control) = take_control() else { return MISUSED };
    // It is a name to look at, no more.
    let _ = rustix::thread::set_name(NAME);
    let done = match role.to_str() {
        Some(GUARD) => guard(control, Path::new(&argument)),
        Some(KEEPER) => keeper(&control, Path::new(&argument)),
        Some(STARTER) => starter(&control, &argument),
        _ => return MISUSED,
    };
    if done.is_ok() { DONE } else { FAILED }
}

/// How the edge starts a guard, but for its standard input.
pub(super) fn guard_arguments(lock: &Path) -> [&OsStr; 3] {
    [OsStr::new(COMMAND), OsStr::new(GUARD), lock.as_os_str()]
}

/// Takes the standard input, a socket, and makes everything else private to this process.
fn take_control() -> io::Result<UnixStream> {
    // Whatever the edge was started with is none of the program's business.
    close_fds::set_fds_cloexec(3, &[]);
    let control = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
    control.local_addr()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(control)
}

/// The same binary in another role.
fn again(role: &str, argument: &OsStr, control: OwnedFd) -> io::Result<Pid> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(COMMAND).arg(role).arg(argument).env_clear();
    let child = command.stdin(control).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    Ok(Pid::from_child(&child))
}

/// Looks after the keeper: whatever a killed keeper leaves is the guard's to kill.
fn guard(control: UnixStream, lock: &Path) -> io::Result<()> {
    let set_up = || {
        setsid()?;
        let mut tree = Tree::adopt()?;
        let held = lock::hold(lock)?;
        tree.watch(again(KEEPER, lock.as_os_str(), control.try_clone()?.into())?);
        io::Result::Ok((tree, held))
    };
    let (mut tree, _held) = set_up().inspect_err(|error| Report::Failed(number_of(error)).say(&control))?;
    // From here on only the keeper has it, so the edge sees when the keeper is gone.
    drop(control);
    tree.wait(&[])?;
    tree.stop(&[], Duration::ZERO);
    Ok(())
}

/// Looks after the program and everything it starts.
fn keeper(control: &UnixStream, lock: &Path) -> io::Result<()> {
    let set_up = || {
        let tree = Tree::adopt()?;
        let held = lock::hold(lock)?;
        // The session is the guard's. Where the guard is gone there is nobody to look after us.
        let guard = getppid().filter(|parent| getsid(None) == Ok(*parent));
        let guard = pidfd_open(guard.ok_or(rustix::io::Errno::SRCH)?, PidfdFlags::empty())?;
        io::Result::Ok((tree, held, guard))
    };
    let started = set_up().and_then(|(tree, held, guard)| {
        Report::Ready.say(control);
        let (order, stdio) = wire::receive(control)?;
        let (grace, wrapped) = (order.grace(), order.is_wrapped());
        Ok((tree, held, guard, grace, wrapped, start(&order.to_bytes()?, stdio)?))
    });
    let (mut tree, _held, guard, grace, wrapped, program) =
        started.inspect_err(|error| Report::Failed(number_of(error)).say(control))?;
    Report::Started.say(control);
    tree.watch(program);
    if wrapped {
        tree.spare();
    }
    tree.wait(&[control, &guard])?;
    let before = tree.reaped();
    // What is left behind by a program that has ended has nothing to be interrupted at.
    let gentle: &[Signal] = match tree.exit() {
        Some(_) => &[Signal::TERM],
        None => &[Signal::INT, Signal::TERM],
    };
    tree.stop(gentle, grace);
    let exit = tree.exit().ok_or(io::ErrorKind::NotFound)?;
    Report::ended(exit, tree.reaped() - before).say(control);
    Ok(())
}

/// Starts the program through a starter. Returns when it has been executed.
fn start(order: &[u8], stdio: wire::Stdio) -> io::Result<Pid> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let own = OsString::from(getpid().as_raw_nonzero().to_string());
    let program = again(STARTER, &own, theirs.into())?;
    wire::send(&ours, order, &stdio)?;
    drop(stdio);
    // Its side closes by itself when it becomes the program.
    let mut failure = Vec::new();
    ours.read_to_end(&mut failure)?;
    match <[u8; 4]>::try_from(failure) {
        Ok(number) => Err(io::Error::from_raw_os_error(i32::from_le_bytes(number))),
        Err(_) => Ok(program),
    }
}

/// Becomes the program, which then dies with the keeper.
fn starter(mut control: &UnixStream, keeper: &OsStr) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before that.
    let parent = getppid().map(|parent| parent.as_raw_nonzero().to_string());
    if parent.as_deref() != keeper.to_str() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let failure = match wire::receive(control).and_then(|(order, stdio)| wear(&stdio).map(|()| order)) {
        Ok(order) => order.become_program(),
        Err(error) => error,
    };
    control.write_all(&number_of(&failure).to_le_bytes())?;
    Err(failure)
}

fn wear([stdin, stdout, stderr]: &wire::Stdio) -> io::Result<()> {
    rustix::stdio::dup2_stdin(stdin)?;
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    Ok(())
}
