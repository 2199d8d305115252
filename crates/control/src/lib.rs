//! The control plane as actions: runs, approvals, policy, tokens, workspaces, what there is to choose from, the audit.
//!
//! Each is one definition with a route of its own, so the command line, HTTP and every other surface offer the same. An action
//! here checks who may see what, hands the work to the [`Engine`] and shows what came of it; it decides nothing about runs,
//! and it streams nothing.

mod approval_view;
mod approvals;
mod artifact_facts;
mod artifacts;
mod audit;
mod backends;
mod call_gate;
mod catalog;
mod diffs;
mod failed;
mod health;
mod hunks;
mod page;
pub mod plain;
mod policy;
mod prompts;
mod refused;
mod replay;
mod rule_view;
mod run_input;
mod run_view;
mod runs;
mod scope;
mod tokens;
mod who_view;
mod workspaces;

use runyard_actions::{Action, DefinitionError, RuntimeBuilder};
// What whoever calls them for somebody else has to name.
pub use runyard_actions::{Answer, Envelope, Invocation, Question};
use runyard_engine::Engine;

pub use approval_view::ApprovalView;
pub use artifacts::artifact_content;
pub use run_view::RunView;

/// Every action of the control plane.
pub fn actions() -> Vec<Result<Action, DefinitionError>> {
    [
        runs::actions(),
        replay::actions(),
        diffs::actions(),
        artifacts::actions(),
        approvals::actions(),
        policy::actions(),
        tokens::actions(),
        workspaces::actions(),
        catalog::actions(),
        backends::actions(),
        audit::actions(),
        prompts::actions(),
        health::actions(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Puts the control plane into a runtime: its actions, the engine that they work on, and the record of what agents are
/// refused.
#[must_use]
pub fn install(runtime: RuntimeBuilder, engine: Engine) -> RuntimeBuilder {
    let gate = call_gate::RunGate::new(engine.clone());
    let refusals = refused::Refusals::new(engine.clone());
    runtime.actions(actions()).call_gate(gate.clone()).hook(gate).hook(refusals).service(engine)
}
