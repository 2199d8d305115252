//! What the edge, the keeper and the starter say to each other over a socket pair.
//!
//! Downwards there is one order, with the three pipes of the program attached to its first byte; after it nothing but the
//! end of the stream, which means: stop. Upwards there are reports, one JSON object per line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use runyard_backend::Exit;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::{Deserialize, Serialize};

use super::forwarder;
use crate::sandbox::Wrapped;

/// The kernel takes no longer list of arguments and environment than this.
pub(super) const ORDER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A report is a short line.
pub(super) const REPORT_BYTES_MAX: usize = 256;
/// Nobody is given more time than this between two signals.
pub(super) const GRACE_MAX: Duration = Duration::from_secs(60);
/// The byte that carries the pipes.
const ATTACHED: [u8; 1] = *b"L";

/// The standard input, output and error output of the program, as it will have them.
pub(super) type Stdio = [OwnedFd; 3];

/// What to start, in bytes: paths need not be text.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// What the program is started through, with its arguments.
    wrapper: Vec<Vec<u8>>,
    /// The socket that a forwarder is given.
    gateway: Option<Vec<u8>>,
    program: Vec<u8>,
    arguments: Vec<String>,
    directory: Vec<u8>,
    environment: BTreeMap<String, String>,
    grace_ms: u64,
}

impl Order {
    pub(super) fn new(wrapped: Wrapped, grace: Duration) -> Order {
        let Wrapped { wrapper, gateway, launch } = wrapped;
        Order {
            wrapper: wrapper.into_iter().map(OsString::into_vec).collect(),
            gateway: gateway.map(|socket| socket.into_os_string().into_vec()),
            program: launch.program.as_os_str().as_bytes().to_vec(),
            arguments: launch.arguments,
            directory: launch.directory.as_os_str().as_bytes().to_vec(),
            environment: launch.environment,
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        }
    }

    pub(super) fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms).min(GRACE_MAX)
    }

    /// Whether the program is started through another.
    pub(super) fn is_wrapped(&self) -> bool {
        !self.wrapper.is_empty()
    }

    /// Becomes the program, or what starts it; it only returns with the reason why not.
    pub(super) fn become_program(self) -> io::Error {
        let handed_down = self.gateway.map(|socket| forwarder::hand_down(&OsString::from_vec(socket)));
        if let Some(Err(error)) = handed_down {
            return error;
        }
        let mut words = self.wrapper.into_iter().chain([self.program]).map(OsString::from_vec);
        let Some(first) = words.next() else { return io::ErrorKind::InvalidInput.into() };
        Command::new(first)
            .args(words)
            .args(self.arguments)
            .current_dir(OsString::from_vec(self.directory))
            .env_clear()
            .envs(self.environment)
            .exec()
    }

    /// As it travels: its length, then itself.
    pub(super) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let order = serde_json::to_vec(self)?;
        let length = u32::try_from(order.len()).ok().filter(|_| order.len() <= ORDER_BYTES_MAX);
        let length = length.ok_or(rustix::io::Errno::TOOBIG)?;
        Ok([&length.to_le_bytes()[..], &order].concat())
    }
}

/// What a supervisor says to the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// It holds the lock and waits for the order.
    Ready,
    /// The program has been executed.
    Started,
    /// It cannot be, for this reason of the system.
    Failed(i32),
    /// The program ended with this code and nothing that it started is left.
    Code {
        /// The code.
        code: i32,
        /// How many processes had to be stopped, or ended while they were being stopped.
        stopped: u64,
    },
    /// The program was ended by this signal and nothing that it started is left.
    Signal {
        /// The signal.
        signal: i32,
        /// How many processes had to be stopped, or ended while they were being stopped.
        stopped: u64,
    },
}

impl Report {
    pub(super) fn ended(exit: Exit, stopped: u64) -> Report {
        match exit {
            Exit::Code(code) => Report::Code { code, stopped },
            Exit::Signal(signal) => Report::Signal { signal, stopped },
        }
    }

    /// Says it. Nobody may be there to hear it, which the end of the stream tells anyway.
    pub(super) fn say(self, mut control: &UnixStream) {
        if let Ok(mut line) = serde_json::to_vec(&self) {
            line.push(b'\n');
            let _ = control.write_all(&line);
        }
    }
}

/// The number by which the other side makes the same error again.
pub(super) fn number_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(rustix::io::Errno::INVAL.raw_os_error())
}

/// Attaches the pipes to the one byte before an order.
pub(super) fn attach(control: impl AsFd, stdio: &Stdio) -> io::Result<()> {
    let pipes: [BorrowedFd<'_>; 3] = [stdio[0].as_fd(), stdio[1].as_fd(), stdio[2].as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&pipes));
    rustix::net::sendmsg(control, &[IoSlice::new(&ATTACHED)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Sends an order and its pipes.
pub(super) fn send(mut control: &UnixStream, order: &[u8], stdio: &Stdio) -> io::Result<()> {
    attach(control, stdio)?;
    control.write_all(order)
}

/// Waits for an order and its pipes.
pub(super) fn receive(mut control: &UnixStream) -> io::Result<(Order, Stdio)> {
    let stdio = receive_attached(control)?;
    let mut length = [0; 4];
    control.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_le_bytes(length)).ok().filter(|length| *length <= ORDER_BYTES_MAX);
    let mut order = vec![0; length.ok_or(rustix::io::Errno::TOOBIG)?];
    control.read_exact(&mut order)?;
    Ok((serde_json::from_slice(&order)?, stdio))
}

fn receive_attached(control: &UnixStream) -> io::Result<Stdio> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(control, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags)
    })?;
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let rights = |message| match message {
        RecvAncillaryMessage::ScmRights(pipes) => Some(pipes),
        _ => None,
    };
    let pipes: Vec<OwnedFd> = ancillary.drain().filter_map(rights).flatten().collect();
    pipes.try_into().map_err(|_| io::ErrorKind::InvalidData.into())
}
