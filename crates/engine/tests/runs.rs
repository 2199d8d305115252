//! A run's life, driven by an edge that the test plays.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use runyard_backend::link::{FromEdge, Report, ToEdge};
use runyard_backend::{Command, Ending, Resumes, Signal};
use runyard_domain::run::DecisionScope;
use runyard_domain::run::{CHECKED, CommandKind, FailureKind, Resolution, RunState, TurnOutcome};
use runyard_domain::{Actor, Approval, Code, ExecutionPolicy, RunId, SessionId};
use runyard_engine::{Decision, Engine, EngineError, Limits, NewCancel, NewCommand, NewRun, Resolve};
use serde_json::{Value, json};
use support::*;

fn cancel(reason: &str) -> NewCancel {
    NewCancel { reason: reason.to_owned(), key: None }
}

fn answer(decision: Decision, digest: &str) -> Resolve {
    Resolve::new(decision, digest)
}

async fn only_open(engine: &Engine) -> runyard_engine::ApprovalRecord {
    let mut open = engine.open_approvals(None, None, 10, false).await.unwrap();
    assert_eq!(open.len(), 1);
    open.remove(0)
}

#[tokio::test]
async fn c01_c05_a_run_is_planned_accepted_prepared_runs_and_completes() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("tidy up"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    assert_eq!(open.run, run);
    let said = Report::Signal(Signal::Message { item: "m".into(), text: "All tidy.".into() });
    edge.report(&open, 4, vec![said, turn_ended()]).await;
    assert!(matches!(edge.hear().await, ToEdge::Recorded { .. }));
    assert!(edge.closes(run).await, "the run is over");
    let done = until(&engine, run, "completed").await;
    assert_eq!(done.response, "All tidy.");
    #[rustfmt::skip]
    assert_eq!(kinds(&engine, run).await, [
        "run.created", "run.planned", "run.accepted", "run.preparing", "run.started", "run.turn.started",
        "run.message.completed", "run.turn.ended", "run.completed",
    ]);
}

#[tokio::test]
async fn c12_an_approval_is_durable_before_the_agent_waits_and_its_answer_comes_back() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("tidy up"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "make clean")]).await;
    let approval = only_open(&engine).await;
    assert_eq!(approval.asked.digest, "digest of make clean");
    until(&engine, run, "needs_approval").await;
    let id = approval.asked.approval_id;
    engine.resolve(id, answer(Decision::Approve, "digest of make clean"), &person()).await.unwrap();
    match edge.hear().await {
        ToEdge::Decision { approval, key, answer, .. } => {
            assert_eq!((approval, key.as_str(), answer.approved), (id, "a1", true));
        }
        other => panic!("{other:?}"),
    }
    edge.recorded(&open, 5, vec![Report::Used { approval: id }, call("c1", false)]).await;
    edge.recorded(&open, 6, vec![result("c1"), turn_ended()]).await;
    edge.closes(run).await;
    until(&engine, run, "completed").await;
}

#[tokio::test]
async fn c12_the_first_answer_wins_the_same_again_is_fine_and_another_is_refused() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    engine.create_run(NewRun { agent: "patient".into(), ..new_run("x") }, &person()).await.unwrap();
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "ls")]).await;
    let id = only_open(&engine).await.asked.approval_id;
    let stale = engine.resolve(id, answer(Decision::Approve, "another"), &person()).await.unwrap_err();
    assert!(matches!(stale, EngineError::StaleDigest { .. }) && stale.code() == Code::Conflict);
    engine.resolve(id, answer(Decision::Reject, "digest of ls"), &person()).await.unwrap();
    let again =
        engine.resolve(id, answer(Decision::Reject, "digest of ls"), &Actor::owner("bob")).await.unwrap();
    assert_eq!(again.resolved.unwrap().decided_by.id, "ada", "the first one is who decided");
    let other = engine.resolve(id, answer(Decision::Approve, "digest of ls"), &Actor::owner("bob")).await;
    match other.unwrap_err() {
        EngineError::Decided { by, resolution, .. } => {
            assert_eq!((by.as_str(), resolution), ("ada", "rejected"))
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn c12_a_rejection_ends_the_run_and_withdraws_the_others() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "one"), asked("a2", "two")]).await;
    let both = engine.open_approvals(Some(run), None, 10, false).await.unwrap();
    let (first, second) = (both[0].asked.approval_id, both[1].asked.approval_id);
    engine.resolve(first, answer(Decision::Reject, "digest of one"), &person()).await.unwrap();
    assert!(edge.closes(run).await);
    let RunState::Cancelled { cancelled } = until(&engine, run, "cancelled").await.state else { panic!() };
    assert_eq!((cancelled.code, cancelled.by.id.as_str()), (Some(Code::ApprovalRejected), "ada"));
    let other = engine.approval(second).await.unwrap();
    assert_eq!(other.resolved.unwrap().resolution, Resolution::Withdrawn);
    let late =
        engine.resolve(second, answer(Decision::Approve, "digest of two"), &person()).await.unwrap_err();
    assert_eq!(late.code(), Code::Conflict);
}

#[tokio::test]
async fn c12_on_reject_continue_tells_the_agent_and_goes_on() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(NewRun { agent: "patient".into(), ..new_run("x") }, &person()).await.unwrap();
    let run = run.standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "one")]).await;
    let id = only_open(&engine).await.asked.approval_id;
    engine.resolve(id, answer(Decision::Reject, "digest of one"), &person()).await.unwrap();
    assert!(matches!(edge.hear().await, ToEdge::Decision { answer, .. } if !answer.approved));
    assert_eq!(engine.run(run).await.unwrap().run.state, RunState::Running);
}

