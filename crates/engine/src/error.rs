//! What can go wrong in the engine.

use runyard_backend::WorkspaceError;
use runyard_domain::run::{Illegal, UnreadableEvent};
use runyard_domain::{ApprovalId, Code, RunId, SessionId};
use runyard_redact::RedactError;
use runyard_store::StorageError;

use crate::execution::Unscoped;
use crate::installation::InstallationError;

/// Why the engine did not do what it was asked to. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The store said no.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The event is not legal where the run stands.
    #[error("{0}")]
    Illegal(#[from] Illegal),
    /// The run is in no state for it.
    #[error("run {run} is {state}: {what}")]
    Conflict {
        /// The run.
        run: RunId,
        /// Its state.
        state: &'static str,
        /// What is not possible there.
        what: &'static str,
    },
    /// The approval was decided already, and otherwise.
    #[error("{approval} was {resolution} by {by} already")]
    Decided {
        /// The approval.
        approval: ApprovalId,
        /// How.
        resolution: &'static str,
        /// Who decided.
        by: String,
    },
    /// What was looked at is not what is asked.
    /// The right digest is not said: who did not look would only send it.
    #[error("the content of {approval} is not the one that was decided on; look at it again")]
    StaleDigest {
        /// The approval.
        approval: ApprovalId,
    },
    /// There is no such thing.
    #[error("there is no {what}")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// A field of the request is wrong.
    #[error("{message}")]
    Invalid {
        /// Which field.
        path: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// A run may not be given the secrets that its backend profile needs.
    #[error("the run cannot be given the secrets of the backend profile {profile}: {why}")]
    SecretUnavailable {
        /// The backend profile.
        profile: String,
        /// What is wrong.
        #[source]
        why: Unscoped,
    },
    /// No edge of this hub is there to ask, or it does not answer.
    #[error("no edge of this hub answers")]
    EdgeSilent,
    /// What an edge keeps of a session could not be removed.
    #[error("what the edge keeps of session {session} could not be removed; its log says why")]
    SessionKept {
        /// The session.
        session: SessionId,
    },
    /// A run of the session has not ended.
    #[error("run {run} of session {session} is not over: cancel it, or wait for its end")]
    SessionBusy {
        /// The session.
        session: SessionId,
        /// The run.
        run: RunId,
    },
    /// The idempotency key stands for another input.
    #[error("the idempotency key was used for another input")]
    KeyTaken,
    /// An agent tried what only people may do.
    #[error("this is for people only")]
    ForPeopleOnly,
    /// Whoever started a run tried to approve what it asks, and may not.
    #[error("whoever started a run may not approve what it asks: somebody else has to, or reject it")]
    OwnRun,
    /// The decision stands, and the rule that was to follow from it is not stored.
    #[error("the decision is recorded for this run, but its rule is not: {0}")]
    RuleNotStored(#[source] Box<InstallationError>),
    /// The gate or a person said no.
    #[error("{reason}")]
    Denied {
        /// Why.
        reason: String,
    },
    /// A stored input would differ from what was given.
    #[error("the input holds something that may not be stored")]
    RedactedContent,
    /// The workspace is not allowed.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The record of the run cannot be read.
    #[error(transparent)]
    Unreadable(#[from] UnreadableEvent),
    /// Something cannot be written as JSON.
    #[error("cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Something cannot be redacted.
    #[error(transparent)]
    Redact(#[from] RedactError),
    /// The installation's log said no.
    #[error(transparent)]
    Installation(#[from] InstallationError),
    /// Others wrote to the run again and again.
    #[error("run {run} is being written by others")]
    Contended {
        /// The run.
        run: RunId,
    },
}

impl EngineError {
    /// Its row in the error table.
    pub fn code(&self) -> Code {
        match self {
            EngineError::Storage(error) => error.code(),
            EngineError::Illegal(illegal) => illegal.code(),
            EngineError::Conflict { .. }
            | EngineError::Decided { .. }
            | EngineError::StaleDigest { .. }
            | EngineError::KeyTaken => Code::Conflict,
            EngineError::NotFound { .. } => Code::NotFound,
            EngineError::Invalid { .. } => Code::ValidationError,
            EngineError::SecretUnavailable { .. } => Code::SecretUnavailable,
            EngineError::EdgeSilent => Code::TargetOffline,
            EngineError::SessionKept { .. } => Code::StorageIo,
            EngineError::SessionBusy { .. } => Code::Conflict,
            EngineError::ForPeopleOnly | EngineError::OwnRun => Code::AuthorizationError,
            EngineError::RuleNotStored(error) => error.code(),
            EngineError::Denied { .. } => Code::PermissionDenied,
            EngineError::RedactedContent => Code::RedactedContent,
            EngineError::Workspace(error) => error.code(),
            EngineError::Unreadable(_) => Code::StorageSerialization,
            EngineError::Json(_) | EngineError::Redact(_) => Code::InternalError,
            EngineError::Installation(error) => error.code(),
            EngineError::Contended { .. } => Code::StorageVersionConflict,
        }
    }
}
