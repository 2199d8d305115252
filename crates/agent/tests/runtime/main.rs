//! Runtimes, from what they are built of to the runs of their agents, through the public API alone.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod away;
mod build;
mod calls;
#[path = "../support/flaky.rs"]
mod flaky;
#[path = "../support/heard.rs"]
mod heard;
mod kit;
mod opening;
mod remote;
mod resolve;
mod rows;
mod threads;
mod waiting;
