//! Following an invocation live: order, back-pressure, exactly one result, and what happens when nobody listens.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_actions::testing::TestApp;
use runyard_actions::{
    Action, ActionBuilder, ActionError, Artifact, DefinitionError, Envelope, Fields, Hook, InvocationEvent,
    InvocationStream, LogLevel, Progress, Runtime, fields,
};
use serde_json::{Value, json};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn open() -> ActionBuilder {
    Action::define("act", "Does something.").input_schema(json!({"type": "object"}))
}

fn stream(action: Result<Action, DefinitionError>) -> InvocationStream {
    let app = TestApp::new(Runtime::builder().action(action));
    app.runtime().stream(app.invocation("act", json!({})))
}

async fn all(mut stream: InvocationStream) -> Vec<InvocationEvent> {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    assert!(stream.next().await.is_none(), "after the end there is nothing");
    events
}

fn result(events: &[InvocationEvent]) -> &Envelope {
    let results = events.iter().filter(|event| event.kind() == "result").count();
    match events.last() {
        Some(InvocationEvent::Result(envelope)) if results == 1 => envelope,
        other => panic!("{results} results, and the last event is {other:?}"),
    }
}

// clause: A14
#[tokio::test]
async fn events_come_in_order_and_exactly_one_result_is_last() {
    let action = open().handler(|_, ctx| async move {
        ctx.logger().info("one", fields! { n: 1 });
        ctx.progress().report(Progress::percent(50.0).message("half"));
        yield_now().await;
        ctx.artifacts().add(Artifact::named("a"));
        ctx.logger().error("two", Fields::new());
        Ok(json!("done"))
    });
    let events = all(stream(action)).await;
    let kinds: Vec<_> = events.iter().map(InvocationEvent::kind).collect();
    assert_eq!(kinds, ["log", "progress", "artifact", "log", "result"]);
    let envelope = result(&events);
    assert_eq!(envelope.data(), Some(&json!("done")));
    assert_eq!((envelope.logs.len(), envelope.artifacts.len()), (3, 1), "the envelope has all of it, too");

    let time = |index: usize| serde_json::to_value(&envelope.logs[index]).unwrap()["time"].clone();
    let wire: Vec<Value> = events.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    assert_eq!(
        wire,
        [
            json!({"type": "log", "level": "info", "message": "one", "time": time(0), "fields": {"n": 1}}),
            json!({
                "type": "progress", "message": "half", "percent": 50, "time": time(1),
                "fields": {"type": "progress", "percent": 50},
            }),
            json!({"type": "artifact", "artifact": envelope.artifacts[0]}),
            json!({"type": "log", "level": "error", "message": "two", "time": time(2), "fields": {}}),
            json!({"type": "result", "envelope": envelope}),
        ]
    );
}

#[tokio::test]
async fn a_call_that_is_refused_or_panics_streams_its_envelope() {
    let app = TestApp::new(Runtime::builder().action(open().handler(|_, ctx| async move {
        ctx.logger().info("before", Fields::new());
        panic!("no")
    })));
    let events = all(app.runtime().stream(app.invocation("nope", json!({})))).await;
    assert_eq!(events.len(), 1);
    assert_eq!(result(&events).error().unwrap().code.as_str(), "ACTION_NOT_FOUND");
    let events = all(app.runtime().stream(app.invocation("act", json!({})))).await;
    assert_eq!(events.len(), 2);
    assert_eq!(result(&events).error().unwrap().code.as_str(), "INTERNAL_ERROR");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_and_its_retries_are_followed_live() {
    let action = open().handler(|_, ctx| async move {
        ctx.logger().info("trying", Fields::new());
        std::future::pending().await
    });
    let app = TestApp::new(Runtime::builder().action(action));
    let mut call = app.invocation("act", json!({}));
    call.options.timeout_ms = Some(100);
    call.options.retry = Some(runyard_actions::RetryPolicy { retries: 1, delay_ms: 10 });
    let events = all(app.runtime().stream(call)).await;
    let messages: Vec<_> = events
        .iter()
        .filter_map(
            |event| if let InvocationEvent::Log(log) = event { Some(log.message.as_str()) } else { None },
        )
        .collect();
    assert_eq!(messages, ["trying", "Retrying action after retryable failure.", "trying"]);
    assert_eq!(result(&events).error().unwrap().code.as_str(), "TIMEOUT");
}

#[tokio::test(start_paused = true)]
async fn the_handler_does_not_go_on_while_nobody_reads() {
    let reported = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reported);
    let action = open().handler(move |_, ctx| {
        let count = Arc::clone(&count);
        async move {
            for number in 0..100 {
                ctx.logger().info(number.to_string(), Fields::new());
                count.fetch_add(1, Ordering::SeqCst);
                yield_now().await;
            }
            Ok(json!(null))
        }
    });
    let mut stream = stream(action);
    sleep(MS(1000)).await;
    assert_eq!(reported.load(Ordering::SeqCst), 0, "it starts with the first read");
    for read in 1..=10 {
        let event = stream.next().await.unwrap();
        assert!(
            matches!(&event, InvocationEvent::Log(log) if log.message == (read - 1).to_string()),
            "{event:?}"
        );
        sleep(MS(1000)).await;
        assert_eq!(reported.load(Ordering::SeqCst), read, "one report for each read");
    }
    assert_eq!(all(stream).await.len(), 91);
}

struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Keeps what each invocation ended with.
#[derive(Clone, Default)]
struct Ends(Arc<Mutex<Vec<Envelope>>>);

#[async_trait]
impl Hook for Ends {
    async fn ended(&self, envelope: &Envelope) {
        self.0.lock().unwrap().push(envelope.clone());
    }
}

impl Ends {
    fn codes(&self) -> Vec<String> {
        let code = |envelope: &Envelope| {
            envelope.error().map_or("ok".to_owned(), |failure| failure.code.to_string())
        };
        self.0.lock().unwrap().iter().map(code).collect()
    }
}

// clause: A21
#[tokio::test(start_paused = true)]
async fn dropping_the_stream_stops_the_handler_and_the_hooks_see_it_cancelled() {
    let (dropped, ends) = (Arc::new(AtomicBool::new(false)), Ends::default());
    let flag = Arc::clone(&dropped);
    let action = open().handler(move |_, ctx| {
        let on_drop = OnDrop(Arc::clone(&flag));
        async move {
            let _on_drop = on_drop;
            ctx.logger().info("begun", Fields::new());
            std::future::pending().await
        }
    });
    let app = TestApp::new(Runtime::builder().action(action).hook(ends.clone()));
    let mut stream = app.runtime().stream(app.invocation("act", json!({})));
    assert_eq!(stream.next().await.unwrap().kind(), "log");
    assert!(!dropped.load(Ordering::SeqCst));
    drop(stream);
    assert!(dropped.load(Ordering::SeqCst), "at once");
    sleep(MS(1)).await;
    assert_eq!(ends.codes(), ["CANCELLED"]);
    assert_eq!(ends.0.lock().unwrap()[0].logs[0].message, "begun", "with what was logged so far");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_read_to_its_end_is_ended_once_for_the_hooks() {
    let ends = Ends::default();
    let action = open().handler(|input, _| async { Ok(input) });
    let app = TestApp::new(Runtime::builder().action(action).hook(ends.clone()));
    all(app.runtime().stream(app.invocation("act", json!({})))).await;
    sleep(MS(10_000)).await;
    assert_eq!(ends.codes(), ["ok"]);
}

struct NeverEnds;

#[async_trait]
impl Hook for NeverEnds {
    async fn ended(&self, _: &Envelope) {
        std::future::pending().await
    }
}

// clause: A12
#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_while_hooks_are_told_does_not_change_what_they_are_told() {
    for patient_first in [true, false] {
        let ends = Ends::default();
        let builder = Runtime::builder().action(open().handler(|input, _| async { Ok(input) }));
        let app = TestApp::new(match patient_first {
            true => builder.hook(ends.clone()).hook(NeverEnds),
            false => builder.hook(NeverEnds).hook(ends.clone()),
        });
        assert!(timeout(MS(100), app.call("act", json!({}))).await.is_err());
        sleep(MS(60_000)).await;
        assert_eq!(ends.codes(), ["ok"], "it had succeeded, and is told so once");
    }
}

