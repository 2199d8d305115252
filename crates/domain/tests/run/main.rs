//! A run: its states, its row, and its events as they are stored.
//!
//! One binary, since linking is what takes the time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation fails the test"
)]

mod artifacts;
mod events;
mod kept_open;
mod reviews;
mod rows;
mod states;