#[tokio::test]
async fn j06_an_agent_can_never_resolve_an_approval() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "one")]).await;
    let id = only_open(&engine).await.asked.approval_id;
    let agent = Actor::agent("demo", run, ["approvals.resolve"]);
    let refused = engine.resolve(id, answer(Decision::Approve, "digest of one"), &agent).await.unwrap_err();
    assert_eq!(refused.code(), Code::AuthorizationError);
    assert!(only_open(&engine).await.resolved.is_none());
}

#[tokio::test]
async fn c22_a_cancelled_run_takes_no_late_output_and_refuses_commands_with_its_state() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    engine.cancel(run, cancel("no longer wanted"), &person()).await.unwrap();
    edge.report(&open, 4, vec![call("c", false)]).await;
    loop {
        match edge.hear().await {
            ToEdge::Refused { edge_sequence: 4, fenced: false, .. } => {}
            ToEdge::Close { run, generation, over: true } => {
                edge.say(FromEdge::Closed { run, generation }).await;
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    let events = kinds(&engine, run).await;
    assert_eq!(events.last().unwrap(), "run.cancelled");
    let turn = NewCommand { kind: CommandKind::Turn, text: Some("more".into()), key: None };
    let error = engine.command(run, turn, &person()).await.unwrap_err();
    assert_eq!(error.code(), Code::Conflict);
    assert!(error.to_string().contains("cancelled"), "{error}");
    let error = engine.cancel(run, cancel("again"), &person()).await.unwrap_err();
    assert_eq!(error.code(), Code::Conflict);
}

#[tokio::test]
async fn c22_every_instruction_under_the_same_key_is_given_once() {
    let world = World::default();
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![Report::Signal(Signal::TurnStarted { command: None })]).await;
    for (kind, text) in [
        (CommandKind::Turn, Some("more")),
        (CommandKind::Steer, Some("left")),
        (CommandKind::Interrupt, None),
    ] {
        let command = || NewCommand { kind, text: text.map(str::to_owned), key: Some("the-key".into()) };
        let keyed = |key: &str| NewCommand { key: Some(format!("{key}-{kind:?}")), ..command() };
        let first = engine.command(run, keyed("a"), &person()).await.unwrap();
        assert_eq!(engine.command(run, keyed("a"), &person()).await.unwrap(), first, "{kind:?}");
        let others = NewCommand { text: text.map(|_| "other".to_owned()), ..keyed("a") };
        if text.is_some() {
            let taken = engine.command(run, others, &person()).await.unwrap_err();
            assert!(matches!(taken, EngineError::KeyTaken), "{taken}");
        }
    }
    let keyed = |reason: &str| NewCancel { key: Some("c".into()), ..cancel(reason) };
    let somebody = person();
    let enough = || engine.cancel(run, keyed("enough"), &somebody);
    let (one, other) = tokio::join!(enough(), enough());
    assert_eq!(one.unwrap().sequence, other.unwrap().sequence);
    let taken = engine.cancel(run, keyed("another reason"), &person()).await.unwrap_err();
    assert!(matches!(taken, EngineError::KeyTaken), "{taken}");
    let recorded = kinds(&engine, run).await;
    let count = |kind: &str| recorded.iter().filter(|recorded| *recorded == kind).count();
    assert_eq!((count("run.command.received"), count("run.cancelled")), (3, 1));
    engine.stop();
    drop(edge);
    let engine = world.hub().await;
    let again = engine.cancel(run, keyed("enough"), &person()).await.unwrap();
    assert_eq!(again.run.state.name(), "cancelled", "the key outlives its hub");
}

/// The next command for a session of the agent.
async fn told(edge: &mut PlayedEdge) -> Command {
    match edge.hear().await {
        ToEdge::Command { command, .. } => command,
        other => panic!("expected a command, not {other:?}"),
    }
}

// clause: J05
#[tokio::test]
async fn j05_a_word_or_an_interrupt_that_was_taken_is_said_again_until_it_is_heard() {
    let world = World::default();
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    let say = async |kind, text: Option<&str>| {
        let command = NewCommand { kind, text: text.map(str::to_owned), key: None };
        engine.command(run, command, &person()).await.unwrap().0
    };
    let left = say(CommandKind::Steer, Some("left")).await;
    assert_eq!(told(&mut edge).await, Command::Steer { id: left, text: "left".into() });
    let right = say(CommandKind::Steer, Some("right")).await;
    assert_eq!(told(&mut edge).await, Command::Steer { id: right, text: "right".into() });
    edge.recorded(&open, 4, vec![Report::Signal(Signal::Heard { command: left })]).await;
    let stop = say(CommandKind::Interrupt, None).await;
    assert_eq!(told(&mut edge).await, Command::Interrupt { id: stop });
    engine.stop();
    drop(edge);

    // Nobody knows whether its session had heard the rest.
    let (engine, mut edge) = world.hub_and_edge().await;
    let open = edge.opened().await;
    assert_eq!(told(&mut edge).await, Command::Steer { id: right, text: "right".into() });
    assert_eq!(told(&mut edge).await, Command::Interrupt { id: stop });
    let over = Signal::TurnEnded { outcome: TurnOutcome::Interrupted };
    edge.recorded(&open, 1, vec![Report::Signal(over)]).await;
    edge.closes(run).await;
    until(&engine, run, "cancelled").await;
    let events = engine.events(run, 0, 100).await.unwrap();
    let texts: Vec<String> =
        events.iter().map(|event| String::from_utf8(event.body.to_vec()).unwrap()).collect();
    let lost = "a word was not said to the agent: its turn was over first";
    assert_eq!(texts.iter().filter(|text| text.contains(lost)).count(), 1, "{texts:#?}");
}

#[tokio::test]
async fn c22_whoever_said_more_than_an_agent_hears_can_still_interrupt_it() {
    let world = World::default();
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let _open = edge.start().await;
    let say = async |kind, text: Option<&str>| {
        let command = NewCommand { kind, text: text.map(str::to_owned), key: None };
        engine.command(run, command, &person()).await
    };
    let mut said = 0;
    let refused = loop {
        match say(CommandKind::Steer, Some("more")).await {
            Ok(_) => said += 1,
            Err(refused) => break refused,
        }
        assert!(said < 1_000, "words have no limit");
    };
    assert!(matches!(refused, EngineError::Conflict { .. }), "{refused}");
    say(CommandKind::Interrupt, None).await.unwrap();
}

#[tokio::test]
async fn c22_a_turn_that_waits_for_an_answer_takes_words_and_is_interrupted_which_withdraws_what_it_asks() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "ls")]).await;
    let steer = NewCommand { kind: CommandKind::Steer, text: Some("left".into()), key: None };
    let (word, _) = engine.command(run, steer, &person()).await.unwrap();
    assert_eq!(told(&mut edge).await, Command::Steer { id: word, text: "left".into() });
    let interrupt = NewCommand { kind: CommandKind::Interrupt, text: None, key: None };
    let (stop, _) = engine.command(run, interrupt, &person()).await.unwrap();
    assert!(
        engine.open_approvals(None, None, 10, true).await.unwrap().is_empty(),
        "nobody is asked any more"
    );
    assert_eq!(told(&mut edge).await, Command::Interrupt { id: stop });
    let over = Signal::TurnEnded { outcome: TurnOutcome::Interrupted };
    let withdrawn = Signal::Withdraw { key: "a1".into() };
    edge.recorded(&open, 5, vec![Report::Signal(withdrawn), Report::Signal(over)]).await;
    assert!(edge.closes(run).await);
    until(&engine, run, "cancelled").await;
}

