//! A backend that hands its sessions to the test.

use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use runyard_backend::conformance::journal::Given;
use runyard_backend::{
    Backend, BackendError, BackendInfo, COMMANDS_MAX, Journal, Launch, Probe, Process, ProcessError,
    Processes, Resumes, Runs, SecretKeys, Session, SessionSpec,
};
use runyard_domain::BackendProfile;
use runyard_edge::Supervision;
use runyard_edge::sandbox::Confinement;
use tokio::sync::mpsc;

pub(crate) const INFO: BackendInfo = BackendInfo {
    backend_kind: "puppet",
    protocol: "strings",
    transport: "hand",
    command: None,
    resumes: Resumes::Thread,
    runs: Runs::Agent,
    asks: true,
    tells_steps: true,
    checkout: false,
    needs_network: false,
    secret_keys: SecretKeys { required: &[], optional: &[] },
    gateway: false,
    wires: &[],
    logs_thread: false,
    private_files: &[],
    settings: &[],
};

pub(crate) struct PuppetBackend {
    pub(crate) opened: mpsc::UnboundedSender<Given>,
}

#[async_trait]
impl Backend for PuppetBackend {
    fn info(&self) -> BackendInfo {
        INFO
    }

    async fn check(&self, _: &BackendProfile, _: &Probe) -> Result<String, BackendError> {
        Ok("puppet 1".to_owned())
    }

    async fn open(&self, _: SessionSpec, journal: Arc<dyn Journal>) -> Result<Session, BackendError> {
        let (commands, mut queue) = mpsc::channel(COMMANDS_MAX);
        let (hand, heard) = mpsc::channel(COMMANDS_MAX);
        let task = tokio::spawn(async move {
            while let Some(command) = queue.recv().await {
                if hand.send(command).await.is_err() {
                    // Whoever moved it has gone; it goes on until it is closed.
                    while queue.recv().await.is_some() {}
                }
            }
        });
        let _ = self.opened.send(Given { journal, commands: heard });
        Ok(Session { commands, task })
    }
}

/// A puppet starts no processes.
pub(crate) struct NoProcesses;

#[async_trait]
impl Supervision for NoProcesses {
    fn under(&self, _lock: &Path, _confinement: Confinement) -> Arc<dyn Processes> {
        Arc::new(NoProcesses)
    }

    async fn settled(&self, _lock: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[async_trait]
impl Processes for NoProcesses {
    async fn start(&self, launch: Launch) -> Result<Process, ProcessError> {
        let program = launch.program.display().to_string();
        Err(ProcessError::Start { program, source: io::ErrorKind::NotFound.into() })
    }
}
