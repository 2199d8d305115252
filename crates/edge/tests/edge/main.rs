//! The edge as the hub and a backend see it: an in-memory link at one end, a backend that the test moves by hand at the other.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail like tests"
)]

mod check;
mod gate;
mod harness;
mod lifecycle;
mod link;
mod recovery;
mod words;
