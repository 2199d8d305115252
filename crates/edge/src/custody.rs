//! Process custody: whatever an edge starts ends with everything that it started, also when the edge is killed.
//!
//! Three processes of the same binary (`runyard child …`) stand between the edge and the program:
//!
//! - The **guard** is the edge's child: its own session, adopts orphans, waits for the keeper. If the keeper is killed, the
//!   guard inherits what it leaves and kills it.
//! - The **keeper** is the guard's child and holds one end of a socket pair whose other end only the edge has. It adopts the
//!   orphans below it, has the program started, and when the program ends, the guard is gone or the stream from the edge
//!   ends, it stops the whole tree: interrupt, terminate, kill, again and again until it has no child, and so no
//!   descendant.
//! - The **starter** asks the kernel to be killed with the keeper and becomes the program, or says why it cannot.
//!
//! The end of the stream is the only way to stop: a stop half-closes the socket, a dropped [`Process`] closes it, and the
//! kernel closes it for an edge that dies. So nothing depends on the edge being alive, and there is no moment without
//! cover: the order to start is only given once guard and keeper say that they hold the lock.
//!
//! Why a socket pair on the standard input: it is inherited without a number having to be passed or a flag to be cleared,
//! so nothing else that the edge starts meanwhile can inherit it; it has no name that another process could open; and it
//! carries the program's three pipes, which therefore no process but the program ever has. They are plain pipes between
//! the program and the edge: a slow reader holds up the program, and nothing buffers in between.
//!
//! What holds when somebody kills a supervisor with SIGKILL: the guard or the keeper alone, the tree ends. Both in the same
//! moment, the program itself ends, unless it is one that runs as another user; what it started may be left. A process that
//! became another user cannot be signalled; it is waited for, and the lock stays held. Limits, niceness and file mode mask
//! are those of the edge. Only Linux has what this needs; cgroups are not used, and namespaces are the sandbox's matter.
//!
//! A confined program is started through bubblewrap, which hands on how it ended, a signal as 128 and its number. The gentle
//! signals pass bubblewrap by: it would take the program with it at once. What a confined program leaves behind is killed with its
//! namespace as soon as it ends. Where such a sandbox has no network but the gateway, a fourth process of the same binary, the
//! **forwarder**, runs in it: bubblewrap starts the forwarder, and that one the program.
//!
//! The `git` that the edge itself asks is no program of a run and has one supervisor of its own, the **warden**.

mod forwarder;
mod kin;
mod lock;
mod supervisor;
mod tree;
mod warden;
mod wire;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use runyard_backend::{Custody, Exit, Launch, Process, ProcessError, Processes, failpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::timeout;

pub(crate) use forwarder::forwarder_words;
pub use lock::wait_until_gone;
pub use supervisor::supervise;
pub use warden::look_after_git;
use wire::{Order, REPORT_BYTES_MAX, Report};

use crate::sandbox::Confinement;

/// The hidden command that [`supervise`] is the body of.
pub const COMMAND: &str = "child";
/// The binary that runs, also when its file has been replaced since.
const THIS_BINARY: &str = "/proc/self/exe";
/// So long a program may take after each of the two gentle signals.
const GRACE: Duration = Duration::from_secs(2);
/// What is not gone so long after it was killed cannot be killed.
const KILL_TIME_MAX: Duration = Duration::from_secs(30);

/// Starts processes under supervisors.
#[derive(Clone, Debug)]
pub struct Supervised {
    program: PathBuf,
    lock: PathBuf,
    grace: Duration,
    confinement: Confinement,
}

impl Supervised {
    /// Supervised by this very binary, whose `main` must call [`supervise`] for [`COMMAND`].
    ///
    /// As long as anything started here is left, `lock` is held (see [`wait_until_gone`]). Its directory must exist, and
    /// should not be one that the program may write to.
    pub fn new(lock: impl Into<PathBuf>) -> Supervised {
        let confinement = Confinement::None;
        Supervised { program: THIS_BINARY.into(), lock: lock.into(), grace: GRACE, confinement }
    }

    /// Supervised by another binary.
    pub fn with_program(self, program: impl Into<PathBuf>) -> Supervised {
        Supervised { program: program.into(), ..self }
    }

