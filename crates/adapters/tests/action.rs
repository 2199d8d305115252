//! The action backend: the promises of the port, and what is its own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use runyard_actions::testing::defined;
use runyard_actions::{Action, ActionError, Exposure, Idempotency, Runtime, SideEffects, fields};
use runyard_adapters::ActionBackend;
use runyard_backend::conformance::{Bench, Decide, Part, PlainProcesses, Recorder, Scene, Stage, Summary};
use runyard_backend::{Backend, BackendError, Command, Ending, Resumes, Signal, Start};
use runyard_domain::gate::{self, Request};
use runyard_domain::run::{FailureKind, Task, ToolOutcome, TurnOutcome};
use runyard_domain::{BackendProfile, Code, CommandId, Surface};
use serde_json::{Value, json};

fn mark(input: &Value) {
    let path = input["marker"].as_str().unwrap();
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "-").unwrap();
}

fn changes(name: &str) -> runyard_actions::ActionBuilder {
    let input = json!({ "type": "object", "properties": { "marker": { "type": "string" } } });
    Action::define(name, format!("Does what {name} does."))
        .input_schema(input)
        .side_effects(SideEffects::Write)
}

fn runtime() -> Runtime {
    let talk = Action::define("talk", "Says something.")
        .input_schema(json!({ "type": "object", "properties": { "marker": { "type": "string" } } }))
        .side_effects(SideEffects::Read)
        .handler(|_, _| async { Ok(json!("hello")) });
    let act = changes("act").handler(|input, context| async move {
        context.logger().info("acting", fields! { step: 1 });
        mark(&input);
        context.logger().warn("acted", fields! {});
        Ok(json!({ "done": true }))
    });
    let linger = changes("linger").handler(|input, _| async move {
        mark(&input);
        std::future::pending::<()>().await;
        Ok(Value::Null)
    });
    let chatter = changes("chatter").handler(|_, context| async move {
        for _ in 0..16 {
            context.logger().info("x".repeat(10_000), fields! {});
            tokio::task::yield_now().await;
        }
        Ok(Value::Null)
    });
    let fail = changes("fail")
        .idempotency(Idempotency::Idempotent)
        .handler(|_, _| async { Err(ActionError::new(Code::NotFound, "There is nothing.")) });
    let people = changes("people").people_only().handler(|_, _| async { Ok(Value::Null) });
    let hidden = changes("hidden").surfaces([Surface::Cli]).handler(|_, _| async { Ok(Value::Null) });
    let guarded = changes("guarded").permissions(["vault.open"]).handler(|_, _| async { Ok(Value::Null) });
    let wipe = Action::define("wipe", "Wipes.")
        .input_schema(json!({ "type": "object", "properties": { "what": { "type": "array" } } }))
        .side_effects(SideEffects::Destructive)
        .handler(|_, _| async { Ok(Value::Null) });
    let wipe_unseen = Action::define("wipe_unseen", "Wipes.")
        .side_effects(SideEffects::Destructive)
        .handler(|_, _| async { Ok(Value::Null) });
    let all = [talk, act, linger, chatter, fail, people, hidden, guarded, wipe, wipe_unseen].map(defined);
    let exposure = Exposure::new().destructive("wipe", [Surface::Mcp]);
    Runtime::builder().actions(all).exposure(exposure).build().unwrap()
}

struct ActionBench(Runtime);

impl Bench for ActionBench {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(ActionBackend::new(self.0.clone()))
    }

    fn part(&self, scene: Scene, stage: &Stage) -> Part {
        let action = match scene {
            Scene::Talk => "talk",
            Scene::Act => "act",
            Scene::Linger => "linger",
            Scene::Chatter => "chatter",
        };
        part(action, json!({ "marker": stage.marker() }))
    }
}

fn part(action: &str, input: Value) -> Part {
    let profile = BackendProfile {
        profile: "action".to_owned(),
        backend_kind: "action".to_owned(),
        required_secret_keys: Vec::new(),
        settings: BTreeMap::new(),
        ..BackendProfile::default()
    };
    Part { profile, task: Task::Action { action: action.to_owned(), input } }
}

fn permitted(mut part: Part, permissions: &str) -> Part {
    part.profile.settings.insert("permissions".to_owned(), permissions.to_owned());
    part
}

async fn action() -> ActionBench {
    ActionBench(runtime())
}

