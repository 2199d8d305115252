//! For routes that are no actions (event streams, metrics): the same checks, and the same record of what was refused.

use runyard_actions::{ActionError, Issue};
use runyard_domain::run::Who;
use runyard_domain::{Actor, Code};
use runyard_engine::{AuditFact, Engine, Login, Standing, permissions};

use crate::refused::record_refusal;
use crate::scope::{bound_to, check_cursor, run_for};

/// The run that a caller wants to follow, and the place after which.
pub async fn follow(
    engine: &Engine,
    actor: &Actor,
    run: &str,
    after: Option<&str>,
) -> Result<(Standing, u64), ActionError> {
    const WHAT: &str = "run_stream";
    permitted(engine, actor, permissions::RUNS_READ, WHAT).await?;
    let standing = run_for(engine, actor, run, WHAT).await?;
    let after = after.map_or(Ok(0), str::parse).map_err(|_| {
        let message = "Expected the sequence of the last event that is known, a whole number.";
        ActionError::invalid_input(vec![Issue::at("after", message)])
    })?;
    check_cursor(&standing, after)?;
    Ok((standing, after))
}

/// Refuses agents, and whoever lacks the permission to look.
pub async fn look_at_all(engine: &Engine, actor: &Actor, what: &str) -> Result<(), ActionError> {
    if actor.is_agent() {
        record_refusal(engine, actor, what, bound_to(actor)).await;
        return Err(ActionError::new(Code::AuthorizationError, "An agent may only see its own run."));
    }
    permitted(engine, actor, permissions::RUNS_READ, what).await
}

async fn permitted(engine: &Engine, actor: &Actor, permission: &str, what: &str) -> Result<(), ActionError> {
    if actor.grants.include(permission) {
        return Ok(());
    }
    if actor.is_agent() {
        record_refusal(engine, actor, what, bound_to(actor)).await;
    }
    Err(ActionError::new(Code::AuthorizationError, format!("This needs the permission \"{permission}\".")))
}

/// Records that somebody came in with a token. An agent does so with its run, which is recorded already.
pub async fn login(engine: &Engine, actor: &Actor) {
    if !actor.is_agent() {
        came_in(engine, actor, Login::HTTP).await;
    }
}

/// Records that somebody began a session in a browser.
pub async fn session_began(engine: &Engine, actor: &Actor) {
    came_in(engine, actor, Login::BROWSER).await;
}

async fn came_in(engine: &Engine, actor: &Actor, how: &str) {
    let fact = AuditFact::Login(Login { how: how.to_owned() });
    if let Err(error) = engine.installation().record(&Who::from(actor), fact).await {
        tracing::error!(%error, %actor, "a login could not be recorded");
    }
}

/// Records that an agent tried an address at which there is nothing, as one that looks for secrets does.
pub async fn tried(engine: &Engine, actor: &Actor, address: &str) {
    if actor.is_agent() {
        record_refusal(engine, actor, address, bound_to(actor)).await;
    }
}
