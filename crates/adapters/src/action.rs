//! The action backend: a run that is one action.
//!
//! It asks the gate once, with the action's side effects and its whole input; that answer is the confirmation. Then it invokes the
//! action as the agent of this run, so what is for people only stays for people. The call's idempotency key is made of the run
//! and the call: where the runtime keeps keys, a repeat is not done twice.
//!
//! The call comes from the surface `mcp`, on which agents call actions: what is not offered to agents cannot be reached by way of
//! a run either. The run holds the permissions that its backend profile names in the setting `permissions`, and no others.

mod programs;
mod report;
mod session;

use std::sync::Arc;

use async_trait::async_trait;
use runyard_actions::{Action, Runtime};
use runyard_backend::{
    Backend, BackendError, BackendInfo, COMMANDS_MAX, Hearing, Journal, Probe, Resumes, Runs, SecretKeys,
    Session, SessionSpec, Start,
};
use runyard_domain::run::{FailureKind, Task};
use runyard_domain::{Actor, BackendProfile, Surface};
use tokio::sync::mpsc;

use self::programs::InCustody;
use self::session::{ActionSession, Opening};

/// Where the call of a run comes from.
const SURFACE: Surface = Surface::Mcp;
/// The one setting of a backend profile: the permissions that its runs hold, with spaces between them.
const PERMISSIONS: &str = "permissions";
/// The threads of a run whose action has no result yet, and of one that has.
const BEFORE: &str = "action@0";
const AFTER: &str = "action@1";

/// Runs single actions.
pub struct ActionBackend {
    runtime: Runtime,
}

impl ActionBackend {
    /// Runs the actions of this runtime.
    pub fn new(runtime: Runtime) -> Self {
        ActionBackend { runtime }
    }

    fn find(&self, name: &str, actor: &Actor) -> Result<Action, BackendError> {
        let found = self.runtime.listed(SURFACE, actor).find(|action| action.name() == name);
        found.cloned().ok_or_else(|| refused(format!("no action \"{name}\" is offered to agents")))
    }
}

fn refused(message: String) -> BackendError {
    BackendError::new(FailureKind::BackendFailed, message)
}

#[async_trait]
impl Backend for ActionBackend {
    fn info(&self) -> BackendInfo {
        BackendInfo {
            backend_kind: "action",
            protocol: "runyard-action",
            transport: "in-process",
            command: None,
            resumes: Resumes::Steps,
            runs: Runs::Action,
            asks: true,
            tells_steps: true,
            checkout: false,
            needs_network: false,
            secret_keys: SecretKeys::default(),
            gateway: false,
            wires: &[],
            logs_thread: false,
            private_files: &[],
            settings: &[PERMISSIONS],
        }
    }

    async fn check(&self, profile: &BackendProfile, _: &Probe) -> Result<String, BackendError> {
        known_settings(profile)?;
        let offered = self.runtime.actions().filter(|action| self.runtime.exposes(action, SURFACE)).count();
        Ok(match offered {
            1 => "1 action".to_owned(),
            count => format!("{count} actions"),
        })
    }

    async fn open(&self, spec: SessionSpec, journal: Arc<dyn Journal>) -> Result<Session, BackendError> {
        known_settings(&spec.profile)?;
        let opening = opening(&spec.start)?;
        let (Start::Fresh { task, .. } | Start::Resume { task, .. }) = spec.start;
        let Task::Action { action, input } = task else {
            return Err(refused("a run of this backend is one action, and the task is a text".to_owned()));
        };
        let permissions = spec.profile.settings.get(PERMISSIONS).map(String::as_str).unwrap_or_default();
        let actor = Actor::agent(&spec.profile.profile, spec.run, permissions.split_whitespace());
        let action = self.find(&action, &actor)?;
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let session = ActionSession {
            runtime: self.runtime.clone(),
            run: spec.run,
            actor: Arc::new(actor),
            action,
            input,
            programs: Arc::new(InCustody { processes: spec.processes, environment: spec.environment }),
            journal,
            hearing: Hearing::new(receiver),
        };
        Ok(Session { commands, task: tokio::spawn(session.run(opening)) })
    }
}

fn known_settings(profile: &BackendProfile) -> Result<(), BackendError> {
    match profile.settings.keys().find(|key| *key != PERMISSIONS) {
        Some(unknown) => Err(refused(format!("an action backend knows no setting \"{unknown}\""))),
        None => Ok(()),
    }
}

fn opening(start: &Start) -> Result<Opening, BackendError> {
    match start {
        // An earlier run of the session was another action, and says nothing about this one.
        Start::Fresh { .. } | Start::Resume { thread: None, turn_active: false, .. } => Ok(Opening::Turn),
        Start::Resume { turn_active: false, .. } => Ok(Opening::Idle),
        Start::Resume { thread, .. } => match thread.as_deref() {
            None | Some(BEFORE) => Ok(Opening::Resumed),
            Some(AFTER) => Ok(Opening::Done),
            Some(_) => {
                let message = "the thread is none of a run that is one action".to_owned();
                Err(BackendError::new(FailureKind::BackendProtocolError, message))
            }
        },
    }
}
