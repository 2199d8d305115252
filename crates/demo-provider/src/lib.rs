//! A loopback model provider with scripted scenarios, for tests and demos.
//!
//! It speaks the OpenAI Responses API (`POST /v1/responses`), chat completions (`POST /v1/chat/completions`) and Anthropic
//! Messages (`POST /v1/messages`), each as a stream and whole, lists its models (`GET /v1/models`), and keeps every request for a test to read. Which scenario
//! is played is said by the user's text, in a marker such as `[[scenario:shell]]` or `[[scenario:shell touch
//! made.txt]]`: a marker passes through any coding agent unchanged. The step of the scenario follows from the
//! conversation itself, so a resumed conversation continues where it was; only a flaky scenario is counted.
//!
//! It deliberately shares no wire types with the code under test, listens on loopback only (its log holds the keys
//! that it was sent), and understands nothing of what it is asked.

mod check;
mod conversation;
mod error;
mod flaky;
mod http;
mod library;
mod provider;
mod reply;
mod requests;
mod scenario;
mod speech;
mod wire;

pub use error::ProviderError;
pub use library::{Listed, scenarios};
pub use provider::{DemoProvider, Options, Requests};
pub use requests::Recorded;
