//! The Responses API, as much of it as chat completions can carry.
//!
//! A request ([`Request`]) is read strictly: each field is understood, or known to say nothing about the answer, or refused
//! by its place and name. So what was read can be translated whole. What is sent back are [`Event`]s.
//!
//! It deliberately does not model what has no counterpart (stored responses, built-in tools, files, audio): a request that
//! is passed on to a provider that speaks Responses is not read at all.

mod event;
mod fields;
mod items;
mod request;
mod tools;

pub use event::{
    ContentPart, Event, Failure, InputDetails, Numbered, OutputDetails, OutputItem, Reason, Response, Status,
    SummaryPart, Tokens,
};
pub use items::{Call, Item, Message, Output, Part, Payload, Role};
pub use request::{Format, Request};
pub use tools::{Choice, Kind, Namespace, Tool};
