//! What people say to a live run, and what became of it.

use serde::{Deserialize, Serialize};

use super::facts::Who;
use crate::CommandId;

/// `run.command.received`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommandReceived {
    /// Its id.
    pub command_id: CommandId,
    /// What.
    pub command: CommandKind,
    /// The text of a turn or a steer, as it is stored and as the agent gets it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    /// Whether it is said to the agent again, until `run.command.heard` or the end of the turn. In logs of before that it never was.
    #[serde(skip_serializing_if = "is_false", default)]
    pub until_heard: bool,
    /// Who.
    pub actor: Who,
}

/// The instructions to a live run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CommandKind {
    /// A further turn, after the one that runs.
    Turn,
    /// A word into the turn that runs.
    Steer,
    /// The end of the turn that runs.
    Interrupt,
    /// The end of a run that is kept open, as soon as no turn runs or waits.
    Finish,
}

/// `run.command.heard`: the agent has the word that was said to it, or it was told why not. It is not said again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommandHeard {
    /// The command.
    pub command_id: CommandId,
}

/// `run.cancel.requested`: somebody ends the run while something is applied. What is not all in place is taken back first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CancelRequested {
    /// Who.
    pub by: Who,
    /// Why.
    pub reason: String,
}

fn is_false(truth: &bool) -> bool {
    !truth
}
