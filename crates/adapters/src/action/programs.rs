//! The programs of declared actions, under the custody of the edge: they end with their run, however it ends.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

use async_trait::async_trait;
use runyard_actions::{Hold, Program, Programs, Started};
use runyard_backend::{Custody, Exit, Launch, Process, ProcessError, Processes};

/// Starts programs through the run's port, with what tells them of the run.
pub(super) struct InCustody {
    pub(super) processes: Arc<dyn Processes>,
    /// The hub's address, the run and its token.
    pub(super) environment: BTreeMap<String, String>,
}

#[async_trait]
impl Programs for InCustody {
    async fn start(&self, program: Program) -> io::Result<Started> {
        let Program { program, arguments, folder, environment } = program;
        // What is no text cannot be handed on.
        let given = environment
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let of_run = self.environment.iter().filter(|(name, _)| name.starts_with("RUNYARD_"));
        let environment = given.chain(of_run.map(|(name, value)| (name.clone(), value.clone()))).collect();
        let started = self.processes.start(Launch { program, arguments, directory: folder, environment });
        match started.await.map_err(of_system)? {
            Process { stdin: Some(stdin), stdout: Some(stdout), stderr: Some(stderr), custody } => {
                Ok(Started { stdin, stdout, stderr, hold: Box::new(Held(custody)) })
            }
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

struct Held(Box<dyn Custody>);

#[async_trait]
impl Hold for Held {
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await.map(status).map_err(of_system)
    }

    async fn end(mut self: Box<Self>) {
        // Where nobody looks after it any more it is gone with whoever did.
        let _ = self.0.stop().await;
    }
}

/// As `waitpid` tells it.
fn status(exit: Exit) -> ExitStatus {
    ExitStatus::from_raw(match exit {
        Exit::Code(code) => (code & 0xff) << 8,
        Exit::Signal(signal) => signal & 0x7f,
    })
}

fn of_system(error: ProcessError) -> io::Error {
    match error {
        ProcessError::Start { source, .. } | ProcessError::Lost { source } => source,
        other => io::Error::other(other),
    }
}
