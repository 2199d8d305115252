//! Calls inside a run: there the gate decides, in place of a confirmation.

use async_trait::async_trait;
use serde_json::Value;

use crate::{Action, ActionError, Context};

/// Decides on the calls of agents. What is for people only never comes here.
#[async_trait]
pub trait CallGate: Send + Sync {
    /// Lets the call go on, or says why not. `input` is validated, with its defaults. It may wait for a person for as long as
    /// the caller waits; when it is dropped the call was given up.
    async fn pass(&self, action: &Action, input: &Value, context: &Context) -> Result<(), ActionError>;
}
