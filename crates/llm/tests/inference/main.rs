//! Asking models through the public interface: retry, circuit breaker, pools, recovery, cancellation, and scripts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod breaker;
mod breaker_states;
mod bytes;
mod cancellation;
mod cuts;
mod errors;
mod interleavings;
mod over_wires;
mod pool;
#[path = "../recorded/mod.rs"]
mod recorded;
mod recovery;
mod retry;
mod scripted;
mod seam;
mod support;
mod turn;