#[tokio::test]
async fn j05_a_turn_that_was_interrupted_is_over_when_nobody_knows_of_its_step() {
    let world = World::default();
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![call("c1", false)]).await;
    let steer = NewCommand { kind: CommandKind::Steer, text: Some("left".into()), key: None };
    engine.command(run, steer, &person()).await.unwrap();
    let interrupt = NewCommand { kind: CommandKind::Interrupt, text: None, key: None };
    engine.command(run, interrupt, &person()).await.unwrap();
    engine.stop();
    drop((engine, edge));
    let (engine, _edge) = world.hub_and_edge().await;
    let RunState::Cancelled { cancelled } = until(&engine, run, "cancelled").await.state else { panic!() };
    assert_eq!(cancelled.by.id, person().id, "the person who interrupted it, and nobody is asked");
    let kinds = kinds(&engine, run).await;
    let told = ["run.tool.result", "runtime.error", "run.turn.ended", "run.cancelled"];
    assert_eq!(kinds[kinds.len() - 4..], told, "also that a word was never said to the agent");
}

// clause: B10
#[tokio::test]
async fn b10_c16_what_no_run_takes_of_a_backend_fails_it_with_the_kind_that_says_so() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.report(&open, 4, vec![Report::Applied { digest: "d".into(), commit: None }]).await;
    let RunState::Failed { failure } = until(&engine, run, "failed").await.state else { panic!() };
    assert_eq!(failure.failure_kind, Some(FailureKind::BackendProtocolError), "{failure:?}");
    assert_eq!(failure.code, Code::SchemaValidationFailed);
    assert_eq!(failure.recovery, Code::BackendProtocolError.row().recovery);
    let kinds = kinds(&engine, run).await;
    assert_eq!(kinds[kinds.len() - 2..], ["schema.validation_failed", "run.failed"]);
    let said = edge.hear().await;
    assert!(matches!(said, ToEdge::Refused { edge_sequence: 4, fenced: false, .. }), "{said:?}");
    assert!(edge.closes(run).await, "nothing of its session is left");
}

#[tokio::test]
async fn c05_an_edge_that_leaves_out_a_check_starts_nothing() {
    for check in CHECKED {
        let (engine, mut edge) = World::default().hub_and_edge().await;
        let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
        let open = edge.opened().await;
        edge.recorded(&open, 1, vec![Report::Accepted]).await;
        let Report::Preparing { mut checks } = preparing() else { panic!() };
        checks.retain(|named| named != check);
        edge.report(&open, 2, vec![Report::Preparing { checks }]).await;
        until(&engine, run, "failed").await;
        assert!(!kinds(&engine, run).await.contains(&"run.preparing".to_owned()), "without {check}");

        let (engine, mut edge) = World::default().hub_and_edge().await;
        let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
        let open = edge.opened().await;
        edge.recorded(&open, 1, vec![Report::Accepted]).await;
        edge.recorded(&open, 2, vec![preparing()]).await;
        let Report::Started { backend_kind, protocol, mut checks } = started() else { panic!() };
        checks.insert(check.to_owned(), " ".to_owned());
        edge.report(&open, 3, vec![Report::Started { backend_kind, protocol, checks }]).await;
        let RunState::Failed { failure } = until(&engine, run, "failed").await.state else { panic!() };
        assert!(failure.message.contains(check), "{failure:?}");
        assert!(!kinds(&engine, run).await.contains(&"run.started".to_owned()), "without {check}");
    }
}

