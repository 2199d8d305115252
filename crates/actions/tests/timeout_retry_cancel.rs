//! Timeout, retry and cancellation: attempts are really stopped, waits are as promised, whoever waits is told.
//!
//! Time is paused: waits are measured on the clock of the executor, and no test sleeps.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_actions::testing::{Called, TestApp};
use runyard_actions::{
    Action, ActionBuilder, ActionError, Context, Fields, InvocationOptions, Middleware, MiddlewareCall, Next,
    RetryPolicy, Runtime,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn open() -> ActionBuilder {
    Action::define("act", "Does something.").input_schema(json!({"type": "object"}))
}

fn app(action: Result<Action, runyard_actions::DefinitionError>) -> TestApp {
    TestApp::new(Runtime::builder().action(action))
}

fn options(payload: Value) -> InvocationOptions {
    let Value::Object(mut payload) = payload else { panic!("options are an object") };
    InvocationOptions::take_from(&mut payload)
}

fn deadline(ms: u64) -> InvocationOptions {
    let mut options = options(json!({}));
    options.deadline_ms = Some(ms);
    options
}

/// Timers have a resolution of one millisecond; to the nearest ten they are exact.
fn rounded(duration: Duration) -> u128 {
    (duration.as_millis() + 5) / 10 * 10
}

/// Set when it is dropped.
struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// An action that never ends by itself, the flag that its future was dropped, and how often it was begun.
fn endless(builder: ActionBuilder) -> (TestApp, Arc<AtomicBool>, Arc<AtomicUsize>) {
    let (dropped, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (flag, count) = (Arc::clone(&dropped), Arc::clone(&begun));
    let action = builder.handler(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        let on_drop = OnDrop(Arc::clone(&flag));
        async move {
            let _on_drop = on_drop;
            // Uncooperative: it looks at nothing and goes on for ever.
            loop {
                sleep(MS(1000)).await;
            }
        }
    });
    (app(action), dropped, begun)
}

/// An action that fails so often before it succeeds, and when each attempt began.
fn flaky(
    builder: ActionBuilder,
    failures: usize,
    error: fn() -> ActionError,
) -> (TestApp, Arc<Mutex<Vec<Instant>>>) {
    let begun = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&begun);
    let action = builder.handler(move |_, _| {
        note.lock().unwrap().push(Instant::now());
        let attempt = note.lock().unwrap().len();
        async move { if attempt <= failures { Err(error()) } else { Ok(json!(attempt)) } }
    });
    (app(action), begun)
}

fn down() -> ActionError {
    ActionError::external_service("down").retryable()
}

fn waits(begun: &Mutex<Vec<Instant>>) -> Vec<u128> {
    begun.lock().unwrap().windows(2).map(|pair| rounded(pair[1] - pair[0])).collect()
}

// A07

