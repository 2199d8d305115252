//! Idempotency keys: the same call twice runs once, whatever happens to the first.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_actions::testing::{Called, TestApp, defined};
use runyard_actions::{
    Action, ActionBuilder, ActionError, Artifact, Begin, Claim, Context, Deprecation, Envelope, Fields,
    IdempotencyScope, IdempotencyStore, Invocation, MemoryIdempotency, Replayed, Runtime, SideEffects,
};
use runyard_domain::{Actor, RunId, Surface};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn write() -> ActionBuilder {
    let schema = json!({"type": "object", "properties": {"size": {"type": "integer", "default": 3}}});
    Action::define("act", "Writes something.").side_effects(SideEffects::Write).input_schema(schema)
}

/// A write that takes a second, succeeds or does as its input says, and counts how often it ran.
fn counted(builder: ActionBuilder) -> (Runtime, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let action = builder.handler(move |input, ctx| {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            ctx.logger().info("writing", Fields::new().with("number", &number));
            ctx.artifacts().add(Artifact::named("result"));
            sleep(MS(1000)).await;
            match input["do"].as_str() {
                Some("fail") => Err(ActionError::external_service("down").retryable()),
                Some("fail first") if number == 1 => Err(ActionError::external_service("down").retryable()),
                Some("fail for good") => Err(ActionError::application("CARD_STOLEN", "no")),
                Some("panic") => panic!("told to"),
                _ => Ok(json!({"number": number, "input": input})),
            }
        }
    });
    (Runtime::builder().action(action).build().unwrap(), ran)
}

fn call(key: &str, input: Value) -> Invocation {
    let mut call = Invocation::new("act", input, Surface::Json, Arc::new(Actor::owner("ada")));
    call.options.confirm = true;
    call.options.idempotency_key = Some(key.to_owned());
    call
}

