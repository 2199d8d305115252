//! What an agent tells beside its answer, and what it was given: facts that move nothing.

use serde::{Deserialize, Serialize};

/// `run.reasoning`: what the agent tells of its thinking. No answer, and bounded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Reasoning {
    /// The backend's name for it.
    pub item: String,
    /// What it tells.
    pub text: String,
}

/// `run.plan.updated`: what the agent means to do, all of it each time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanUpdated {
    /// The steps, in order.
    pub steps: Vec<PlanStep>,
}

/// A step of an agent's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// What it is.
    pub text: String,
    /// How far it is.
    pub status: PlanStatus,
}

/// How far a step of a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// It was not begun.
    Pending,
    /// It is being done.
    InProgress,
    /// It is done.
    Completed,
}

/// `run.secrets.projected`: a profile's secrets were made available to this run, for one session. Names only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SecretsProjected {
    /// The backend profile that they are for.
    pub profile: String,
    /// Which of its secrets.
    pub keys: Vec<String>,
    /// How.
    pub how: ProjectedHow,
}

/// How secrets are made available to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProjectedHow {
    /// The edge's gateway holds them, and the agent's processes never do.
    Gateway,
    /// As files in the session's private home.
    Home,
}
