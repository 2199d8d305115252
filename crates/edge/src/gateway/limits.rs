//! How long things may take at the gateway. How long an answer may pause is for agents to say, and none may say so long as here: what they run
//! into is theirs to report.

use std::time::Duration;

use runyard_llm::http;

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// What a provider may take.
    pub(super) provider: http::Limits,
    /// The head of an agent's request.
    pub(super) request_head: Duration,
    /// The body of an agent's request, the whole of it.
    pub(super) request_body: Duration,
    /// What is read of a request that comes without a token, so that its client hears of it.
    pub(super) stranger_body: Duration,
    /// How long an agent may take nothing of what is there for it.
    pub(super) unread: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            provider: http::Limits::default(),
            request_head: Duration::from_secs(10),
            request_body: Duration::from_secs(60),
            stranger_body: Duration::from_secs(1),
            unread: Duration::from_secs(60),
        }
    }
}