#[tokio::test]
async fn c22_turns_are_queued_and_given_one_after_the_other() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    let turn =
        |key: &str| NewCommand { kind: CommandKind::Turn, text: Some("more".into()), key: Some(key.into()) };
    let (first, _) = engine.command(run, turn("k1"), &person()).await.unwrap();
    let (again, _) = engine.command(run, turn("k1"), &person()).await.unwrap();
    assert_eq!(first, again, "the same key is the same command");
    let other = NewCommand { text: Some("other".into()), ..turn("k1") };
    assert!(matches!(engine.command(run, other, &person()).await.unwrap_err(), EngineError::KeyTaken));
    edge.recorded(&open, 4, vec![turn_ended()]).await;
    match edge.hear().await {
        ToEdge::Command { command: Command::Turn { id, text }, .. } => {
            assert_eq!((id, text.as_str()), (first, "more"))
        }
        other => panic!("{other:?}"),
    }
    let started = Report::Signal(Signal::TurnStarted { command: Some(first) });
    edge.recorded(&open, 5, vec![started, turn_ended()]).await;
    assert!(edge.closes(run).await);
    until(&engine, run, "completed").await;
}

#[tokio::test]
async fn c22_steer_and_interrupt_reach_the_session_and_an_interrupted_turn_ends_the_run() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    let steer = NewCommand { kind: CommandKind::Steer, text: Some("left".into()), key: None };
    engine.command(run, steer, &person()).await.unwrap();
    assert!(
        matches!(edge.hear().await, ToEdge::Command { command: Command::Steer { text, .. }, .. } if text == "left")
    );
    let interrupt = NewCommand { kind: CommandKind::Interrupt, text: None, key: None };
    engine.command(run, interrupt, &person()).await.unwrap();
    assert!(matches!(edge.hear().await, ToEdge::Command { command: Command::Interrupt { .. }, .. }));
    let ended = Report::Signal(Signal::TurnEnded { outcome: TurnOutcome::Interrupted });
    edge.recorded(&open, 4, vec![ended]).await;
    edge.closes(run).await;
    let RunState::Cancelled { cancelled } = until(&engine, run, "cancelled").await.state else { panic!() };
    assert_eq!(cancelled.by.id, "ada");
}

#[tokio::test]
async fn c12_a_waiting_session_is_parked_and_opened_again_with_the_grant() {
    let world = World { limits: Limits { park_after_ms: 0, ..Limits::default() }, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "ls")]).await;
    assert!(!edge.closes(run).await, "parked, not over");
    let id = only_open(&engine).await.asked.approval_id;
    while engine.figures().runs_active > 0 {
        tokio::task::yield_now().await;
    }
    engine.resolve(id, answer(Decision::Approve, "digest of ls"), &person()).await.unwrap();
    let again = edge.opened().await;
    assert!(again.generation > open.generation);
    assert!(matches!(again.start, runyard_backend::Start::Resume { turn_active: true, .. }));
    edge.report(&again, 1, vec![asked("a1", "rm x"), asked("a2", "ls")]).await;
    match edge.hear().await {
        ToEdge::Recorded { granted, .. } => {
            assert_eq!(granted.len(), 1, "only exactly what was approved");
            assert!(granted[0].0 == "a2" && granted[0].1.approved);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(only_open(&engine).await.asked.digest, "digest of rm x", "anything else is a new approval");
    assert_eq!(engine.run(run).await.unwrap().run.grants, vec![], "used at most once");
}

#[tokio::test]
async fn j05_an_open_step_is_resumed_asked_about_or_unknown() {
    #[derive(Debug, PartialEq)]
    enum Then {
        Resumed,
        Asked,
        Unknown,
    }
    async fn check(resumes: Resumes, thread: bool, idempotent: bool, approval: Approval, then: Then) {
        let world = World { resumes, ..World::default() };
        let (engine, mut edge) = world.hub_and_edge().await;
        let policy = ExecutionPolicy { approval, ..ExecutionPolicy::default() };
        let new = NewRun { execution_policy: Some(policy.into()), ..new_run("x") };
        let run = engine.create_run(new, &person()).await.unwrap().standing.run.id;
        let open = edge.start().await;
        if thread {
            let (phase, thread) = ("ready".to_owned(), Some("t1".to_owned()));
            let status = Signal::Status { phase, model: None, version: None, thread, usage: None };
            edge.recorded(&open, 4, vec![Report::Signal(status)]).await;
        }
        edge.recorded(&open, 5, vec![call("c1", idempotent)]).await;
        engine.stop();
        drop((engine, edge));
        let (engine, mut edge) = world.hub_and_edge().await;
        let name = format!("{resumes:?} thread {thread} idempotent {idempotent}");
        match then {
            Then::Resumed => {
                let again = edge.opened().await;
                assert_eq!(again.run, run, "{name}");
            }
            Then::Asked => {
                until(&engine, run, "needs_approval").await;
                let record = only_open(&engine).await;
                assert_eq!(serde_json::to_value(&record.asked.request).unwrap()["step"], "step c1", "{name}");
                let yes = answer(Decision::Approve, &record.asked.digest);
                engine.resolve(record.asked.approval_id, yes, &person()).await.unwrap();
                let again = edge.opened().await;
                assert_eq!(again.run, run, "{name}");
                assert!(engine.run(run).await.unwrap().run.open_steps.is_empty());
            }
            Then::Unknown => {
                let RunState::Failed { failure } = until(&engine, run, "failed").await.state else {
                    panic!()
                };
                assert_eq!(failure.code, Code::OutcomeUnknown, "{name}");
            }
        }
    }
    check(Resumes::Steps, true, true, Approval::Ask, Then::Resumed).await;
    check(Resumes::Steps, true, false, Approval::Ask, Then::Asked).await;
    check(Resumes::Steps, true, false, Approval::Never, Then::Unknown).await;
    check(Resumes::Thread, true, false, Approval::Never, Then::Resumed).await;
    check(Resumes::Thread, false, false, Approval::Ask, Then::Asked).await;
    check(Resumes::Never, false, false, Approval::Ask, Then::Asked).await;
}

#[tokio::test]
async fn j05_every_step_that_nobody_knows_of_is_named_when_a_run_ends_with_it() {
    for approval in [Approval::Ask, Approval::Never] {
        let world = World { resumes: Resumes::Steps, ..World::default() };
        let (engine, mut edge) = world.hub_and_edge().await;
        let policy = ExecutionPolicy { approval, ..ExecutionPolicy::default() };
        let new = NewRun { execution_policy: Some(policy.into()), ..new_run("x") };
        let run = engine.create_run(new, &person()).await.unwrap().standing.run.id;
        let open = edge.start().await;
        let calls = vec![call("c1", true), call("c2", false), call("c3", false), call("c4", false)];
        edge.recorded(&open, 4, calls).await;
        edge.recorded(&open, 5, vec![result("c3")]).await;
        engine.stop();
        drop((engine, edge));
        let (engine, _edge) = world.hub_and_edge().await;
        let unknown = json!("step c2; step c4");
        if approval == Approval::Ask {
            until(&engine, run, "needs_approval").await;
            let record = only_open(&engine).await;
            assert_eq!(serde_json::to_value(&record.asked.request).unwrap()["step"], unknown);
            let no = answer(Decision::Reject, &record.asked.digest);
            engine.resolve(record.asked.approval_id, no, &person()).await.unwrap();
        }
        let RunState::Failed { failure } = until(&engine, run, "failed").await.state else { panic!() };
        assert_eq!(failure.code, Code::OutcomeUnknown);
        let events = engine.events(run, 0, 100).await.unwrap();
        let last: Value = serde_json::from_slice(&events.last().unwrap().body).unwrap();
        assert_eq!(
            (&last["type"], &last["payload"]["step"]),
            (&json!("run.failed"), &unknown),
            "{approval:?}"
        );
    }
}

#[tokio::test]
async fn j05_a_step_that_is_over_though_nobody_knows_of_it_is_named_when_its_agent_ends_the_run() {
    let world = World::default();
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![call("c1", false), call("c2", false), result("c1")]).await;
    let step = Some("step c1".to_owned());
    let ending = Ending::Blocked { code: Code::OutcomeUnknown, message: "nobody knows".into(), step };
    edge.recorded(&open, 5, vec![Report::Signal(Signal::Ended { ending })]).await;
    let RunState::Failed { failure } = until(&engine, run, "failed").await.state else { panic!() };
    assert_eq!(failure.code, Code::OutcomeUnknown);
    let events = engine.events(run, 0, 100).await.unwrap();
    let last: Value = serde_json::from_slice(&events.last().unwrap().body).unwrap();
    assert_eq!(last["payload"]["step"], "step c1; step c2", "with those that are open");
}

