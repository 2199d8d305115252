//! The envelope: its exact shape, what it keeps on every failure, and that it does not change once returned.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runyard_actions::testing::{Called, TestApp};
use runyard_actions::{
    Action, ActionBuilder, ActionError, Artifact, Context, DEPTH_MAX, Envelope, Fields, InvocationOptions,
    Issue, OUTPUT_BYTES_MAX, Progress, Runtime, fields,
};
use runyard_domain::{Code, ErrorCode, Surface};
use runyard_redact::without_tags;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

fn open(name: &str) -> ActionBuilder {
    Action::define(name, "Does something.").input_schema(json!({"type": "object"}))
}

fn app(action: Result<Action, runyard_actions::DefinitionError>) -> TestApp {
    TestApp::new(Runtime::builder().action(action))
}

/// The action's handler fails with this error.
async fn failed(error: impl Fn() -> ActionError + Send + Sync + 'static) -> Called {
    let action = open("act").handler(move |_, _| {
        let error = error();
        async { Err(error) }
    });
    app(action).call("act", json!({})).await
}

/// What the handler reports is called back with the context.
async fn reporting(report: impl Fn(&Context) + Send + Sync + 'static) -> Called {
    let report = Arc::new(report);
    let action = open("act").handler(move |_, ctx| {
        let report = Arc::clone(&report);
        async move {
            report(&ctx);
            Ok(json!(null))
        }
    });
    app(action).call("act", json!({})).await
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

/// What differs from call to call is checked for its form and then put to a fixed word.
fn normalised(envelope: &Envelope) -> Value {
    let untagged = without_tags(&serde_json::to_string(envelope).unwrap());
    let mut value: Value = serde_json::from_str(&untagged).unwrap();
    let id = value["meta"]["invocationId"].as_str().unwrap().to_owned();
    assert!(id.starts_with("inv_") && id.len() == 36, "{id}");
    value["meta"]["invocationId"] = json!("ID");
    assert!(value["meta"]["durationMs"].is_u64());
    value["meta"]["durationMs"] = json!(0);
    for log in value["logs"].as_array_mut().unwrap() {
        let time = log["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z') && &time[10..11] == "T", "{time}");
        log["time"] = json!("TIME");
    }
    for artifact in value["artifacts"].as_array_mut().unwrap() {
        if artifact["id"].as_str().unwrap().starts_with("art_") {
            artifact["id"] = json!("ARTIFACT");
        }
    }
    value
}

// A11, A12, A13, A15

fn report_all(ctx: &Context) {
    ctx.logger().debug("one", Fields::new());
    ctx.logger().info("two", fields! { title: "x", n: 3 });
    ctx.logger().warn("three", fields! {});
    ctx.logger().error("four", fields! {});
    ctx.artifacts()
        .add(Artifact::named("report.pdf").mime_type("application/pdf").uri("file:///r").size_bytes(9));
}

fn all_logs() -> Value {
    json!([
        {"level": "debug", "message": "one", "time": "TIME", "fields": {}},
        {"level": "info", "message": "two", "time": "TIME", "fields": {"title": "x", "n": 3}},
        {"level": "warn", "message": "three", "time": "TIME", "fields": {}},
        {"level": "error", "message": "four", "time": "TIME", "fields": {}},
    ])
}

fn all_artifacts() -> Value {
    json!([{
        "id": "ARTIFACT", "type": "file", "name": "report.pdf", "mimeType": "application/pdf", "uri": "file:///r",
        "sizeBytes": 9, "metadata": {},
    }])
}

// clause: A13
#[tokio::test]
async fn a11_the_success_envelope_is_exactly_this() {
    let action = open("act").handler(|_, ctx| async move {
        report_all(&ctx);
        Ok(json!({"id": 7}))
    });
    let called = app(action).on(Surface::AiSdk).call("act", json!({})).await;
    assert_eq!(
        normalised(&called.0),
        json!({
            "ok": true,
            "data": {"id": 7},
            "artifacts": all_artifacts(),
            "logs": all_logs(),
            "meta": {"action": "act", "invocationId": "ID", "surface": "ai-sdk", "durationMs": 0},
        })
    );
    assert_eq!((called.0.exit_code(), called.0.http_status()), (0, 200));
}

// clause: A18
#[tokio::test]
async fn a12_the_failure_envelope_is_exactly_this_and_a_typed_error_is_kept() {
    let action = open("act").handler(|_, ctx| async move {
        report_all(&ctx);
        let issues = vec![Issue::at("card", "Expected a card that is not stolen."), Issue::root("Try cash.")];
        Err(ActionError::application("PAYMENT_DECLINED", "The bank said no.").with_issues(issues).retryable())
    });
    let called = app(action).call("act", json!({})).await;
    assert_eq!(
        normalised(&called.0),
        json!({
            "ok": false,
            "error": {
                "code": "PAYMENT_DECLINED",
                "message": "The bank said no.",
                "issues": [
                    {"path": ["card"], "message": "Expected a card that is not stolen."},
                    {"path": [], "message": "Try cash."},
                ],
                "retryable": true,
            },
            "artifacts": all_artifacts(),
            "logs": all_logs(),
            "meta": {"action": "act", "invocationId": "ID", "surface": "json", "durationMs": 0},
        })
    );
}

#[tokio::test]
async fn a11_nothing_returned_is_null_and_the_key_is_there() {
    let action =
        Action::define("act", "Nothing.").typed_without_input(|_| async { Ok::<(), ActionError>(()) });
    let called = app(action).call("act", json!({})).await;
    let value = normalised(&called.0);
    assert_eq!(value.as_object().unwrap().get("data"), Some(&Value::Null));
    assert_eq!(
        serde_json::from_value::<Envelope>(serde_json::to_value(&called.0).unwrap()).unwrap(),
        called.0
    );
}

#[tokio::test]
async fn a11_an_envelope_with_logs_reads_back_equal() {
    let envelope = reporting(report_all).await.0;
    let text = serde_json::to_string(&envelope).unwrap();
    assert_eq!(serde_json::from_str::<Envelope>(&text).unwrap(), envelope);
}

#[tokio::test]
async fn a11_every_invocation_has_its_own_id() {
    let app = app(open("act").handler(|input, _| async { Ok(input) }));
    let (one, two) = (app.call("act", json!({})).await.0, app.call("act", json!({})).await.0);
    assert_ne!(one.meta.invocation_id, two.meta.invocation_id);
}

#[tokio::test(start_paused = true)]
async fn a11_the_duration_includes_the_waits() {
    let action = open("act").handler(|_, _| async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(json!(1))
    });
    let duration_ms = app(action).call("act", json!({})).await.0.meta.duration_ms;
    assert!((5_000..5_100).contains(&duration_ms), "{duration_ms}");
}

#[tokio::test(start_paused = true)]
async fn a12_logs_and_artifacts_are_kept_on_every_failure() {
    type End = fn() -> std::pin::Pin<Box<dyn Future<Output = Result<Value, ActionError>> + Send>>;
    #[track_caller]
    fn check(called: &Called, code: &str) {
        called.expect_error(code);
        let value = normalised(&called.0);
        assert_eq!((&value["logs"], &value["artifacts"]), (&all_logs(), &all_artifacts()), "{code}");
    }
    let ends: [(End, InvocationOptions, &str); 7] = [
        (|| Box::pin(async { Err(ActionError::conflict("no")) }), InvocationOptions::default(), "CONFLICT"),
        (
            || Box::pin(async { Err(std::io::Error::other("no").into()) }),
            InvocationOptions::default(),
            "INTERNAL_ERROR",
        ),
        (|| Box::pin(async { panic!("no") }), InvocationOptions::default(), "INTERNAL_ERROR"),
        (|| Box::pin(std::future::pending()), timeout(50), "TIMEOUT"),
        (|| Box::pin(std::future::pending()), deadline(50), "TIMEOUT"),
        (
            || Box::pin(async { Ok(nested(DEPTH_MAX + 1)) }),
            InvocationOptions::default(),
            "OUTPUT_SERIALIZATION_ERROR",
        ),
        (
            || Box::pin(async { Ok(json!("no number")) }),
            InvocationOptions::default(),
            "OUTPUT_VALIDATION_ERROR",
        ),
    ];
    for (end, options, code) in ends {
        let action = open("act").output_schema(json!({"type": ["number", "array"]})).handler(
            move |_, ctx| async move {
                report_all(&ctx);
                end().await
            },
        );
        check(&app(action).with(options).call("act", json!({})).await, code);
    }

    let action = open("act").handler(|_, ctx| async move {
        report_all(&ctx);
        std::future::pending().await
    });
    let (app, token) = (app(action), CancellationToken::new());
    let invocation = app.invocation("act", json!({})).cancel_with(token.clone());
    let (envelope, ()) = tokio::join!(app.runtime().invoke(invocation), async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        token.cancel();
    });
    check(&Called(envelope), "CANCELLED");
}