runyard_backend::backend_conformance_tests!(action);

/// Plays a run to the end of its turn or of itself.
async fn play(part: &Part, decide: Decide) -> Vec<Signal> {
    let bench = action().await;
    let stage = Stage::new(&bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(&bench, part, &recorder).await;
    live.turn_over(decide, 1).await;
    let signals = recorder.signals();
    if matches!(signals.last(), Some(Signal::Ended { .. })) {
        live.over().await
    } else {
        live.close().await
    }
    signals
}

async fn refusal(part: &Part) -> BackendError {
    let bench = action().await;
    let stage = Stage::new(&bench);
    let start = Start::Fresh { task: part.task.clone(), thread: None };
    match bench.backend().open(stage.spec(part, start), Recorder::new()).await {
        Ok(_) => panic!("it opens"),
        Err(error) => error,
    }
}

fn status(phase: &str, thread: &str) -> Signal {
    let (phase, thread) = (phase.to_owned(), Some(thread.to_owned()));
    Signal::Status { phase, model: None, version: None, thread, usage: None }
}

#[tokio::test]
async fn j02_a_run_of_one_action_tells_its_request_call_result_and_data() {
    let signals = play(&part("talk", json!({})), Decide::Approve).await;
    let Some(Signal::ToolResult { call, outcome, .. }) = signals.get(4) else { panic!("{signals:#?}") };
    assert_eq!((call.as_str(), *outcome), ("call-1", ToolOutcome::Succeeded));
    let side_effects = gate::SideEffects::Read;
    let request = Request::Action { action: "talk".into(), side_effects, input: json!({}) };
    let call = Signal::ToolCall {
        call: "call-1".into(),
        tool: "talk".into(),
        summary: "Says something.".into(),
        arguments: json!({}),
        idempotent: true,
    };
    let expected = [
        status("ready", "action@0"),
        Signal::TurnStarted { command: None },
        Signal::Ask { key: "ask-1".into(), request },
        call,
        signals[4].clone(),
        Signal::Message { item: "message-1".into(), text: "hello".into() },
        status("working", "action@1"),
        Signal::TurnEnded { outcome: TurnOutcome::Completed },
    ];
    assert_eq!(signals, expected);
}

#[tokio::test]
async fn j01_the_gate_hears_of_the_side_effects_and_the_whole_input_and_its_yes_is_the_confirmation() {
    let signals = play(&part("wipe", json!({ "what": ["all"] })), Decide::Approve).await;
    assert_eq!(signals.last(), Some(&Signal::TurnEnded { outcome: TurnOutcome::Completed }));
    let (side_effects, input) = (gate::SideEffects::Destructive, json!({ "what": ["all"] }));
    let request = Request::Action { action: "wipe".into(), side_effects, input };
    assert!(signals.contains(&Signal::Ask { key: "ask-1".into(), request }), "{signals:#?}");
}

#[tokio::test]
async fn a_failed_action_ends_the_run_with_its_code() {
    let signals = play(&part("fail", json!({})), Decide::Approve).await;
    let message = "NOT_FOUND: There is nothing.".to_owned();
    let (call, outcome, summary) = ("call-1".into(), ToolOutcome::Failed, message.clone());
    let ending =
        Ending::Failed { failure_kind: FailureKind::BackendFailed, message, cause: Some(Code::NotFound) };
    let expected = [Signal::ToolResult { call, outcome, code: None, summary }, Signal::Ended { ending }];
    assert_eq!(signals[signals.len() - 2..], expected);
    assert!(matches!(&signals[3], Signal::ToolCall { idempotent: true, .. }), "as declared: {signals:#?}");
}

#[tokio::test]
async fn b08_a_denied_action_blocks_the_run() {
    let signals = play(&part("talk", json!({})), Decide::Deny).await;
    let message = "talk was not allowed: the suite says no".to_owned();
    let ending = Ending::Blocked { code: Code::PermissionDenied, message, step: None };
    assert_eq!(signals.last(), Some(&Signal::Ended { ending }));
}

#[tokio::test]
async fn j06_what_is_not_for_agents_cannot_be_run() {
    for name in ["people", "hidden", "wipe_unseen", "nothing"] {
        let error = refusal(&part(name, json!({}))).await;
        assert_eq!(error.to_string(), format!("no action \"{name}\" is offered to agents"));
    }
    let mut text = part("talk", json!({}));
    text.task = Task::Text { text: "hello".into(), redacted: false };
    assert_eq!(refusal(&text).await.failure_kind, FailureKind::BackendFailed);
}

#[tokio::test]
async fn a_run_holds_the_permissions_of_its_profile_and_no_others() {
    let guarded = part("guarded", json!({}));
    let signals = play(&guarded, Decide::Approve).await;
    let Some(Signal::Ended { ending: Ending::Failed { message, .. } }) = signals.last() else {
        panic!("{signals:#?}")
    };
    assert_eq!(message, "AUTHORIZATION_ERROR: Action needs the permission \"vault.open\".");
    let asks = |signals: &[Signal]| signals.iter().any(|signal| matches!(signal, Signal::Ask { .. }));
    assert!(!asks(&signals), "nobody is asked about what cannot be done: {signals:#?}");
    let signals = play(&part("talk", json!({ "marker": 1 })), Decide::Approve).await;
    let Some(Signal::Ended { ending: Ending::Failed { cause, .. } }) = signals.last() else {
        panic!("{signals:#?}")
    };
    assert!(*cause == Some(Code::ValidationError) && !asks(&signals), "{signals:#?}");
    let signals = play(&permitted(guarded, "vault.list vault.open"), Decide::Approve).await;
    assert_eq!(signals.last(), Some(&Signal::TurnEnded { outcome: TurnOutcome::Completed }));
}

#[tokio::test]
async fn j05_a_step_that_was_done_and_not_recorded_is_not_done_again() {
    use runyard_backend::conformance::{Kept, What, When};
    let bench = action().await;
    let stage = Stage::new(&bench);
    let act = bench.part(Scene::Act, &stage);
    let result = When::Has(|signal| matches!(signal, Signal::ToolResult { .. }));
    let before = Recorder::with(result, What::Hold(Kept::No));
    let mut live = stage.fresh(&bench, &act, &before).await;
    assert!(live.held(Decide::Approve).await);
    live.kill().await;
    let left = Summary::of(&before.signals());
    assert_eq!((left.open_calls.len(), stage.marks()), (1, 1));
    let start = Start::Resume { task: act.task.clone(), thread: left.thread, turn_active: true };
    let after = Recorder::new();
    let mut live = stage.open(&bench, &act, start, &after).await;
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    assert_eq!(stage.marks(), 1, "the key of the call gives the first result again");
    let (call, outcome) = ("call-1".to_owned(), ToolOutcome::Succeeded);
    let summary = "done before; that result was kept".to_owned();
    assert!(
        after.signals().contains(&Signal::ToolResult { call, outcome, code: None, summary }),
        "{:#?}",
        after.signals()
    );
}

#[tokio::test]
async fn a_word_and_a_further_turn_are_answered_and_do_nothing() {
    let bench = action().await;
    let stage = Stage::new(&bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(&bench, &bench.part(Scene::Act, &stage), &recorder).await;
    live.asked().await;
    let id = CommandId::from_bytes([5; 16]);
    live.send(Command::Steer { id, text: "faster".into() }).await;
    let message = "a run that is one action takes no words".to_owned();
    let refused = Signal::Error { failure_kind: None, message, retrying: false };
    live.until(Decide::Wait, "it says so", |signals, _| signals.contains(&refused)).await;
    live.turn_over(Decide::Approve, 1).await;
    live.send(Command::Turn { id, text: "again".into() }).await;
    live.turn_over(Decide::Approve, 2).await;
    live.close().await;
    assert_eq!(stage.marks(), 1);
}

#[tokio::test]
async fn it_says_what_it_is_and_what_was_found() {
    let backend = action().await.backend();
    let info = backend.info();
    assert_eq!((info.backend_kind, info.protocol), ("action", "runyard-action"));
    assert_eq!((info.resumes, info.asks), (Resumes::Steps, true));
    let profile = part("talk", json!({})).profile;
    let probe = PlainProcesses::probe();
    assert_eq!(backend.check(&profile, &probe).await.unwrap(), "9 actions");
    let mut unknown = profile;
    unknown.settings.insert("speed".into(), "fast".into());
    let error = backend.check(&unknown, &probe).await.unwrap_err();
    assert_eq!(error.to_string(), "an action backend knows no setting \"speed\"");
}
