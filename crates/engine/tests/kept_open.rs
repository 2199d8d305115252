//! Runs that are kept open for further turns: they end when somebody lets them, or when nobody said more in time.
//!
//! clause: C22

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::sync::Arc;

use runyard_backend::link::{OpenRun, Report, ToEdge, Work};
use runyard_backend::{Command, Signal, Start};
use runyard_domain::run::{CommandKind, RunState, TurnOutcome};
use runyard_domain::{Code, CommandId, ExecutionPolicy, RunId};
use runyard_engine::{Engine, EngineError, NewCommand, NewRun};
use runyard_store::{Clock, ManualClock, MemoryStore};
use support::*;

const KEEP_OPEN_MS: u64 = 600_000;

fn kept_open() -> NewRun {
    let policy = ExecutionPolicy { keep_open_ms: Some(KEEP_OPEN_MS), ..ExecutionPolicy::default() };
    NewRun { execution_policy: Some(policy.into()), ..new_run("x") }
}

/// A world with a clock that the test moves.
fn world(checkout: bool) -> (World, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&shared)));
    (World { store, clock: shared, checkout, ..World::default() }, clock)
}

fn turn_ended_as(outcome: TurnOutcome) -> Report {
    Report::Signal(Signal::TurnEnded { outcome })
}

/// The backend tells how its conversation is called.
fn thread() -> Report {
    let (phase, thread) = ("ready".to_owned(), Some("thread-1".to_owned()));
    Report::Signal(Signal::Status { phase, model: None, version: None, thread, usage: None })
}

/// A run whose first turn has ended. Four batches.
async fn idle(engine: &Engine, edge: &mut PlayedEdge) -> OpenRun {
    let run = engine.create_run(kept_open(), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![thread(), turn_ended()]).await;
    let standing = engine.run(run).await.unwrap().run;
    assert_eq!(standing.state, RunState::Running);
    assert!(standing.kept_open_until().is_some());
    open
}

async fn tell(engine: &Engine, run: RunId, kind: CommandKind) -> Result<CommandId, EngineError> {
    let text = (kind == CommandKind::Turn).then(|| "more".to_owned());
    engine.command(run, NewCommand { kind, text, key: None }, &person()).await.map(|(id, _)| id)
}

/// Gives a further turn, which reaches the edge as the next thing that it hears, and ends it.
async fn further_turn(engine: &Engine, edge: &mut PlayedEdge, open: &OpenRun, batch: u64) {
    let given = tell(engine, open.run, CommandKind::Turn).await.unwrap();
    match edge.hear().await {
        ToEdge::Command { command: Command::Turn { id, text }, .. } => {
            assert_eq!((id, text.as_str()), (given, "more"))
        }
        other => panic!("expected the turn, not {other:?}"),
    }
    let started = Report::Signal(Signal::TurnStarted { command: Some(given) });
    edge.recorded(open, batch, vec![started, turn_ended()]).await;
}

async fn next_timer(world: &World) -> Option<u64> {
    let due = world.store.next_timer().await.unwrap();
    due.map(|due| due.ms_since(world.clock.now()))
}

#[tokio::test]
async fn c22_a_kept_open_run_takes_turns_until_a_finish_ends_it() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let open = idle(&engine, &mut edge).await;
    further_turn(&engine, &mut edge, &open, 5).await;
    assert_eq!(engine.run(open.run).await.unwrap().run.state, RunState::Running);
    tell(&engine, open.run, CommandKind::Finish).await.unwrap();
    assert!(edge.closes(open.run).await, "the run is over");
    until(&engine, open.run, "completed").await;
    let kinds = kinds(&engine, open.run).await;
    assert_eq!(kinds[kinds.len() - 2..], ["run.command.received", "run.completed"]);
    let error = tell(&engine, open.run, CommandKind::Finish).await.unwrap_err();
    assert_eq!(error.code(), Code::Conflict);
}

#[tokio::test]
async fn c22_a_checkout_is_looked_at_when_the_run_is_let_end_and_not_before() {
    let (world, _) = world(true);
    let (engine, mut edge) = world.hub_and_edge().await;
    let open = idle(&engine, &mut edge).await;
    // The turn is the next thing that the edge hears: its session was not closed for a look.
    further_turn(&engine, &mut edge, &open, 5).await;
    tell(&engine, open.run, CommandKind::Finish).await.unwrap();
    assert!(!edge.closes(open.run).await, "the agent is done, and the run is not over");
    let open = edge.opened().await;
    assert!(matches!(open.work, Work::Review { .. }), "{open:?}");
    let error = tell(&engine, open.run, CommandKind::Finish).await.unwrap_err();
    assert!(error.to_string().contains("on its way to its end"), "{error}");
}

#[tokio::test]
async fn c22_a_finish_in_the_middle_of_a_turn_lets_the_run_end_after_it() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(kept_open(), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    tell(&engine, run, CommandKind::Finish).await.unwrap();
    assert_eq!(engine.run(run).await.unwrap().run.state, RunState::Running);
    edge.recorded(&open, 4, vec![turn_ended()]).await;
    assert!(edge.closes(run).await);
    until(&engine, run, "completed").await;
}

