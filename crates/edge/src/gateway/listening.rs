//! Sockets: one on loopback for all runs, and a Unix socket for a run whose network is cut.
//!
//! A connection carries one request. Dropping a socket ends every connection that came over it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use runyard_llm::http::{Client, Io};
use rustix::fs::{AtFlags, Mode, OFlags, chmodat, open, renameat, statat, unlinkat};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, JoinSet};

use super::limits::Limits;
use super::routes;
use super::runs::{Digest, Runs};

/// So many connections of one socket may have shown no token of a run. Then the oldest of them ends: whoever has a token shows it at once.
pub(super) const STRANGERS_MAX: usize = 64;
/// So many bytes of requests may be in memory at once, whosesoever they are.
pub(super) const BODIES_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The head of a request may be so large.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// After an accept error such as too many open files, so long until the next try.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What every request needs.
pub(super) struct Server {
    pub(super) runs: Runs,
    pub(super) client: Client,
    pub(super) limits: Limits,
    /// Room for requests, in bytes.
    pub(super) bodies: Arc<Semaphore>,
}

impl Server {
    pub(super) fn new(client: Client, limits: Limits) -> Self {
        Server { runs: Runs::default(), client, limits, bodies: Arc::new(Semaphore::new(BODIES_BYTES_MAX)) }
    }
}

/// A connection, as its request sees it.
pub(super) struct Visit {
    /// Whose token alone is taken here; every run's where there is none.
    pub(super) only: Option<Digest>,
    /// Ends it at once, whatever the client has read.
    pub(super) cut: Notify,
    /// Its place among the connections of its run, once that is known.
    place: OnceLock<OwnedSemaphorePermit>,
}

impl Visit {
    /// It is one of a run.
    pub(super) fn known(&self, place: OwnedSemaphorePermit) {
        let _ = self.place.set(place);
    }

    fn is_strange(&self) -> bool {
        self.place.get().is_none()
    }
}

/// A socket that is served as long as this exists.
pub(super) struct Listening {
    task: JoinHandle<()>,
    port: u16,
    _file: Option<SocketFile>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listening {
    /// On a free port of the loopback address.
    pub(super) async fn tcp(server: Arc<Server>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        Ok(Listening { task: tokio::spawn(accept(Listener::Tcp(listener), server, None)), port, _file: None })
    }

    /// On a Unix socket that only its owner may use, and only for one run.
    pub(super) fn unix(path: &Path, server: Arc<Server>, only: Digest) -> io::Result<Self> {
        let (listener, file) = SocketFile::bind(path)?;
        Ok(Listening {
            task: tokio::spawn(accept(Listener::Unix(listener), server, Some(only))),
            port: 0,
            _file: Some(file),
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

/// The name of a Unix socket, removed when this is dropped, unless another socket has taken it.
struct SocketFile {
    directory: OwnedFd,
    name: OsString,
    inode: u64,
}

impl SocketFile {
    /// Binds it by way of its directory, since the system takes names of a hundred bytes only. It has its mode before it has its name.
    fn bind(path: &Path) -> io::Result<(UnixListener, Self)> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let directory = open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let mut draft = name.to_owned();
        draft.push(".draft");
        absent(unlinkat(&directory, &draft, AtFlags::empty()))?;
        let short = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(&draft);
        let listener = UnixListener::bind(short)?;
        chmodat(&directory, &draft, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
        let inode = statat(&directory, &draft, AtFlags::SYMLINK_NOFOLLOW)?.st_ino;
        renameat(&directory, &draft, &directory, name)?;
        Ok((listener, SocketFile { directory, name: name.to_owned(), inode }))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| found.st_ino == self.inode);
        if is_ours && let Err(error) = unlinkat(&self.directory, &self.name, AtFlags::empty()) {
            tracing::warn!(%error, "a socket of the gateway could not be removed");
        }
    }
}

fn absent(removed: rustix::io::Result<()>) -> io::Result<()> {
    match removed {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    async fn accept(&self) -> io::Result<Box<dyn Io>> {
        Ok(match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // An event is awaited; waiting to fill a packet only delays it.
                let _ = stream.set_nodelay(true);
                Box::new(stream)
            }
            Listener::Unix(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

async fn accept(listener: Listener, server: Arc<Server>, only: Option<Digest>) {
    let mut strangers: VecDeque<Weak<Visit>> = VecDeque::new();
    // Dropping it ends them.
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok(stream) => {
                strangers.retain(|visit| visit.upgrade().is_some_and(|visit| visit.is_strange()));
                if strangers.len() >= STRANGERS_MAX
                    && let Some(oldest) = strangers.pop_front().and_then(|visit| visit.upgrade())
                {
                    oldest.cut.notify_one();
                }
                let visit = Arc::new(Visit { only, cut: Notify::new(), place: OnceLock::new() });
                strangers.push_back(Arc::downgrade(&visit));
                connections.spawn(connection(stream, Arc::clone(&server), visit));
            }
            Err(error) => {
                tracing::warn!(%error, "the gateway could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: Box<dyn Io>, server: Arc<Server>, visit: Arc<Visit>) {
    let service = service_fn(|request| routes::answer(Arc::clone(&server), request, Arc::clone(&visit)));
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(server.limits.request_head)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        result = served => if let Err(error) = result {
            // A client that goes away in the middle is everyday life.
            tracing::debug!(%error, "a connection to the gateway ended early");
        },
        // A client that reads nothing would else be waited for.
        () = visit.cut.notified() => {}
    }
}
