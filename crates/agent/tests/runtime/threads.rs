//! One run on each thread, in a process and among several, and what a thread costs as it grows.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use runyard_agent::checkpoint::{CLAIM_TERM, Checkpoint, StepCommit, StoreCheckpoint};
use runyard_agent::phase::{Fault, Phase, PhaseContext, PhaseHook, StateCommand, TerminationReason};
use runyard_agent::plugin::{InstallError, Plugin, Registrar};
use runyard_agent::remote::{
    BackendFactory, EndpointRefused, Remote, RemoteAnswer, RemoteError, RemoteRequest,
};
use runyard_agent::run::{AgentEvent, Observer, RunRecord, RunStatus};
use runyard_agent::spec::{AgentSpec, EndpointSpec};
use runyard_agent::state::{KeyOptions, Scope, StateChanges, StateError, StateKey, UnknownKeyPolicy};
use runyard_agent::{AgentRuntime, AgentRuntimeBuilder, RunRequest, RuntimeError};
use runyard_domain::Code;
use runyard_llm::inference::{
    AtEnd, InferenceRequest, Message, Model, ModelStream, Refusal, Script, ScriptedAnswer, ScriptedModel,
};
use runyard_store::{AgentRunId, Claimed, RunStore, ThreadRunStore, ThreadStore};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::flaky::{Failure, Flaky, Operation, Plan};
use crate::heard::Heard;
use crate::kit::{Brings, Does, First, Plain, Second, call, one_agent, saying, scripted, thread};

fn hi(thread_id: &str) -> RunRequest {
    RunRequest::new("a", thread_id, "hi")
}

fn busy(thread_id: &str) -> RuntimeError {
    RuntimeError::ThreadAlreadyRunning { thread_id: thread_id.into() }
}

fn failed_with(reason: &TerminationReason) -> Option<Code> {
    match reason {
        TerminationReason::Failed { code, .. } => Some(*code),
        _ => None,
    }
}

/// A model that always says the same.
fn endless() -> Arc<ScriptedModel> {
    let answers = vec![ScriptedAnswer::text("hello")];
    Arc::new(ScriptedModel::new(Script { name: "endless".into(), at_end: AtEnd::Repeat, answers }))
}

async fn on(store: &Arc<Flaky>, builder: AgentRuntimeBuilder) -> AgentRuntime {
    builder.store(Arc::clone(store) as Arc<dyn ThreadRunStore>).build().await.unwrap()
}