    /// With another time of grace after each of the two gentle signals; at most a minute.
    pub fn with_grace(self, grace: Duration) -> Supervised {
        Supervised { grace: grace.min(wire::GRACE_MAX), ..self }
    }

    /// With this confinement around the program; the supervisors stay outside.
    pub fn confined(self, confinement: Confinement) -> Supervised {
        Supervised { confinement, ..self }
    }

    async fn launch(&self, launch: Launch) -> io::Result<Process> {
        let order = Order::new(self.confinement.wrap(launch)?, self.grace).to_bytes()?;
        let mut held = self.guard()?;
        held.expect(Report::Ready).await?;
        let (stdin, our_stdin) = io::pipe()?;
        let (our_stdout, stdout) = io::pipe()?;
        let (our_stderr, stderr) = io::pipe()?;
        let stdio: wire::Stdio = [stdin.into(), stdout.into(), stderr.into()];
        let control = &held.control;
        control.async_io(Interest::WRITABLE, || wire::attach(control, &stdio)).await?;
        drop(stdio);
        held.control.write_all(&order).await?;
        held.expect(Report::Started).await?;
        failpoint::reach("process.started");
        Ok(Process {
            stdin: Some(Box::pin(pipe::Sender::from_owned_fd(OwnedFd::from(our_stdin))?)),
            stdout: Some(Box::pin(pipe::Receiver::from_owned_fd(OwnedFd::from(our_stdout))?)),
            stderr: Some(Box::pin(pipe::Receiver::from_owned_fd(OwnedFd::from(our_stderr))?)),
            custody: Box::new(held),
        })
    }

    fn guard(&self) -> io::Result<Held> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut command = Command::new(&self.program);
        command.args(supervisor::guard_arguments(&self.lock)).env_clear();
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        failpoint::reach("process.start");
        let guard = command.spawn()?;
        failpoint::reach("process.spawned");
        let stop_max = self.grace * 2 + KILL_TIME_MAX;
        Ok(Held { control: UnixStream::from_std(ours)?, heard: Vec::new(), ended: None, guard, stop_max })
    }
}

#[async_trait]
impl Processes for Supervised {
    async fn start(&self, launch: Launch) -> Result<Process, ProcessError> {
        let program = launch.program.display().to_string();
        self.launch(launch).await.map_err(|source| ProcessError::Start { program, source })
    }
}

/// The edge's hold on a tree. The tree ends when it is dropped.
struct Held {
    control: UnixStream,
    /// What was heard and is no whole line yet, so that a dropped wait loses nothing.
    heard: Vec<u8>,
    ended: Option<Exit>,
    guard: Child,
    stop_max: Duration,
}

impl Held {
    /// The next report; none when there is nobody left to give one.
    async fn report(&mut self) -> io::Result<Option<Report>> {
        loop {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.heard.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            if self.heard.len() > REPORT_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if self.control.read_buf(&mut self.heard).await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn expect(&mut self, expected: Report) -> io::Result<()> {
        match self.report().await? {
            Some(report) if report == expected => Ok(()),
            Some(Report::Failed(number)) => Err(io::Error::from_raw_os_error(number)),
            Some(_) => Err(io::ErrorKind::InvalidData.into()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Waits until keeper and guard are gone, which they are when everything else is.
    async fn end(&mut self) -> io::Result<Exit> {
        while let Some(report) = self.report().await? {
            let (exit, stopped) = match report {
                Report::Code { code, stopped } => (Exit::Code(code), stopped),
                Report::Signal { signal, stopped } => (Exit::Signal(signal), stopped),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            };
            tracing::debug!(?exit, stopped, "a supervised process ended");
            self.ended = Some(exit);
        }
        self.guard.wait().await?;
        failpoint::reach("process.ended");
        self.ended.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

#[async_trait]
impl Custody for Held {
    async fn wait(&mut self) -> Result<Exit, ProcessError> {
        self.end().await.map_err(|source| ProcessError::Lost { source })
    }

    async fn stop(&mut self) -> Result<Exit, ProcessError> {
        failpoint::reach("process.stop");
        // Where the other side is gone already, waiting tells.
        let _ = self.control.shutdown().await;
        let ended = timeout(self.stop_max, self.end()).await.unwrap_or_else(|late| Err(late.into()));
        ended.map_err(|source| ProcessError::Lost { source })
    }
}