fn timeout(ms: u64) -> InvocationOptions {
    InvocationOptions::take_from(&mut Map::from_iter([("timeoutMs".to_owned(), json!(ms))]))
}

fn deadline(ms: u64) -> InvocationOptions {
    let mut options = timeout(0);
    options.deadline_ms = Some(ms);
    options
}

// clause: A12
#[tokio::test(start_paused = true)]
async fn an_envelope_is_frozen_when_it_is_returned() {
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let action = open("act").handler(move |_, ctx| {
        *keep.lock().unwrap() = Some(ctx.clone());
        tokio::spawn(async move {
            ctx.logger().info("in time", Fields::new());
            tokio::time::sleep(Duration::from_secs(10)).await;
            ctx.logger().info("too late", Fields::new());
            ctx.artifacts().add(Artifact::named("too late"));
        });
        async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(json!(1))
        }
    });
    let app = app(action);
    let envelope = app.call("act", json!({})).await.0;
    let before = serde_json::to_string(&envelope).unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let ctx = kept.lock().unwrap().take().unwrap();
    ctx.logger().info("even later", Fields::new());
    assert_eq!(serde_json::to_string(&envelope).unwrap(), before);
    let messages: Vec<_> = envelope.logs.iter().map(|log| log.message.as_str()).collect();
    assert_eq!(messages, ["in time"]);
}