#[tokio::test]
async fn c18_an_edge_that_cannot_be_reached_is_target_offline() {
    let engine = World::default().hub().await;
    engine.go().await.unwrap();
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let RunState::Failed { failure } = until(&engine, run, "failed").await.state else { panic!() };
    assert_eq!(failure.code, Code::TargetOffline);
}

#[tokio::test]
async fn c12_no_answer_in_time_is_a_rejection() {
    let world = World { limits: Limits { approval_expiry_ms: 1, ..Limits::default() }, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "ls")]).await;
    let RunState::Cancelled { cancelled } = until(&engine, run, "cancelled").await.state else { panic!() };
    assert_eq!(cancelled.code, Some(Code::ApprovalRejected));
    assert_eq!(cancelled.by.id, "runyard");
}

#[tokio::test]
async fn c16_a_run_that_takes_too_long_fails_as_run_timeout() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let policy = ExecutionPolicy { timeout_ms: 50, ..ExecutionPolicy::default() };
    let run =
        engine.create_run(NewRun { execution_policy: Some(policy.into()), ..new_run("x") }, &person()).await;
    let run = run.unwrap().standing.run.id;
    edge.start().await;
    let RunState::Failed { failure } = until(&engine, run, "failed").await.state else { panic!() };
    assert_eq!(failure.code, Code::RunTimeout);
}

#[tokio::test]
async fn c04_a_silent_backend_makes_the_run_degraded() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let policy = ExecutionPolicy { idle_ms: 20, ..ExecutionPolicy::default() };
    let run =
        engine.create_run(NewRun { execution_policy: Some(policy.into()), ..new_run("x") }, &person()).await;
    let run = run.unwrap().standing.run.id;
    edge.start().await;
    let mut tail = engine.follow(run, 0).await.unwrap();
    while engine.run(run).await.unwrap().run.degraded.is_empty() {
        tail.next().await.unwrap();
    }
    assert_eq!(engine.run(run).await.unwrap().run.state, RunState::Running, "a flag, not a state");
}

#[tokio::test]
async fn runs_beyond_the_limits_wait_in_planned() {
    let world = World { limits: Limits { runs_per_edge_max: 1, ..Limits::default() }, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let first = engine.create_run(new_run("one"), &person()).await.unwrap().standing.run.id;
    let second = engine.create_run(new_run("two"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    assert_eq!(open.run, first);
    assert_eq!(engine.run(second).await.unwrap().run.state, RunState::Planned);
    assert_eq!(engine.figures().runs_waiting, 1);
    edge.recorded(&open, 4, vec![turn_ended()]).await;
    edge.closes(first).await;
    let open = edge.start().await;
    assert_eq!(open.run, second);
}

#[tokio::test]
async fn c08_a_run_that_waits_survives_the_death_of_the_hub() {
    let world = World::default();
    let (engine, mut edge) = world.hub_and_edge().await;
    let run: RunId = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "ls")]).await;
    engine.stop();
    drop((engine, edge));
    let (engine, mut edge) = world.hub_and_edge().await;
    let id = only_open(&engine).await.asked.approval_id;
    engine.resolve(id, answer(Decision::Approve, "digest of ls"), &person()).await.unwrap();
    let again = edge.opened().await;
    assert_eq!(again.run, run);
    edge.report(&again, 1, vec![asked("x9", "ls")]).await;
    assert!(matches!(edge.hear().await, ToEdge::Recorded { granted, .. } if granted.len() == 1));
    edge.recorded(&again, 2, vec![turn_ended()]).await;
    edge.closes(run).await;
    until(&engine, run, "completed").await;
}

