//! Every error of state and of tools is reached through the public API, and has its row of the error table.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runyard_agent::phase::{
    ActionHandler, EffectHandler, Fault, Moment, PHASE_ROUNDS_MAX, Phase, PhaseContext, PhaseError,
    ScheduledAction, StateCommand, StateEffect,
};
use runyard_agent::plugin::{Environment, InstallError, Plugin, Registrar};
use runyard_agent::state::{
    KeyOptions, MutationBatch, PersistedState, Scope, StateError, StateKey, StateStore, UnknownKeyPolicy,
};
use runyard_agent::tool::{
    Tool, ToolContext, ToolError, ToolOutput, ToolResult, TypedTool, check, execute, typed,
};
use runyard_domain::{Class, Code, Retry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use support::{Ad, Label, Tally, at, at_with, environment, environment_with, hook, tool_context};
use tokio_util::sync::CancellationToken;

/// A value that cannot be stored.
#[derive(Clone, Default, Deserialize)]
struct Unspeakable;

impl Serialize for Unspeakable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("it has no words"))
    }
}

struct Secret;

impl StateKey for Secret {
    const KEY: &'static str = "test.secret";
    type Value = Unspeakable;
    type Update = ();

    fn apply(_: &mut Unspeakable, (): ()) {}
}

struct Unregistered;

impl StateKey for Unregistered {
    const KEY: &'static str = "test.unregistered";
    type Value = u8;
    type Update = u8;

    fn apply(value: &mut u8, update: u8) {
        *value = update;
    }
}

/// Schedules itself again, for ever.
struct Again;

impl ScheduledAction for Again {
    const KEY: &'static str = "test.again";
    const PHASE: Phase = Phase::StepEnd;
    type Payload = ();
}

#[async_trait]
impl ActionHandler<Again> for Again {
    async fn handle(&self, (): (), _: &PhaseContext<'_>) -> Result<StateCommand, Fault> {
        Ok(StateCommand::none().schedule::<Again>(&())?)
    }
}

struct Bell;

impl StateEffect for Bell {
    const KEY: &'static str = "test.bell";
    type Payload = ();
}