// A09

#[derive(Serialize, JsonSchema)]
struct Numbers {
    n: f64,
}

#[tokio::test]
async fn a09_an_output_that_would_change_on_the_wire_is_refused() {
    let reason =
        |reason: &str| format!("Action returned a value that cannot be safely serialized as JSON: {reason}.");
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let action = Action::define("act", "A number.")
            .typed_without_input(move |_| async move { Ok::<_, ActionError>(Numbers { n: number }) });
        let failure = app(action).call("act", json!({})).await.expect_error("OUTPUT_SERIALIZATION_ERROR");
        assert_eq!((failure.message, failure.retryable), (reason("a number is not finite"), false));
    }
    let action = Action::define("act", "A map.")
        .typed_without_input(|_| async { Ok::<_, ActionError>(BTreeMap::from([(1, "one")])) });
    let failure = app(action).call("act", json!({})).await.expect_error("OUTPUT_SERIALIZATION_ERROR");
    assert_eq!(failure.message, reason("a map key is not a string"));

    for (output, why) in [
        (nested(DEPTH_MAX + 1), reason("it is nested deeper than 100 levels")),
        (json!("x".repeat(OUTPUT_BYTES_MAX)), reason("it is larger than 8388608 bytes")),
    ] {
        let action = open("act").handler(move |_, _| {
            let output = output.clone();
            async { Ok(output) }
        });
        let failure = app(action).call("act", json!({})).await.expect_error("OUTPUT_SERIALIZATION_ERROR");
        assert_eq!(failure.message, why);
    }
    let action = open("act").handler(|_, _| async { Ok(nested(DEPTH_MAX)) });
    app(action).call("act", json!({})).await.expect_ok();
}

#[tokio::test]
async fn a09_log_fields_and_metadata_that_are_not_safe_json_become_markers() {
    let called = reporting(|ctx| {
        let fields = fields! { nan: f64::NAN, keys: BTreeMap::from([(1, 2)]), big: u128::MAX, fine: 1 };
        ctx.logger().info("odd", fields.with("deep", &nested(DEPTH_MAX + 1)));
        ctx.artifacts().add(Artifact::named("a").metadata(&f64::INFINITY));
        ctx.artifacts().add(Artifact::named("b").metadata(&nested(DEPTH_MAX + 1)));
    })
    .await;
    called.expect_ok();
    let value = normalised(&called.0);
    assert_eq!(
        value["logs"][0]["fields"],
        json!({
            "nan": "[not safe JSON: a number is not finite]",
            "keys": "[not safe JSON: a map key is not a string]",
            "big": "[not safe JSON: an integer does not fit 64 bits]",
            "fine": 1,
            "deep": "[not safe JSON: it is nested deeper than 100 levels]",
        })
    );
    assert_eq!(
        value["artifacts"][0]["metadata"],
        json!({"value": "[not safe JSON: a number is not finite]"})
    );
    let deep = json!({"value": "[not safe JSON: it is nested deeper than 100 levels]"});
    assert_eq!(value["artifacts"][1]["metadata"], deep);
}