#[tokio::test]
async fn a_batch_that_is_sent_again_is_recorded_once() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![call("c1", true)]).await;
    let before = kinds(&engine, run).await;
    edge.recorded(&open, 4, vec![call("c1", true)]).await;
    assert_eq!(kinds(&engine, run).await, before);
}

#[tokio::test]
async fn b05_c16_what_cannot_run_is_refused_at_creation_and_nothing_is_stored() {
    let engine = World::default().hub().await;
    let check = async |new: NewRun, code: Code, path: Option<&str>| {
        let error = engine.create_run(new, &person()).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        if let Some(path) = path {
            assert!(matches!(error, EngineError::Invalid { path: found, .. } if found == path));
        }
    };
    let none = NewRun { agent: "nobody".into(), ..new_run("x") };
    check(none, Code::ValidationError, Some("agent")).await;
    let none = NewRun { backend_profile: Some("mystery".into()), ..new_run("x") };
    check(none, Code::ValidationError, Some("backendProfile")).await;
    let outside = NewRun { workspace: "/etc".into(), ..new_run("x") };
    check(outside, Code::WorkspaceOutsideAllowlist, None).await;
    check(new_run("  "), Code::ValidationError, Some("task")).await;
    let secret = serde_json::json!({"password": "hunter2-hunter2"});
    let action = runyard_domain::run::Task::Action { action: "login".into(), input: secret };
    check(NewRun { task: action, ..new_run("x") }, Code::RedactedContent, None).await;
    assert_eq!(engine.runs(None, None, 10).await.unwrap().0.len(), 0);
}

#[tokio::test]
async fn the_same_key_makes_one_run() {
    let (engine, _edge) = World::default().hub_and_edge().await;
    let keyed = NewRun { key: Some("k".into()), ..new_run("x") };
    let ada = person();
    let (one, two) =
        tokio::join!(engine.create_run(keyed.clone(), &ada), engine.create_run(keyed.clone(), &ada));
    assert_eq!(one.unwrap().standing.run.id, two.unwrap().standing.run.id);
    assert_eq!(engine.runs(None, None, 10).await.unwrap().0.len(), 1);
}

fn died() -> Report {
    let ending = runyard_backend::Ending::Died { message: "killed".into() };
    Report::Signal(Signal::Ended { ending })
}

#[tokio::test]
async fn j05_a_run_whose_agent_died_is_opened_again_and_an_approval_outlives_it() {
    let world = World { resumes: Resumes::Thread, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    let (phase, thread) = ("ready".to_owned(), Some("t1".to_owned()));
    let status = Signal::Status { phase, model: None, version: None, thread, usage: None };
    edge.recorded(&open, 4, vec![Report::Signal(status), call("c1", false)]).await;
    edge.recorded(&open, 5, vec![died()]).await;
    assert!(!edge.closes(run).await);
    let again = edge.opened().await;
    let runyard_backend::Start::Resume { thread, turn_active, .. } = &again.start else {
        panic!("{again:?}")
    };
    assert_eq!((thread.as_deref(), *turn_active), (Some("t1"), true));
    edge.recorded(&again, 1, vec![asked("a1", "ls")]).await;
    edge.recorded(&again, 2, vec![died()]).await;
    assert!(!edge.closes(run).await);
    let id = only_open(&engine).await.asked.approval_id;
    engine.resolve(id, answer(Decision::Approve, "digest of ls"), &person()).await.unwrap();
    let third = edge.opened().await;
    edge.report(&third, 1, vec![asked("b7", "ls")]).await;
    assert!(matches!(edge.hear().await, ToEdge::Recorded { granted, .. } if granted.len() == 1));
    edge.recorded(&third, 2, vec![turn_ended()]).await;
    edge.closes(run).await;
    until(&engine, run, "completed").await;
}

#[tokio::test]
async fn j05_an_agent_that_dies_again_and_again_fails_the_run() {
    let world = World { resumes: Resumes::Thread, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let mut open = edge.start().await;
    let mut sequence = 4;
    for _ in 0..5 {
        edge.recorded(&open, sequence, vec![died()]).await;
        edge.closes(run).await;
        open = edge.opened().await;
        sequence = 1;
    }
    edge.recorded(&open, 1, vec![died()]).await;
    assert!(edge.closes(run).await);
    let RunState::Failed { failure } = until(&engine, run, "failed").await.state else { panic!() };
    assert_eq!(failure.code, Code::RuntimeUnavailable);
}

#[tokio::test]
async fn j05_a_run_that_died_before_its_first_turn_begins_anew() {
    let world = World::default();
    let (engine, mut edge) = world.hub_and_edge().await;
    engine.create_run(new_run("x"), &person()).await.unwrap();
    let open = edge.opened().await;
    edge.recorded(&open, 1, vec![Report::Accepted]).await;
    edge.recorded(&open, 2, vec![preparing()]).await;
    let started = started();
    let (phase, thread) = ("ready".to_owned(), Some("demo@1.0".to_owned()));
    let status = Signal::Status { phase, model: None, version: None, thread, usage: None };
    edge.recorded(&open, 3, vec![started, Report::Signal(status)]).await;
    engine.stop();
    drop((engine, edge));
    let (_engine, mut edge) = world.hub_and_edge().await;
    let again = edge.opened().await;
    assert!(matches!(again.start, runyard_backend::Start::Fresh { thread: None, .. }), "{again:?}");
}

#[tokio::test]
async fn c18_a_run_on_another_hubs_edge_is_left_to_that_hub_which_hears_of_answers_given_here() {
    let world = World::default();
    let (theirs, mut edge) = world.hub_and_edge().await;
    let run = theirs.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "ls")]).await;
    let ours = world.hub_of(&[]).await;
    ours.go().await.unwrap();
    let id = only_open(&ours).await.asked.approval_id;
    ours.resolve(id, answer(Decision::Approve, "digest of ls"), &person()).await.unwrap();
    assert!(matches!(edge.hear().await, ToEdge::Decision { approval, .. } if approval == id));
    assert_eq!(ours.figures().runs_active + ours.figures().runs_waiting, 0);
    assert_eq!(ours.run(run).await.unwrap().run.state, RunState::Running);
}

