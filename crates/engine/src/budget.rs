//! Budgets: which limits a run can have, and what happens when it goes beyond one.
//!
//! A limit holds only where the backend says what it uses, so one that nobody would keep is refused when the run is made.

use runyard_backend::BackendInfo;
use runyard_domain::BackendProfile;
use runyard_domain::run::{Budget, Failure, Metered, Run};

use crate::EngineError;

/// The budget that a run's caller wants, within the one that the agent profile has.
pub(crate) fn narrowed(wanted: Option<Budget>, profile: Option<Budget>) -> Option<Budget> {
    match (wanted, profile) {
        // That it limits nothing is for the check to say.
        (Some(wanted), Some(profile)) if !wanted.is_empty() => Some(wanted.within(profile)),
        (wanted, profile) => wanted.or(profile),
    }
}

/// Refuses a budget that limits nothing, and a limit that nobody would keep.
pub(crate) fn check(
    budget: Option<&Budget>,
    backend: (&BackendProfile, &BackendInfo),
) -> Result<(), EngineError> {
    let Some(budget) = budget else { return Ok(()) };
    let (profile, info) = backend;
    let metered = Metered::of(info.backend_kind);
    let wrong = |path, message: String| Err(EngineError::Invalid { path, message });
    if budget.is_empty() {
        return wrong("executionPolicy.budget", "Expected costUsd, tokens or both.".to_owned());
    }
    let max = Budget::TOKENS_MAX;
    if budget.tokens.is_some_and(|tokens| !(1..=max).contains(&tokens)) {
        return wrong("executionPolicy.budget.tokens", format!("Expected 1 to {max}."));
    }
    let never = |what: &str| {
        let name = &profile.profile;
        format!("Expected none: the backend profile {name} does not report {what}. {metered}")
    };
    if budget.cost_usd.is_some() && !metered.cost {
        return wrong("executionPolicy.budget.costUsd", never("what it costs"));
    }
    if budget.tokens.is_some() && !metered.tokens {
        return wrong("executionPolicy.budget.tokens", never("the tokens that it uses"));
    }
    Ok(())
}

/// Why a run that used so much cannot go on, if so.
pub(crate) fn overrun(run: &Run) -> Option<Failure> {
    let budget = run.created.execution_policy.budget?;
    budget.exceeded(run.usage.as_ref()?).map(Failure::of_budget)
}
