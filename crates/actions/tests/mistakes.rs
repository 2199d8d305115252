//! One regression test for each known mistake that a runtime can make; the numbers are those of the list they come from.
//!
//! The mistakes of surfaces are tested there: 9 (requests across sites) in `http_security.rs` and `http_requests.rs`, 12
//! (command line) in the example's `cli.rs`, the first part of 13 (escapes in URLs) in `http_routes.rs`, the diffs of 15 in
//! `manifest_diff.rs`. Numbers 3 (MCP) and 10 (schemas for models) wait for their surfaces, the durable keys of 14 for a store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use runyard_actions::testing::{Called, TestApp};
use runyard_actions::{
    Action, ActionBuilder, ActionError, Artifact, Context, DefinitionError, Envelope, Fields, Hook,
    InvocationOptions, OUTPUT_BYTES_MAX, Permission, PermissionChecker, PermissionRequest, Progress,
    RetryPolicy, Runtime, SideEffects, fields,
};
use runyard_domain::Actor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn open() -> ActionBuilder {
    Action::define("act", "Does something.").input_schema(json!({"type": "object"}))
}

fn app(action: Result<Action, DefinitionError>) -> TestApp {
    TestApp::new(Runtime::builder().action(action))
}

fn options(payload: Value) -> InvocationOptions {
    let Value::Object(mut payload) = payload else { panic!("options are an object") };
    InvocationOptions::take_from(&mut payload)
}

async fn echo(input: Value, _: Context) -> Result<Value, ActionError> {
    Ok(input)
}

/// A write that hangs when its input says so.
async fn hang_or_echo(input: Value, _: Context) -> Result<Value, ActionError> {
    if input["hang"] == true {
        std::future::pending::<()>().await;
    }
    Ok(input)
}

#[tokio::test(start_paused = true)]
async fn mistake_01_no_place_with_a_key_does_not_make_later_calls_hang() {
    let app =
        app(open().side_effects(SideEffects::Write).concurrency(1, 0).timeout_ms(1000).handler(hang_or_echo));
    let (_, ()) = tokio::join!(app.call("act", json!({"hang": true})), async {
        sleep(MS(1)).await;
        let keyed = TestApp::of(app.runtime().clone()).with(options(json!({"idempotencyKey": "k"})));
        keyed.call("act", json!({})).await.expect_error("CONCURRENCY_LIMIT");
        let again = timeout(MS(60_000), keyed.call("act", json!({}))).await;
        again.expect("the second call does not hang").expect_error("CONCURRENCY_LIMIT");
    });
    let keyed = app.with(options(json!({"idempotencyKey": "k"})));
    timeout(MS(60_000), keyed.call("act", json!({}))).await.expect("nor does the third").expect_ok();
}

struct Throws(bool);

#[async_trait]
impl PermissionChecker for Throws {
    async fn check(&self, _: PermissionRequest<'_>) -> Result<Permission, ActionError> {
        if self.0 { panic!("token=hunter2") } else { Err(std::io::Error::other("token=hunter2").into()) }
    }
}

#[derive(JsonSchema)]
struct Throwing;

impl<'de> Deserialize<'de> for Throwing {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("token=hunter2")
    }
}

#[tokio::test]
async fn mistake_02_a_throwing_checker_or_schema_gives_an_envelope_without_the_text() {
    for panics in [false, true] {
        let app =
            TestApp::new(Runtime::builder().action(open().handler(echo)).permission_checker(Throws(panics)));
        let called = app.call("act", json!({})).await;
        called.expect_error("AUTHORIZATION_ERROR");
        assert!(!serde_json::to_string(&called.0).unwrap().contains("hunter2"));
    }
    let action = Action::define("act", "Reads.").typed(|_: Throwing, _| async { Ok::<_, ActionError>(1) });
    let called = app(action).call("act", json!(null)).await;
    called.expect_error("INTERNAL_ERROR");
    let text = serde_json::to_string(&called.0).unwrap();
    assert!(!text.contains("hunter2") && text.contains("\"invocationId\""), "meta is whole: {text}");
}

