//! Agents that run elsewhere: the port to them, and a plain HTTP endpoint as the one way that is built in.
//!
//! A [`BackendFactory`] looks at an endpoint and gives the way to it ([`Remote`]). Which agent runs on which thread, and what
//! becomes durable of it, is the runtime's: it is the same for an agent that runs here. A remote agent has its own
//! conversation, by the thread's id; it deliberately cannot wait for an answer here.

mod answer;
mod card;
mod endpoint;
mod http;

use std::sync::Arc;

use async_trait::async_trait;
use runyard_domain::{Code, RunId};
use runyard_llm::inference::Message;

pub use self::answer::RemoteAnswer;
pub use self::card::{AgentCard, CARD_BYTES_MAX, CARD_TIME_MAX};
pub(crate) use self::card::{CardError, fetch_card};
pub use self::endpoint::{HttpBackend, REMOTE_ANSWER_BYTES_MAX};
use crate::run::Observer;
use crate::spec::EndpointSpec;

/// Makes ways to agents that run elsewhere, of one kind.
pub trait BackendFactory: Send + Sync {
    /// What endpoints call it.
    fn backend(&self) -> &str;

    /// The way to the agent at this endpoint. It asks nobody: it only looks whether the endpoint can be meant so.
    fn connect(&self, agent_id: &str, endpoint: &EndpointSpec) -> Result<Arc<dyn Remote>, EndpointRefused>;
}

/// The way to one agent that runs elsewhere.
#[async_trait]
pub trait Remote: Send + Sync {
    /// Runs the agent and returns when it has ended. What it says meanwhile goes to the observer.
    ///
    /// Dropping the future ends the request. After a crash the same run is asked for again under the same id: whoever
    /// answers must not do its work twice.
    async fn run(
        &self,
        request: &RemoteRequest,
        observer: &dyn Observer,
    ) -> Result<RemoteAnswer, RemoteError>;
}

/// What an agent that runs elsewhere is asked.
#[derive(Debug, Clone)]
pub struct RemoteRequest {
    /// The agent.
    pub agent_id: Arc<str>,
    /// Its conversation.
    pub thread_id: Arc<str>,
    /// Names this run and no other one.
    pub run_id: RunId,
    /// What is said to it.
    pub input: Vec<Arc<Message>>,
}

/// Why an endpoint cannot be meant so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EndpointRefused {
    /// What is wrong, without repeating what may be secret.
    pub message: String,
}

/// Why an agent that runs elsewhere gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RemoteError {
    /// Its row in the error table.
    pub code: Code,
    /// What happened.
    pub message: String,
}
