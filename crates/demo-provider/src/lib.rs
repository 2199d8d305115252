//! A loopback model provider with scripted scenarios, for tests and demos.
//!
//! It speaks the OpenAI Responses API as a stream (`POST /v1/responses`) and lists its model (`GET /v1/models`), and
//! keeps every request for a test to read. Which scenario is played is said by the user's text, in a marker such as
//! `[[scenario:shell]]` or `[[scenario:shell touch made.txt]]`: a marker passes through any coding agent unchanged.
//! The step of the scenario follows from the conversation itself, so the provider holds no state between requests and
//! a resumed conversation continues where it was.
//!
//! It deliberately shares no wire types with the code under test, listens on loopback only (its log holds the keys
//! that it was sent), answers no request that does not stream, and understands nothing of what it is asked.

mod answer;
mod conversation;
mod error;
mod http;
mod provider;
mod requests;
mod scenario;

pub use error::ProviderError;
pub use provider::{DemoProvider, Options};
pub use requests::Recorded;
