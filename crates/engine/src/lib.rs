//! The hub's heart: it creates and plans runs, records what happens in them, asks people, keeps deadlines, and goes on after a
//! death.
//!
//! Everything is written by one path (`record`): events are redacted, folded into the run and appended in one transaction;
//! effects come after the commit that justifies them. It names no concrete store and no concrete backend, and serves nothing.

mod approvals;
mod audit;
mod budget;
mod calls;
mod carry;
mod catalog;
mod commands;
mod create;
mod driver;
mod edges;
mod engine;
mod error;
mod fresh;
mod installation;
mod judged_again;
mod keys;
mod options;
mod owning;
mod projects;
mod record;
mod recovery;
mod refused;
mod review;
mod run_tokens;
mod schedule;
mod timers;
mod translate;

pub use approvals::{ApprovalRecord, ApprovalState, Decision, Resolve};
pub use calls::AgentCall;
pub use carry::Carry;
pub use catalog::Catalog;
pub use commands::NewCommand;
pub use create::{CreatedRun, NewRun};
pub use edges::EdgeInfo;
pub use engine::{Engine, Figures};
pub use error::EngineError;
pub use installation::{
    ActionRefused, AuditEntry, AuditFact, ChangesApplied, DecisionMade, ENTRIES_MAX, INSTALLATION,
    Installation, InstallationError, Listing, Login, NAME_BYTES_MAX, REGISTRY_BYTES_MAX, RULES_MAX, Registry,
    Role, SecretProjected, StoredRule, TOKENS_MAX, TokenInfo, TokenText, TrustGiven, WorkspaceChanged,
    is_installation, permissions,
};
pub use options::{EngineOptions, Limits};
pub use projects::Projects;
pub use record::Standing;
