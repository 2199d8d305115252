//! The scripted backend: the promises of the port, what a script does, and how one is read.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod behaviour;
mod bench;
mod broken;
mod conformance;
mod demo;
mod reading;
