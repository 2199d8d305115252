//! Drivers: how a call of the table is made on one surface.

pub mod ai_sdk;
pub mod browser;
pub mod cli;
pub mod http;
pub mod json_runner;
pub mod mcp;

use std::path::Path;

use anyhow::Result;
use runyard::Surface;
use serde_json::Value;

use crate::Call;

/// Makes calls on one surface.
pub trait Driver {
    /// The surface, as it stands in `meta.surface`.
    fn surface(&self) -> Surface;

    /// Makes the calls one after another in one process, and gives the answer to the last.
    fn call(&self, calls: &[Call]) -> Result<Answer>;

    /// Starts a call, cancels it as a caller on this surface would once `marker` exists, and gives the envelope it ended with.
    fn cancel(&self, call: &Call, marker: &Path) -> Result<Answer>;
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The envelope, as it was on the wire.
    pub envelope: Value,
    /// What the surface said beside it.
    pub status: Status,
}

/// What a surface says beside the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// An exit code.
    Exit(i32),
    /// An HTTP status.
    Http(u16),
    /// Nothing.
    Silent,
}
