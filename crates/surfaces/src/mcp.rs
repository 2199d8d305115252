//! An action registry over the Model Context Protocol: tools, resources, prompts and tasks, on stdio and over HTTP.
//!
//! Everything is an action. One that only reads may have a resource's address; one that gives a prompt is offered as a
//! prompt; one that takes long may be followed as a task; every other one is a tool. `server` hears the protocol's requests,
//! `calls` turns them into invocations, `answers` turns envelopes into results. Both wire revisions are served on the same
//! endpoint: the older asks its client while a call runs, the newer ends a call with questions and begins it anew (`callers`,
//! `rounds`). It knows no run.
#![allow(deprecated, reason = "the older revision needs what the newer one is about to drop")]

mod answers;
mod callers;
mod calls;
mod changes;
mod http;
mod lines;
mod listeners;
mod prompts;
mod reports;
mod resources;
mod rounds;
mod server;
mod stdio;
mod tasks;
mod tools;

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use runyard_actions::Runtime;
use runyard_domain::Actor;
use serde_json::Value;

pub use self::changes::Changes;
pub use self::http::endpoint;
pub use self::listeners::LISTENERS_MAX;
pub use self::stdio::serve_stdio;
pub use self::tasks::{FollowedTasks, TaskState, TaskView};

use self::listeners::Listeners;
use self::rounds::Rounds;
use self::tasks::TaskTable;
use crate::seal::Seal;

/// Where an envelope stands in a result's `_meta`.
pub const ENVELOPE_KEY: &str = "io.runyard/envelope";
/// Where `confirm`, `idempotencyKey`, `timeoutMs`, `deadlineMs` and `retry` stand in a request's `_meta`: beside the
/// arguments, because those are written by a model.
pub const OPTIONS_KEY: &str = "io.runyard/options";
/// Under this key a person is asked to confirm.
pub(crate) const CONFIRM_KEY: &str = "io.runyard/confirm";

/// An application on MCP.
#[derive(Clone)]
pub struct McpApi(Arc<Shared>);

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) about: Option<String>,
    pub(crate) runtime: Runtime,
    pub(crate) seal: Seal,
    pub(crate) rounds: Rounds,
    pub(crate) changes: Changes,
    pub(crate) tasks: TaskTable,
    pub(crate) followed: Option<Arc<dyn FollowedTasks>>,
    pub(crate) describes: Option<Arc<dyn Describe>>,
    pub(crate) for_people: HashSet<String>,
    pub(crate) listeners: Listeners,
}

/// What an application knows of its actions beyond what they say of themselves.
#[async_trait]
pub trait Describe: Send + Sync {
    /// What a person should read before they confirm a call with this input; nothing where the input says it all.
    async fn describe(&self, actor: &Arc<Actor>, action: &str, input: &Value) -> Option<String>;
    /// The input with which a resource is read, given the one that its address makes. It checks nothing: the action does.
    async fn reading(&self, action: &str, input: Value) -> Value;
}

impl McpApi {
    /// The actions of this runtime.
    pub fn new(name: impl Into<String>, version: impl Into<String>, runtime: Runtime) -> Self {
        McpApi(Arc::new(Shared {
            name: name.into(),
            version: version.into(),
            about: None,
            runtime,
            seal: Seal::new(),
            rounds: Rounds::new(),
            changes: Changes::default(),
            tasks: TaskTable::default(),
            followed: None,
            describes: None,
            for_people: HashSet::new(),
            listeners: Listeners::default(),
        }))
    }

    /// Tells a client how to use it.
    #[must_use]
    pub fn about(self, about: impl Into<String>) -> Self {
        self.with(|shared| shared.about = Some(about.into()))
    }

    /// Where changes of resources are told.
    #[must_use]
    pub fn changes(self, changes: Changes) -> Self {
        self.with(|shared| shared.changes = changes)
    }

    /// Tasks that live elsewhere, such as runs.
    #[must_use]
    pub fn followed_tasks(self, tasks: Arc<dyn FollowedTasks>) -> Self {
        self.with(|shared| shared.followed = Some(tasks))
    }

    /// What the application knows of its actions.
    #[must_use]
    pub fn described_by(self, describes: Arc<dyn Describe>) -> Self {
        self.with(|shared| shared.describes = Some(describes))
    }

    /// What no agent may watch, though it may read its part: it changes with what is not the agent's.
    #[must_use]
    pub fn watched_by_people<T: Into<String>>(self, addresses: impl IntoIterator<Item = T>) -> Self {
        self.with(|shared| shared.for_people = addresses.into_iter().map(Into::into).collect())
    }

    /// The application's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its version.
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// Its actions.
    pub fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    fn with(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            change(shared);
        }
        self
    }
}