/// Waits until something is so, for at most a while.
async fn until<F: Future<Output = bool>>(mut is_so: impl FnMut() -> F) {
    for _ in 0..10_000 {
        if is_so().await {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it never came to be so");
}

#[tokio::test]
async fn d04_what_cannot_begin_is_an_error_with_its_row() {
    let broken = AgentSpec { plugins: vec!["one".into(), "two".into()], ..AgentSpec::new("broken", "m") };
    let endpoint = EndpointSpec { backend: "pigeon".into(), url: "http://h".into(), ..Default::default() };
    let runtime = one_agent(saying([]))
        .plugin(First("one", Brings::TheSharedKey))
        .plugin(Second("two", Brings::TheSharedKey))
        .agent(broken)
        .agent(AgentSpec::new("lost", "gone"))
        .agent(AgentSpec::remote("far", endpoint))
        .build_unresolved()
        .await
        .unwrap();
    let begun = async |agent: &str| runtime.run(RunRequest::new(agent, "t", "hi")).await.unwrap_err();

    let error = begun("nobody").await;
    assert_eq!(error, RuntimeError::AgentNotFound { agent_id: "nobody".into() });
    assert_eq!(error.code().as_str(), "runtime.agent_not_found");

    let error = begun("broken").await;
    assert_eq!(error, RuntimeError::State(StateError::KeyAlreadyRegistered { key: "test.shared".into() }));
    assert_eq!(error.code().as_str(), "runtime.state");

    for (agent, code) in [("lost", "resolve.model_not_found"), ("far", "resolve.unsupported_remote_backend")]
    {
        let error = begun(agent).await;
        assert_eq!(error.code().as_str(), "runtime.resolve_failed");
        assert!(matches!(error, RuntimeError::ResolveFailed { message } if message.contains(code)));
    }
}

#[tokio::test(start_paused = true)]
async fn d04_a_thread_has_one_run_at_a_time_and_others_go_on_beside_it() {
    let slow = Plain::new("slow", Does::Take(Duration::from_secs(5)));
    let model = scripted([call("slow"), ScriptedAnswer::text("other"), ScriptedAnswer::text("done")]);
    let runtime = one_agent(model).tool(slow.clone()).build().await.unwrap();
    let first = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.run(hi("t")).await }
    });
    until(async || slow.called() == 1).await;
    let error = runtime.run(hi("t")).await.unwrap_err();
    assert_eq!(error, busy("t"));
    assert_eq!(error.code().as_str(), "runtime.thread_already_running");
    assert_eq!(runtime.run(hi("u")).await.unwrap().text(), "other");
    assert_eq!(first.await.unwrap().unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn d04_a_claim_is_renewed_so_that_no_other_process_takes_a_thread_from_a_long_run() {
    let store = Flaky::timed();
    let slow = Plain::new("slow", Does::Take(CLAIM_TERM * 4));
    let one =
        on(&store, one_agent(scripted([call("slow"), ScriptedAnswer::text("done")])).tool(slow.clone()))
            .await;
    let other = on(&store, one_agent(saying(["mine"]))).await;
    let running = tokio::spawn({
        let one = one.clone();
        async move { one.run(hi("t")).await }
    });
    until(async || slow.called() == 1).await;
    for _ in 0..3 {
        tokio::time::sleep(CLAIM_TERM).await;
        assert_eq!(other.run(hi("t")).await.unwrap_err(), busy("t"));
    }
    assert_eq!(running.await.unwrap().unwrap().text(), "done");
    assert!(store.asked(Operation::RenewClaim) >= 9);
    assert_eq!(other.run(hi("t")).await.unwrap().text(), "mine");
}

#[tokio::test(start_paused = true)]
async fn d04_a_run_whose_claim_cannot_be_renewed_is_stopped_before_another_may_have_it() {
    let store = Flaky::timed();
    let hanging = Plain::new("hang", Does::Hang);
    let runtime = on(&store, one_agent(scripted([call("hang")])).tool(hanging.clone())).await;
    store.fails(Some(Plan::always(Operation::RenewClaim, Failure::Io)));
    let began = tokio::time::Instant::now();
    let outcome = runtime.run(hi("t")).await.unwrap();
    assert_eq!(failed_with(&outcome.reason), Some(Code::StorageIo), "nobody called it off");
    assert!(began.elapsed() <= CLAIM_TERM, "{:?}", began.elapsed());
    assert_eq!(last_record(&store).await.end.unwrap().failed_with(), Some(Code::StorageIo));
}

#[tokio::test(start_paused = true)]
async fn d04_a_renewal_that_hangs_does_not_cost_a_run_its_thread() {
    let store = Flaky::timed();
    let slow = Plain::new("slow", Does::Take(CLAIM_TERM * 2));
    let runtime =
        on(&store, one_agent(scripted([call("slow"), ScriptedAnswer::text("done")])).tool(slow)).await;
    store.fails(Some(Plan { times: 2, ..Plan::once(Operation::RenewClaim, Failure::Hangs) }));
    let outcome = runtime.run(hi("t")).await.unwrap();
    assert_eq!((outcome.text().as_str(), outcome.reason), ("done", TerminationReason::NaturalEnd));
    assert!(store.asked(Operation::RenewClaim) >= 3);
}

#[tokio::test(start_paused = true)]
async fn d04_a_run_whose_thread_another_process_took_ends_and_writes_nothing_more() {
    let store = Flaky::timed();
    let hanging = Plain::new("hang", Does::Hang);
    let heard = Heard::default();
    let runtime = on(&store, one_agent(scripted([call("hang")])).tool(hanging.clone())).await;
    let running = tokio::spawn({
        let (runtime, heard) = (runtime.clone(), heard.clone());
        async move { runtime.run(hi("t").observer(heard)).await }
    });
    until(async || hanging.called() == 1).await;
    let run = store.unfinished_run(&thread("t")).await.unwrap().unwrap();
    let (generation, before) = {
        let row = store.thread(&thread("t")).await.unwrap().unwrap();
        (row.generation, row.version)
    };
    // Somebody takes it over as one does after a crash.
    store.release_claim(&thread("t"), generation).await.unwrap();
    let taken = store.claim(&thread("t"), &run.id, "somebody".into(), CLAIM_TERM * 100).await.unwrap();
    assert!(matches!(taken, Claimed::Granted(_)));
    let outcome = running.await.unwrap().unwrap();
    assert_eq!(failed_with(&outcome.reason), Some(Code::StorageStaleGeneration));
    assert_eq!(heard.ends(), 1);
    assert_eq!(store.thread(&thread("t")).await.unwrap().unwrap().version, before);
}

/// Panics at every event.
struct Clumsy;

#[async_trait]
impl Observer for Clumsy {
    async fn observe(&self, _event: AgentEvent) {
        panic!("dropped it");
    }
}

/// Panics when it is asked, once.
struct Fragile(AtomicBool);

#[async_trait]
impl Model for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }

    async fn open(&self, request: &InferenceRequest) -> Result<ModelStream, Refusal> {
        assert!(self.0.swap(true, Ordering::SeqCst), "it broke");
        endless().open(request).await
    }
}

