//! Every error of building, resolving, running, asking and storing is reached, and has its row of the error table.

use std::sync::Arc;

use async_trait::async_trait;
use runyard_agent::phase::{
    ActionHandler, Fault, Phase, PhaseContext, PhaseHook, ScheduledAction, StateCommand, StateEffect,
    TerminationReason,
};
use runyard_agent::plugin::{InstallError, Plugin, Registrar};
use runyard_agent::remote::HttpBackend;
use runyard_agent::run::RunRecord;
use runyard_agent::spec::{AgentSpec, EndpointSpec, ModelSpec, ProviderSpec, WireKind};
use runyard_agent::state::{KeyOptions, MutationBatch, StateError};
use runyard_agent::{AgentRuntimeBuilder, RunRequest};
use runyard_domain::{Class, Code, Retry};
use runyard_llm::inference::{
    InferenceExecutionError, InferenceRequest, InterruptCause, Model, RetryPolicy, ScriptedAnswer,
    ScriptedError,
};
use runyard_store::{RunStore, ThreadRunStore};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::flaky::{Failure, Flaky, Operation, Plan};
use crate::kit::{Brings, Does, First, Plain, Second, Shared, one_agent, saying, scripted, thread};

/// A row of the table, in full but for its advice.
type Row = (&'static str, Class, u16, u8, i32, Retry);

use Class::{Conflict, FailFast, Permanent, Transient};
use Retry::{AfterRecovery, Backoff, No, SameKey};

#[rustfmt::skip]
const BUILD: [Row; 8] = [
    ("build.state",                      Permanent, 500, 1, -32603, AfterRecovery),
    ("build.agent_registry_conflict",    Permanent, 500, 1, -32603, AfterRecovery),
    ("build.tool_registry_conflict",     Permanent, 500, 1, -32603, AfterRecovery),
    ("build.model_registry_conflict",    Permanent, 500, 1, -32603, AfterRecovery),
    ("build.provider_registry_conflict", Permanent, 500, 1, -32603, AfterRecovery),
    ("build.plugin_registry_conflict",   Permanent, 500, 1, -32603, AfterRecovery),
    ("build.validation_failed",          Permanent, 500, 1, -32603, AfterRecovery),
    ("build.discovery_failed",           Permanent, 502, 1, -32008, AfterRecovery),
];

#[rustfmt::skip]
const RESOLVE: [Row; 10] = [
    ("resolve.agent_not_found",                    Permanent, 404, 1, -32601, No),
    ("resolve.model_not_found",                    Permanent, 404, 1, -32601, AfterRecovery),
    ("resolve.provider_not_found",                 Permanent, 404, 1, -32601, AfterRecovery),
    ("resolve.plugin_not_found",                   Permanent, 404, 1, -32601, AfterRecovery),
    ("resolve.invalid_plugin_config",              Permanent, 400, 1, -32602, AfterRecovery),
    ("resolve.unsupported_remote_backend",         Permanent, 400, 1, -32602, AfterRecovery),
    ("resolve.invalid_remote_endpoint_config",     Permanent, 400, 1, -32602, AfterRecovery),
    ("resolve.remote_agent_not_directly_runnable", Permanent, 400, 1, -32602, No),
    ("resolve.tool_id_conflict",                   Permanent, 500, 1, -32603, AfterRecovery),
    ("resolve.env_build",                          Permanent, 500, 1, -32603, AfterRecovery),
];

#[rustfmt::skip]
const RUNTIME: [Row; 4] = [
    ("runtime.state",                  Permanent, 500, 1, -32603, AfterRecovery),
    ("runtime.thread_already_running", Conflict,  409, 1, -32005, AfterRecovery),
    ("runtime.agent_not_found",        Permanent, 404, 1, -32601, No),
    ("runtime.resolve_failed",         Permanent, 500, 1, -32000, AfterRecovery),
];

#[rustfmt::skip]
const INFERENCE: [Row; 12] = [
    ("inference.provider",               Transient, 502, 1, -32008, Backoff),
    ("inference.rate_limited",           Transient, 429, 1, -32007, Backoff),
    ("inference.overloaded",             Transient, 503, 1, -32008, Backoff),
    ("inference.timeout",                Transient, 504, 1, -32001, Backoff),
    ("inference.stream_interrupted",     Transient, 502, 1, -32008, Backoff),
    ("inference.context_overflow",       Permanent, 400, 1, -32602, No),
    ("inference.invalid_request",        Permanent, 400, 1, -32602, No),
    ("inference.unauthorized",           Permanent, 502, 1, -32003, AfterRecovery),
    ("inference.model_not_found",        Permanent, 404, 1, -32601, No),
    ("inference.content_filtered",       Permanent, 400, 1, -32004, No),
    ("inference.all_models_unavailable", FailFast,  503, 1, -32008, AfterRecovery),
    ("inference.cancelled",              FailFast,  499, 1, -32006, AfterRecovery),
];

#[rustfmt::skip]
const STORAGE: [Row; 14] = [
    ("storage.validation",       Permanent, 400, 1, -32602, No),
    ("storage.not_found",        Permanent, 404, 1, -32601, No),
    ("storage.already_exists",   Conflict,  409, 1, -32005, AfterRecovery),
    ("storage.version_conflict", Conflict,  409, 1, -32005, AfterRecovery),
    ("storage.io",               Transient, 503, 1, -32008, Backoff),
    ("storage.commit_unknown",   Transient, 503, 1, -32008, SameKey),
    ("storage.serialization",    Permanent, 500, 1, -32603, AfterRecovery),
    ("storage.locked",           Conflict,  409, 1, -32005, AfterRecovery),
    ("storage.stale_generation", FailFast,  409, 1, -32005, No),
    ("storage.newer_schema",     Permanent, 500, 1, -32603, AfterRecovery),
    ("storage.disk_full",        Transient, 503, 1, -32008, Backoff),
    ("storage.read_only",        Permanent, 500, 1, -32603, AfterRecovery),
    ("storage.corrupt",          FailFast,  500, 1, -32603, AfterRecovery),
    ("storage.poisoned",         FailFast,  503, 1, -32008, AfterRecovery),
];

#[rustfmt::skip]
const HOOKS: [Row; 6] = [
    ("state.phase_run_loop_exceeded",          Permanent, 500, 1, -32007, AfterRecovery),
    ("state.unknown_scheduled_action_handler", Permanent, 500, 1, -32603, AfterRecovery),
    ("state.unknown_effect_handler",           Permanent, 500, 1, -32603, AfterRecovery),
    ("state.key_decode",                       Permanent, 500, 1, -32603, AfterRecovery),
    ("state.parallel_merge_conflict",          Conflict,  409, 1, -32005, AfterRecovery),
    ("state.revision_conflict",                Conflict,  409, 1, -32005, AfterRecovery),
];

/// Each of these was reached, the table has these rows for them, and no others of their group.
#[track_caller]
fn check(reached: &[Code], rows: &[Row], group: &str) {
    check_rows(reached, rows);
    let all = Code::ALL.iter().map(|code| code.as_str()).filter(|word| word.starts_with(group));
    let expected: Vec<&str> = rows.iter().map(|row| row.0).collect();
    assert_eq!(all.collect::<Vec<_>>(), expected, "a row of the table that no error here has");
}

/// Each of these was reached, and the table has these rows for them.
#[track_caller]
fn check_rows(reached: &[Code], rows: &[Row]) {
    let expected: Vec<&str> = rows.iter().map(|row| row.0).collect();
    assert_eq!(reached.iter().map(|code| code.as_str()).collect::<Vec<_>>(), expected);
    for ((word, class, http, exit, json_rpc, retry), code) in rows.iter().zip(reached) {
        let row = code.row();
        let found = (row.class, row.http, row.exit, row.json_rpc, row.retry);
        assert_eq!(found, (*class, *http, *exit, *json_rpc, *retry), "{word}");
        assert!(row.recovery.ends_with('.'), "{word}");
    }
}

fn spec(plugins: &[&str]) -> AgentSpec {
    let plugins = plugins.iter().map(|id| (*id).to_owned()).collect();
    AgentSpec { plugins, ..AgentSpec::new("b", "m") }
}

fn endpoint(backend: &str, url: &str) -> AgentSpec {
    let endpoint = EndpointSpec { backend: backend.into(), url: url.into(), ..EndpointSpec::default() };
    AgentSpec::remote("b", endpoint)
}

fn base() -> AgentRuntimeBuilder {
    one_agent(saying(["hello"]))
        .plugin(First("keys", Brings::TheSharedKey))
        .plugin(Second("more_keys", Brings::TheSharedKey))
}

// clause: J03
#[tokio::test]
async fn d03_every_build_error_is_reached_and_has_its_row() {
    let chat = || ProviderSpec::new("p", WireKind::Chat, "http://h/v1");
    let tool = || Plain::new("t", Does::Say("x"));
    let builders = [
        base().agent(spec(&["keys", "more_keys"])),
        base().agent(AgentSpec::new("a", "m")),
        base().tool(tool()).tool(tool()),
        base().model_spec(ModelSpec::new("m", "p")),
        base().provider(chat()).provider(chat()),
        base().plugin(First("keys", Brings::Nothing)),
        base().agent(AgentSpec::new("b", "gone")),
        base().agent_folder("/nowhere/agents"),
    ];
    let mut reached = Vec::new();
    for builder in builders {
        reached.push(builder.build().await.map(|_| "a runtime").unwrap_err().code());
    }
    check(&reached, &BUILD, "build.");
}

// clause: J03
// clause: D14
#[tokio::test]
async fn d13_every_resolve_error_is_reached_and_has_its_row() {
    let told = serde_json::from_value(json!({ "told": { "level": "loud" } })).unwrap();
    let told = AgentSpec { sections: told, ..spec(&["listener"]) };
    let http = || base().backend(HttpBackend::default());
    let builders = [
        (base(), false),
        (base().agent(AgentSpec::new("b", "gone")), false),
        (base().model_spec(ModelSpec::new("n", "gone")).agent(AgentSpec::new("b", "n")), false),
        (base().agent(spec(&["gone"])), false),
        (base().plugin(First("listener", Brings::Config)).agent(told), false),
        (base().agent(endpoint("pigeon", "http://h")), true),
        (http().agent(endpoint("http", "h/run")), true),
        (http().agent(endpoint("http", "http://h/run")), false),
        (
            base()
                .tool(Plain::new("t", Does::Say("x")))
                .plugin(First("web", Brings::ATool("t")))
                .agent(spec(&["web"])),
            false,
        ),
        (base().agent(spec(&["keys", "more_keys"])), false),
    ];
    let mut reached = Vec::new();
    for (builder, to_run) in builders {
        let runtime = builder.build_unresolved().await.unwrap();
        let resolver = runtime.resolver();
        reached.push(match to_run {
            true => resolver.resolve_run("b").unwrap_err().code(),
            false => resolver.resolve("b").map(|_| "an agent").unwrap_err().code(),
        });
    }
    check(&reached, &RESOLVE, "resolve.");
}

// clause: J03
#[tokio::test(start_paused = true)]
async fn d04_every_runtime_error_is_reached_and_has_its_row() {
    let builder = base().tool(Plain::new("wait", Does::Hang)).agent(AgentSpec::new("lost", "gone"));
    let runtime = builder.agent(spec(&["keys", "more_keys"])).build_unresolved().await.unwrap();
    let refused =
        async |agent: &str| runtime.run(RunRequest::new(agent, "t", "hi")).await.unwrap_err().code();
    let busy = {
        // Nobody reads what the first run tells, so that it stays.
        let (sender, _unread) = tokio::sync::mpsc::channel(1);
        let first = runtime.run(RunRequest::new("a", "t", "hi").observer(sender));
        tokio::select! {
            biased;
            _ = first => panic!("it ended"),
            busy = async {
                tokio::task::yield_now().await;
                refused("a").await
            } => busy,
        }
    };
    let reached = [refused("b").await, busy, refused("nobody").await, refused("lost").await];
    check(&reached, &RUNTIME, "runtime.");
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

/// An action and an effect that nobody handles.
struct Nobody;

impl ScheduledAction for Nobody {
    const KEY: &'static str = "test.nobody";
    const PHASE: Phase = Phase::StepEnd;
    type Payload = ();
}

impl StateEffect for Nobody {
    const KEY: &'static str = "test.nobody";
    type Payload = ();
}

/// A hook that answers so at the end of a step.
#[derive(Clone)]
struct Hook(fn() -> Result<StateCommand, Fault>);

#[async_trait]
impl PhaseHook for Hook {
    async fn run(&self, _: &PhaseContext<'_>) -> Result<StateCommand, Fault> {
        (self.0)()
    }
}

impl Plugin for Hook {
    fn id(&self) -> &str {
        "hook"
    }

    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        registrar.key::<Shared>(KeyOptions::DEFAULT)?;
        registrar.action::<Again>(Again)?;
        registrar.hook(Phase::StepEnd, self.clone());
        Ok(())
    }
}

// clause: D01
// clause: J03
#[tokio::test(start_paused = true)]
async fn d01_what_a_hook_does_wrong_ends_a_run_with_its_code_and_has_its_row() {
    let answers: [fn() -> Result<StateCommand, Fault>; 6] = [
        || Ok(StateCommand::none().schedule::<Again>(&())?),
        || Ok(StateCommand::none().schedule::<Nobody>(&())?),
        || Ok(StateCommand::none().emit::<Nobody>(())),
        || Err(StateError::KeyDecode { key: "test.shared".into(), message: "no number".into() }.into()),
        || {
            let sets = |value| StateCommand::none().update::<Shared>(value);
            Ok(sets(1).merge_parallel(sets(2))?)
        },
        || {
            let batch = MutationBatch::based_on(7_777).with::<Shared>(1);
            Ok(StateCommand { batch, ..StateCommand::none() })
        },
    ];
    let mut reached = Vec::new();
    for answer in answers {
        let store = Flaky::timed();
        let spec = AgentSpec { plugins: vec!["hook".into()], ..AgentSpec::new("a", "m") };
        let model = saying(["hello"]) as Arc<dyn Model>;
        let builder = AgentRuntimeBuilder::new().model("m", model).plugin(Hook(answer)).agent(spec);
        let runtime = builder.store(Arc::clone(&store) as Arc<dyn ThreadRunStore>).build().await.unwrap();
        let outcome = runtime.run(RunRequest::new("a", "t", "hi")).await.unwrap();
        let code = failed_with(&outcome.reason).unwrap();
        assert_eq!((recorded(&store).await, outcome.text().as_str()), (Some(code), "hello"));
        reached.push(code);
    }
    check_rows(&reached, &HOOKS);
}

fn inference_errors() -> Vec<ScriptedError> {
    let message = || "no".to_owned();
    vec![
        ScriptedError::Provider { message: message() },
        ScriptedError::RateLimited { message: message(), retry_after_ms: None },
        ScriptedError::Overloaded { message: message(), retry_after_ms: None },
        ScriptedError::Timeout { message: message() },
        ScriptedError::StreamInterrupted { cause: InterruptCause::GoAway },
        ScriptedError::ContextOverflow { message: message() },
        ScriptedError::InvalidRequest { message: message() },
        ScriptedError::Unauthorized { message: message() },
        ScriptedError::ModelNotFound { message: message() },
        ScriptedError::ContentFiltered { message: message() },
        ScriptedError::AllModelsUnavailable,
    ]
}

/// How the last run of the thread ended, as it is recorded.
async fn recorded(store: &Flaky) -> Option<Code> {
    let run = store.agent_runs(&thread("t"), None, 1).await.unwrap().into_iter().next()?;
    let record: RunRecord = serde_json::from_slice(&run.payload).unwrap();
    record.end.and_then(|end| end.failed_with())
}

fn failed_with(reason: &TerminationReason) -> Option<Code> {
    match reason {
        TerminationReason::Failed { code, .. } => Some(*code),
        _ => None,
    }
}

// clause: J03
#[tokio::test(start_paused = true)]
async fn d05_every_inference_error_ends_a_run_with_its_code_and_has_its_row() {
    let mut reached = Vec::new();
    for error in inference_errors() {
        let store = Flaky::timed();
        let model = scripted([ScriptedAnswer::failing(error.clone())]);
        let spec = AgentSpec { retry: RetryPolicy::never(), ..AgentSpec::new("a", "m") };
        let builder = AgentRuntimeBuilder::new().model("m", model as Arc<dyn Model>).agent(spec);
        let runtime = builder.store(Arc::clone(&store) as Arc<dyn ThreadRunStore>).build().await.unwrap();
        let outcome = runtime.run(RunRequest::new("a", "t", "hi")).await.unwrap();
        let code = failed_with(&outcome.reason).unwrap();
        assert_eq!(code, InferenceExecutionError::from(error).code());
        assert_eq!(recorded(&store).await, Some(code));
        reached.push(code);
    }
    // This one is a run's own wish, and no failure of it.
    let runtime = one_agent(saying(["hello"])).build().await.unwrap();
    let (agent, token) = (runtime.resolver().resolve("a").unwrap(), CancellationToken::new());
    token.cancel();
    let cancelled = agent.inference.start(InferenceRequest::default(), token).next().await.unwrap_err();
    reached.push(cancelled.code());
    check(&reached, &INFERENCE, "inference.");
}

// clause: J03
#[tokio::test(start_paused = true)]
async fn d11_every_storage_error_ends_a_run_with_its_code_and_has_its_row() {
    let failures = [
        Failure::Refused,
        Failure::Missing,
        Failure::Exists,
        Failure::Conflict,
        Failure::Io,
        Failure::Unheard,
        Failure::Unreadable,
        Failure::Locked,
        Failure::Stale,
        Failure::NewerSchema,
        Failure::DiskFull,
        Failure::ReadOnly,
        Failure::Corrupt,
        Failure::Poisoned,
    ];
    let mut reached = Vec::new();
    for failure in failures {
        let store = Flaky::timed();
        let builder = one_agent(saying(["hello", "hello"]));
        let runtime = builder.store(Arc::clone(&store) as Arc<dyn ThreadRunStore>).build().await.unwrap();
        store.fails(Some(Plan::always(Operation::Commit, failure)));
        let outcome = runtime.run(RunRequest::new("a", "t", "hi")).await.unwrap();
        let code = failed_with(&outcome.reason).unwrap();
        reached.push(code);

        // What may pass is tried again; of anything else the end is recorded when the store takes it.
        let store = Flaky::timed();
        let builder = one_agent(saying(["hello", "hello"]));
        let runtime = builder.store(Arc::clone(&store) as Arc<dyn ThreadRunStore>).build().await.unwrap();
        store.fails(Some(Plan::once(Operation::Commit, failure)));
        let outcome = runtime.run(RunRequest::new("a", "t", "hi")).await.unwrap();
        let expected = (code.row().class != Transient).then_some(code);
        assert_eq!(
            (failed_with(&outcome.reason), recorded(&store).await),
            (expected, expected),
            "{failure:?}"
        );
        assert_eq!(
            runtime.run(RunRequest::new("a", "t", "hi")).await.unwrap().text(),
            "hello",
            "{failure:?}"
        );
    }
    check(&reached, &STORAGE, "storage.");
}