#[async_trait]
impl EffectHandler<Bell> for Bell {
    async fn handle(&self, (): (), _: &PhaseContext<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

struct Named(&'static str);

impl Plugin for Named {
    fn id(&self) -> &str {
        self.0
    }

    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        registrar.action::<Again>(Again)?;
        registrar.effect::<Bell>(Bell)?;
        registrar.tool(typed(Fickle))?;
        Ok(registrar.key::<Secret>(KeyOptions::DEFAULT)?)
    }
}

fn installing(register: fn(&mut Registrar<'_>) -> Result<(), StateError>) -> StateError {
    let mut environment = environment();
    environment.install(&Named("first")).unwrap();
    let second = Ad { id: "second", register: move |registrar: &mut Registrar<'_>| Ok(register(registrar)?) };
    match environment.install(&second).unwrap_err() {
        InstallError::State(error) => error,
        other => panic!("{other:?}"),
    }
}

async fn phase_error(environment: &Environment, moment: Moment<'static>) -> StateError {
    let store = StateStore::new(environment);
    let before = store.snapshot().revision();
    let error = environment.run_phase(&store, at(moment)).await.unwrap_err();
    assert_eq!(store.snapshot().revision() == before, !matches!(moment, Moment::StepEnd), "{error}");
    match error {
        PhaseError::State(error) => error,
        other => panic!("{other:?}"),
    }
}

async fn all_state_errors() -> Vec<(StateError, StateError)> {
    let mut environment = environment();
    environment.install(&Named("first")).unwrap();
    let store = StateStore::new(&environment);
    let key = |name: &str| name.to_owned();
    let commit = |batch| store.commit(batch).unwrap_err();
    let restore = |name: &str, value: Value| {
        let stored = PersistedState { revision: 1, values: [(name.to_owned(), value)].into() };
        store.restore(&stored, UnknownKeyPolicy::default()).unwrap_err()
    };
    let hooked = |answer: fn() -> StateCommand| {
        environment_with(move |registrar| {
            registrar.hook(Phase::RunStart, hook(move |_| Ok(answer())));
            Ok(())
        })
    };
    let unhandled_action = hooked(|| StateCommand::none().update::<Tally>(1).schedule::<Again>(&()).unwrap());
    let unhandled_effect = hooked(|| StateCommand::none().update::<Tally>(1).emit::<Bell>(()));
    let endless = environment_with(|registrar| {
        registrar.action::<Again>(Again)?;
        registrar.hook(Phase::StepEnd, hook(|_| Ok(StateCommand::none().schedule::<Again>(&())?)));
        Ok(())
    });
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let at_cancelled =
        environment.run_phase(&store, at_with(Moment::RunStart, &cancelled)).await.unwrap_err();
    let PhaseError::State(at_cancelled) = at_cancelled else { panic!("{at_cancelled:?}") };
    let [left, right] = ["a", "b"].map(|word| MutationBatch::new().with::<Label>(word.to_owned()));
    let secret = StateStore::new(&environment).commit({
        let mut batch = MutationBatch::new();
        batch.update::<Secret>(());
        batch
    });
    let InstallError::State(installed_twice) = environment.install(&Named("first")).unwrap_err() else {
        panic!("another error")
    };
    vec![
        (commit(MutationBatch::based_on(7)), StateError::RevisionConflict { expected: 7, actual: 0 }),
        (
            MutationBatch::based_on(1).merge(MutationBatch::based_on(2)).unwrap_err(),
            StateError::MutationBaseRevisionMismatch { left: 1, right: 2 },
        ),
        (installed_twice, StateError::PluginAlreadyInstalled { name: key("first") }),
        (
            Environment::default().uninstall::<Named>().unwrap_err(),
            StateError::PluginNotInstalled { type_name: std::any::type_name::<Named>() },
        ),
        (
            installing(|registrar| registrar.key::<Secret>(KeyOptions::DEFAULT)),
            StateError::KeyAlreadyRegistered { key: key("test.secret") },
        ),
        (
            commit(MutationBatch::new().with::<Tally>(1).with::<Unregistered>(1)),
            StateError::UnknownKey { key: key("test.unregistered") },
        ),
        (restore("test.nobody", json!(1)), StateError::UnknownKey { key: key("test.nobody") }),
        (
            restore("test.tally", json!("many")),
            StateError::KeyDecode {
                key: key("test.tally"),
                message: key("invalid type: string \"many\", expected i64"),
            },
        ),
        (
            secret.unwrap().export(Scope::Run).unwrap_err(),
            StateError::KeyEncode { key: key("test.secret"), message: key("it has no words") },
        ),
        (
            installing(|registrar| registrar.action::<Again>(Again)),
            StateError::HandlerAlreadyRegistered { key: key("test.again") },
        ),
        (
            installing(|registrar| registrar.effect::<Bell>(Bell)),
            StateError::EffectHandlerAlreadyRegistered { key: key("test.bell") },
        ),
        (
            phase_error(&endless, Moment::StepEnd).await,
            StateError::PhaseRunLoopExceeded { phase: Phase::StepEnd, max_rounds: PHASE_ROUNDS_MAX },
        ),
        (
            phase_error(&unhandled_action, Moment::RunStart).await,
            StateError::UnknownScheduledActionHandler { key: key("test.again") },
        ),
        (
            phase_error(&unhandled_effect, Moment::RunStart).await,
            StateError::UnknownEffectHandler { key: key("test.bell") },
        ),
        (
            left.merge_parallel(right).unwrap_err(),
            StateError::ParallelMergeConflict { key: key("test.label") },
        ),
        (
            installing(|registrar| registrar.tool(typed(Fickle))),
            StateError::ToolAlreadyRegistered { tool_id: key("fickle") },
        ),
        (at_cancelled, StateError::Cancelled),
    ]
}

/// A row of the table, in full but for its advice: class, HTTP status, exit code, JSON-RPC code, and whether to repeat it.
type Row = (&'static str, Class, u16, u8, i32, Retry);

#[rustfmt::skip]
const STATE_ROWS: [Row; 16] = [
    ("state.revision_conflict",                 Class::Conflict,  409, 1, -32005, Retry::AfterRecovery),
    ("state.mutation_base_revision_mismatch",   Class::Conflict,  409, 1, -32005, Retry::AfterRecovery),
    ("state.plugin_already_installed",          Class::Permanent, 500, 1, -32603, Retry::AfterRecovery),
    ("state.plugin_not_installed",              Class::Permanent, 500, 1, -32603, Retry::AfterRecovery),
    ("state.key_already_registered",            Class::Permanent, 500, 1, -32603, Retry::AfterRecovery),
    ("state.unknown_key",                       Class::Permanent, 500, 1, -32603, Retry::AfterRecovery),
    ("state.key_decode",                        Class::Permanent, 500, 1, -32603, Retry::AfterRecovery),
    ("state.key_encode",                        Class::Permanent, 500, 1, -32603, Retry::AfterRecovery),
    ("state.handler_already_registered",        Class::Permanent, 500, 1, -32603, Retry::AfterRecovery),
    ("state.effect_handler_already_registered", Class::Permanent, 500, 1, -32603, Retry::AfterRecovery),
    ("state.phase_run_loop_exceeded",           Class::Permanent, 500, 1, -32007, Retry::AfterRecovery),
    ("state.unknown_scheduled_action_handler",  Class::Permanent, 500, 1, -32603, Retry::AfterRecovery),
    ("state.unknown_effect_handler",            Class::Permanent, 500, 1, -32603, Retry::AfterRecovery),
    ("state.parallel_merge_conflict",           Class::Conflict,  409, 1, -32005, Retry::AfterRecovery),
    ("state.tool_already_registered",           Class::Permanent, 500, 1, -32603, Retry::AfterRecovery),
    ("state.cancelled",                         Class::FailFast,  499, 1, -32006, Retry::AfterRecovery),
];

#[rustfmt::skip]
const TOOL_ROWS: [Row; 6] = [
    ("tool.invalid_arguments", Class::Permanent, 400, 1, -32602, Retry::No),
    ("tool.execution_failed",  Class::Permanent, 500, 1, -32000, Retry::AfterRecovery),
    ("tool.denied",            Class::Permanent, 403, 1, -32004, Retry::AfterRecovery),
    ("tool.not_found",         Class::Permanent, 404, 1, -32601, Retry::No),
    ("tool.internal",          Class::Permanent, 500, 1, -32603, Retry::AfterRecovery),
    ("tool.cancelled",         Class::FailFast,  499, 1, -32006, Retry::AfterRecovery),
];

#[track_caller]
fn check_rows(reached: &[Code], rows: &[Row], group: &str) {
    let mut codes: Vec<&str> = reached.iter().map(|code| code.as_str()).collect();
    codes.dedup();
    assert_eq!(codes, rows.iter().map(|row| row.0).collect::<Vec<_>>());
    let of_group = Code::ALL.iter().filter(|code| code.as_str().starts_with(group));
    assert_eq!(of_group.count(), rows.len(), "a row of the table that no error here has");
    for (code, class, http, exit, json_rpc, retry) in rows {
        let row = Code::parse(code).unwrap().row();
        let found = (row.class, row.http, row.exit, row.json_rpc, row.retry);
        assert_eq!(found, (*class, *http, *exit, *json_rpc, *retry), "{code}");
    }
}

// clause: D15
#[tokio::test]
async fn d01_every_state_error_is_reached_and_has_its_row() {
    let reached = all_state_errors().await;
    for (reached, expected) in &reached {
        assert_eq!(reached, expected);
        assert_eq!(reached.clone(), *reached);
        assert!(!(reached as &dyn std::error::Error).to_string().is_empty());
    }
    let codes: Vec<Code> = reached.iter().map(|(error, _)| error.code()).collect();
    check_rows(&codes, &STATE_ROWS, "state.");
}

/// Does what its argument says.
struct Fickle;

#[derive(Deserialize, JsonSchema)]
struct Mood {
    mood: String,
}

#[async_trait]
impl TypedTool for Fickle {
    const ID: &'static str = "fickle";
    const DESCRIPTION: &'static str = "Does what its argument says.";
    const DEADLINE: Option<Duration> = Some(Duration::from_secs(2));
    type Args = Mood;

    async fn run(&self, args: Mood, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        match args.mood.as_str() {
            "fail" => Err(ToolError::ExecutionFailed("it broke".to_owned())),
            "deny" => Err(ToolError::Denied("not today".to_owned())),
            "lost" => Err(ToolError::NotFound("the thing".to_owned())),
            "panic" => panic!("out of its mind"),
            "sleep" => std::future::pending().await,
            mood => Ok(ToolResult::success(mood).into()),
        }
    }
}

// clause: D02
#[tokio::test(start_paused = true)]
async fn d02_every_tool_error_is_reached_and_has_its_row() {
    let tool: Arc<dyn Tool> = typed(Fickle);
    let store = StateStore::new(&environment());
    let refused = check(&*tool, &json!({ "mood": 3 })).unwrap_err();
    assert_eq!(refused.issues.len(), 1);
    let context = tool_context(&store);
    let failed = async |mood: &str| execute(&*tool, json!({ "mood": mood }), &context).await.unwrap_err();
    let reached = [
        (refused.error, ToolError::InvalidArguments("mood: Expected string.".to_owned())),
        (failed("fail").await, ToolError::ExecutionFailed("it broke".to_owned())),
        (failed("deny").await, ToolError::Denied("not today".to_owned())),
        (failed("lost").await, ToolError::NotFound("the thing".to_owned())),
        (failed("panic").await, ToolError::Internal("panicked: out of its mind".to_owned())),
        (failed("sleep").await, ToolError::Cancelled("not done within 2000 ms".to_owned())),
    ];
    for (reached, expected) in &reached {
        assert_eq!(reached, expected);
        assert!(!(reached as &dyn std::error::Error).to_string().is_empty());
        let kept: ToolError = serde_json::from_value(serde_json::to_value(reached).unwrap()).unwrap();
        assert_eq!(kept, *reached, "an event keeps the variant");
    }
    let codes: Vec<Code> = reached.iter().map(|(error, _)| error.code()).collect();
    check_rows(&codes, &TOOL_ROWS, "tool.");
    assert!(execute(&*tool, json!({ "mood": "good" }), &context).await.is_ok());
}
