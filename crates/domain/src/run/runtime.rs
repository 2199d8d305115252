//! What the events about a backend itself say: what it is doing, what it uses, and what goes wrong in it.

use serde::{Deserialize, Serialize};

use super::budget::Usage;
use super::failure::FailureKind;

/// `runtime.status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RuntimeStatus {
    /// What the backend is doing: `starting`, `ready`, `resumed`, `parked`, `ended`, …
    pub phase: String,
    /// The backend profile.
    pub profile: String,
    /// Its kind.
    pub backend_kind: String,
    /// The protocol that it speaks.
    pub protocol: String,
    /// What it can do. Older logs do not say it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub capability: Option<Capability>,
    /// The model, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// The version that really runs, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    /// The backend's conversation, by which it can be resumed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thread: Option<String>,
    /// Tokens and cost so far, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
    /// How long no hub looked after the run until now, where that was so. It counts toward no deadline.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub away_ms: Option<u64>,
}

/// What a backend can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Capability {
    /// How far it can be resumed.
    pub resumes: Resumes,
    /// Whether it asks before it acts.
    pub asks: bool,
    /// Whether it tells of each step that it takes.
    pub tells_steps: bool,
    /// Whether it works in a checkout, which is looked at when it is done.
    pub checkout: bool,
    /// Whether it can be pointed at the edge's gateway.
    pub gateway: bool,
}

/// How far a backend can be resumed after its process died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Resumes {
    /// It keeps its own conversation and knows from it what it has done.
    Thread,
    /// Between two steps. A step that has begun and has no result may have been done or not.
    Steps,
    /// Not at all.
    Never,
}

/// `runtime.died`: the backend's process is gone in the middle of its work, and is opened again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RuntimeDied {
    /// What is known about it.
    pub message: String,
}

/// `runtime.error`, `runtime.unavailable`, `runtime.timeout` and `schema.validation_failed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RuntimeError {
    /// What kind of failure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure_kind: Option<FailureKind>,
    /// What happened.
    pub message: String,
    /// Whether the backend tries again by itself.
    pub retrying: bool,
}