#[tokio::test]
async fn a09_fields_at_the_limit_of_nesting_do_not_cost_the_entry_or_those_after_it() {
    let called = reporting(|ctx| {
        ctx.artifacts().add(Artifact::named("deep").metadata(&nested(DEPTH_MAX)));
        ctx.logger().info("deep", Fields::new().with("deep", &nested(DEPTH_MAX)));
        ctx.logger().info("after", Fields::new());
        ctx.artifacts().add(Artifact::named("after"));
    })
    .await;
    let messages: Vec<_> = called.0.logs.iter().map(|log| log.message.as_str()).collect();
    let names: Vec<_> = called.0.artifacts.iter().filter_map(|artifact| artifact.name.as_deref()).collect();
    assert_eq!((messages, names), (vec!["deep", "after"], vec!["deep", "after"]));
}

#[tokio::test]
async fn a09_metadata_set_directly_is_made_safe_as_well() {
    let called = reporting(|ctx| {
        let mut artifact = Artifact::named("direct");
        artifact.metadata = Map::from_iter([("deep".to_owned(), nested(150))]);
        ctx.artifacts().add(artifact);
    })
    .await;
    let text = serde_json::to_string(&called.0).unwrap();
    assert!(serde_json::from_str::<Envelope>(&text).is_ok(), "any reader can read the envelope");
}

#[tokio::test]
async fn a09_one_huge_artifact_does_not_make_a_huge_envelope() {
    let called = reporting(|ctx| {
        ctx.artifacts().add(Artifact::named("huge").uri("x".repeat(20 * 1024 * 1024)));
    })
    .await;
    called.expect_ok();
    let bytes = serde_json::to_string(&called.0).unwrap().len();
    assert!(bytes < 5 * 1024 * 1024, "{bytes}");
}

#[tokio::test]
async fn a09_a_number_that_fits_comes_out_as_it_is() {
    let action = Action::define("act", "Numbers.")
        .typed_without_input(|_| async { Ok::<_, ActionError>((u64::MAX, i64::MIN, 0.1f32, 0.1f64, 1e300)) });
    let data = app(action).call("act", json!({})).await.expect_ok();
    assert_eq!(data.to_string(), "[18446744073709551615,-9223372036854775808,0.1,0.1,1e+300]");
}

// A10

#[tokio::test]
async fn a10_an_output_against_its_schema_is_refused_with_issues() {
    let action = open("act")
        .output_schema(
            json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id", "name"]}),
        )
        .handler(|_, _| async { Ok(json!({"id": "seven"})) });
    let called = app(action).call("act", json!({})).await;
    let failure = called.expect_error("OUTPUT_VALIDATION_ERROR");
    assert_eq!((failure.message.as_str(), failure.retryable), ("Action returned invalid output.", false));
    let mut issues = serde_json::to_value(&failure.issues).unwrap();
    issues.as_array_mut().unwrap().sort_by_key(|issue| issue["path"].to_string());
    let expected = json!([
        {"path": ["id"], "message": "Expected integer."},
        {"path": ["name"], "message": "Required value is missing."},
    ]);
    assert_eq!(issues, expected);
}

// A14

#[tokio::test]
async fn a14_progress_is_a_log_entry_whose_own_fields_cannot_be_overwritten() {
    let called = reporting(|ctx| {
        let progress = ctx.progress();
        progress.report(Progress::percent(40.0).message("copying").field("file", "a.txt"));
        progress.report(Progress::percent(12.5).field("type", "other").field("percent", &99));
        progress.report(Progress::step("thinking").field("percent", &99).field("type", &1));
        progress.report(Progress::percent(f64::NAN));
        progress.report(Progress::percent(250.0));
        progress.report(Progress::percent(-1.0));
    })
    .await;
    let logs = serde_json::to_value(&called.0.logs).unwrap();
    let seen: Vec<Value> = logs
        .as_array()
        .unwrap()
        .iter()
        .map(|log| json!([log["level"], log["message"], log["fields"]]))
        .collect();
    assert_eq!(
        json!(seen),
        json!([
            ["info", "copying", {"type": "progress", "percent": 40, "file": "a.txt"}],
            ["info", "Progress update.", {"type": "progress", "percent": 12.5}],
            ["info", "thinking", {"type": "progress"}],
            ["info", "Progress update.", {"type": "progress"}],
            ["info", "Progress update.", {"type": "progress", "percent": 100}],
            ["info", "Progress update.", {"type": "progress", "percent": 0}],
        ])
    );
}

