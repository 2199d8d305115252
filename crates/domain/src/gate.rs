//! The gate: what decides whether an agent's request is allowed, asked about or denied.
//!
//! The judgement is a pure function of the policy and the request, so the edge and the hub come to the same answer. It executes
//! nothing and asks nobody. A rule for commands is a convenience, not a boundary: what programs do is bounded by the sandbox.

pub mod command;
mod deeds;
mod explain;
mod judge;
mod paths;
mod pattern;
mod policy;
mod question;
mod request;
mod risk;
mod rule;
mod suggest;

pub use judge::{Because, Beyond, Clause, Judgement, Note, Part, Place, Subject, judge};
pub use paths::is_protected;
pub use pattern::{InvalidPattern, PATTERN_CHARS_MAX};
pub use policy::{AgentPreset, OwnRuns, Policy, Preset, mark};
pub use request::{Question, Request, SideEffects};
pub use risk::Risk;
pub use rule::{Effect, InvalidRule, Rule, RuleKind, RuleText, Scope};
pub use suggest::rule_for;
