//! Starting the programs of declared actions: the port for whoever looks after what it starts in a way of its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Command;

use crate::process_tree::ProcessTree;

/// A program to start.
#[derive(Clone, Debug)]
pub struct Program {
    /// A name to be looked up in the `PATH` of its environment, or an absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Its whole environment.
    pub environment: BTreeMap<OsString, OsString>,
}

/// A program that was started.
pub struct Started {
    /// Its standard input.
    pub stdin: Pin<Box<dyn AsyncWrite + Send>>,
    /// Its standard output.
    pub stdout: Pin<Box<dyn AsyncRead + Send>>,
    /// Its standard error.
    pub stderr: Pin<Box<dyn AsyncRead + Send>>,
    /// What ends it. Dropping it does, too.
    pub hold: Box<dyn Hold>,
}

/// The hold on a program and on everything it starts.
#[async_trait]
pub trait Hold: Send {
    /// Waits for the program itself. May be dropped and called again.
    async fn wait(&mut self) -> io::Result<ExitStatus>;

    /// Ends what is left of it, and returns when nothing is.
    async fn end(self: Box<Self>);
}

/// Starts programs.
#[async_trait]
pub trait Programs: Send + Sync {
    /// Starts one with pipes for all that it reads and writes.
    async fn start(&self, program: Program) -> io::Result<Started>;
}

/// Starts them in this process, with which they end unless it is killed.
pub(crate) struct Here;

#[async_trait]
impl Programs for Here {
    async fn start(&self, program: Program) -> io::Result<Started> {
        let Program { program, arguments, folder, environment } = program;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).env_clear().envs(environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut tree = ProcessTree::spawn(&mut command)?;
        match tree.pipes() {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok(Started {
                stdin: Box::pin(stdin),
                stdout: Box::pin(stdout),
                stderr: Box::pin(stderr),
                hold: Box::new(tree),
            }),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

#[async_trait]
impl Hold for ProcessTree {
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        ProcessTree::wait(self).await
    }

    async fn end(self: Box<Self>) {
        ProcessTree::end(*self).await;
    }
}