#[tokio::test]
async fn j05_a_driver_whose_lease_was_taken_is_fenced_and_writes_nothing_more() {
    let world = World { limits: Limits { lease_ms: 1, ..Limits::default() }, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    let term = std::time::Duration::from_secs(600);
    loop {
        use runyard_store::Acquired;
        match world.store.acquire(run, "another hub".into(), term).await.unwrap() {
            Acquired::Granted(_) => break,
            Acquired::Held { .. } => tokio::task::yield_now().await,
        }
    }
    let before = kinds(&engine, run).await;
    edge.report(&open, 4, vec![call("c1", false)]).await;
    loop {
        match edge.hear().await {
            ToEdge::Refused { fenced: true, .. } => {}
            ToEdge::Close { over: false, .. } => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(kinds(&engine, run).await, before);
}

#[tokio::test]
async fn c18_an_edge_that_does_not_accept_in_time_is_target_offline() {
    let world = World { limits: Limits { accept_ms: 1, ..Limits::default() }, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    edge.opened().await;
    let RunState::Failed { failure } = until(&engine, run, "failed").await.state else { panic!() };
    assert_eq!(failure.code, Code::TargetOffline);
}

#[tokio::test]
async fn c05_preparing_has_a_deadline_of_its_own() {
    let world = World { limits: Limits { prepare_ms: 20, ..Limits::default() }, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.opened().await;
    edge.recorded(&open, 1, vec![Report::Accepted]).await;
    edge.recorded(&open, 2, vec![preparing()]).await;
    let RunState::Failed { failure } = until(&engine, run, "failed").await.state else { panic!() };
    assert_eq!(failure.code, Code::RunTimeout);
}

#[tokio::test]
async fn runs_of_one_profile_beyond_its_limit_wait_and_those_of_another_do_not() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    for _ in 0..9 {
        engine.create_run(new_run("x"), &person()).await.unwrap();
    }
    let other = NewRun { agent: "patient".into(), ..new_run("x") };
    let other = engine.create_run(other, &person()).await.unwrap().standing.run.id;
    let mut opened = Vec::new();
    for _ in 0..9 {
        opened.push(edge.opened().await);
    }
    assert_eq!(opened.iter().filter(|open| open.agent_id == "demo").count(), 8, "the profile's limit");
    assert!(opened.iter().any(|open| open.run == other));
    assert_eq!(engine.figures().runs_waiting, 1);
}

#[tokio::test]
async fn c12_a_question_is_answered_by_its_schema() {
    use runyard_domain::gate::{Question, Request, Risk};
    let (engine, mut edge) = World::default().hub_and_edge().await;
    engine.create_run(new_run("x"), &person()).await.unwrap();
    let open = edge.start().await;
    let answer_schema = serde_json::json!({"type": "string", "enum": ["left", "right"]});
    let question = Report::Asked {
        key: "q".into(),
        request: Request::Question(Question { prompt: "Which way?".into(), answer_schema }),
        redacted: false,
        digest: "d".into(),
        risk: Risk::Low,
        reason: "a question".into(),
        notes: Vec::new(),
    };
    edge.recorded(&open, 4, vec![question]).await;
    let id = only_open(&engine).await.asked.approval_id;
    let with = |answer| Resolve { answer, ..Resolve::new(Decision::Approve, "d") };
    for wrong in [None, Some("up".into()), Some(7.into())] {
        let error = engine.resolve(id, with(wrong), &person()).await.unwrap_err();
        assert!(matches!(error, EngineError::Invalid { path: "answer", .. }), "{error}");
    }
    engine.resolve(id, with(Some("left".into())), &person()).await.unwrap();
    assert!(
        matches!(edge.hear().await, ToEdge::Decision { answer, .. } if answer.answer == Some("left".into()))
    );
}

#[tokio::test]
async fn c12_the_same_answer_again_is_fine_also_where_it_is_stored_without_its_secret() {
    use runyard_domain::gate::{Question, Request, Risk};
    let (engine, mut edge) = World::default().hub_and_edge().await;
    engine.create_run(new_run("x"), &person()).await.unwrap();
    let open = edge.start().await;
    let question =
        Question { prompt: "Which key?".into(), answer_schema: serde_json::json!({"type": "string"}) };
    let asked = Report::Asked {
        key: "q".into(),
        request: Request::Question(question),
        redacted: false,
        digest: "d".into(),
        risk: Risk::Low,
        reason: "a question".into(),
        notes: Vec::new(),
    };
    edge.recorded(&open, 4, vec![asked]).await;
    let id = only_open(&engine).await.asked.approval_id;
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let with = |answer: &str| Resolve { answer: Some(answer.into()), ..Resolve::new(Decision::Approve, "d") };
    let stored = engine.resolve(id, with(&secret), &person()).await.unwrap();
    assert!(!format!("{stored:?}").contains(&secret), "it is not stored as it came");
    engine.resolve(id, with(&secret), &person()).await.unwrap();
    let other = engine.resolve(id, with("another"), &person()).await.unwrap_err();
    assert!(matches!(other, EngineError::Decided { .. }), "{other}");
}

#[tokio::test]
async fn c22_a_turn_that_was_given_before_the_first_one_began_comes_after_it() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.opened().await;
    let turn = NewCommand { kind: CommandKind::Turn, text: Some("more".into()), key: None };
    let (id, _) = engine.command(run, turn, &person()).await.unwrap();
    edge.recorded(&open, 1, vec![Report::Accepted]).await;
    edge.recorded(&open, 2, vec![preparing()]).await;
    let started = started();
    edge.recorded(&open, 3, vec![started]).await;
    let began = Report::Signal(Signal::TurnStarted { command: None });
    edge.recorded(&open, 4, vec![began, turn_ended()]).await;
    assert!(
        matches!(edge.hear().await, ToEdge::Command { command: Command::Turn { id: given, .. }, .. } if given == id)
    );
}

#[tokio::test]
async fn j07_of_two_equal_requests_at_a_time_each_has_its_own_answer() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    engine.create_run(new_run("x"), &person()).await.unwrap();
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "ls")]).await;
    let first = only_open(&engine).await.asked.approval_id;
    engine.resolve(first, answer(Decision::Approve, "digest of ls"), &person()).await.unwrap();
    // The second comes before the edge has handed the first answer on.
    edge.report(&open, 5, vec![asked("a2", "ls")]).await;
    let (mut decided, mut recorded) = (false, false);
    while !decided || !recorded {
        match edge.hear().await {
            ToEdge::Decision { approval, .. } => decided = approval == first,
            ToEdge::Recorded { granted, .. } => {
                assert!(granted.is_empty(), "the first answer is for the first request");
                recorded = true;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(only_open(&engine).await.asked.key, "a2");
}

#[tokio::test]
async fn j05_repeating_is_asked_about_each_time() {
    let world = World::default();
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![call("c1", false), call("c2", false)]).await;
    edge.recorded(&open, 5, vec![died()]).await;
    edge.closes(run).await;
    until(&engine, run, "needs_approval").await;
    let asked = only_open(&engine).await.asked;
    assert_eq!(serde_json::to_value(&asked.request).unwrap()["step"], "step c1; step c2");
    let ever = Resolve { scope: DecisionScope::Run, ..answer(Decision::Approve, &asked.digest) };
    let error = engine.resolve(asked.approval_id, ever, &person()).await.unwrap_err();
    assert!(matches!(error, EngineError::Invalid { path: "scope", .. }));
    engine.resolve(asked.approval_id, answer(Decision::Approve, &asked.digest), &person()).await.unwrap();
    let again = edge.opened().await;
    edge.recorded(&again, 1, vec![call("c3", false)]).await;
    edge.recorded(&again, 2, vec![died()]).await;
    edge.closes(run).await;
    until(&engine, run, "needs_approval").await;
    assert_ne!(only_open(&engine).await.asked.approval_id, asked.approval_id);
}

#[tokio::test]
async fn c22_only_a_run_that_has_ended_is_continued() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    let next = NewRun { continues: Some(run), ..new_run("and then") };
    assert_eq!(engine.create_run(next.clone(), &person()).await.unwrap_err().code(), Code::Conflict);
    edge.recorded(&open, 4, vec![turn_ended()]).await;
    edge.closes(run).await;
    let session = engine.run(run).await.unwrap().run.created.session_id;
    let next = engine.create_run(next, &person()).await.unwrap().standing.run;
    assert_eq!((next.created.session_id, next.created.parent_run_id), (session, Some(run)));
}

