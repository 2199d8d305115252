//! All descendants of this process: waiting for them and stopping every one.
//!
//! This process adopts every orphan below it, so a descendant can leave its session, its group, its parent and its
//! environment, but not the tree; and once there is no child there is no descendant. It stops what it may signal: a
//! program that became another user is waited for.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use runyard_backend::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, pidfd_open, pidfd_send_signal,
    set_child_subreaper, wait,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::kin::{Kin, parent_of};

/// One pass over the tree signals at most so many; the next pass finds the others.
const PASS_MAX: usize = 65_536;
/// The wait after the first killing pass. It doubles as long as nothing comes of it.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// The longest wait between two killing passes.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// So much of what woke us is taken at once.
const WAKES_MAX: usize = 256;

/// The descendants of this process.
pub(super) struct Tree {
    own: Pid,
    /// Readable when a child has ended.
    wakes: UnixStream,
    program: Option<Pid>,
    /// Whether that one is only what the program runs in.
    spared: bool,
    exit: Option<Exit>,
    reaped: u64,
}

impl Tree {
    /// Makes this process the one that adopts the orphans, and deaf to the signals that ask it to end.
    pub(super) fn adopt() -> io::Result<Tree> {
        let (wakes, woken) = UnixStream::pair()?;
        wakes.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, woken)?;
        become_deaf()?;
        set_child_subreaper(Some(getpid()))?;
        Ok(Tree { own: getpid(), wakes, program: None, spared: false, exit: None, reaped: 0 })
    }

    /// Says which child is the one whose end matters.
    pub(super) fn watch(&mut self, program: Pid) {
        self.program = Some(program);
    }

    /// Says that the watched child only hands on how the program ended: it gets no gentle signal, for it ends when the program
    /// does, and would otherwise take it with it at once.
    pub(super) fn spare(&mut self) {
        self.spared = true;
    }

    /// How the watched child ended, once it has.
    pub(super) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// How many children have ended so far.
    pub(super) fn reaped(&self) -> u64 {
        self.reaped
    }

    /// Waits until the watched child has ended or one of the others can be read.
    pub(super) fn wait(&mut self, others: &[&dyn AsFd]) -> io::Result<()> {
        loop {
            self.reap();
            if self.exit.is_some() {
                return Ok(());
            }
            let mut polled = vec![PollFd::new(&self.wakes, PollFlags::IN)];
            polled.extend(others.iter().map(|other| PollFd::new(other, PollFlags::IN | PollFlags::RDHUP)));
            match poll(&mut polled, None) {
                Ok(_) if polled.iter().skip(1).any(|other| !other.revents().is_empty()) => return Ok(()),
                Ok(_) | Err(Errno::INTR) => self.drain(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Stops every descendant, first with the gentle signals, each with its time of grace, then by force.
    ///
    /// It returns when none is left.
    pub(super) fn stop(&mut self, gentle: &[Signal], grace: Duration) {
        for signal in gentle {
            if self.reap() == Left::None {
                return;
            }
            self.signal(*signal);
            if self.settle(Instant::now() + grace) == Left::None {
                return;
            }
        }
        let (mut pause, mut reaped) = (PAUSE_MIN, self.reaped);
        while self.reap() == Left::Some {
            pause = if self.reaped > reaped { PAUSE_MIN } else { PAUSE_MAX.min(pause * 2) };
            reaped = self.reaped;
            self.signal(Signal::KILL);
            self.sleep(pause);
        }
    }

    /// Waits until nothing is left, but not beyond the deadline.
    fn settle(&mut self, deadline: Instant) -> Left {
        loop {
            let left = self.reap();
            let now = Instant::now();
            if left == Left::None || now >= deadline {
                return left;
            }
            self.sleep(deadline - now);
        }
    }

    /// Waits until a child ends, but not longer than `limit`.
    fn sleep(&mut self, limit: Duration) {
        let limit = Timespec::try_from(limit).ok();
        // Whatever it says, the next thing done is to look.
        let _ = poll(&mut [PollFd::new(&self.wakes, PollFlags::IN)], limit.as_ref());
        self.drain();
    }

    fn drain(&mut self) {
        let _ = self.wakes.read(&mut [0; WAKES_MAX]);
    }

    /// Takes in all children that have ended.
    fn reap(&mut self) -> Left {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((child, status))) => {
                    self.reaped += 1;
                    if self.program == Some(child) {
                        self.exit = exit_of(status);
                    }
                }
                Ok(None) => return Left::Some,
                Err(Errno::INTR) => {}
                Err(_) => return Left::None,
            }
        }
    }

    /// Sends a signal to every descendant, parents first.
    fn signal(&self, signal: Signal) {
        let kin = Kin::look();
        let mut seen: Vec<(Pid, Pid)> = pairs(self.own, kin.children_of(self.own));
        for _ in 0..PASS_MAX {
            let Some((child, parent)) = seen.pop() else { return };
            // The handle stays with the process that was seen, whoever gets its number.
            let Ok(handle) = pidfd_open(child, PidfdFlags::empty()) else { continue };
            if !self.is_ours(child, parent) {
                continue;
            }
            let send = |signal| {
                let _ = pidfd_send_signal(&handle, signal);
            };
            if signal == Signal::KILL {
                // So that it has no more children than those we are about to see.
                send(Signal::STOP);
            }
            let children = kin.children_of(child);
            // Of one that has ended meanwhile they may be somebody else's, and its own come to us.
            if !has_ended(&handle) {
                seen.extend(pairs(child, children));
            }
            if signal != Signal::KILL && self.spared && self.program == Some(child) {
                continue;
            }
            send(signal);
            // One that is stopped could not answer.
            send(Signal::CONT);
        }
    }

    /// Whether a process is still the one that was seen. A child of our own is, until we reap it; another may have ended
    /// and its number may be somebody else's, who then has another parent.
    fn is_ours(&self, child: Pid, parent: Pid) -> bool {
        parent == self.own || parent_of(child).is_some_and(|now| now == parent || now == self.own)
    }
}

/// Makes this process deaf to the signals that ask it to end.
///
/// They are caught, not ignored: what is ignored would be ignored by the program too.
pub(super) fn become_deaf() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Some,
    None,
}

fn has_ended(handle: &OwnedFd) -> bool {
    poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&Timespec::default())) != Ok(0)
}

fn pairs(parent: Pid, children: Vec<Pid>) -> Vec<(Pid, Pid)> {
    children.into_iter().map(|child| (child, parent)).collect()
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    status.exit_status().map(Exit::Code).or_else(|| status.terminating_signal().map(Exit::Signal))
}
