//! The only way out of a sandbox whose network is cut: from one port of its loopback to the socket of the edge's gateway.
//!
//! Bubblewrap starts the forwarder, and the forwarder the program, once the port can be called. It is the sandbox's first process
//! but for bubblewrap's own, so when it ends, for whatever reason, the kernel ends the program and everything else in there; and
//! when the program ends, it ends in the same way.
//!
//! This binary and the socket lie where the sandbox shows nothing. The starter opens both before it becomes bubblewrap, which
//! hands open files on; so neither has a name in there, and a sandbox that the agent makes inside, without a network, has no way
//! to the gateway. The program inherits neither, and cannot look into the forwarder for them.
//!
//! It carries bytes, and neither reads nor limits what they mean: that is the gateway's matter.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::COMMAND;
use super::supervisor::{FAILED, MISUSED, NAME};
use super::tree::become_deaf;

/// Its role.
pub(super) const FORWARDER: &str = "forwarder";
/// So many connections are forwarded at a time; more wait until one of them ends.
const CONNECTIONS_MAX: usize = 64;
/// A thread only copies.
const STACK_BYTES: usize = 128 * 1024;
/// The wait after a connection that could not be taken.
const PAUSE: Duration = Duration::from_millis(20);
/// By these numbers it has the binary and the socket; above all that a starter opens.
const BINARY: i32 = 60;
const SOCKET: i32 = 61;

/// What the forwarder is started by, up to the program.
pub(crate) fn forwarder_words(port: u16) -> [OsString; 4] {
    let binary = format!("/proc/self/fd/{BINARY}");
    [binary.into(), COMMAND.into(), FORWARDER.into(), port.to_string().into()]
}

/// Opens what the forwarder needs for whatever this process becomes.
pub(super) fn hand_down(socket: &OsStr) -> io::Result<()> {
    for (path, number) in [(OsStr::new("/proc/self/exe"), BINARY), (socket, SOCKET)] {
        let opened = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let inherited = fcntl_dupfd_cloexec(&opened, number)?;
        fcntl_setfd(&inherited, FdFlags::empty())?;
        if inherited.into_raw_fd() != number {
            return Err(Errno::BUSY.into());
        }
    }
    Ok(())
}

/// Runs a program with the port open: `arguments` are the port, the program and what it is given. Returns how the program ended,
/// as bubblewrap would tell it.
pub(super) fn forward(mut arguments: impl Iterator<Item = OsString>) -> u8 {
    let port = arguments.next().and_then(|port| port.to_str()?.parse().ok());
    let (Some(port), Some(program)) = (port, arguments.next()) else { return MISUSED };
    run(port, &program, arguments).unwrap_or_else(|error| {
        // Nobody may be there to read it.
        let _ = writeln!(io::stderr(), "runyard: cannot run {}: {error}", program.display());
        FAILED
    })
}

fn run(port: u16, program: &OsStr, arguments: impl Iterator<Item = OsString>) -> io::Result<u8> {
    // It is a name to look at, no more.
    let _ = rustix::thread::set_name(NAME);
    close_fds::set_fds_cloexec(3, &[]);
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    become_deaf()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    thread::Builder::new().stack_size(STACK_BYTES).spawn(move || serve(&listener))?;
    // In a group of its own, as it would be without a forwarder.
    let status = Command::new(program).args(arguments).process_group(0).spawn()?.wait()?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED))
}

/// A place among the connections. It is free again when this is dropped.
struct Seat(Sender<()>);

impl Drop for Seat {
    fn drop(&mut self) {
        // Nobody waits for one any more when everything ends.
        let _ = self.0.send(());
    }
}

fn serve(listener: &TcpListener) {
    let (seats, free) = mpsc::channel();
    (0..CONNECTIONS_MAX).for_each(|_| drop(Seat(seats.clone())));
    while free.recv().is_ok() {
        let seat = Seat(seats.clone());
        let taken = listener.accept().and_then(|(inside, _)| {
            let carry = move || {
                let _seat = seat;
                // Where the gateway is gone, the end of the connection tells.
                let _ = carry(&inside);
            };
            thread::Builder::new().stack_size(STACK_BYTES).spawn(carry)
        });
        if taken.is_err() {
            thread::sleep(PAUSE);
        }
    }
}

/// Joins a connection with a new one to the gateway, until both directions have ended. The end of one direction, for whatever
/// reason, is passed on in that direction; the other goes on.
fn carry(inside: &TcpStream) -> io::Result<()> {
    let outside = &UnixStream::connect(format!("/proc/self/fd/{SOCKET}"))?;
    inside.set_nodelay(true)?;
    thread::scope(|scope| {
        thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || {
            let _ = io::copy(&mut &*outside, &mut &*inside);
            let _ = (inside.shutdown(Shutdown::Write), outside.shutdown(Shutdown::Read));
        })?;
        let _ = io::copy(&mut &*inside, &mut &*outside);
        let _ = outside.shutdown(Shutdown::Write);
        // What the gateway does not want any more is taken all the same: left unread, it would cost the program the answer.
        let _ = io::copy(&mut &*inside, &mut io::sink());
        Ok(())
    })
}
