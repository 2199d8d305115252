//! A private PostgreSQL cluster: its own folder, port and process, one database per test.

use std::ffi::{OsStr, OsString};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;

use crate::account::Account;
use crate::port::Port;
use crate::processes;
use crate::programs::Programs;
use crate::supervisor::Supervisor;
use crate::template;

/// The superuser of every cluster.
pub const USER: &str = "runyard";
/// Its password: one that a test can look for where it must not appear.
pub const PASSWORD: &str = "correct-horse-battery-staple";

/// So often another port is tried when the first start fails.
const START_ATTEMPTS_MAX: u32 = 3;
/// The line of `postmaster.pid` that says whether the server takes connections.
const STATUS_LINE: usize = 7;
/// What stands there when it does.
const TAKES_CONNECTIONS: [&str; 2] = ["ready", "standby"];
/// The line of `postmaster.pid` that names its shared memory: a key and an id.
const SHARED_MEMORY_LINE: usize = 6;

/// Durable as in production, small as for tests. Shared memory lies in files, which go with the folder.
const SETTINGS: [&str; 7] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=on",
    "shared_buffers=16MB",
    "max_connections=100",
    "dynamic_shared_memory_type=mmap",
    "log_min_messages=warning",
];

/// A running (or stopped) cluster. Dropping it stops the server and removes the folder; so does the end of the test's
/// process, whatever ends it.
#[derive(Debug)]
pub struct Postgres {
    programs: Programs,
    folder: PathBuf,
    databases: AtomicU32,
    server: Option<u32>,
    supervisor: Supervisor,
    /// Dropped last: it is ours until the server has ended.
    port: Port,
}

impl Postgres {
    /// Starts a new cluster on a loopback port of its own.
    pub fn start() -> Result<Self> {
        Self::prepare(None)
    }

    /// The same, with TLS: a certificate and its key, as PEM. Connections without TLS are still taken.
    pub fn start_with_tls(certificate: &str, key: &str) -> Result<Self> {
        Self::prepare(Some((certificate, key)))
    }