#[tokio::test(start_paused = true)]
async fn mistake_04_a_timeout_leaves_no_zombie_and_two_attempts_never_write_at_once() {
    let (running, most, written) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak, writes) = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&written));
    let retry = RetryPolicy { retries: 3, delay_ms: 1 };
    let action =
        open().side_effects(SideEffects::Write).timeout_ms(100).retry(retry).handler(move |_, ctx| {
            let (now, peak, writes) = (Arc::clone(&now), Arc::clone(&peak), Arc::clone(&writes));
            async move {
                struct Leave(Arc<AtomicUsize>);
                impl Drop for Leave {
                    fn drop(&mut self) {
                        self.0.fetch_sub(1, Ordering::SeqCst);
                    }
                }
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let _leave = Leave(now);
                sleep(MS(5000)).await;
                writes.fetch_add(1, Ordering::SeqCst);
                ctx.logger().info("written", Fields::new());
                Ok(json!(1))
            }
        });
    let called = app(action).call("act", json!({})).await;
    called.expect_error("TIMEOUT");
    let before = serde_json::to_string(&called.0).unwrap();
    assert_eq!(running.load(Ordering::SeqCst), 0);
    sleep(MS(60_000)).await;
    assert_eq!((most.load(Ordering::SeqCst), written.load(Ordering::SeqCst)), (1, 0));
    assert_eq!(serde_json::to_string(&called.0).unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn mistake_05_cancelling_ends_a_handler_that_does_not_cooperate() {
    let action = open().handler(|_, _| async {
        sleep(MS(60_000)).await;
        Ok(json!("done all the same"))
    });
    let (app, token) = (app(action), CancellationToken::new());
    let call = app.invocation("act", json!({})).cancel_with(token.clone());
    let start = tokio::time::Instant::now();
    let (envelope, ()) = tokio::join!(app.runtime().invoke(call), async {
        sleep(MS(10)).await;
        token.cancel();
    });
    Called(envelope).expect_error("CANCELLED");
    assert!(start.elapsed() < MS(1000));
}

#[derive(Clone, Serialize, JsonSchema)]
struct Part {
    n: u8,
}

#[tokio::test]
async fn mistake_06_shared_values_dates_and_big_integers_are_safe_everywhere() {
    let action = Action::define("act", "Shares.").typed_without_input(|ctx: Context| async move {
        let shared = Arc::new(Part { n: 1 });
        let time: Timestamp = "2024-05-06T07:08:09Z".parse().unwrap();
        ctx.logger()
            .info("fields", fields! { a: shared, b: shared, time: time, big: u64::MAX, bigger: u128::MAX });
        ctx.artifacts().add(Artifact::named("a").metadata(&json!({"big": i64::MIN})));
        Ok::<_, ActionError>((Arc::clone(&shared), shared))
    });
    let called = app(action).call("act", json!({})).await;
    assert_eq!(called.expect_ok(), json!([{"n": 1}, {"n": 1}]));
    assert_eq!(
        serde_json::to_value(&called.0.logs[0].fields).unwrap(),
        json!({
            "a": {"n": 1}, "b": {"n": 1}, "time": "2024-05-06T07:08:09Z", "big": u64::MAX,
            "bigger": "[not safe JSON: an integer does not fit 64 bits]",
        })
    );
    let text = serde_json::to_string(&called.0).unwrap();
    assert!(serde_json::from_str::<Envelope>(&text).is_ok());
}

#[tokio::test]
async fn mistake_07_numbers_that_are_not_finite_do_not_become_null() {
    for number in [f64::NAN, f64::INFINITY] {
        let action = Action::define("act", "A number.")
            .typed_without_input(move |_| async move { Ok::<_, ActionError>(vec![number]) });
        app(action).call("act", json!({})).await.expect_error("OUTPUT_SERIALIZATION_ERROR");
    }
}

#[derive(Clone, Default)]
struct Slow(Arc<AtomicUsize>);

#[async_trait]
impl Hook for Slow {
    async fn started(&self, _: &Context) {
        tokio::task::yield_now().await;
        panic!("after an await")
    }

    async fn ended(&self, _: &Envelope) {
        sleep(MS(100)).await;
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("after an await")
    }
}

#[tokio::test(start_paused = true)]
async fn mistake_08_and_15_a_hook_may_be_async_and_may_fail() {
    let (slow, after) = (Slow::default(), Slow::default());
    let app =
        TestApp::new(Runtime::builder().action(open().handler(echo)).hook(slow.clone()).hook(after.clone()));
    app.call("act", json!({})).await.expect_ok();
    assert_eq!((slow.0.load(Ordering::SeqCst), after.0.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn mistake_11_a_schema_has_no_memory_and_no_prototype() {
    let action = Action::define("act", "Takes a name.")
        .input_schema(json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": "^[a-z]+$"},
                "list": {"type": "array", "default": []},
                "record": {"type": "object", "additionalProperties": {"type": "integer"}},
            },
            "additionalProperties": false,
        }))
        .handler(|mut input, _| async move {
            // A handler that changes its input must not change the default for the next one.
            input["list"].as_array_mut().unwrap().push(json!(1));
            Ok(input)
        });
    let app = app(action);
    for _ in 0..3 {
        let data = app.call("act", json!({"name": "ada"})).await.expect_ok();
        assert_eq!(data, json!({"name": "ada", "list": [1]}));
    }
    for key in ["toString", "constructor", "__proto__", "hasOwnProperty"] {
        app.call("act", json!({key: 1})).await.expect_error("VALIDATION_ERROR");
        let data = app.call("act", json!({"record": {key: 1}})).await.expect_ok();
        assert_eq!(data["record"], json!({key: 1}), "an ordinary key of a record is kept");
    }
    let invalid =
        open().input_schema(json!({"properties": {"n": {"type": "integer", "default": "x"}}})).handler(echo);
    assert!(matches!(invalid, Err(DefinitionError::InvalidSchema { .. })));
}

#[tokio::test]
async fn mistake_11_a_hostile_pattern_takes_no_time_and_a_huge_repetition_no_memory() {
    let hostile = json!({"type": "object", "properties": {"s": {"type": "string", "pattern": "^(a+)+$"}}});
    let app = app(Action::define("act", "Matches.").input_schema(hostile).handler(echo));
    app.call("act", json!({"s": format!("{}b", "a".repeat(100_000))})).await.expect_error("VALIDATION_ERROR");
    let huge = json!({"type": "string", "pattern": "((a{1000}){1000}){1000}"});
    assert!(open().input_schema(huge).handler(echo).is_err());
}

#[tokio::test]
async fn mistake_13_a_number_in_retry_is_refused_and_progress_keeps_its_own_fields() {
    let action = open().handler(|_, ctx| async move {
        ctx.progress().report(Progress::percent(10.0).field("type", "mine").field("percent", &99));
        Ok(json!(1))
    });
    let app = app(action);
    let called = app.call("act", json!({})).await;
    let fields = serde_json::to_value(&called.0.logs[0].fields).unwrap();
    assert_eq!(fields, json!({"type": "progress", "percent": 10}));
    app.with(options(json!({"retry": 3}))).call("act", json!({})).await.expect_error("VALIDATION_ERROR");
}

#[tokio::test]
async fn mistake_14_a_key_with_another_input_is_a_conflict_and_not_a_second_run() {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let action = open().side_effects(SideEffects::Write).handler(move |input, _| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(input) }
    });
    let app = app(action).with(options(json!({"idempotencyKey": "k"})));
    app.call("act", json!({"amount": 1})).await.expect_ok();
    let called = app.call("act", json!({"amount": 1000})).await;
    called.expect_error("CONFLICT");
    assert_eq!((called.0.http_status(), ran.load(Ordering::SeqCst)), (409, 1));
}

