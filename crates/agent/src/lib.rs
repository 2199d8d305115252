//! The agent runtime: typed state, plugins, phases and tools.
//!
//! [`state`] is what a run knows, as revisions that are committed whole. [`plugin`] puts an [`Environment`] together: keys,
//! hooks, handlers, gates and tools, each with an owner. [`phase`] runs the hooks of a phase on one frozen revision and what
//! follows from them. [`tool`] is what a model can call. [`run`] is the loop, and [`checkpoint`] where its steps become durable.
//!
//! [`spec`] is what agents, models and providers are as data. [`AgentRuntimeBuilder`] puts a runtime together, [`resolve`] makes
//! an agent of its definition, and [`AgentRuntime`] runs it on a thread; [`remote`] is for agents that run elsewhere.
//!
//! [`Environment`]: plugin::Environment

mod agent;
mod budget;
mod build;
mod caught;
pub mod checkpoint;
pub mod phase;
pub mod plugin;
mod registry;
pub mod remote;
pub mod resolve;
pub mod run;
mod runtime;
pub mod spec;
pub mod state;
pub mod tool;

/// Who answers, what is asked and how it is paid for, for applications that name no other crate.
pub use runyard_llm as llm;
/// Where conversations are kept.
pub use runyard_store as store;

pub use agent::{Agent, CallOrder, Settings};
pub use build::{AgentRuntimeBuilder, BuildError, DiscoveryError, FILE_BYTES_MAX, FOLDER_FILES_MAX};
pub use registry::ProviderFactory;
pub use resolve::{AgentResolver, ResolveError, ResolvedRunPlan};
pub use run::RunOutcome;
pub use runtime::{AgentRuntime, CACHE_BYTES_DEFAULT, RENEW_EVERY, ResumeRequest, RunRequest, RuntimeError};
pub use spec::{AgentSpec, ModelSpec, ProviderSpec, WireKind};
