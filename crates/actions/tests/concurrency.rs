//! The limit on how many invocations of one action run at once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runyard_actions::testing::{Called, TestApp, defined};
use runyard_actions::{Action, ActionError, Context, Envelope, Invocation, Runtime};
use runyard_domain::{Actor, Surface};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Does what its input says; at most so many at once, others wait so long.
fn limited(max: u32, wait_ms: u64) -> Action {
    defined(
        Action::define("act", "Does what it is told.")
            .concurrency(max, wait_ms)
            .timeout_ms(10_000)
            .input_schema(json!({"type": "object"}))
            .handler(obey),
    )
}

async fn obey(input: Value, _: Context) -> Result<Value, ActionError> {
    match input["do"].as_str() {
        Some("panic") => panic!("told to"),
        Some("hang") => std::future::pending().await,
        Some("fail") => Err(ActionError::conflict("told to")),
        _ => {
            sleep(MS(1000)).await;
            Ok(input)
        }
    }
}

fn runtime(action: &Action) -> Runtime {
    Runtime::builder().action(action).build().unwrap()
}

fn call(input: Value) -> Invocation {
    Invocation::new("act", input, Surface::Json, Arc::new(Actor::owner("ada")))
}

/// So many calls at once, with how long each took.
async fn together(runtime: &Runtime, calls: usize) -> Vec<(Envelope, u128)> {
    let mut set = JoinSet::new();
    let start = Instant::now();
    for number in 0..calls {
        let runtime = runtime.clone();
        set.spawn(async move {
            let envelope = runtime.invoke(call(json!({"number": number}))).await;
            (envelope, (start.elapsed().as_millis() + 5) / 10 * 10)
        });
    }
    set.join_all().await
}

fn codes(calls: &[(Envelope, u128)]) -> (usize, usize) {
    let refused = calls.iter().filter_map(|(envelope, _)| envelope.error());
    let refused = refused.inspect(|failure| assert_eq!(failure.code.as_str(), "CONCURRENCY_LIMIT")).count();
    (calls.len() - refused, refused)
}

// clause: A16
#[tokio::test(start_paused = true)]
async fn beyond_the_limit_a_call_without_a_wait_is_refused_at_once() {
    let runtime = runtime(&limited(2, 0));
    let calls = together(&runtime, 5).await;
    assert_eq!(codes(&calls), (2, 3));
    for (envelope, took) in &calls {
        let expected = if envelope.is_ok() { 1000 } else { 0 };
        assert_eq!(*took, expected);
        if let Some(failure) = envelope.error() {
            assert!(failure.retryable);
        }
    }
    assert_eq!(codes(&together(&runtime, 2).await), (2, 0), "the places are free again");
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_place_and_then_runs() {
    let calls = together(&runtime(&limited(2, 1500)), 6).await;
    let mut took: Vec<_> = calls.iter().map(|(envelope, took)| (envelope.is_ok(), *took)).collect();
    took.sort_unstable();
    let expected = [(false, 1500), (false, 1500), (true, 1000), (true, 1000), (true, 2000), (true, 2000)];
    assert_eq!(took, expected);
    assert_eq!(codes(&calls), (4, 2));
}

#[tokio::test(start_paused = true)]
async fn never_more_run_at_once_than_the_limit_says() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    let action = Action::define("act", "Counts.").concurrency(3, 60_000).input_schema(json!({})).handler(
        move |_, _| {
            let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
            async move {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(MS(10)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(json!(1))
            }
        },
    );
    let calls = together(&runtime(&defined(action)), 100).await;
    assert_eq!(codes(&calls), (100, 0));
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_place_is_free_again_however_the_call_ends() {
    let app = TestApp::of(runtime(&limited(1, 0)));
    for (told, code) in [("fail", "CONFLICT"), ("panic", "INTERNAL_ERROR"), ("hang", "TIMEOUT")] {
        app.call("act", json!({"do": told})).await.expect_error(code);
        app.call("act", json!({})).await.expect_ok();
    }

    let token = CancellationToken::new();
    let hanging = app.runtime().invoke(call(json!({"do": "hang"})).cancel_with(token.clone()));
    let (envelope, ()) = tokio::join!(hanging, async {
        sleep(MS(10)).await;
        app.call("act", json!({})).await.expect_error("CONCURRENCY_LIMIT");
        token.cancel();
    });
    Called(envelope).expect_error("CANCELLED");
    app.call("act", json!({})).await.expect_ok();

    assert!(tokio::time::timeout(MS(10), app.call("act", json!({"do": "hang"}))).await.is_err());
    app.call("act", json!({})).await.expect_ok();
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_for_a_place_can_be_cancelled() {
    let runtime = runtime(&limited(1, 60_000));
    let holding = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.invoke(call(json!({"do": "hang"}))).await }
    });
    sleep(MS(1)).await;
    let (token, start) = (CancellationToken::new(), Instant::now());
    let (envelope, ()) = tokio::join!(runtime.invoke(call(json!({})).cancel_with(token.clone())), async {
        sleep(MS(100)).await;
        token.cancel();
    });
    Called(envelope).expect_error("CANCELLED");
    assert!(start.elapsed() < MS(200));
    holding.abort();
    let _ = holding.await;
    assert!(runtime.invoke(call(json!({}))).await.is_ok(), "the waiter that went away left no place taken");
}

#[tokio::test(start_paused = true)]
async fn the_limit_belongs_to_the_action_and_not_to_others() {
    let other = Action::define("other", "Is another.").handler(|_, _| async { Ok(json!(1)) });
    let app = TestApp::new(Runtime::builder().action(limited(1, 0)).action(other));
    let holding = app.call("act", json!({"do": "hang"}));
    let (_, ()) = tokio::join!(holding, async {
        sleep(MS(1)).await;
        app.call("other", json!({})).await.expect_ok();
        app.call("act", json!({})).await.expect_error("CONCURRENCY_LIMIT");
    });
}

#[tokio::test(start_paused = true)]
async fn the_queue_for_places_has_an_end() {
    let calls = together(&runtime(&limited(1, 2_000)), 1_500).await;
    let at_once = calls.iter().filter(|(envelope, took)| !envelope.is_ok() && *took == 0).count();
    assert_eq!(at_once, 1_500 - 1 - 1_024, "one runs, 1024 wait, the rest is refused at once");
}