#[tokio::test]
async fn mistake_15_everything_that_an_action_can_give_has_a_limit() {
    let action = open().handler(|input, ctx: Context| async move {
        for number in 0..20_000 {
            match input["what"].as_str() {
                Some("artifacts") => drop(ctx.artifacts().add(Artifact::named("a"))),
                Some("progress") => ctx.progress().report(Progress::percent(f64::from(number))),
                _ => {}
            }
        }
        let bytes = if input["what"] == "output" { OUTPUT_BYTES_MAX } else { 1 };
        Ok(json!("x".repeat(bytes)))
    });
    let app = app(action);
    for what in ["artifacts", "progress"] {
        let called = app.call("act", json!({"what": what})).await;
        called.expect_ok();
        called.expect_log("dropped");
        assert_eq!(called.0.artifacts.len() + called.0.logs.len(), 10_001, "{what}");
    }
    app.call("act", json!({"what": "output"})).await.expect_error("OUTPUT_SERIALIZATION_ERROR");
    let huge = json!({"what": "x".repeat(runyard_actions::INPUT_BYTES_MAX)});
    app.call("act", huge).await.expect_error("VALIDATION_ERROR");
}

#[tokio::test]
async fn mistake_15_declared_permissions_are_enforced_by_default() {
    let app = app(open().permissions(["tasks.write"]).handler(echo)).by(Actor::service("ci", ["tasks.read"]));
    app.call("act", json!({})).await.expect_error("AUTHORIZATION_ERROR");
}

/// What the original's hooks were given: the raw input, with its secrets. Ours get the context, which has no input.
#[tokio::test]
async fn mistake_02_hooks_never_see_the_raw_input() {
    #[derive(Clone, Default)]
    struct Sees(Arc<Mutex<String>>);
    #[async_trait]
    impl Hook for Sees {
        async fn started(&self, context: &Context) {
            self.0.lock().unwrap().push_str(&format!("{context:?}"));
        }
        async fn ended(&self, envelope: &Envelope) {
            self.0.lock().unwrap().push_str(&format!("{envelope:?}"));
        }
    }
    let action = open().handler(|input, ctx| async move {
        ctx.logger().info("got it", fields! { input: input });
        Err(ActionError::internal(input.to_string()))
    });
    let sees = Sees::default();
    let app = TestApp::new(Runtime::builder().action(action).hook(sees.clone()));
    app.call("act", json!({"password": "hunter2"})).await.expect_error("INTERNAL_ERROR");
    let seen = sees.0.lock().unwrap().clone();
    assert!(seen.contains("got it") && !seen.contains("hunter2"), "{seen}");
}