fn messages(envelope: &Envelope) -> Vec<&str> {
    envelope.logs.iter().map(|log| log.message.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_same_key_and_input_give_the_first_result_again() {
    let (runtime, ran) = counted(write());
    let first = runtime.invoke(call("k", json!({"a": 1}))).await;
    let again = runtime.invoke(Invocation { surface: Surface::Cli, ..call("k", json!({"a": 1})) }).await;
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert_eq!((first.meta.idempotent, again.meta.idempotent), (None, Some(Replayed::Replayed)));
    assert_eq!(serde_json::to_value(&again).unwrap()["meta"]["idempotent"], json!("replayed"));
    assert_ne!(first.meta.invocation_id, again.meta.invocation_id);
    assert_eq!(again.meta.surface, Surface::Cli);
    assert_eq!(
        (&again.outcome, &again.logs, &again.artifacts),
        (&first.outcome, &first.logs, &first.artifacts)
    );
}

#[tokio::test(start_paused = true)]
async fn inputs_that_are_the_same_after_defaults_are_the_same() {
    let (runtime, ran) = counted(write());
    let inputs = [r#"{"a": 1, "b": 2}"#, r#"{"b": 2, "a": 1}"#, r#"{"size": 3, "a": 1, "b": 2}"#];
    for input in inputs {
        assert!(runtime.invoke(call("k", serde_json::from_str(input).unwrap())).await.is_ok());
    }
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

// clause: A16
#[tokio::test(start_paused = true)]
async fn the_same_key_with_another_input_is_a_conflict_also_while_the_first_runs() {
    let (runtime, ran) = counted(write());
    let (first, second) = tokio::join!(runtime.invoke(call("k", json!({"a": 1}))), async {
        sleep(MS(10)).await;
        runtime.invoke(call("k", json!({"a": 2}))).await
    });
    assert!(first.is_ok());
    let failure = Called(second).expect_error("CONFLICT");
    assert!(!failure.retryable);
    Called(runtime.invoke(call("k", json!({"a": 2}))).await).expect_error("CONFLICT");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_share_one_run() {
    let (runtime, ran) = counted(write());
    let mut set = JoinSet::new();
    for _ in 0..10 {
        let runtime = runtime.clone();
        set.spawn(async move { runtime.invoke(call("k", json!({}))).await });
    }
    let envelopes = set.join_all().await;
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    let ids: std::collections::BTreeSet<_> =
        envelopes.iter().map(|envelope| envelope.meta.invocation_id).collect();
    assert_eq!(ids.len(), 10, "each call keeps its own id");
    assert!(envelopes.iter().all(|envelope| envelope.data() == envelopes[0].data() && envelope.is_ok()));
    assert_eq!(envelopes.iter().filter(|envelope| envelope.meta.idempotent.is_none()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_retryable_failure_is_shared_in_flight_but_not_kept() {
    let (runtime, ran) = counted(write());
    let failing = || runtime.invoke(call("k", json!({"do": "fail"})));
    let (one, two) = tokio::join!(failing(), failing());
    for envelope in [&one, &two] {
        Called(envelope.clone()).expect_error("EXTERNAL_SERVICE_ERROR");
        assert_eq!(messages(envelope), ["writing"]);
    }
    assert_eq!((one.meta.idempotent, two.meta.idempotent), (None, Some(Replayed::Replayed)));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    Called(failing().await).expect_error("EXTERNAL_SERVICE_ERROR");
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}

/// It may have come after the effect, so the same call must not be made again under the same key.
#[tokio::test(start_paused = true)]
async fn a_failure_that_is_not_retryable_stands_for_good_and_so_does_a_panic() {
    for (told, code) in [("fail for good", "CARD_STOLEN"), ("panic", "INTERNAL_ERROR")] {
        let (runtime, ran) = counted(write());
        let failing = || runtime.invoke(call("k", json!({"do": told})));
        let (first, shared) = tokio::join!(failing(), failing());
        let later = failing().await;
        for envelope in [&first, &shared, &later] {
            Called(envelope.clone()).expect_error(code);
            assert_eq!(messages(envelope), ["writing"]);
        }
        assert_eq!(later.meta.idempotent, Some(Replayed::Replayed));
        assert_eq!(ran.load(Ordering::SeqCst), 1, "{told}");
        Called(runtime.invoke(call("k", json!({}))).await).expect_error("CONFLICT");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_retryable_failure_the_key_may_be_used_with_another_input() {
    let (runtime, ran) = counted(write());
    assert!(!runtime.invoke(call("k", json!({"do": "fail"}))).await.is_ok());
    assert!(runtime.invoke(call("k", json!({}))).await.is_ok());
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn another_actor_or_another_action_is_another_key() {
    let (runtime, ran) = counted(write());
    let actors = [
        Actor::owner("ada"),
        Actor::owner("bob"),
        Actor::service("ada", Vec::<String>::new()),
        Actor::agent("ada", RunId::from_parts(1, &[2; 10]), Vec::<String>::new()),
    ];
    for (position, actor) in actors.into_iter().enumerate() {
        let input = json!({"position": position});
        let envelope = runtime.invoke(Invocation { actor: Arc::new(actor), ..call("k", input) }).await;
        assert!(envelope.is_ok() && envelope.meta.idempotent.is_none());
    }
    assert_eq!(ran.load(Ordering::SeqCst), 4);

    let named = |name: &str| Action::define(name, "Writes.").side_effects(SideEffects::Write);
    let one = named("one").handler(|_, _| async { Ok(json!(1)) });
    let two = named("two").handler(|_, _| async { Ok(json!(2)) });
    let app = TestApp::new(Runtime::builder().action(one).action(two)).with(call("k", json!({})).options);
    assert_eq!(app.call("one", json!({})).await.expect_ok(), json!(1));
    assert_eq!(app.call("two", json!({})).await.expect_ok(), json!(2));
}

#[tokio::test(start_paused = true)]
async fn an_action_that_only_reads_ignores_the_key() {
    let (runtime, ran) = counted(write().side_effects(SideEffects::Read));
    for number in 1..=2 {
        let envelope = runtime.invoke(call("k", json!({"number": number}))).await;
        assert!(envelope.is_ok() && envelope.meta.idempotent.is_none());
        assert_eq!(ran.load(Ordering::SeqCst), number);
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_that_owns_its_keys_gets_them_and_runs_each_time() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&seen);
    let action = write().owns_idempotency_key().handler(move |input, ctx: Context| {
        note.lock().unwrap().push(ctx.idempotency_key().map(str::to_owned));
        async { Ok(input) }
    });
    let runtime = Runtime::builder().action(action).build().unwrap();
    for _ in 0..2 {
        assert!(runtime.invoke(call("k", json!({}))).await.is_ok());
    }
    let mut without = call("k", json!({"other": 1}));
    without.options.idempotency_key = None;
    assert!(runtime.invoke(without).await.is_ok());
    assert_eq!(*seen.lock().unwrap(), [Some("k".to_owned()), Some("k".to_owned()), None]);
}

#[tokio::test]
async fn a_key_that_is_empty_too_long_or_no_visible_ascii_is_refused() {
    let (runtime, ran) = counted(write());
    for key in
        [String::new(), "k".repeat(257), "schlüssel".to_owned(), "a\nb".to_owned(), "a\u{0}".to_owned()]
    {
        let failure = Called(runtime.invoke(call(&key, json!({}))).await).expect_error("VALIDATION_ERROR");
        assert_eq!(
            failure.issues[0].to_string(),
            "idempotencyKey: Expected 1 to 256 visible ASCII characters."
        );
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

// clause: A21
#[tokio::test(start_paused = true)]
async fn when_the_first_caller_goes_away_a_waiter_takes_over() {
    for dropped in [false, true] {
        let (runtime, ran) = counted(write());
        let token = CancellationToken::new();
        let leader = tokio::spawn({
            let (runtime, call) = (runtime.clone(), call("k", json!({})).cancel_with(token.clone()));
            async move { runtime.invoke(call).await }
        });
        sleep(MS(10)).await;
        let (waiter, ()) = tokio::join!(runtime.invoke(call("k", json!({}))), async {
            sleep(MS(10)).await;
            if dropped { leader.abort() } else { token.cancel() }
        });
        assert!(waiter.is_ok() && waiter.meta.idempotent.is_none(), "the waiter ran it itself");
        assert_eq!(ran.load(Ordering::SeqCst), 2);
        if !dropped {
            Called(leader.await.unwrap()).expect_error("CANCELLED");
        }
        assert!(runtime.invoke(call("k", json!({}))).await.meta.idempotent.is_some());
    }
}

// clause: A07
#[tokio::test(start_paused = true)]
async fn when_the_first_callers_own_time_runs_out_a_waiter_takes_over() {
    for by_deadline in [false, true] {
        let (runtime, ran) = counted(write());
        let mut hasty = call("k", json!({}));
        match by_deadline {
            true => hasty.options.deadline_ms = Some(500),
            false => hasty.options.timeout_ms = Some(500),
        }
        let (leader, waiter) = tokio::join!(runtime.invoke(hasty), async {
            sleep(MS(10)).await;
            runtime.invoke(call("k", json!({}))).await
        });
        Called(leader).expect_error("TIMEOUT");
        assert!(waiter.is_ok(), "{:?}", waiter.outcome);
        assert_eq!(ran.load(Ordering::SeqCst), 2);
    }
}

// clause: A21
#[tokio::test(start_paused = true)]
async fn a_waiter_can_be_cancelled_and_the_first_call_goes_on() {
    let (runtime, ran) = counted(write());
    let token = CancellationToken::new();
    let (leader, waiter, ()) = tokio::join!(
        runtime.invoke(call("k", json!({}))),
        async {
            sleep(MS(10)).await;
            runtime.invoke(call("k", json!({})).cancel_with(token.clone())).await
        },
        async {
            sleep(MS(100)).await;
            token.cancel();
        }
    );
    assert!(leader.is_ok());
    Called(waiter).expect_error("CANCELLED");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn no_place_leaves_the_key_free() {
    let (runtime, ran) = counted(write().concurrency(1, 0));
    let holding = runtime.invoke(call("other", json!({})));
    let (held, refused) = tokio::join!(holding, async {
        sleep(MS(10)).await;
        runtime.invoke(call("k", json!({}))).await
    });
    assert!(held.is_ok());
    Called(refused).expect_error("CONCURRENCY_LIMIT");
    let later = tokio::time::timeout(MS(60_000), runtime.invoke(call("k", json!({})))).await;
    assert!(later.expect("the key is not stuck").is_ok());
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_replay_still_needs_confirmation_and_permission() {
    let (runtime, ran) = counted(write().requires_confirmation(true).permissions(["tasks.write"]));
    let ci = Arc::new(Actor::service("ci", ["tasks.write"]));
    let by_ci = || Invocation { actor: Arc::clone(&ci), ..call("k", json!({})) };
    assert!(runtime.invoke(by_ci()).await.is_ok());
    let mut unconfirmed = by_ci();
    unconfirmed.options.confirm = false;
    Called(runtime.invoke(unconfirmed).await).expect_error("CONFIRMATION_REQUIRED");
    let revoked = Arc::new(Actor::service("ci", Vec::<String>::new()));
    Called(runtime.invoke(Invocation { actor: revoked, ..by_ci() }).await)
        .expect_error("AUTHORIZATION_ERROR");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_replay_is_a_copy_of_the_whole_envelope_also_of_a_deprecated_action() {
    let deprecation =
        Deprecation { message: "old".to_owned(), since: None, replacement: Some("new".to_owned()) };
    let (runtime, _) = counted(write().deprecated(deprecation));
    let first = runtime.invoke(call("k", json!({}))).await;
    let again = runtime.invoke(call("k", json!({}))).await;
    assert_eq!(messages(&first), ["Action is deprecated.", "writing"]);
    assert_eq!(again.logs, first.logs);
}

#[tokio::test(start_paused = true)]
async fn runtimes_that_share_a_store_share_its_keys() {
    let store = MemoryIdempotency::default();
    let ran = Arc::new(AtomicUsize::new(0));
    for number in 1..=2 {
        let count = Arc::clone(&ran);
        let action = defined(write().handler(move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Ok(json!(1)) }
        }));
        let runtime = Runtime::builder().action(action).idempotency(store.clone()).build().unwrap();
        let envelope = runtime.invoke(call("k", json!({}))).await;
        assert_eq!(envelope.meta.idempotent.is_some(), number == 2);
    }
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

/// A store that fails in one of its three places.
#[derive(Clone, Copy)]
enum Broken {
    Begin,
    Settle,
    SettlePanics,
    SettleNeverEnds,
}

#[async_trait]
impl IdempotencyStore for Broken {
    async fn begin(&self, _: IdempotencyScope, _: [u8; 32]) -> Result<Begin, ActionError> {
        match self {
            Broken::Begin => Err(std::io::Error::other("disk").into()),
            _ => Ok(Begin::Run(Box::new(*self))),
        }
    }
}

#[async_trait]
impl Claim for Broken {
    async fn settle(self: Box<Self>, _: &Envelope) -> Result<(), ActionError> {
        match *self {
            Broken::SettlePanics => panic!("disk"),
            Broken::SettleNeverEnds => std::future::pending().await,
            _ => Err(std::io::Error::other("disk").into()),
        }
    }
}

fn with_store(store: Broken) -> Runtime {
    let action = write().handler(|_, ctx| async move {
        ctx.logger().info("written", Fields::new());
        Ok(json!(1))
    });
    Runtime::builder().action(action).idempotency(store).build().unwrap()
}

#[tokio::test]
async fn a_store_that_cannot_look_a_key_up_stops_the_call_before_it_runs() {
    let envelope = with_store(Broken::Begin).invoke(call("k", json!({}))).await;
    Called(envelope.clone()).expect_error("INTERNAL_ERROR");
    assert!(envelope.logs.is_empty());
}

// clause: A12
#[tokio::test(start_paused = true)]
async fn what_was_logged_is_kept_also_when_the_store_fails_after_the_run() {
    for store in [Broken::Settle, Broken::SettlePanics, Broken::SettleNeverEnds] {
        let runtime = with_store(store);
        let mut call = call("k", json!({}));
        call.options.deadline_ms = Some(1000);
        let envelope = runtime.invoke(call).await;
        assert_eq!(messages(&envelope), ["written"], "{:?}", envelope.outcome);
    }
}

#[tokio::test]
async fn the_store_in_memory_is_bounded() {
    let action = write().handler(|input, _| async { Ok(input) });
    let runtime = Runtime::builder().action(action).build().unwrap();
    for number in 0..10_100 {
        assert!(runtime.invoke(call(&format!("k{number}"), json!({}))).await.is_ok());
    }
    let replayed = |envelope: Envelope| envelope.meta.idempotent.is_some();
    assert!(replayed(runtime.invoke(call("k10099", json!({}))).await), "the newest are kept");
    assert!(!replayed(runtime.invoke(call("k0", json!({}))).await), "the oldest are forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_answers_does_not_hold_the_call_for_ever() {
    struct Silent;
    #[async_trait]
    impl IdempotencyStore for Silent {
        async fn begin(&self, _: IdempotencyScope, _: [u8; 32]) -> Result<Begin, ActionError> {
            std::future::pending().await
        }
    }
    let action = write().handler(|_, _| async { Ok(json!(1)) });
    let runtime = Runtime::builder().action(action).idempotency(Silent).build().unwrap();
    Called(runtime.invoke(call("k", json!({}))).await).expect_error("INTERNAL_ERROR");
}
