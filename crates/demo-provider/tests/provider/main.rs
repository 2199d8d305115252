//! What the provider puts on the wire, read byte by byte.

#![allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod anthropic;
mod any_body;
mod chat;
mod checks;
mod client;
mod endings;
mod refusals;
mod responses;
mod running;
mod secrets;
