//! Starting processes: the port through which a backend starts whatever it starts.
//!
//! The edge implements it with custody: nothing started here outlives its session, or the edge.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

/// A process to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program: an absolute path, or a name that is looked for in the `PATH` of `environment`.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Its whole environment: nothing else is inherited.
    pub environment: BTreeMap<String, String>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Why a process cannot be started or looked after.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The program is not there or may not be executed.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Nobody looks after it any more, so how it ended is not known.
    #[error("the process is no longer looked after: {source}")]
    Lost {
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// Starts processes.
#[async_trait]
pub trait Processes: Send + Sync {
    /// Starts one. It returns when the program has been executed, or with the reason why it could not be.
    async fn start(&self, launch: Launch) -> Result<Process, ProcessError>;
}

/// A process that was started. Dropping it stops it with everything it started.
pub struct Process {
    /// Its standard input; dropping it closes it.
    pub stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// Its standard output.
    pub stdout: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// Its standard error.
    pub stderr: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// What stops it and knows how it ended.
    pub custody: Box<dyn Custody>,
}

/// The hold on a process and on everything it started.
#[async_trait]
pub trait Custody: Send {
    /// Waits until the process itself has ended.
    async fn wait(&mut self) -> Result<Exit, ProcessError>;

    /// Stops it and everything it started: interrupt, terminate, kill. It returns when nothing of it is left.
    async fn stop(&mut self) -> Result<Exit, ProcessError>;
}
