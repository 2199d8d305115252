//! How an agent is run: here, or elsewhere.

use std::fmt;
use std::sync::Arc;

use crate::agent::Agent;
use crate::remote::Remote;

/// How an agent is run.
#[derive(Clone)]
pub enum ResolvedRunPlan {
    /// Here.
    Local(Box<Agent>),
    /// Elsewhere.
    Remote(RemoteAgent),
}

/// An agent that runs elsewhere.
#[derive(Clone)]
pub struct RemoteAgent {
    /// Its id.
    pub id: Arc<str>,
    /// What it is reached by.
    pub backend: Arc<str>,
    /// The way to it.
    pub remote: Arc<dyn Remote>,
}

impl fmt::Debug for ResolvedRunPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResolvedRunPlan::Local(agent) => f.debug_tuple("Local").field(agent).finish(),
            ResolvedRunPlan::Remote(agent) => f.debug_tuple("Remote").field(agent).finish(),
        }
    }
}

impl fmt::Debug for RemoteAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteAgent").field("id", &self.id).field("backend", &self.backend).finish()
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("id", &self.id)
            .field("environment", &self.environment)
            .finish_non_exhaustive()
    }
}