// A15

#[tokio::test]
async fn a15_an_artifact_gets_an_id_a_type_and_an_object_for_metadata() {
    let called = reporting(|ctx| {
        let artifacts = ctx.artifacts();
        let added = artifacts.add(Artifact::named("plain"));
        assert!(added.id.starts_with("art_"), "what is returned is what stands in the envelope");
        let mut own = Artifact::named("own").kind("chart").metadata(&json!({"a": 1}));
        own.id = "my-id".to_owned();
        artifacts.add(own);
        artifacts.add(Artifact::named("list").metadata(&[1, 2]));
        artifacts.add(Artifact::named("nothing").metadata(&()));
        artifacts.add(Artifact::named("secret").metadata(&json!({"deep": {"apiKey": "hunter2"}})));
    })
    .await;
    assert_eq!(
        normalised(&called.0)["artifacts"],
        json!([
            {"id": "ARTIFACT", "type": "file", "name": "plain", "metadata": {}},
            {"id": "my-id", "type": "chart", "name": "own", "metadata": {"a": 1}},
            {"id": "ARTIFACT", "type": "file", "name": "list", "metadata": {"value": [1, 2]}},
            {"id": "ARTIFACT", "type": "file", "name": "nothing", "metadata": {}},
            {"id": "ARTIFACT", "type": "file", "name": "secret", "metadata": {"deep": {"apiKey": "[REDACTED:key]"}}},
        ])
    );
    let ids: std::collections::BTreeSet<_> = called.0.artifacts.iter().map(|artifact| &artifact.id).collect();
    assert_eq!(ids.len(), 5, "generated ids are unique");
}

// A16, A17, A19

// clause: A19
#[tokio::test]
async fn a16_an_action_may_raise_any_code_and_each_has_its_exit_code() {
    for (code, exit) in [
        ("VALIDATION_ERROR", 2),
        ("AUTHENTICATION_ERROR", 3),
        ("AUTHORIZATION_ERROR", 3),
        ("ACTION_NOT_FOUND", 4),
        ("EXTERNAL_SERVICE_ERROR", 5),
        ("TIMEOUT", 124),
        ("CANCELLED", 130),
        ("UNSUPPORTED_SURFACE", 1),
        ("CONFIRMATION_REQUIRED", 1),
        ("OUTPUT_SERIALIZATION_ERROR", 1),
        ("OUTPUT_VALIDATION_ERROR", 1),
        ("INTERNAL_ERROR", 1),
        ("CONFLICT", 1),
        ("CONCURRENCY_LIMIT", 1),
        ("PAYMENT_DECLINED", 1),
    ] {
        let called = failed(move || ActionError::application(code, "why")).await;
        assert_eq!(called.expect_error(code).message, "why");
        assert_eq!(called.0.exit_code(), exit, "{code}");
    }
}

#[tokio::test]
async fn a16_a_code_that_is_none_is_an_internal_error() {
    for code in ["", "lower", "WITH SPACE", "1ST", &"A".repeat(65)] {
        let code = code.to_owned();
        let called = failed(move || ActionError::application(&code, "hunter2")).await;
        called.expect_error("INTERNAL_ERROR");
        assert!(!serde_json::to_string(&called.0).unwrap().contains("hunter2"));
    }
}

#[test]
fn a17_a_call_that_never_reached_the_runtime_has_an_envelope_with_a_wrapper_code() {
    for code in [Code::InvalidJsonRunnerPayload, Code::DevServerError, Code::NotFound] {
        let envelope = Envelope::refusal(Surface::Json, None, ActionError::new(code, "why"));
        let value = normalised(&envelope);
        assert_eq!(value["error"], json!({"code": code, "message": "why", "issues": [], "retryable": false}));
        assert_eq!(
            value["meta"],
            json!({"action": null, "invocationId": "ID", "surface": "json", "durationMs": 0})
        );
        assert_eq!(envelope.exit_code(), 1);
    }
    let words = ["INVALID_JSON_RUNNER_PAYLOAD", "DEV_SERVER_ERROR", "NOT_FOUND"];
    assert!(words.iter().all(|word| matches!(ErrorCode::parse(word), Ok(ErrorCode::Known(_)))));
}

