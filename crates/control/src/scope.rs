//! Which runs a caller may see: people and services all of them, an agent the one that it drives.

use runyard_actions::{ActionError, Issue};
use runyard_domain::{Actor, ActorKind, RunId};
use runyard_engine::{Engine, Standing};

use crate::failed::{failed, not_found};
use crate::refused::record_refusal;

/// The run that an agent is bound to; none for anybody else.
pub(crate) fn bound_to(actor: &Actor) -> Option<RunId> {
    match actor.kind {
        ActorKind::Agent { run } => Some(run),
        ActorKind::Person | ActorKind::Service => None,
    }
}

/// The id that a text names.
pub(crate) fn id<T: std::str::FromStr<Err = runyard_domain::InvalidId>>(
    field: &str,
    text: &str,
) -> Result<T, ActionError> {
    text.parse().map_err(|invalid: runyard_domain::InvalidId| {
        let message = format!("Expected a whole id: \"{}_\" and 32 hexadecimal digits.", invalid.kind);
        ActionError::invalid_input(vec![Issue::at(field, message)])
    })
}

/// The run of this id as far as the caller may see it: for an agent there is no run but its own, and asking for another is
/// recorded.
pub(crate) async fn run_for(
    engine: &Engine,
    actor: &Actor,
    asked: &str,
    what: &str,
) -> Result<Standing, ActionError> {
    let run = id("id", asked)?;
    check(engine, actor, run, what).await?;
    engine.run(run).await.map_err(failed)
}

/// Refuses an agent that asks about another run than its own.
pub(crate) async fn check(engine: &Engine, actor: &Actor, run: RunId, what: &str) -> Result<(), ActionError> {
    match bound_to(actor) {
        Some(own) if own != run => {
            // Only what is there is named, so that nobody can fill the record with what they make up.
            let there = engine.run(run).await.is_ok().then_some(run);
            record_refusal(engine, actor, what, there).await;
            Err(not_found(&format!("run {run}")))
        }
        _ => Ok(()),
    }
}

/// A cursor ahead of the log comes from another log: waiting there would pass over what others write in between.
pub(crate) fn check_cursor(standing: &Standing, after: u64) -> Result<(), ActionError> {
    if after <= standing.sequence {
        return Ok(());
    }
    let (run, last) = (standing.run.id, standing.sequence);
    let message = format!("Run {run} is at event {last}; there is nothing to go on from after {after}.");
    Err(ActionError::conflict(message))
}