// clause: A12
#[tokio::test(start_paused = true)]
async fn what_is_logged_after_the_end_is_neither_streamed_nor_in_the_envelope() {
    let action = open().handler(|_, ctx| async move {
        tokio::spawn(async move {
            sleep(MS(100)).await;
            ctx.logger().info("too late", Fields::new());
        });
        Ok(json!("done"))
    });
    // The hook holds the result up until long after the log.
    let app = TestApp::new(Runtime::builder().action(action).hook(NeverEnds));
    let events = all(app.runtime().stream(app.invocation("act", json!({})))).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(result(&events).logs.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_background_task_wakes_the_stream() {
    let action = open().handler(|_, ctx| async move {
        let background = ctx.clone();
        tokio::spawn(async move {
            for number in 0..3 {
                sleep(MS(10)).await;
                background.logger().info(number.to_string(), Fields::new());
            }
        });
        sleep(MS(3_600_000)).await;
        Ok(json!(1))
    });
    let mut stream = stream(action);
    for number in 0..3 {
        let event = timeout(MS(1000), stream.next()).await.expect("the log wakes the reader").unwrap();
        assert!(
            matches!(&event, InvocationEvent::Log(log) if log.message == number.to_string()),
            "{event:?}"
        );
    }
}

#[tokio::test]
async fn a_background_task_on_another_thread_wakes_the_stream() {
    let action = open().handler(|_, ctx| async move {
        let (background, (sender, receiver)) = (ctx.clone(), tokio::sync::oneshot::channel());
        std::thread::spawn(move || {
            for number in 0..1000 {
                background.logger().info(number.to_string(), Fields::new());
            }
            let _ = sender.send(());
        });
        receiver.await?;
        Ok(json!(1))
    });
    let events = all(stream(action)).await;
    assert_eq!(events.len(), 1001, "none is lost and none comes twice");
    assert_eq!(result(&events).logs.len(), 1000);
}

// clause: A13
#[tokio::test]
async fn a_handler_that_logs_without_end_is_bounded_and_it_is_said_how_much_was_dropped() {
    async fn chatty(_: Value, ctx: runyard_actions::Context) -> Result<Value, ActionError> {
        for number in 0..100_000 {
            ctx.logger().info("line", fields! { number: number });
        }
        Ok(json!("done"))
    }
    #[track_caller]
    fn check(envelope: &Envelope) {
        assert_eq!(envelope.data(), Some(&json!("done")));
        assert_eq!(envelope.logs.len(), 10_001);
        let last = envelope.logs.last().unwrap();
        assert_eq!((last.level, last.fields.get("dropped")), (LogLevel::Warn, Some(&json!(90_000))));
        assert_eq!(envelope.logs[9_999].fields.get("number"), Some(&json!(9_999)), "the first ones are kept");
    }
    let app = TestApp::new(Runtime::builder().action(open().handler(chatty)));
    check(&app.call("act", json!({})).await.0);
    let events = all(app.runtime().stream(app.invocation("act", json!({})))).await;
    // A reader who could not keep up, since the handler never let it, still gets a little more than the envelope.
    assert_eq!(events.len(), 10_002 + 1024);
    check(result(&events));
}

#[tokio::test]
async fn large_entries_are_bounded_by_their_bytes() {
    let action = open().handler(|_, ctx| async move {
        for _ in 0..1_000 {
            ctx.logger().info("ü".repeat(1024 * 1024), Fields::new());
        }
        Ok(json!(null))
    });
    let envelope = TestApp::new(Runtime::builder().action(action)).call("act", json!({})).await.0;
    let bytes = serde_json::to_string(&envelope).unwrap().len();
    assert!(bytes < 5 * 1024 * 1024, "{bytes}");
    assert!(envelope.logs.last().unwrap().message.contains("dropped"));
    assert!(envelope.logs[0].message.ends_with('…'), "a message that is cut says so");
}

#[tokio::test]
async fn a_reader_who_keeps_up_sees_everything_also_what_no_longer_fits_the_envelope() {
    let action = open().handler(|_, ctx| async move {
        for number in 0..12_000 {
            ctx.logger().info("line", fields! { number: number });
            tokio::task::yield_now().await;
        }
        Ok(json!(null))
    });
    let app = TestApp::new(Runtime::builder().action(action));
    let events = all(app.runtime().stream(app.invocation("act", json!({})))).await;
    let numbers = events.iter().filter_map(|event| match event {
        InvocationEvent::Log(log) => log.fields.get("number").and_then(Value::as_u64),
        _ => None,
    });
    assert!(numbers.eq(0..12_000), "every line, in order");
    assert_eq!(result(&events).logs.len(), 10_001);
}