// A18

#[tokio::test]
async fn a18_any_other_error_is_internal_and_its_text_is_nowhere_in_the_envelope() {
    fn read() -> Result<String, ActionError> {
        Ok(std::fs::read_to_string("/no/such/hunter2")?)
    }
    fn parse() -> Result<u8, ActionError> {
        Ok("hunter2".parse::<std::net::Ipv4Addr>().map(|_| 1)?)
    }
    let other = || ActionError::from(std::io::Error::other("hunter2"));
    let errors: [fn() -> ActionError; 2] = [|| read().unwrap_err(), || parse().unwrap_err()];
    for error in errors {
        check_internal(&failed(error).await);
    }
    check_internal(&failed(other).await);
    check_internal(&failed(|| ActionError::internal("hunter2")).await);
}

#[track_caller]
fn check_internal(called: &Called) {
    let failure = called.expect_error("INTERNAL_ERROR");
    let fixed = "The action failed because of an internal error.";
    assert_eq!((failure.message.as_str(), failure.retryable, failure.issues.len()), (fixed, false, 0));
    assert!(!serde_json::to_string(&called.0).unwrap().contains("hunter2"));
}

#[tokio::test]
async fn a18_an_aborted_task_is_cancelled_and_a_panicked_one_is_an_internal_error() {
    let aborted = open("act").handler(|_, _| async {
        let task = tokio::spawn(std::future::pending::<()>());
        task.abort();
        task.await?;
        Ok(json!(1))
    });
    let failure = app(aborted).call("act", json!({})).await.expect_error("CANCELLED");
    assert_eq!((failure.message.as_str(), failure.retryable), ("Action was cancelled.", false));

    let panicked = open("act").handler(|_, _| async {
        tokio::spawn(async { panic!("hunter2") }).await?;
        Ok(json!(1))
    });
    check_internal(&app(panicked).call("act", json!({})).await);
}

#[tokio::test]
async fn a18_credentials_in_a_message_are_taken_out() {
    let called = failed(|| ActionError::external_service("401 for Authorization: Bearer abcdef123456")).await;
    assert_eq!(
        without_tags(&called.expect_error("EXTERNAL_SERVICE_ERROR").message),
        "401 for Authorization: Bearer [REDACTED:header]"
    );
}

/// Collects what is logged through `tracing`, as text.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<String>>);

impl tracing::Subscriber for Collected {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text<'a>(&'a mut String);
        impl tracing::field::Visit for Text<'_> {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{field}={value:?} "));
            }
        }
        event.record(&mut Text(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a18_the_detail_of_an_internal_error_goes_to_the_log_without_its_credentials() {
    let log = Collected::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let called = failed(|| std::io::Error::other("disk full, password=hunter2").into()).await;
    check_internal(&called);
    let text = log.0.lock().unwrap().clone();
    assert!(text.contains("disk full") && !text.contains("hunter2"), "{text}");
    assert!(text.contains(&called.0.meta.invocation_id.to_string()), "the log names the invocation: {text}");
}

#[tokio::test]
async fn credentials_are_taken_out_of_everything_an_envelope_shows_but_its_data() {
    let action = open("act").handler(|_, ctx| async move {
        ctx.logger()
            .info("connecting to postgres://ada:hunter2@db", fields! { url: "https://ada:hunter2@host" });
        ctx.artifacts().add(Artifact::named("token=hunter2").uri("https://ada:hunter2@host/x"));
        let issues = vec![Issue::root("refused password=hunter2")];
        Err(ActionError::application("NO_WAY", "token=hunter2 is wrong").with_issues(issues))
    });
    let envelope = app(action).call("act", json!({})).await.0;
    let shown = serde_json::to_string(&envelope).unwrap();
    assert!(!shown.contains("hunter2"), "{shown}");
    assert_eq!(shown.matches("[REDACTED:").count(), 6, "{shown}");
}
