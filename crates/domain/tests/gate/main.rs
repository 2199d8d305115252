//! The gate: command lines taken apart, rules as they are written, and what is decided.
//!
//! One binary, since linking is what takes the time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation fails the test"
)]

mod bash;
mod builtins;
mod commands;
mod defaults;
mod edges;
mod everyday;
mod paths;
mod pushing;
mod rules;
mod sed;
mod shell;
mod suggested;
mod support;
mod told;