    /// The one cluster that all tests of this process share. It is never stopped while the process lives.
    pub fn shared() -> Result<&'static Self> {
        static SHARED: OnceLock<Result<Postgres, String>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| Self::start().map_err(|error| format!("{error:#}")));
        shared.as_ref().map_err(|error| anyhow::anyhow!("{error}"))
    }

    fn prepare(tls: Option<(&str, &str)>) -> Result<Self> {
        let mut last = None;
        for _ in 0..START_ATTEMPTS_MAX {
            let mut prepared = Self::new(tls)?;
            match prepared.start_again() {
                Ok(()) => return Ok(prepared),
                Err(error) => last = Some(error),
            }
        }
        Err(last.context("no attempt was made")?)
    }

    /// A cluster whose server is not yet started.
    fn new(tls: Option<(&str, &str)>) -> Result<Self> {
        let programs = Programs::find()?;
        let account = Account::find()?;
        let folder = tempfile::Builder::new().prefix("runyard-pg-").tempdir_in(account.scratch())?;
        account.own(folder.path())?;
        let data = folder.path().join("data");
        template::copy_cluster(&programs, account, &data)?;
        let port = Port::reserve(&template::build_folder()?.join("pg-ports"))?;
        let mut command: Vec<OsString> =
            vec![programs.postgres.clone().into(), "-D".into(), data.clone().into()];
        let settings = SETTINGS.into_iter().map(str::to_owned).chain([format!("port={}", port.number)]);
        for setting in settings.chain(tls.map(|_| "ssl=on".to_owned())) {
            command.extend(["-c".into(), setting.into()]);
        }
        if let Some((certificate, key)) = tls {
            write_private(account, &data.join("server.crt"), certificate)?;
            write_private(account, &data.join("server.key"), key)?;
        }
        let supervisor = Supervisor::start(account, folder.path(), command.iter().map(OsStr::new))?;
        // From here on the supervisor removes it.
        let folder = folder.keep();
        Ok(Self { programs, folder, databases: AtomicU32::new(0), server: None, supervisor, port })
    }

    /// Where the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port.number).into()
    }

    /// Makes a new, empty database and gives its URL, with [`USER`] and [`PASSWORD`].
    pub fn database(&self) -> Result<String> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql(&self.url("postgres"), &format!("CREATE DATABASE {name}"))?;
        Ok(self.url(&name))
    }

    /// The URL of a database that exists.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}:{PASSWORD}@{}/{database}", self.address())
    }

    /// Runs SQL in the database of a URL and gives what it prints: unaligned rows without headings.
    pub fn sql(&self, url: &str, sql: &str) -> Result<String> {
        let output = Command::new(&self.programs.psql)
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"])
            .args(["--dbname", url, "--command", sql])
            .current_dir("/")
            .output()
            .context("cannot start psql")?;
        ensure!(output.status.success(), "psql: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// What the server wrote to its log.
    pub fn log(&self) -> Result<String> {
        let log = std::fs::read(self.folder.join("log")).context("cannot read the server's log")?;
        Ok(String::from_utf8_lossy(&log).into_owned())
    }

    /// Stops the server at once, as `pg_ctl -m immediate` does: connections break, nothing is written any more, and
    /// the next start recovers from the log of writes.
    pub fn stop_immediately(&mut self) -> Result<()> {
        ensure!(self.server.take().is_some(), "the server is not running");
        self.supervisor.stop_server()
    }

    /// Kills the server and all its children, as the kernel would for lack of memory.
    pub fn kill_hard(&mut self) -> Result<()> {
        let server = self.server.take().context("the server is not running")?;
        // Stopped first, so that it starts no child while we look for them.
        processes::signal(server, Signal::STOP)?;
        let mut killed = processes::children(server)?;
        killed.push(server);
        for id in &killed {
            processes::signal(*id, Signal::KILL)?;
        }
        processes::wait_for("the end of the server's processes", || {
            let gone = killed.iter().map(|id| processes::is_running(*id)).collect::<Result<Vec<_>>>()?;
            Ok(gone.iter().all(|running| !running).then_some(()))
        })?;
        self.supervisor.forget_server()?;
        self.remove_what_was_left()
    }

    /// Starts the server again, on the same port and data, and waits until it takes connections.
    pub fn start_again(&mut self) -> Result<()> {
        ensure!(self.server.is_none(), "the server is running");
        let server = self.supervisor.start_server()?;
        let mut looks = 0_u32;
        let started = processes::wait_for("the server to take connections", || {
            looks += 1;
            if self
                .status()
                .is_some_and(|(id, status)| id == server && TAKES_CONNECTIONS.contains(&status.as_str()))
            {
                return Ok(Some(()));
            }
            if looks.is_multiple_of(20) && !processes::is_running(server)? {
                bail!("the server ended while it started: {}", self.log()?.trim());
            }
            Ok(None)
        });
        match started {
            Ok(()) => self.server = Some(server),
            Err(error) => {
                self.supervisor.stop_server()?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// The process id of the server, while it runs.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.server
    }

    /// The folder of the cluster: `data` and `log`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The process id and the state in `postmaster.pid`.
    fn status(&self) -> Option<(u32, String)> {
        let text = self.postmaster()?;
        let id = text.lines().next()?.trim().parse().ok()?;
        Some((id, text.lines().nth(STATUS_LINE)?.trim().to_owned()))
    }

    fn postmaster(&self) -> Option<String> {
        std::fs::read_to_string(self.folder.join("data/postmaster.pid")).ok()
    }

    /// A killed server leaves its lock file, which another process of that id would keep valid, and a few bytes of
    /// shared memory, which nobody would ever free.
    fn remove_what_was_left(&self) -> Result<()> {
        let Some(text) = self.postmaster() else { return Ok(()) };
        let memory = text.lines().nth(SHARED_MEMORY_LINE).and_then(|line| line.split_whitespace().nth(1));
        if let Some(id) = memory {
            // Not there means: nothing to free.
            let _ = Command::new("ipcrm").args(["-m", id]).output();
        }
        std::fs::remove_file(self.folder.join("data/postmaster.pid")).context("cannot remove postmaster.pid")
    }
}

fn write_private(account: Account, path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    account.own(path)
}