#[tokio::test]
async fn c22_a_session_is_gone_on_with_after_its_last_run_of_the_same_backend() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    let session = engine.run(run).await.unwrap().run.created.session_id;
    let next = NewRun { session: Some(session), ..new_run("and then") };
    assert_eq!(engine.create_run(next.clone(), &person()).await.unwrap_err().code(), Code::Conflict);
    let (phase, thread) = ("ready".to_owned(), Some("thread-1".to_owned()));
    let status = Signal::Status { phase, model: None, version: None, thread, usage: None };
    edge.recorded(&open, 4, vec![Report::Signal(status), turn_ended()]).await;
    edge.closes(run).await;
    let thread = until(&engine, run, "completed").await.thread;
    assert!(thread.is_some());
    let made = engine.create_run(next, &person()).await.unwrap().standing.run.created;
    assert_eq!((made.session_id, made.parent_run_id, made.thread), (session, Some(run), thread));

    let unknown = NewRun { session: Some(SessionId::from_parts(1, &[7; 10])), ..new_run("and then") };
    let error = engine.create_run(unknown, &person()).await.unwrap_err();
    assert!(matches!(error, EngineError::Invalid { path: "session", .. }), "{error}");
}

#[tokio::test]
async fn c12_a_parked_run_that_another_hub_took_the_answer_for_goes_on_here() {
    let world = World { limits: Limits { park_after_ms: 0, ..Limits::default() }, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "ls")]).await;
    assert!(!edge.closes(run).await);
    let other = world.hub_of(&[]).await;
    let id = only_open(&other).await.asked.approval_id;
    other.resolve(id, answer(Decision::Approve, "digest of ls"), &person()).await.unwrap();
    assert_eq!(edge.opened().await.run, run);
}
