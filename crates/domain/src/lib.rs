//! Runyard's words as types.
//!
//! What a run, an action, a surface and an error *are*, and nothing that does anything: no async, no I/O, no clock.
//! Every other crate speaks in these types.

mod actor;
mod artifact;
mod blob;
mod diff;
mod errors;
mod event;
mod execution;
pub mod gate;
mod ids;
mod profile;
pub mod run;
mod surface;
mod time;
mod workspace;

pub use actor::{Actor, ActorKind, Grants};
pub use artifact::{
    ARTIFACTS_MAX, Artifact, ArtifactContent, ArtifactFacts, BuildStatus, InvalidArtifact, PrivacyReview,
    Problem, Viewport, is_file_name, is_relative,
};
pub use blob::{BlobId, InvalidBlobId};
pub use diff::{ApplyTo, Comment, DiffFile, DiffParts, DiffStats, DiffText, SelectedFile};
pub use errors::{ApplicationCode, Class, Code, ErrorCode, InvalidCode, Retry, Row, errors_markdown};
pub use event::Event;
pub use execution::{
    Approval, Changes, ExecutionPolicy, Network, ProviderCredential, Sandbox, SecretRef, SecretScope,
    WantedExecution,
};
pub use ids::{
    AppendId, ApprovalId, ArtifactId, CommandId, EventId, InvalidId, InvocationId, RuleId, RunId, SessionId,
    TokenId, WorkspaceId,
};
pub use profile::{AgentProfile, BackendProfile, Capability, PlannedBackend, Wire};
pub use surface::{Surface, UnknownSurface};
pub use time::{InvalidTimestamp, Timestamp};
pub use workspace::{Listing, Preparation, Workspace, WorkspaceChanged, WorkspaceRef};
