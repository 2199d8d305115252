//! Whatever is sent to whichever action on whichever surface, what comes back is a valid envelope.
//!
//! 256 cases by default; `RUNYARD_PROOF=soak` makes it 20,000. Time is paused, so that a wait of a day costs nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use runyard_actions::{
    Action, ActionError, Artifact, Context, Envelope, Exposure, Fields, Invocation, InvocationEvent,
    InvocationOptions, Progress, RetryPolicy, Runtime, SideEffects,
};
use runyard_domain::{Actor, ErrorCode, RunId, Surface};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const NESTING_MAX: usize = 120;

fn config() -> ProptestConfig {
    let cases = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("soak") => 20_000,
        Ok("quick") => 64,
        _ => 256,
    };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

// What is sent

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1000i64..1000).prop_map(Value::from),
        // Exact in binary, so that the text of it reads back as the same number whoever reads it.
        (-1_000_000i32..1_000_000, 0u8..8)
            .prop_map(|(n, bits)| json!(f64::from(n) / f64::from(1u32 << bits))),
        // Integers far beyond 64 bits, as they come in from text.
        Just(serde_json::from_str("123456789012345678901234567890123456789").unwrap()),
        Just(serde_json::from_str("-1e308").unwrap()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,20}",
        "\\PC{0,20}",
        "[a-z]{0,8}",
        prop::sample::select(vec![
            "",
            "\u{0}",
            "__proto__",
            "title",
            "level",
            "low",
            "\u{202e}x",
            "😀",
            "\"\\\n"
        ])
        .prop_map(str::to_owned),
        (0usize..200_000).prop_map(|length| "ü".repeat(length)),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "title",
            "level",
            "count",
            "tags",
            "do",
            "ms",
            "confirm",
            "__proto__",
            "$ref",
            ""
        ])
        .prop_map(str::to_owned),
        "[a-z]{1,6}",
        ".{0,6}",
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        text().prop_map(Value::from),
    ]
}

/// Any JSON, sometimes nested deeper than is allowed.
fn any_json() -> impl Strategy<Value = Value> {
    let shallow = leaf().prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map(key(), inner, 0..6).prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    });
    let nesting = prop_oneof![4 => Just(0usize), 1 => 0..=NESTING_MAX];
    (shallow, nesting, any::<bool>()).prop_map(|(value, nesting, as_array)| {
        (0..nesting).fold(value, |inner, _| if as_array { json!([inner]) } else { json!({"a": inner}) })
    })
}

/// Inputs that have a chance to be valid, so that handlers run.
fn likely_input() -> impl Strategy<Value = Value> {
    let what = prop::sample::select(vec!["ok", "fail", "retry", "panic", "hang", "sleep", "unsafe", "wrong"]);
    (text(), any::<u8>(), vec(text(), 0..3), what, any_json()).prop_map(|(title, count, tags, what, more)| {
        json!({"title": title, "count": count, "tags": tags, "do": what, "more": more})
    })
}

fn likely_task() -> impl Strategy<Value = Value> {
    let level = prop::sample::select(vec!["low", "high", "mid"]);
    (text(), level, any::<i32>())
        .prop_map(|(title, level, count)| json!({"title": title, "level": level, "count": count}))
}

/// An options payload: each word absent, likely, or anything at all.
fn any_options() -> impl Strategy<Value = Map<String, Value>> {
    fn word(likely: Vec<Value>) -> impl Strategy<Value = Option<Value>> {
        prop_oneof![
            3 => Just(None),
            3 => prop::sample::select(likely).prop_map(Some),
            1 => any_json().prop_map(Some),
        ]
    }
    let retry = json!({"retries": 2, "delayMs": 50});
    (
        word(vec![json!(true), json!(false), json!("true")]),
        word(vec![json!("k"), json!("l"), json!(""), json!("k".repeat(300))]),
        word(vec![json!(0), json!(1), json!(500), json!(u64::MAX), json!(-1)]),
        word(vec![
            json!(true),
            json!(false),
            json!(3),
            retry,
            json!({"retries": 100, "delayMs": 86_400_000}),
        ]),
        btree_map(key(), leaf(), 0..3),
    )
        .prop_map(|(confirm, key, timeout, retry, more)| {
            let words =
                [("confirm", confirm), ("idempotencyKey", key), ("timeoutMs", timeout), ("retry", retry)];
            let words = words.into_iter().filter_map(|(word, value)| Some((word.to_owned(), value?)));
            more.into_iter().chain(words).collect()
        })
}

