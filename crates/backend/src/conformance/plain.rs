//! Processes without custody of their own, for the suite: each in its own group, killed with it.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};

use crate::{Custody, Exit, Launch, Probe, Process, ProcessError, Processes};

/// Starts plain processes and knows which of their groups are still there.
#[derive(Debug, Default)]
pub struct PlainProcesses {
    groups: Mutex<Vec<Pid>>,
}

impl PlainProcesses {
    /// How many of the groups that were started are still there.
    pub fn left(&self) -> usize {
        let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.iter().filter(|group| test_kill_process_group(**group).is_ok()).count()
    }

    /// What a backend asks its program with, in such processes, with the `PATH` of this one.
    pub fn probe() -> Probe {
        let path = std::env::var("PATH").map(|path| ("PATH".to_owned(), path));
        Probe {
            directory: "/".into(),
            environment: path.into_iter().collect(),
            processes: Arc::new(PlainProcesses::default()),
        }
    }
}

#[async_trait]
impl Processes for PlainProcesses {
    async fn start(&self, launch: Launch) -> Result<Process, ProcessError> {
        let mut child = Command::new(&launch.program)
            .args(&launch.arguments)
            .current_dir(&launch.directory)
            .env_clear()
            .envs(&launch.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| ProcessError::Start {
                program: launch.program.display().to_string(),
                source,
            })?;
        let group =
            child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).expect("it was not awaited");
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).push(group);
        Ok(Process {
            stdin: child.stdin.take().map(|pipe| Box::pin(pipe) as _),
            stdout: child.stdout.take().map(|pipe| Box::pin(pipe) as _),
            stderr: child.stderr.take().map(|pipe| Box::pin(pipe) as _),
            custody: Box::new(Plain { child, group }),
        })
    }
}

struct Plain {
    child: Child,
    group: Pid,
}

#[async_trait]
impl Custody for Plain {
    async fn wait(&mut self) -> Result<Exit, ProcessError> {
        self.child.wait().await.map(exit).map_err(|source| ProcessError::Lost { source })
    }

    async fn stop(&mut self) -> Result<Exit, ProcessError> {
        // An empty group is one that has ended.
        let (Ok(()) | Err(_)) = kill_process_group(self.group, Signal::KILL);
        self.wait().await
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        let (Ok(()) | Err(_)) = kill_process_group(self.group, Signal::KILL);
    }
}

fn exit(status: ExitStatus) -> Exit {
    status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or_default()), Exit::Code)
}
