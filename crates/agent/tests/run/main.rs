//! The loop, from outside: what a run does, what it leaves behind, and that it always ends.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod calls;
mod cancellation;
mod conversation;
mod crashes;
mod durability;
mod faults;
mod limits;
mod overflow;
mod random;
mod secrets;
mod summaries;
mod support;
mod suspension;