#[tokio::test]
async fn c22_an_interrupt_ends_the_turn_of_a_kept_open_run_and_not_the_run() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(kept_open(), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    tell(&engine, run, CommandKind::Interrupt).await.unwrap();
    assert!(matches!(edge.hear().await, ToEdge::Command { command: Command::Interrupt { .. }, .. }));
    edge.recorded(&open, 4, vec![turn_ended_as(TurnOutcome::Interrupted)]).await;
    assert!(engine.run(run).await.unwrap().run.kept_open_until().is_some());
    further_turn(&engine, &mut edge, &open, 5).await;
    tell(&engine, run, CommandKind::Finish).await.unwrap();
    assert!(edge.closes(run).await);
    until(&engine, run, "completed").await;
}

#[tokio::test]
async fn c22_a_run_that_is_not_kept_open_takes_no_finish() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    edge.start().await;
    let error = tell(&engine, run, CommandKind::Finish).await.unwrap_err();
    assert_eq!(error.code(), Code::Conflict);
    assert!(error.to_string().contains("ends by itself"), "{error}");
    let said = NewCommand { kind: CommandKind::Finish, text: Some("bye".into()), key: None };
    let error = engine.command(run, said, &person()).await.unwrap_err();
    assert_eq!(error.code(), Code::ValidationError);
    for keep_open_ms in [0, ExecutionPolicy::TIMEOUT_MS_MAX + 1] {
        let policy = ExecutionPolicy { keep_open_ms: Some(keep_open_ms), ..ExecutionPolicy::default() };
        let wrong = NewRun { execution_policy: Some(policy.into()), ..new_run("x") };
        let error = engine.create_run(wrong, &person()).await.unwrap_err();
        assert!(
            matches!(error, EngineError::Invalid { path: "executionPolicy.keepOpenMs", .. }),
            "{keep_open_ms}: {error}"
        );
    }
}

#[tokio::test]
async fn c22_a_kept_open_run_to_which_nobody_says_more_in_time_ends_by_itself() {
    let (world, clock) = world(false);
    let (engine, mut edge) = world.hub_and_edge().await;
    let open = idle(&engine, &mut edge).await;
    assert_eq!(next_timer(&world).await, Some(KEEP_OPEN_MS));
    clock.advance_ms(400_000);
    further_turn(&engine, &mut edge, &open, 5).await;
    assert_eq!(next_timer(&world).await, Some(KEEP_OPEN_MS), "it counts from the last turn");
    clock.advance_ms(KEEP_OPEN_MS.try_into().unwrap());
    assert!(edge.closes(open.run).await);
    until(&engine, open.run, "completed").await;
    let events = engine.events(open.run, 0, 1_000).await.unwrap();
    let body = |back: usize| -> serde_json::Value {
        serde_json::from_slice(&events[events.len() - back].body).unwrap()
    };
    assert_eq!(
        (&body(1)["type"], &body(2)["payload"]["command"]),
        (&"run.completed".into(), &"finish".into())
    );
    assert_eq!(body(2)["payload"]["actor"]["id"], "runyard");
    assert_eq!(next_timer(&world).await, None, "no timer is left");
}

#[tokio::test(start_paused = true)]
async fn c22_the_silence_of_a_kept_open_run_between_its_turns_is_no_fault_of_its_backend() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let policy = ExecutionPolicy {
        keep_open_ms: Some(ExecutionPolicy::TIMEOUT_MS_MAX),
        idle_ms: 1_000,
        ..ExecutionPolicy::default()
    };
    let new = NewRun { execution_policy: Some(policy.into()), ..new_run("x") };
    let run = engine.create_run(new, &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![turn_ended()]).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    further_turn(&engine, &mut edge, &open, 5).await;
    assert_eq!(engine.run(run).await.unwrap().run.degraded, Vec::<String>::new());
}

#[tokio::test]
async fn c22_an_idle_kept_open_run_survives_its_hub_and_takes_a_turn_then() {
    let (world, clock) = world(true);
    let (engine, mut edge) = world.hub_and_edge().await;
    let open = idle(&engine, &mut edge).await;
    engine.stop();
    drop((engine, edge));
    clock.advance_ms(60_000);
    let (engine, mut edge) = world.hub_and_edge().await;
    let again = edge.opened().await;
    assert_eq!((again.run, &again.work), (open.run, &Work::Drive));
    let Start::Resume { thread, turn_active, .. } = &again.start else { panic!("{again:?}") };
    assert_eq!(
        (thread.as_deref(), *turn_active),
        (Some("thread-1"), false),
        "no turn goes on, and none begins"
    );
    further_turn(&engine, &mut edge, &again, 1).await;
    assert!(engine.run(open.run).await.unwrap().run.kept_open_until().is_some());
}

#[tokio::test]
async fn c22_an_idle_kept_open_run_whose_conversation_is_lost_ends_and_repeats_nothing() {
    let (world, _) = world(false);
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(kept_open(), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![turn_ended()]).await;
    engine.stop();
    drop((engine, edge));
    let (engine, _edge) = world.hub_and_edge().await;
    let done = until(&engine, run, "completed").await;
    assert_eq!(done.turns, 1);
}
