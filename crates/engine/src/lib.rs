//! The hub's heart: it creates and plans runs, records what happens in them, asks people, keeps deadlines, and goes on after a
//! death.
//!
//! Everything is written by one path (`record`): events are redacted, folded into the run and appended in one transaction;
//! effects come after the commit that justifies them. It names no concrete store and no concrete backend, and serves nothing.

mod approvals;
mod artifacts;
mod audit;
mod budget;
pub mod bundle;
mod calls;
mod carry;
mod catalog;
mod commands;
mod create;
mod driver;
mod edges;
mod endings;
mod engine;
mod error;
mod execution;
mod fresh;
mod installation;
mod judged_again;
mod keys;
mod media;
mod options;
mod owning;
mod past;
mod policy;
mod projects;
mod record;
mod recovery;
mod refused;
mod replay;
mod review;
mod run_tokens;
mod said;
mod schedule;
mod sessions;
mod snooze;
mod threads;
mod timers;
mod translate;
mod used_once;

// What whoever shows backends has to name.
pub use runyard_backend::BackendInfo;
pub use runyard_backend::link::CheckLine;

pub use approvals::{ApprovalRecord, ApprovalState, Decision, Resolve};
pub use artifacts::{
    ARTIFACT_BYTES_MAX, ARTIFACTS_BYTES_MAX, ArtifactRecord, NewArtifact, OWN_DIFF, OWN_PATCH, content_digest,
};
pub use calls::AgentCall;
pub use carry::Carry;
pub use catalog::Catalog;
pub use commands::{NewCancel, NewCommand};
pub use create::{CreatedRun, NewRun};
pub use edges::EdgeInfo;
pub use engine::{Engine, Figures};
pub use error::EngineError;
pub use execution::Unscoped;
pub use installation::{
    ActionRefused, AuditEntry, AuditFact, ChangesApplied, DecisionMade, ENTRIES_MAX, INSTALLATION,
    Installation, InstallationError, Login, NAME_BYTES_MAX, PoliciesSaid, PolicyRead, REGISTRY_BYTES_MAX,
    RULES_MAX, Registry, Role, SecretProjected, SessionClosed, StoredRule, TOKENS_MAX, TokenInfo, TokenText,
    TrustGiven, is_installation, permissions,
};
pub use media::image_size;
pub use options::{EngineOptions, Limits};
pub use past::{Past, PastRequest};
pub use policy::BasePolicy;
pub use projects::Projects;
pub use record::Standing;
pub use replay::{Difference, Entered, Replay, ReplayedThread};
pub use said::reason_given;
pub use snooze::SNOOZE_MS_MAX;