#[tokio::test(start_paused = true)]
async fn a07_an_attempt_that_takes_too_long_is_really_stopped() {
    let (app, dropped, begun) = endless(open().timeout_ms(250));
    let start = Instant::now();
    let failure = app.call("act", json!({})).await.expect_error("TIMEOUT");
    assert_eq!(rounded(start.elapsed()), 250);
    assert_eq!((failure.message.as_str(), failure.retryable), ("Action timed out after 250ms.", true));
    assert!(dropped.load(Ordering::SeqCst), "the future is dropped before the envelope is returned");
    assert_eq!(begun.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a07_the_timeout_of_the_invocation_wins_and_0_is_none() {
    let slow = |builder: ActionBuilder| {
        builder.handler(|_, _| async {
            sleep(MS(500)).await;
            Ok(json!("done"))
        })
    };
    for (of_action, of_invocation, times_out) in [
        (0, json!(null), false),
        (600, json!(null), false),
        (400, json!(null), true),
        (400, json!(600), false),
        (600, json!(400), true),
        (0, json!(400), true),
        (400, json!(0), false),
        (0, json!(0), false),
    ] {
        let app = app(slow(open().timeout_ms(of_action))).with(options(json!({"timeoutMs": of_invocation})));
        let called = app.call("act", json!({})).await;
        match times_out {
            true => drop(called.expect_error("TIMEOUT")),
            false => assert_eq!(called.expect_ok(), json!("done"), "{of_action} {of_invocation}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a07_the_timeout_is_per_attempt_and_a_timeout_is_retried() {
    let begun = Arc::new(AtomicUsize::new(0));
    let running = Arc::new(AtomicUsize::new(0));
    let (count, now) = (Arc::clone(&begun), Arc::clone(&running));
    let retry = RetryPolicy { retries: 2, delay_ms: 10 };
    let action = open().timeout_ms(100).retry(retry).handler(move |_, _| {
        let attempt = count.fetch_add(1, Ordering::SeqCst);
        let now = Arc::clone(&now);
        async move {
            struct Leave(Arc<AtomicUsize>);
            impl Drop for Leave {
                fn drop(&mut self) {
                    self.0.fetch_sub(1, Ordering::SeqCst);
                }
            }
            assert_eq!(now.fetch_add(1, Ordering::SeqCst), 0, "two attempts never run at once");
            let _leave = Leave(now);
            sleep(MS(if attempt < 2 { 5000 } else { 80 })).await;
            Ok(json!(attempt))
        }
    });
    let start = Instant::now();
    assert_eq!(app(action).call("act", json!({})).await.expect_ok(), json!(2));
    assert_eq!(rounded(start.elapsed()), 100 + 10 + 100 + 20 + 80);
    assert_eq!(running.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a07_the_deadline_ends_retrying_with_its_waits() {
    let (app, begun) =
        flaky(open().retry(RetryPolicy { retries: 100, delay_ms: 1000 }).deadline_ms(3500), 1000, down);
    let failure = app.call("act", json!({})).await.expect_error("TIMEOUT");
    assert!(failure.message.contains("deadline of 3500ms"), "{}", failure.message);
    // Attempts at 0, 1000 and 3000 ms; the wait of three seconds after that is not waited out.
    assert_eq!(waits(&begun), [1000, 2000]);

    let (app, dropped, _) = endless(open());
    let app = app.with(deadline(700));
    assert!(app.call("act", json!({})).await.expect_error("TIMEOUT").retryable);
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a07_the_shorter_deadline_counts_and_0_is_none() {
    for (of_action, of_invocation, times_out) in [
        (0, 0, false),
        (400, 0, true),
        (0, 400, true),
        (400, 5000, true),
        (5000, 400, true),
        (5000, 5000, false),
    ] {
        let action = open().deadline_ms(of_action).handler(|_, _| async {
            sleep(MS(2000)).await;
            Ok(json!(1))
        });
        let called = app(action).with(deadline(of_invocation)).call("act", json!({})).await;
        assert_eq!(called.0.error().is_some(), times_out, "{of_action} {of_invocation}");
    }
}

#[tokio::test(start_paused = true)]
async fn a07_the_deadline_counts_from_the_start_of_the_invocation_on_the_clock_of_the_executor() {
    let action = open().deadline_ms(1000).handler(|_, _| async {
        sleep(MS(500)).await;
        Ok(json!(1))
    });
    let app = app(action);
    sleep(MS(3_600_000)).await;
    app.call("act", json!({})).await.expect_ok();
}

#[tokio::test]
async fn a07_a_wait_out_of_range_is_refused_and_not_cut() {
    let day_ms = 24 * 60 * 60 * 1000;
    let app = app(open().handler(|_, _| async { Ok(json!(1)) }));
    let app = app.with(options(json!({"timeoutMs": day_ms})));
    app.call("act", json!({})).await.expect_ok();
    let mut app = app;
    for wrong in
        [json!(day_ms + 1), json!(u64::MAX), json!(-1), json!(1.5), json!("100"), json!(true), json!([])]
    {
        app = app.with(options(json!({"timeoutMs": wrong})));
        let failure = app.call("act", json!({})).await.expect_error("VALIDATION_ERROR");
        assert_eq!(
            serde_json::to_value(&failure.issues).unwrap()[0]["path"],
            json!(["timeoutMs"]),
            "{wrong}"
        );
    }
}

// A08

#[tokio::test(start_paused = true)]
async fn a08_the_wait_before_retry_k_is_k_times_the_delay_and_each_retry_is_logged() {
    let (app, begun) = flaky(open().retry(RetryPolicy { retries: 4, delay_ms: 250 }), 4, down);
    let called = app.call("act", json!({})).await;
    assert_eq!(called.expect_ok(), json!(5));
    assert_eq!(waits(&begun), [250, 500, 750, 1000]);
    let logs: Vec<Value> =
        called.0.logs.iter().map(|log| json!([log.level, log.message, log.fields])).collect();
    let logged = |attempt: u64, delay_ms: u64| {
        let fields = json!({"attempt": attempt, "code": "EXTERNAL_SERVICE_ERROR", "delayMs": delay_ms});
        json!(["warn", "Retrying action after retryable failure.", fields])
    };
    assert_eq!(logs, [logged(1, 250), logged(2, 500), logged(3, 750), logged(4, 1000)]);
}

#[tokio::test(start_paused = true)]
async fn a08_what_retry_may_say() {
    for (retry, expected) in [
        (json!(true), vec![100, 200]),
        (json!(false), vec![]),
        (json!({}), vec![]),
        (json!({"retries": 3}), vec![100, 200, 300]),
        (json!({"retries": 1, "delayMs": 700}), vec![700]),
        (json!({"delayMs": 700}), vec![]),
        (json!({"retries": 2, "delayMs": 0}), vec![0, 0]),
    ] {
        let (app, begun) = flaky(open(), 1000, down);
        let app = app.with(options(json!({"retry": retry})));
        app.call("act", json!({})).await.expect_error("EXTERNAL_SERVICE_ERROR");
        assert_eq!(waits(&begun), expected, "{retry}");
    }
}

#[tokio::test(start_paused = true)]
async fn a08_anything_else_in_retry_is_refused_before_the_handler_runs() {
    for wrong in [
        json!(3),
        json!(0),
        json!("yes"),
        json!("true"),
        json!(null),
        json!([]),
        json!([2, 100]),
        json!({"retries": -1}),
        json!({"retries": 1.5}),
        json!({"retries": "2"}),
        json!({"retries": null}),
        json!({"retries": 1, "delayMs": -5}),
        json!({"retries": 1, "delay": 5}),
        json!({"retries": 101}),
        json!({"retries": 1, "delayMs": 86_400_001}),
        json!({"retries": 4_294_967_297u64}),
    ] {
        let (app, begun) = flaky(open(), 0, down);
        let app = app.with(options(json!({"retry": wrong})));
        let failure = app.call("act", json!({})).await.expect_error("VALIDATION_ERROR");
        assert_eq!(serde_json::to_value(&failure.issues).unwrap()[0]["path"], json!(["retry"]), "{wrong}");
        assert!(begun.lock().unwrap().is_empty(), "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn a08_only_retryable_errors_are_retried() {
    let errors: [fn() -> ActionError; 5] = [
        || ActionError::external_service("down"),
        || ActionError::conflict("no"),
        || std::io::Error::other("broken").into(),
        ActionError::cancelled,
        || ActionError::application("PAYMENT_DECLINED", "no"),
    ];
    for error in errors {
        let (app, begun) = flaky(open().retry(RetryPolicy::DEFAULT), 1, error);
        assert!(!app.call("act", json!({})).await.0.is_ok());
        assert_eq!(begun.lock().unwrap().len(), 1);
    }
    let own: fn() -> ActionError = || ActionError::application("BUSY", "later").retryable();
    let (app, begun) = flaky(open().retry(RetryPolicy::DEFAULT), 1, own);
    app.call("act", json!({})).await.expect_ok();
    assert_eq!(begun.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a08_outputs_that_are_refused_and_panics_are_not_retried() {
    for panics in [false, true] {
        let begun = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&begun);
        let action = open().retry(RetryPolicy::DEFAULT).output_schema(json!({"type": "string"})).handler(
            move |_, _| {
                count.fetch_add(1, Ordering::SeqCst);
                async move { if panics { panic!("no") } else { Ok(json!(1)) } }
            },
        );
        let expected = if panics { "INTERNAL_ERROR" } else { "OUTPUT_VALIDATION_ERROR" };
        app(action).call("act", json!({})).await.expect_error(expected);
        assert_eq!(begun.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a08_the_retry_of_the_invocation_wins_whole_and_the_last_error_is_given() {
    for (retry, expected) in [
        (json!({"retries": 1}), vec![100]),
        (json!({"delayMs": 5}), vec![]),
        (json!(false), vec![]),
        (json!(true), vec![100, 200]),
    ] {
        let (app, begun) = flaky(open().retry(RetryPolicy { retries: 5, delay_ms: 900 }), 1000, down);
        let app = app.with(options(json!({"retry": retry})));
        let failure = app.call("act", json!({})).await.expect_error("EXTERNAL_SERVICE_ERROR");
        assert!(failure.retryable);
        assert_eq!(waits(&begun), expected, "{retry}");
    }
}

// A21

/// Calls the action, cancels it after so long, and gives the envelope and how long the call took.
async fn cancelled_after(app: &TestApp, wait: Duration) -> (Called, u128) {
    let (token, start) = (CancellationToken::new(), Instant::now());
    let invocation = app.invocation("act", json!({})).cancel_with(token.clone());
    let call = async { (app.runtime().invoke(invocation).await, rounded(start.elapsed())) };
    let ((envelope, took), ()) = tokio::join!(call, async {
        sleep(wait).await;
        token.cancel();
    });
    (Called(envelope), took)
}

#[tokio::test(start_paused = true)]
async fn a21_a_call_that_is_cancelled_before_it_starts_does_not_run() {
    let (app, _, begun) = endless(open());
    let token = CancellationToken::new();
    token.cancel();
    let envelope = app.runtime().invoke(app.invocation("act", json!({})).cancel_with(token)).await;
    let failure = Called(envelope).expect_error("CANCELLED");
    assert_eq!((failure.message.as_str(), failure.retryable), ("Action was cancelled.", false));
    assert_eq!(begun.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a21_a_handler_that_ignores_cancellation_is_ended_all_the_same() {
    let (app, dropped, begun) = endless(open().retry(RetryPolicy::DEFAULT).timeout_ms(60_000));
    let (called, took) = cancelled_after(&app, MS(300)).await;
    called.expect_error("CANCELLED");
    assert_eq!(called.0.exit_code(), 130);
    assert_eq!((took, dropped.load(Ordering::SeqCst), begun.load(Ordering::SeqCst)), (300, true, 1));
}

#[tokio::test(start_paused = true)]
async fn a21_cancelling_ends_the_wait_before_a_retry_at_once() {
    let (app, begun) = flaky(open().retry(RetryPolicy { retries: 5, delay_ms: 60_000 }), 1000, down);
    let (called, took) = cancelled_after(&app, MS(300)).await;
    called.expect_error("CANCELLED");
    called.expect_log("Retrying action after retryable failure.");
    assert_eq!((took, begun.lock().unwrap().len()), (300, 1));
}

#[tokio::test(start_paused = true)]
async fn a21_cancelling_after_the_end_changes_nothing() {
    let app = app(open().handler(|input, _| async { Ok(input) }));
    let (called, _) = cancelled_after(&app, MS(300)).await;
    called.expect_ok();
}

#[tokio::test(start_paused = true)]
async fn a21_a_caller_that_drops_the_call_stops_the_handler() {
    let (app, dropped, begun) = endless(open());
    let given_up = tokio::time::timeout(MS(100), app.call("act", json!({}))).await;
    assert!(given_up.is_err());
    assert_eq!((dropped.load(Ordering::SeqCst), begun.load(Ordering::SeqCst)), (true, 1));
}

#[tokio::test(start_paused = true)]
async fn a21_what_a_handler_started_elsewhere_is_told_when_its_attempt_ends() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&told);
    let retry = RetryPolicy { retries: 1, delay_ms: 1000 };
    let action = open().timeout_ms(100).retry(retry).handler(move |_, ctx: Context| {
        let (note, start) = (Arc::clone(&note), Instant::now());
        let token = ctx.cancellation();
        tokio::spawn(async move {
            token.cancelled().await;
            note.lock().unwrap().push(rounded(start.elapsed()));
        });
        std::future::pending()
    });
    app(action).call("act", json!({})).await.expect_error("TIMEOUT");
    sleep(MS(1)).await;
    assert_eq!(*told.lock().unwrap(), [100, 100], "each attempt has its own token");
}

/// Takes the invocation's token without ever running the handler.
struct TakesToken(Arc<Mutex<Option<CancellationToken>>>);

#[async_trait]
impl Middleware for TakesToken {
    async fn call(&self, call: MiddlewareCall<'_>, _: Next<'_>) -> Result<Value, ActionError> {
        *self.0.lock().unwrap() = Some(call.context.cancellation());
        Ok(json!("short"))
    }
}

#[tokio::test]
async fn a21_no_token_outlives_the_invocation_uncancelled() {
    let taken = Arc::new(Mutex::new(None));
    let action = open().handler(|input, _| async { Ok(input) });
    let app = TestApp::new(Runtime::builder().action(action).middleware(TakesToken(Arc::clone(&taken))));
    app.call("act", json!({})).await.expect_ok();
    assert!(taken.lock().unwrap().as_ref().unwrap().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a21_cancelling_reaches_an_action_that_another_action_calls() {
    let (inner, dropped, _) = endless(open());
    let inner = inner.runtime().clone();
    let outer = Action::define("outer", "Calls another.").handler(move |_, ctx: Context| {
        let inner = inner.clone();
        async move {
            ctx.logger().info("calling", Fields::new());
            let actor = Arc::new(ctx.actor().clone());
            let call =
                runyard_actions::Invocation::new("act", json!({}), runyard_domain::Surface::Code, actor);
            let envelope = inner.invoke(call.cancel_with(ctx.cancellation())).await;
            Ok(serde_json::to_value(envelope)?)
        }
    });
    let app = TestApp::new(Runtime::builder().action(outer));
    let given_up = tokio::time::timeout(MS(50), app.call("outer", json!({}))).await;
    assert!(given_up.is_err() && dropped.load(Ordering::SeqCst));
}