fn any_actor() -> impl Strategy<Value = Actor> {
    prop_oneof![
        Just(Actor::owner("ada")),
        Just(Actor::service("ci", ["tasks.write"])),
        Just(Actor::service("ci", Vec::<String>::new())),
        Just(Actor::agent("codex", RunId::from_parts(1, &[2; 10]), ["tasks.write"])),
    ]
}

fn any_surface() -> impl Strategy<Value = Surface> {
    prop::sample::select(Surface::DEFAULT.into_iter().chain([Surface::Code]).collect::<Vec<_>>())
}

const NAMES: [&str; 7] = ["typed", "echo", "wrap", "obey", "wipe", "limited", "people"];

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![20 => prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned), 1 => text()]
}

// Whom it is sent to

#[derive(Deserialize, Serialize, JsonSchema)]
struct Task {
    #[schemars(length(min = 1, max = 200))]
    title: String,
    #[serde(default)]
    level: Level,
    count: Option<i64>,
    tags: Option<Vec<String>>,
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Level {
    #[default]
    Low,
    High,
}

async fn echo(input: Value, _: Context) -> Result<Value, ActionError> {
    Ok(input)
}

/// Reports whatever it got and ends in any way that a handler can end.
async fn obey(input: Value, ctx: Context) -> Result<Value, ActionError> {
    ctx.logger().info("obeying", Fields::new().with("input", &input));
    ctx.progress()
        .report(Progress::percent(input["count"].as_f64().unwrap_or(f64::NAN)).field("percent", &input));
    ctx.artifacts().add(Artifact::named("input").metadata(&input));
    match input["do"].as_str() {
        Some("fail") => Err(ActionError::conflict(input.to_string())),
        Some("retry") => Err(ActionError::application("BUSY", input.to_string()).retryable()),
        // Like a panic, but quiet.
        Some("panic") => std::panic::resume_unwind(Box::new("told to")),
        Some("hang") => std::future::pending().await,
        Some("sleep") => {
            tokio::time::sleep(Duration::from_millis(500)).await;
            Ok(input)
        }
        Some("unsafe") => Ok((0..150).fold(input, |inner, _| json!([inner]))),
        Some("wrong") => Ok(json!([])),
        _ => Ok(input),
    }
}

fn runtime() -> Runtime {
    let open = |name: &str| Action::define(name, "Takes anything.").input_schema(json!({}));
    let retry = RetryPolicy { retries: 1, delay_ms: 1000 };
    let wipe =
        open("wipe").side_effects(SideEffects::Destructive).permissions(["tasks.write"]).timeout_ms(300);
    let exposure = Exposure::new().destructive("wipe", [Surface::Http, Surface::AiSdk]);
    Runtime::builder()
        .action(
            Action::define("typed", "A task.").typed(|task: Task, _| async { Ok::<_, ActionError>(task) }),
        )
        .action(open("echo").handler(echo))
        .action(open("wrap").handler(|input, _| async move { Ok(json!({"a": {"b": input}})) }))
        .action(
            open("obey")
                .side_effects(SideEffects::Write)
                .output_schema(json!({"type": "object"}))
                .retry(retry)
                .timeout_ms(1000)
                .deadline_ms(20_000)
                .handler(obey),
        )
        .action(wipe.handler(obey))
        .action(open("limited").concurrency(1, 10).deadline_ms(100).handler(obey))
        .action(open("people").people_only().surfaces([Surface::Cli, Surface::React]).handler(echo))
        .exposure(exposure)
        .build()
        .unwrap()
}

// What comes back

fn check(envelope: &Envelope, asked: &str, surface: Surface) -> Result<(), TestCaseError> {
    let text = serde_json::to_string(envelope).unwrap();
    let back: Envelope =
        serde_json::from_str(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&back, envelope, "reads back as it was");
    let value: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    let outcome = if envelope.is_ok() { "data" } else { "error" };
    let mut expected = vec!["ok", outcome, "artifacts", "logs", "meta"];
    expected.sort_unstable();
    prop_assert_eq!(value.keys().map(String::as_str).collect::<Vec<_>>(), expected);
    prop_assert_eq!(&value["ok"], &json!(envelope.is_ok()));
    prop_assert_eq!(envelope.meta.action.as_deref(), Some(asked));
    prop_assert_eq!(envelope.meta.surface, surface);
    prop_assert_eq!(envelope.is_ok(), envelope.exit_code() == 0);
    if let Some(failure) = envelope.error() {
        prop_assert!(
            matches!(&failure.code, ErrorCode::Known(_)) || failure.code.as_str() == "BUSY",
            "{failure:?}"
        );
        prop_assert!(failure.issues.len() <= 100);
    }
    Ok(())
}

async fn streamed(runtime: &Runtime, invocation: Invocation) -> Result<Envelope, TestCaseError> {
    let mut stream = runtime.stream(invocation);
    let mut reported = 0;
    loop {
        match stream.next().await {
            Some(InvocationEvent::Result(envelope)) => {
                prop_assert!(stream.next().await.is_none(), "the result is the last event");
                let gathered = envelope.logs.len() + envelope.artifacts.len();
                prop_assert!(
                    reported == gathered || envelope.meta.idempotent.is_some(),
                    "all is streamed, once"
                );
                return Ok(*envelope);
            }
            Some(event) => {
                prop_assert!(serde_json::to_string(&event).is_ok());
                reported += 1;
            }
            None => return Err(TestCaseError::fail("the stream ended without a result")),
        }
    }
}

static RUNTIME: LazyLock<Runtime> = LazyLock::new(runtime);

proptest! {
    #![proptest_config(config())]

    // clause: A11
    // clause: A12
    #[test]
    fn a09_whatever_is_sent_an_envelope_comes_back(
        name in any_name(),
        input in prop_oneof![any_json(), likely_input(), likely_task()],
        mut payload in any_options(),
        actor in any_actor(),
        surface in any_surface(),
        streams in any::<bool>(),
    ) {
        let rest: Vec<String> = payload.keys().filter(|key| !RESERVED.contains(&key.as_str())).cloned().collect();
        let options = InvocationOptions::take_from(&mut payload);
        prop_assert_eq!(payload.keys().cloned().collect::<Vec<_>>(), rest, "what is not an option is left");

        let executor = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        executor.block_on(async {
            let mut invocation = Invocation::new(name.as_str(), input, surface, Arc::new(actor)).options(options);
            // What hangs for ever is cancelled after a month; nothing may wait longer than its limits say.
            let cancel = tokio_util::sync::CancellationToken::new();
            let month = cancel.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(30 * 24 * 60 * 60)).await;
                month.cancel();
            });
            invocation = invocation.cancel_with(cancel);
            let envelope = match streams {
                true => streamed(&RUNTIME, invocation).await?,
                false => RUNTIME.invoke(invocation).await,
            };
            check(&envelope, &name, surface)
        })?;
    }

    /// Reading the text of an envelope gives every number back exactly, also those with seventeen digits.
    #[test]
    fn a09_a_number_reads_back_as_it_was_written(number in any::<f64>().prop_filter("finite", |n| n.is_finite())) {
        let text = serde_json::to_string(&runyard_actions::to_safe_value(&number).unwrap()).unwrap();
        prop_assert_eq!(serde_json::from_str::<f64>(&text).unwrap(), number, "{}", text);
    }
}

const RESERVED: [&str; 4] = ["confirm", "idempotencyKey", "timeoutMs", "retry"];
