//! What is asked of a runtime.

use std::sync::Arc;

use runyard_domain::Actor;
use runyard_llm::inference::Message;
use tokio_util::sync::CancellationToken;

use crate::run::{Decision, Inbox, Observer, Unobserved};

/// A run that is asked for.
#[derive(Clone)]
pub struct RunRequest {
    /// The agent.
    pub agent_id: String,
    /// The conversation. Where there is none of this name yet, there is one with it.
    pub thread_id: String,
    /// What is said to the agent.
    pub input: Vec<Message>,
    /// Who hears of the run.
    pub observer: Arc<dyn Observer>,
    /// Cancelled when the run is not wanted any more.
    pub cancellation: CancellationToken,
    /// What is said to the agent while it is under way.
    pub inbox: Arc<Inbox>,
    /// Who calls the tools. Where nobody is named it is the agent itself, which has no permissions.
    pub actor: Option<Arc<Actor>>,
}

impl RunRequest {
    /// Says this to an agent on a thread. Nobody hears of the run but who waits for its outcome.
    pub fn new(
        agent_id: impl Into<String>,
        thread_id: impl Into<String>,
        text: impl Into<String>,
    ) -> RunRequest {
        RunRequest {
            agent_id: agent_id.into(),
            thread_id: thread_id.into(),
            input: vec![Message::user(text)],
            observer: Arc::new(Unobserved),
            cancellation: CancellationToken::new(),
            inbox: Arc::default(),
            actor: None,
        }
    }

    /// Lets this hear of the run: a channel, say.
    #[must_use]
    pub fn observer(self, observer: impl Observer + 'static) -> Self {
        RunRequest { observer: Arc::new(observer), ..self }
    }

    /// Ends the run when this is cancelled.
    #[must_use]
    pub fn cancellation(self, cancellation: CancellationToken) -> Self {
        RunRequest { cancellation, ..self }
    }

    /// Lets this one call the tools.
    #[must_use]
    pub fn actor(self, actor: Actor) -> Self {
        RunRequest { actor: Some(Arc::new(actor)), ..self }
    }
}

/// A run that is to go on.
#[derive(Clone)]
pub struct ResumeRequest {
    /// Its conversation.
    pub thread_id: String,
    /// Answers to calls that wait.
    pub decisions: Vec<Decision>,
    /// Who hears of it.
    pub observer: Arc<dyn Observer>,
    /// Cancelled when it is not wanted any more.
    pub cancellation: CancellationToken,
    /// What is said to the agent while it is under way.
    pub inbox: Arc<Inbox>,
    /// Who calls the tools. Where nobody is named it is the agent itself, which has no permissions.
    pub actor: Option<Arc<Actor>>,
}

impl ResumeRequest {
    /// The run of this thread, without answers.
    pub fn new(thread_id: impl Into<String>) -> Self {
        ResumeRequest {
            thread_id: thread_id.into(),
            decisions: Vec::new(),
            observer: Arc::new(Unobserved),
            cancellation: CancellationToken::new(),
            inbox: Arc::default(),
            actor: None,
        }
    }

    /// With this answer.
    #[must_use]
    pub fn decision(mut self, decision: Decision) -> Self {
        self.decisions.push(decision);
        self
    }

    /// Lets this hear of the run.
    #[must_use]
    pub fn observer(self, observer: impl Observer + 'static) -> Self {
        ResumeRequest { observer: Arc::new(observer), ..self }
    }

    /// Ends the run when this is cancelled.
    #[must_use]
    pub fn cancellation(self, cancellation: CancellationToken) -> Self {
        ResumeRequest { cancellation, ..self }
    }

    /// Lets this one call the tools.
    #[must_use]
    pub fn actor(self, actor: Actor) -> Self {
        ResumeRequest { actor: Some(Arc::new(actor)), ..self }
    }
}
