//! Budgets: a run that uses more than it may fails, over whatever restarts, and a limit that nobody would keep is refused.
//!
//! clause: B05
//! clause: C16

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use runyard_backend::Signal;
use runyard_backend::link::Report;
use runyard_domain::run::{Budget, Dollars, Exceeded, RunState, Usage};
use runyard_domain::{Code, ExecutionPolicy};
use runyard_engine::{EngineError, NewRun};

use support::*;

fn dollars(text: &str) -> Dollars {
    text.parse().unwrap()
}

fn with(budget: Budget) -> NewRun {
    let policy = ExecutionPolicy { budget: Some(budget), ..ExecutionPolicy::default() };
    NewRun { execution_policy: Some(policy.into()), ..new_run("x") }
}

fn used(input: u64, output: u64, cost_usd: f64) -> Report {
    let usage = Usage { input_tokens: Some(input), output_tokens: Some(output), cost_usd: Some(cost_usd) };
    let phase = "working".to_owned();
    Report::Signal(Signal::Status { phase, model: None, version: None, thread: None, usage: Some(usage) })
}

#[tokio::test]
async fn c16_a_run_that_uses_more_than_its_budget_fails_and_its_session_is_closed() {
    let tokens = Budget { tokens: Some(100), ..Budget::default() };
    let cost = Budget { cost_usd: Some(dollars("0.30")), ..Budget::default() };
    let table = [
        (tokens, used(60, 40, 9.0), used(60, 41, 9.0), Exceeded::Tokens { allowed: 100, used: 101 }),
        (
            cost,
            used(900, 900, 0.1 + 0.2),
            used(900, 900, 0.31),
            Exceeded::CostUsd { allowed: dollars("0.30"), used: dollars("0.31") },
        ),
    ];
    for (budget, at_the_limit, beyond, exceeded) in table {
        let (engine, mut edge) = World::default().hub_and_edge().await;
        let run = engine.create_run(with(budget), &person()).await.unwrap().standing.run.id;
        let open = edge.start().await;
        edge.recorded(&open, 4, vec![asked("a1", "ls"), at_the_limit]).await;
        assert_eq!(engine.run(run).await.unwrap().run.state.name(), "needs_approval", "exactly that is fine");
        edge.recorded(&open, 5, vec![beyond, call("c1", false)]).await;
        assert!(edge.closes(run).await, "it is over");
        let ended = engine.run(run).await.unwrap().run;
        let RunState::Failed { failure } = ended.state else { panic!("{:?}", ended.state) };
        assert_eq!((failure.code, failure.exceeded), (Code::BudgetExceeded, Some(exceeded)));
        assert_eq!(failure.message, exceeded.to_string());
        let kinds = kinds(&engine, run).await;
        assert_eq!(
            kinds[kinds.len() - 3..],
            ["runtime.status", "run.approval.resolved", "run.failed"],
            "what it used stands before its end, and nothing comes after"
        );
    }
}

#[tokio::test]
async fn c16_a_budget_counts_what_was_used_before_a_restart() {
    let world = World::default();
    let (engine, mut edge) = world.hub_and_edge().await;
    let budget = Budget { cost_usd: Some(dollars("1")), tokens: Some(100) };
    let run = engine.create_run(with(budget), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![used(80, 5, 0.0)]).await;
    engine.stop();
    drop((engine, edge));
    let (engine, mut edge) = world.hub_and_edge().await;
    let again = edge.opened().await;
    // What the new session does not know of is not forgotten.
    edge.recorded(&again, 1, vec![used(0, 21, 0.0)]).await;
    assert!(edge.closes(run).await);
    let RunState::Failed { failure } = engine.run(run).await.unwrap().run.state else { panic!() };
    assert_eq!(failure.exceeded, Some(Exceeded::Tokens { allowed: 100, used: 101 }));
}

#[tokio::test]
async fn b05_a_limit_that_nobody_would_keep_is_refused_and_nothing_is_stored() {
    let world = World { kind: "codex-app-server-stdio", ..World::default() };
    let other = World { kind: "action", ..World::default() };
    let cost_usd = Some(dollars("1"));
    let both = Budget { cost_usd, tokens: Some(1) };
    let tokens = |tokens| Budget { tokens: Some(tokens), ..Budget::default() };
    #[rustfmt::skip]
    let table = [
        (&world, both,              "executionPolicy.budget.costUsd", "does not report what it costs. It can have a limit of tokens."),
        (&other, tokens(1),         "executionPolicy.budget.tokens",  "does not report the tokens that it uses. It can have no budget."),
        (&world, Budget::default(), "executionPolicy.budget",         "Expected costUsd, tokens or both."),
        (&world, tokens(0),         "executionPolicy.budget.tokens",  "Expected 1 to 1000000000000."),
        (&world, tokens(u64::MAX),  "executionPolicy.budget.tokens",  "Expected 1 to 1000000000000."),
    ];
    for (world, budget, at, why) in table {
        let engine = world.hub().await;
        match engine.create_run(with(budget), &person()).await {
            Err(EngineError::Invalid { path, message }) => {
                assert_eq!(path, at);
                assert!(message.ends_with(why), "{message}");
            }
            made => panic!("{budget:?}: {made:?}"),
        }
        assert!(engine.runs(None, None, 10).await.unwrap().0.is_empty());
    }
    let made = world.hub().await.create_run(with(tokens(5)), &person()).await.unwrap();
    assert_eq!(made.standing.run.created.execution_policy.budget, Some(tokens(5)));
}

#[tokio::test]
async fn the_budget_of_an_agent_profile_can_only_be_narrowed() {
    let cost_usd = Some(dollars("1"));
    let profile = Budget { cost_usd, tokens: Some(50) };
    let world = World { budget: Some(profile), ..World::default() };
    let engine = world.hub().await;
    let table = [
        (None, profile),
        (Some(Budget { cost_usd: None, tokens: Some(60) }), profile),
        (Some(Budget { cost_usd: None, tokens: Some(40) }), Budget { cost_usd, tokens: Some(40) }),
    ];
    for (wanted, taken) in table {
        let policy = ExecutionPolicy { budget: wanted, ..ExecutionPolicy::default() };
        let new = NewRun { execution_policy: Some(policy.into()), ..new_run("x") };
        let made = engine.create_run(new, &person()).await.unwrap().standing.run;
        assert_eq!(made.created.execution_policy.budget, Some(taken), "{wanted:?}");
    }
}