/// An agent elsewhere, whose way is broken.
struct Broken;

impl BackendFactory for Broken {
    fn backend(&self) -> &str {
        "broken"
    }

    fn connect(&self, _agent_id: &str, _endpoint: &EndpointSpec) -> Result<Arc<dyn Remote>, EndpointRefused> {
        Ok(Arc::new(Broken))
    }
}

#[async_trait]
impl Remote for Broken {
    async fn run(&self, _: &RemoteRequest, _: &dyn Observer) -> Result<RemoteAnswer, RemoteError> {
        panic!("it broke");
    }
}

async fn last_record(store: &Flaky) -> RunRecord {
    let run = store.agent_runs(&thread("t"), None, 1).await.unwrap().remove(0);
    assert!(run.finished);
    serde_json::from_slice(&run.payload).unwrap()
}

#[tokio::test]
async fn d04_a_panic_ends_the_run_records_that_and_leaves_the_thread_free() {
    let store = Flaky::timed();
    let endpoint = EndpointSpec { backend: "broken".into(), url: "x".into(), ..EndpointSpec::default() };
    let builder = || {
        AgentRuntimeBuilder::new()
            .model("m", Arc::new(Fragile(AtomicBool::new(false))))
            .agent(AgentSpec::new("a", "m"))
            .backend(Broken)
            .agent(AgentSpec::remote("far", endpoint.clone()))
    };
    // Also where nothing is stored.
    for (runtime, is_durable) in
        [(on(&store, builder()).await, true), (builder().build().await.unwrap(), false)]
    {
        for agent in ["far", "a"] {
            let heard = Heard::default();
            let request = RunRequest::new(agent, "t", "hi").observer(heard.clone());
            let outcome = runtime.run(request).await.unwrap();
            assert_eq!(failed_with(&outcome.reason), Some(Code::InternalError), "{agent}");
            assert_eq!(heard.ends(), 1, "{agent}");
            if !is_durable {
                continue;
            }
            let record = last_record(&store).await;
            assert_eq!((record.agent_id.as_str(), record.status), (agent, RunStatus::Done));
            assert_eq!(record.end.unwrap().code.as_deref(), Some("INTERNAL_ERROR"));
        }
        assert_eq!(runtime.run(hi("t")).await.unwrap().text(), "hello");
    }
}

#[tokio::test]
async fn a_panic_of_whoever_listens_is_not_the_runs() {
    let runtime = one_agent(endless()).build().await.unwrap();
    assert_eq!(runtime.run(hi("t").observer(Clumsy)).await.unwrap().text(), "hello");
    let store = Flaky::timed();
    let runtime = on(&store, one_agent(endless())).await;
    store.fails(Some(Plan::always(Operation::Claim, Failure::Io)));
    let outcome = runtime.run(hi("t").observer(Clumsy)).await.unwrap();
    assert_eq!(failed_with(&outcome.reason), Some(Code::StorageIo));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_nobody_waits_for_any_more_comes_to_its_end_in_order() {
    let store = Flaky::timed();
    let hanging = Plain::new("hang", Does::Hang);
    let runtime =
        on(&store, one_agent(scripted([call("hang"), ScriptedAnswer::text("next")])).tool(hanging.clone()))
            .await;
    let heard = Heard::default();
    let waiting = tokio::spawn({
        let (runtime, heard) = (runtime.clone(), heard.clone());
        async move { runtime.run(hi("t").observer(heard)).await }
    });
    until(async || hanging.called() == 1).await;
    waiting.abort();
    until(async || heard.ends() == 1).await;
    until(async || store.unfinished_run(&thread("t")).await.unwrap().is_none()).await;
    let run = store.agent_runs(&thread("t"), None, 1).await.unwrap().remove(0);
    let record: RunRecord = serde_json::from_slice(&run.payload).unwrap();
    assert_eq!(record.end.unwrap().reason, "cancelled");
    assert_eq!(runtime.run(hi("t")).await.unwrap().text(), "next");
}

#[tokio::test]
async fn events_come_through_a_channel_as_they_happen() {
    let runtime = one_agent(endless()).build().await.unwrap();
    let (sender, mut events) = mpsc::channel(1);
    let running = tokio::spawn(async move { runtime.run(hi("t").observer(sender)).await });
    let mut told = Vec::new();
    while let Some(event) = events.recv().await {
        told.push(event);
    }
    assert!(matches!(told.first(), Some(AgentEvent::RunStarted { resumed: false })));
    assert!(matches!(told.last(), Some(AgentEvent::RunEnded { .. })));
    assert_eq!(running.await.unwrap().unwrap().text(), "hello");
}

#[tokio::test]
async fn a_conversation_goes_on_over_runs_and_no_turn_reads_what_is_known() {
    let store = Flaky::timed();
    let model = endless();
    let runtime = on(&store, one_agent(Arc::clone(&model))).await;
    for turn in 0..50 {
        let outcome = runtime.run(hi("t")).await.unwrap();
        assert_eq!(outcome.text(), "hello");
        assert_eq!(model.requests().last().unwrap().messages.len(), 2 * turn + 1);
    }
    assert_eq!(store.messages_read.load(Ordering::SeqCst), 0);
    // Another process reads all of it once, then only what came meanwhile.
    let other = on(&store, one_agent(Arc::clone(&model))).await;
    let _ = other.run(hi("t")).await.unwrap();
    assert_eq!(store.messages_read.load(Ordering::SeqCst), 100);
    let _ = runtime.run(hi("t")).await.unwrap();
    assert_eq!(store.messages_read.load(Ordering::SeqCst), 102);
    assert_eq!(model.requests().last().unwrap().messages.len(), 103);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_refused_leaves_what_is_remembered_of_the_thread() {
    let store = Flaky::timed();
    let slow = Plain::new("slow", Does::Take(Duration::from_secs(5)));
    let one = on(&store, one_agent(endless())).await;
    let model = scripted([call("slow"), ScriptedAnswer::text("done")]);
    let other = on(&store, one_agent(model).tool(slow.clone())).await;
    let _ = one.run(hi("t")).await.unwrap();
    let running = tokio::spawn(async move { other.run(hi("t")).await });
    until(async || slow.called() == 1).await;
    assert_eq!(one.run(hi("t")).await.unwrap_err(), busy("t"));
    assert_eq!(running.await.unwrap().unwrap().text(), "done");
    let before = store.messages_read.load(Ordering::SeqCst);
    let _ = one.run(hi("t")).await.unwrap();
    assert_eq!(store.messages_read.load(Ordering::SeqCst) - before, 4, "what the other one added");
}

#[tokio::test]
async fn a_conversation_that_is_not_remembered_is_read_again() {
    let store = Flaky::timed();
    let runtime = on(&store, one_agent(endless()).cache_bytes(0)).await;
    let _ = runtime.run(hi("t")).await.unwrap();
    let _ = runtime.run(hi("t")).await.unwrap();
    assert_eq!(store.messages_read.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_thread_that_was_deleted_and_made_anew_does_not_get_what_is_remembered_of_the_old_one() {
    let store = Flaky::timed();
    let model = endless();
    let (one, other) =
        (on(&store, one_agent(Arc::clone(&model))).await, on(&store, one_agent(Arc::clone(&model))).await);
    let said = |text: &str| RunRequest::new("a", "t", text);
    let _ = one.run(said("about the old one")).await.unwrap();
    store.delete_thread(&thread("t")).await.unwrap();
    for _ in 0..2 {
        let _ = other.run(said("about the new one")).await.unwrap();
    }
    let _ = one.run(said("and now?")).await.unwrap();
    let asked = model.requests().pop().unwrap();
    let texts: Vec<String> = asked.messages.iter().map(|message| message.said()).collect();
    assert_eq!(texts, ["about the new one", "hello", "about the new one", "hello", "and now?"]);
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_stored_is_not_remembered() {
    let store = Flaky::timed();
    let model = endless();
    let (one, other) =
        (on(&store, one_agent(Arc::clone(&model))).await, on(&store, one_agent(Arc::clone(&model))).await);
    let said = |text: &str| RunRequest::new("a", "t", text);
    let _ = one.run(said("first")).await.unwrap();
    store.fails(Some(Plan::always(Operation::Commit, Failure::Io)));
    assert!(failed_with(&one.run(said("lost")).await.unwrap().reason).is_some());
    store.fails(None);
    let _ = other.run(said("second")).await.unwrap();
    let _ = one.run(said("third")).await.unwrap();
    let asked = model.requests().pop().unwrap();
    let texts: Vec<String> = asked.messages.iter().map(|message| message.said()).collect();
    assert_eq!(texts, ["first", "hello", "second", "hello", "third"]);
}

#[tokio::test]
async fn what_a_provider_is_paid_with_is_never_stored() {
    let store = Flaky::timed();
    let spec = runyard_agent::spec::ProviderSpec::new(
        "p",
        runyard_agent::spec::WireKind::Chat,
        "http://127.0.0.1:1/v1",
    );
    let runtime = on(
        &store,
        one_agent(saying(["it is Sorrel64-Dipper-9"])).provider_with_key(spec, "Sorrel64-Dipper-9"),
    )
    .await;
    let outcome = runtime.run(RunRequest::new("a", "t", "is it Sorrel64-Dipper-9?")).await.unwrap();
    assert!(!outcome.text().contains("Sorrel64-Dipper-9"));
    for message in store.messages(&thread("t"), 0, 10).await.unwrap() {
        assert!(!String::from_utf8_lossy(&message.body).contains("Sorrel64-Dipper-9"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_ends_the_run_with_its_code_and_leaves_the_thread_free() {
    let store = Flaky::timed();
    let runtime = on(&store, one_agent(endless())).await;
    for operation in [Operation::Claim, Operation::Commit] {
        store.fails(Some(Plan::always(operation, Failure::Io)));
        let heard = Heard::default();
        let outcome = runtime.run(hi("t").observer(heard.clone())).await.unwrap();
        assert_eq!(failed_with(&outcome.reason), Some(Code::StorageIo), "{operation:?}");
        assert_eq!(heard.ends(), 1, "{operation:?}");
        store.fails(None);
        assert_eq!(runtime.run(hi("t")).await.unwrap().text(), "hello", "{operation:?}");
    }
    let secret = runtime.run(hi("sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKL")).await.unwrap();
    assert_eq!(failed_with(&secret.reason), Some(Code::StorageValidation));
}

#[tokio::test]
async fn d15_stored_state_that_an_agent_has_no_key_for_fails_it_unless_it_skips_that() {
    let store = Flaky::timed();
    let shared = Arc::clone(&store) as Arc<dyn ThreadRunStore>;
    let redactor = runyard_redact::process::forms_only();
    let names = ("t", "run_of_an_older_version", "somebody");
    let (checkpoint, _) = StoreCheckpoint::open(shared, redactor, names, Vec::new()).await.unwrap();
    let set = [("plugin.gone".to_owned(), json!(1))].into();
    let commit = StepCommit {
        messages: vec![Arc::new(Message::user("earlier"))],
        thread_state: StateChanges { set, ..StateChanges::default() },
        record: RunRecord { status: RunStatus::Done, ..RunRecord::default() },
        ..StepCommit::default()
    };
    checkpoint.commit(commit).await.unwrap();

    let lenient = AgentSpec { unknown_keys: UnknownKeyPolicy::Skip, ..AgentSpec::new("lenient", "m") };
    let runtime = on(&store, one_agent(endless()).agent(lenient)).await;
    let outcome = runtime.run(hi("t")).await.unwrap();
    assert_eq!(failed_with(&outcome.reason), Some(Code::StateUnknownKey));
    let outcome = runtime.run(RunRequest::new("lenient", "t", "hi")).await.unwrap();
    assert_eq!(outcome.text(), "hello");
    let kept = store.thread_values(&thread("t"), None, 10).await.unwrap();
    assert!(kept.iter().any(|value| value.key == "plugin.gone"), "skipped is not removed");
}

#[tokio::test]
async fn a_run_that_is_cancelled_before_it_begins_is_over_at_once() {
    let store = Flaky::timed();
    let model = endless();
    let runtime = on(&store, one_agent(Arc::clone(&model))).await;
    let token = CancellationToken::new();
    token.cancel();
    let outcome = runtime.run(hi("t").cancellation(token)).await.unwrap();
    assert_eq!((outcome.reason, model.asked()), (TerminationReason::Cancelled, 0));
    let unknown = AgentRunId::new("run_nobody".into()).unwrap();
    assert!(store.agent_run(&unknown).await.unwrap().is_none());
    assert!(store.unfinished_run(&thread("t")).await.unwrap().is_none());
}

/// How often a value of a thread was encoded.
static ENCODED: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Default, Deserialize)]
struct Counting(u32);

impl Serialize for Counting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ENCODED.fetch_add(1, Ordering::SeqCst);
        self.0.serialize(serializer)
    }
}

struct Counted;

impl StateKey for Counted {
    const KEY: &'static str = "test.counted";
    const SCOPE: Scope = Scope::Thread;
    type Value = Counting;
    type Update = u32;

    fn apply(value: &mut Counting, update: u32) {
        value.0 = update;
    }
}

/// Changes its key in the first run alone.
struct Once;

#[async_trait]
impl PhaseHook for Once {
    async fn run(&self, context: &PhaseContext<'_>) -> Result<StateCommand, Fault> {
        Ok(match context.snapshot.get::<Counted>() {
            None => StateCommand::none().update::<Counted>(1),
            Some(_) => StateCommand::none(),
        })
    }
}

impl Plugin for Once {
    fn id(&self) -> &str {
        "once"
    }

    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        registrar.key::<Counted>(KeyOptions::DEFAULT)?;
        registrar.hook(Phase::RunStart, Once);
        Ok(())
    }
}

#[tokio::test]
async fn state_that_a_run_did_not_change_is_not_encoded_where_a_store_has_it() {
    let store = Flaky::timed();
    let spec = AgentSpec { plugins: vec!["once".into()], ..AgentSpec::new("a", "m") };
    let builder = AgentRuntimeBuilder::new().model("m", saying(["one", "two"])).plugin(Once).agent(spec);
    let runtime = on(&store, builder).await;
    runtime.run(hi("t")).await.unwrap();
    assert_eq!(ENCODED.load(Ordering::SeqCst), 1, "when it was stored");
    assert_eq!(runtime.run(hi("t")).await.unwrap().text(), "two");
    assert_eq!(ENCODED.load(Ordering::SeqCst), 1);
}
