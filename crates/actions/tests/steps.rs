//! The steps before and around the handler: which of them stops a call, with what, and in which order.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_actions::testing::{Called, TestApp, defined};
use runyard_actions::{
    Action, ActionBuilder, ActionError, Context, Exposure, Hook, Invocation, InvocationOptions, Middleware,
    MiddlewareCall, Next, Permission, PermissionChecker, PermissionRequest, RetryPolicy, Runtime,
    SideEffects, Visibility,
};
use runyard_domain::{Actor, Code, RunId, Surface};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn open(name: &str) -> ActionBuilder {
    Action::define(name, "Gives its input back.").input_schema(json!({"type": "object"}))
}

async fn echo(input: Value, _: Context) -> Result<Value, ActionError> {
    Ok(input)
}

fn agent() -> Actor {
    Actor::agent("codex", RunId::from_parts(1, &[2; 10]), ["tasks.write"])
}

fn options(payload: Value) -> InvocationOptions {
    let Value::Object(mut payload) = payload else { panic!("options are an object") };
    InvocationOptions::take_from(&mut payload)
}

struct Check<F>(F);

#[async_trait]
impl<F> PermissionChecker for Check<F>
where
    F: Fn(PermissionRequest<'_>) -> Result<Permission, ActionError> + Send + Sync,
{
    async fn check(&self, request: PermissionRequest<'_>) -> Result<Permission, ActionError> {
        (self.0)(request)
    }
}

// A01

#[tokio::test]
async fn a01_an_unknown_name_is_not_found_and_meta_has_the_name_as_asked() {
    let app = TestApp::new(Runtime::builder().action(open("known").handler(echo)));
    for name in ["nope", "", "Known", "known ", "täsk\u{0}", &"x".repeat(500)] {
        let called = app.call(name, json!({})).await;
        let failure = called.expect_error("ACTION_NOT_FOUND");
        assert_eq!(called.0.meta.action.as_deref(), Some(name));
        assert!(!failure.retryable);
        assert!(failure.message.len() < 300, "a name that somebody sent does not blow the message up");
    }
    let failure = app.call("nope", json!({})).await.expect_error("ACTION_NOT_FOUND");
    assert_eq!(failure.message, "Action \"nope\" was not found.");
}

#[tokio::test]
async fn a01_an_action_is_found_by_reference_registered_or_not() {
    let action = defined(open("loose").handler(echo));
    let runtime = Runtime::builder().build().unwrap();
    let owner = Arc::new(Actor::owner("ada"));
    let envelope = runtime.invoke(Invocation::new(&action, json!({"a": 1}), Surface::Json, owner)).await;
    assert_eq!(envelope.data(), Some(&json!({"a": 1})));
    assert_eq!(envelope.meta.action.as_deref(), Some("loose"));
}

// A02

#[tokio::test]
async fn a02_by_default_all_seven_surfaces_are_supported() {
    let words: Vec<&str> = Surface::DEFAULT.iter().map(|surface| surface.as_str()).collect();
    assert_eq!(words, ["cli", "json", "http", "mcp", "react", "dev", "ai-sdk"]);
    for surface in Surface::DEFAULT {
        let app = TestApp::new(Runtime::builder().action(open("any").handler(echo))).on(surface);
        app.call("any", json!({})).await.expect_ok();
    }
}

#[tokio::test]
async fn a02_a_surface_that_is_not_supported_is_refused_and_does_not_list_the_action() {
    let only_cli = open("only_cli").surfaces([Surface::Cli]).handler(echo);
    let app = TestApp::new(Runtime::builder().action(only_cli));
    let failure = app.call("only_cli", json!({})).await.expect_error("UNSUPPORTED_SURFACE");
    assert_eq!(failure.message, "Action \"only_cli\" does not support surface \"json\".");
    assert_eq!(app.runtime().listed(Surface::Json, &Actor::owner("ada")).count(), 0);
    assert_eq!(app.runtime().listed(Surface::Cli, &Actor::owner("ada")).count(), 1);
    app.on(Surface::Cli).call("only_cli", json!({})).await.expect_ok();
}

/// What each surface may see; the calls agree with the lists, and the rest is as if it did not exist.
#[tokio::test]
async fn a02_what_is_not_exposed_is_neither_listed_nor_callable() {
    let destructive = |name: &str| {
        let action = open(name).side_effects(SideEffects::Destructive);
        action.requires_confirmation(false).handler(echo)
    };
    let exposure = Exposure::new().destructive("wipe_on_http", [Surface::Http]);
    let runtime = Runtime::builder()
        .action(open("public").handler(echo))
        .action(open("local").visibility(Visibility::Local).handler(echo))
        .action(open("private").visibility(Visibility::Private).handler(echo))
        .action(destructive("wipe"))
        .action(destructive("wipe_on_http"))
        .exposure(exposure)
        .build()
        .unwrap();

    let owner = Actor::owner("ada");
    let mut table = Vec::new();
    for surface in Surface::DEFAULT.into_iter().chain([Surface::Code]) {
        let app = TestApp::of(runtime.clone()).on(surface);
        let listed: Vec<&str> = runtime.listed(surface, &owner).map(Action::name).collect();
        let mut callable = Vec::new();
        for name in runtime.actions().map(Action::name) {
            let called = app.call(name, json!({})).await;
            match called.0.is_ok() {
                true => callable.push(name),
                false => drop(called.expect_error("ACTION_NOT_FOUND")),
            }
        }
        assert_eq!(listed, callable, "{surface}");
        table.push(format!("{surface}: {}", listed.join(" ")));
    }
    assert_eq!(
        table,
        [
            "cli: local public wipe wipe_on_http",
            "json: local public wipe wipe_on_http",
            "http: public wipe_on_http",
            "mcp: public",
            "react: public wipe wipe_on_http",
            "dev: local public wipe wipe_on_http",
            "ai-sdk: public",
            "code: local private public wipe wipe_on_http",
        ]
    );
}

// A22

#[test]
fn a22_the_surface_of_rust_code_cannot_be_named_from_outside() {
    assert!("code".parse::<Surface>().is_err());
    assert!(serde_json::from_value::<Surface>(json!("code")).is_err());
    for unknown in ["", "CLI", "unknown", "web", "ai_sdk"] {
        assert!(unknown.parse::<Surface>().is_err(), "{unknown}");
    }
}

// A03

#[tokio::test]
async fn a03_every_issue_is_listed_with_its_path() {
    let strict = Action::define("strict", "Takes a task.")
        .input_schema(json!({
            "type": "object",
            "properties": {
                "title": {"type": "string", "minLength": 1},
                "level": {"enum": ["low", "high"], "default": "low"},
                "steps": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
                "owner": {"type": "string"},
            },
            "required": ["title", "owner"],
            "additionalProperties": false,
        }))
        .handler(echo);
    let app = TestApp::new(Runtime::builder().action(strict));
    let input = json!({"title": "", "level": "mid", "steps": [{"n": 1}, {"n": "2"}], "other": true});
    let failure = app.call("strict", input).await.expect_error("VALIDATION_ERROR");
    assert_eq!(failure.message, "Invalid action input.");
    assert!(!failure.retryable);
    let mut issues = serde_json::to_value(&failure.issues).unwrap();
    issues.as_array_mut().unwrap().sort_by_key(|issue| issue["path"].to_string());
    assert_eq!(
        issues,
        json!([
            {"path": ["level"], "message": "Expected one of: low, high."},
            {"path": ["other"], "message": "Unexpected property \"other\"."},
            {"path": ["owner"], "message": "Required value is missing."},
            {"path": ["steps", 1, "n"], "message": "Expected integer."},
            {"path": ["title"], "message": "Expected at least 1 characters."},
        ])
    );
}

#[tokio::test]
async fn a03_an_issue_never_repeats_the_value() {
    let action = Action::define("secretive", "Takes a number.")
        .input_schema(
            json!({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"const": "a"}}}),
        )
        .handler(echo);
    let app = TestApp::new(Runtime::builder().action(action));
    let called = app.call("secretive", json!({"n": "hunter2", "s": "hunter2"})).await;
    assert_eq!(called.expect_error("VALIDATION_ERROR").issues.len(), 2);
    assert!(!serde_json::to_string(&called.0).unwrap().contains("hunter2"));
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Task {
    title: String,
    #[serde(default = "normal")]
    level: String,
    #[serde(default)]
    tags: Vec<String>,
}

fn normal() -> String {
    "normal".to_owned()
}

#[tokio::test]
async fn a03_the_handler_gets_the_parsed_value_with_defaults() {
    let task =
        Action::define("task", "Takes a task.").typed(|task: Task, _| async { Ok::<_, ActionError>(task) });
    let dynamic = Action::define("dynamic", "Takes a size.")
        .input_schema(json!({"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}))
        .handler(echo);
    let app = TestApp::new(Runtime::builder().action(task).action(dynamic));
    let data = app.call("task", json!({"title": "x"})).await.expect_ok();
    assert_eq!(data, json!({"title": "x", "level": "normal", "tags": []}));
    assert_eq!(app.call("dynamic", json!({})).await.expect_ok(), json!({"size": 3}));
    assert_eq!(app.call("dynamic", json!({"size": 4})).await.expect_ok(), json!({"size": 4}));
}

#[tokio::test]
async fn a03_every_kind_of_wrong_root_is_a_validation_error() {
    let task =
        Action::define("task", "Takes a task.").typed(|task: Task, _| async { Ok::<_, ActionError>(task) });
    let app = TestApp::new(Runtime::builder().action(task));
    for root in [json!(null), json!([]), json!("title"), json!(1), json!(true), json!([{"title": "x"}])] {
        app.call("task", root).await.expect_error("VALIDATION_ERROR");
    }
}

// A04

fn wipe() -> ActionBuilder {
    open("wipe").side_effects(SideEffects::Destructive)
}

#[tokio::test]
async fn a04_only_the_boolean_true_confirms() {
    let app = TestApp::new(Runtime::builder().action(wipe().handler(echo)));
    let not_true =
        [json!("true"), json!(1), json!("yes"), json!([true]), json!({}), json!(null), json!(false)];
    let calls = not_true.into_iter().map(|value| json!({"confirm": value})).chain([json!({})]);
    let mut app = app;
    for payload in calls {
        app = app.with(options(payload.clone()));
        let failure = app.call("wipe", json!({})).await.expect_error("CONFIRMATION_REQUIRED");
        assert_eq!(failure.message, "Action \"wipe\" requires explicit confirmation.", "{payload}");
    }
    app.with(options(json!({"confirm": true}))).call("wipe", json!({})).await.expect_ok();
}

#[tokio::test]
async fn a04_confirmation_is_asked_for_where_the_definition_and_the_surface_say_so() {
    #[track_caller]
    fn definition(side_effects: SideEffects, explicit: Option<bool>) -> Action {
        let builder = open("act").side_effects(side_effects);
        defined(
            explicit
                .map_or(open("act").side_effects(side_effects), |r| builder.requires_confirmation(r))
                .handler(echo),
        )
    }
    use SideEffects::{Destructive, Read, Write};
    let asked = [Surface::Cli, Surface::Json, Surface::Http, Surface::Mcp, Surface::AiSdk, Surface::Code];
    let not_asked = [Surface::React, Surface::Dev];
    for (side_effects, explicit, required) in [
        (Read, None, false),
        (Write, None, false),
        (Destructive, None, true),
        (Destructive, Some(false), false),
        (Destructive, Some(true), true),
        (Write, Some(true), true),
        (Read, Some(true), true),
    ] {
        let action = definition(side_effects, explicit);
        assert_eq!(action.spec().requires_confirmation, required);
        let exposure = Exposure::new().destructive("act", Surface::DEFAULT);
        let runtime = Runtime::builder().action(action).exposure(exposure).build().unwrap();
        for surface in asked.into_iter().chain(not_asked) {
            let app = TestApp::of(runtime.clone()).on(surface).with(InvocationOptions::default());
            let called = app.call("act", json!({})).await;
            match required && !not_asked.contains(&surface) {
                true => drop(called.expect_error("CONFIRMATION_REQUIRED")),
                false => drop(called.expect_ok()),
            }
        }
    }
}

#[tokio::test]
async fn a04_an_agent_cannot_confirm_for_itself() {
    let app = TestApp::new(Runtime::builder().action(wipe().handler(echo))).by(agent());
    app.call("wipe", json!({})).await.expect_error("CONFIRMATION_REQUIRED");
}

#[tokio::test]
async fn j01_the_gates_approval_is_an_agents_confirmation() {
    let app = TestApp::new(Runtime::builder().action(wipe().handler(echo))).by(agent());
    let approved = app.invocation("wipe", json!({})).approved();
    assert!(app.runtime().invoke(approved).await.is_ok());
}

// clause: A02
#[tokio::test]
async fn what_is_for_people_only_refuses_an_agent_and_is_not_listed_for_it() {
    let action = open("approve").people_only().handler(echo);
    let app = TestApp::new(Runtime::builder().action(action));
    let listed = |actor: &Actor| app.runtime().listed(Surface::Mcp, actor).count();
    assert_eq!(
        (listed(&Actor::owner("ada")), listed(&Actor::service("ci", ["x"])), listed(&agent())),
        (1, 1, 0)
    );
    app.call("approve", json!({})).await.expect_ok();
    let app = app.by(agent());
    for surface in Surface::DEFAULT.into_iter().chain([Surface::Code]) {
        let app = TestApp::of(app.runtime().clone()).by(agent()).on(surface);
        app.call("approve", json!({})).await.expect_error("AUTHORIZATION_ERROR");
    }
}

// A05

#[tokio::test]
async fn a05_the_checker_decides_and_whatever_is_no_clear_yes_denies() {
    type Answer = fn() -> Result<Permission, ActionError>;
    async fn called(answer: Answer) -> Called {
        let ran = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ran);
        let action = open("act").handler(move |input, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok(input) }
        });
        let builder = Runtime::builder()
            .action(action)
            .permission_checker(Check(move |_: PermissionRequest<'_>| answer()));
        let called = TestApp::new(builder).call("act", json!({})).await;
        assert_eq!(
            ran.load(Ordering::SeqCst),
            usize::from(called.0.is_ok()),
            "the handler runs only when allowed"
        );
        called
    }
    called(|| Ok(Permission::Allow)).await.expect_ok();
    let generic = "Action is not authorized.";
    let denials: [(Answer, &str); 6] = [
        (|| Ok(Permission::Deny), generic),
        (|| Ok(Permission::DenyWith("Only on weekdays.".to_owned())), "Only on weekdays."),
        (|| Ok(Permission::DenyWith(String::new())), ""),
        (|| Err(ActionError::conflict("hunter2")), generic),
        (|| Err(std::io::Error::other("hunter2").into()), generic),
        (|| panic!("hunter2"), generic),
    ];
    for (answer, message) in denials {
        let called = called(answer).await;
        let failure = called.expect_error("AUTHORIZATION_ERROR");
        assert_eq!((failure.message.as_str(), failure.retryable), (message, false));
        assert!(!serde_json::to_string(&called.0).unwrap().contains("hunter2"));
    }
}

#[tokio::test]
async fn a05_the_checker_gets_the_action_the_parsed_input_and_the_context() {
    let seen = Arc::new(Mutex::new(None));
    let note = Arc::clone(&seen);
    let checker = Check(move |request: PermissionRequest<'_>| {
        let actor = request.context.actor().id.clone();
        let surface = request.context.surface();
        *note.lock().unwrap() =
            Some((request.action.name().to_owned(), request.input.clone(), actor, surface));
        Ok(Permission::Allow)
    });
    let task =
        Action::define("task", "Takes a task.").typed(|task: Task, _| async { Ok::<_, ActionError>(task) });
    let app = TestApp::new(Runtime::builder().action(task).permission_checker(checker));
    app.by(Actor::owner("ada")).on(Surface::Mcp).call("task", json!({"title": "x"})).await.expect_ok();
    let parsed = json!({"title": "x", "level": "normal", "tags": []});
    assert_eq!(*seen.lock().unwrap(), Some(("task".to_owned(), parsed, "ada".to_owned(), Surface::Mcp)));
}

#[tokio::test]
async fn a05_the_checker_is_not_asked_while_confirmation_is_missing() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let checker = Check(move |_: PermissionRequest<'_>| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(Permission::Allow)
    });
    let app = TestApp::new(Runtime::builder().action(wipe().handler(echo)).permission_checker(checker));
    app.call("wipe", json!({})).await.expect_ok();
    let app = app.with(InvocationOptions::default());
    app.call("wipe", json!({})).await.expect_error("CONFIRMATION_REQUIRED");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a05_without_a_checker_the_declared_permissions_are_needed() {
    let action = open("write").permissions(["tasks.write", "tasks.read"]).handler(echo);
    let app = TestApp::new(Runtime::builder().action(action));
    app.call("write", json!({})).await.expect_ok();
    let app = app.by(Actor::service("ci", ["tasks.write", "tasks.read"]));
    app.call("write", json!({})).await.expect_ok();
    let app = app.by(Actor::service("ci", ["tasks.write"]));
    let failure = app.call("write", json!({})).await.expect_error("AUTHORIZATION_ERROR");
    assert_eq!(failure.message, "Action needs the permission \"tasks.read\".");
}

// A06

type Trace = Arc<Mutex<Vec<String>>>;

enum Wrap {
    Trace(&'static str, Trace),
    ShortCircuit(Value),
    Replace(Value),
    Twice,
    TwiceSwallowed,
}

#[async_trait]
impl Middleware for Wrap {
    async fn call(&self, call: MiddlewareCall<'_>, next: Next<'_>) -> Result<Value, ActionError> {
        match self {
            Wrap::Trace(name, trace) => {
                trace.lock().unwrap().push(format!("{name} in {}", call.input));
                let result = next.run().await;
                trace.lock().unwrap().push(format!("{name} out {}", result.is_ok()));
                result
            }
            Wrap::ShortCircuit(value) => Ok(value.clone()),
            Wrap::Replace(value) => next.run().await.map(|_| value.clone()),
            Wrap::Twice => {
                next.run().await?;
                next.run().await
            }
            Wrap::TwiceSwallowed => {
                let first = next.run().await;
                let _ = next.run().await;
                first
            }
        }
    }
}

fn traced(name: &'static str, trace: &Trace) -> Wrap {
    Wrap::Trace(name, Arc::clone(trace))
}

#[tokio::test]
async fn a06_the_first_middleware_is_the_outermost() {
    let trace = Trace::default();
    let inside = Arc::clone(&trace);
    let action = open("act").handler(move |input, _| {
        inside.lock().unwrap().push("handler".to_owned());
        async { Ok(input) }
    });
    let builder =
        Runtime::builder().middleware(traced("one", &trace)).middleware(traced("two", &trace)).action(action);
    TestApp::new(builder).call("act", json!({"a": 1})).await.expect_ok();
    let expected = [r#"one in {"a":1}"#, r#"two in {"a":1}"#, "handler", "two out true", "one out true"];
    assert_eq!(*trace.lock().unwrap(), expected);
}

#[tokio::test]
async fn a06_a_middleware_may_short_circuit_or_replace_and_the_result_is_still_checked() {
    for (wrap, outcome) in [
        (Wrap::ShortCircuit(json!("short")), Ok(json!("short"))),
        (Wrap::Replace(json!("other")), Ok(json!("other"))),
        (Wrap::ShortCircuit(json!(1)), Err("OUTPUT_VALIDATION_ERROR")),
        (Wrap::Replace(json!(1)), Err("OUTPUT_VALIDATION_ERROR")),
        (
            Wrap::Replace(json!("x".repeat(runyard_actions::OUTPUT_BYTES_MAX + 1))),
            Err("OUTPUT_SERIALIZATION_ERROR"),
        ),
    ] {
        let short = matches!(wrap, Wrap::ShortCircuit(_));
        let ran = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ran);
        let action = open("act").output_schema(json!({"type": "string"})).handler(move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Ok(json!("own")) }
        });
        let called =
            TestApp::new(Runtime::builder().action(action).middleware(wrap)).call("act", json!({})).await;
        match outcome {
            Ok(data) => assert_eq!(called.expect_ok(), data),
            Err(code) => drop(called.expect_error(code)),
        }
        assert_eq!(ran.load(Ordering::SeqCst), usize::from(!short));
    }
}

#[tokio::test]
async fn a06_calling_next_twice_is_an_internal_error_also_when_it_is_swallowed() {
    for wrap in [Wrap::Twice, Wrap::TwiceSwallowed] {
        let trace = Trace::default();
        let ran = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ran);
        let action = open("act").handler(move |input, _| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Ok(input) }
        });
        let builder = Runtime::builder().action(action).middleware(traced("outer", &trace)).middleware(wrap);
        TestApp::new(builder).call("act", json!({})).await.expect_error("INTERNAL_ERROR");
        assert_eq!(ran.load(Ordering::SeqCst), 1, "the handler ran once");
    }
}

#[tokio::test(start_paused = true)]
async fn a06_the_chain_runs_once_per_invocation_and_not_once_per_attempt() {
    let trace = Trace::default();
    let attempts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&attempts);
    let action = open("flaky").retry(RetryPolicy::DEFAULT).handler(move |_, _| {
        let attempt = count.fetch_add(1, Ordering::SeqCst);
        async move {
            if attempt < 2 {
                Err(ActionError::external_service("down").retryable())
            } else {
                Ok(json!(attempt))
            }
        }
    });
    let app = TestApp::new(Runtime::builder().action(action).middleware(traced("m", &trace)));
    assert_eq!(app.call("flaky", json!({})).await.expect_ok(), json!(2));
    assert_eq!(*trace.lock().unwrap(), ["m in {}", "m out true"]);
}

// The order

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    UnknownName,
    Private,
    OtherSurface,
    BadInput,
    Cancelled,
    Agent,
    NotConfirmed,
    Denied,
    KeyUsed,
    Full,
    Middleware,
    Handler,
    TooLarge,
    BadOutput,
}

type Faults = Arc<Mutex<BTreeSet<Fault>>>;

struct Faulty(Faults);

#[async_trait]
impl Middleware for Faulty {
    async fn call(&self, _: MiddlewareCall<'_>, next: Next<'_>) -> Result<Value, ActionError> {
        if self.0.lock().unwrap().contains(&Fault::Middleware) {
            return Err(ActionError::application("MIDDLEWARE_FAILED", "stop"));
        }
        next.run().await
    }
}

fn faulty_runtime(definition: &BTreeSet<Fault>, live: &Faults) -> Runtime {
    let has = |fault| definition.contains(&fault);
    let handler_faults = Arc::clone(live);
    let action = Action::define("act", "Does it.")
        .side_effects(SideEffects::Destructive)
        .people_only()
        .visibility(if has(Fault::Private) { Visibility::Private } else { Visibility::Public })
        .surfaces(if has(Fault::OtherSurface) { vec![Surface::Cli] } else { vec![Surface::Json] })
        .concurrency(1, 0)
        .input_schema(json!({"type": "object", "properties": {"what": {"type": "string"}}}))
        .output_schema(json!({"type": "string"}))
        .handler(move |input, _| {
            let faults = handler_faults.lock().unwrap().clone();
            async move {
                if input["what"] == "hold" {
                    std::future::pending::<()>().await;
                }
                match faults.first() {
                    Some(Fault::Handler) => Err(ActionError::application("HANDLER_FAILED", "stop")),
                    Some(Fault::TooLarge) => Ok(json!([1, "x".repeat(runyard_actions::OUTPUT_BYTES_MAX)])),
                    Some(Fault::BadOutput) => Ok(json!(1)),
                    _ => Ok(json!("fine")),
                }
            }
        });
    let checker_faults = Arc::clone(live);
    let checker = Check(move |_: PermissionRequest<'_>| {
        let denied = checker_faults.lock().unwrap().contains(&Fault::Denied);
        Ok(if denied { Permission::Deny } else { Permission::Allow })
    });
    Runtime::builder()
        .action(action)
        .permission_checker(checker)
        .middleware(Faulty(Arc::clone(live)))
        .build()
        .unwrap()
}

/// An invocation with all of these faults at once.
async fn invoke_with(faults: &BTreeSet<Fault>) -> Called {
    let has = |fault| faults.contains(&fault);
    let live = Faults::default();
    let runtime = faulty_runtime(faults, &live);
    let owner = Arc::new(Actor::owner("ada"));
    let confirmed = |key: Option<&str>| options(json!({"confirm": true, "idempotencyKey": key}));
    let code = |what: &str, key| {
        Invocation::new("act", json!({"what": what}), Surface::Code, Arc::clone(&owner))
            .options(confirmed(key))
    };
    if has(Fault::KeyUsed) {
        assert!(runtime.invoke(code("first", Some("key"))).await.is_ok());
    }
    if has(Fault::Full) {
        let (runtime, hold) = (runtime.clone(), code("hold", None));
        tokio::spawn(async move { runtime.invoke(hold).await });
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    live.lock().unwrap().extend(faults);

    let name = if has(Fault::UnknownName) { "nope" } else { "act" };
    let input = if has(Fault::BadInput) { json!({"what": 1}) } else { json!({"what": "second"}) };
    let actor = if has(Fault::Agent) { Arc::new(agent()) } else { owner };
    let mut invocation = Invocation::new(name, input, Surface::Json, actor).options(confirmed(Some("key")));
    invocation.options.confirm = !has(Fault::NotConfirmed);
    if has(Fault::Cancelled) {
        let token = CancellationToken::new();
        token.cancel();
        invocation = invocation.cancel_with(token);
    }
    Called(runtime.invoke(invocation).await)
}

/// With everything wrong at once the first step speaks; each fault that is mended lets the next one speak.
#[tokio::test(start_paused = true)]
async fn a01_to_a10_the_steps_come_in_their_order() {
    let order = [
        (Fault::UnknownName, "ACTION_NOT_FOUND: Action \"nope\" was not found."),
        (Fault::Private, "ACTION_NOT_FOUND: Action \"act\" was not found."),
        (Fault::OtherSurface, "UNSUPPORTED_SURFACE: Action \"act\" does not support surface \"json\"."),
        (Fault::BadInput, "VALIDATION_ERROR: Invalid action input."),
        (Fault::Cancelled, "CANCELLED: Action was cancelled."),
        (Fault::Agent, "AUTHORIZATION_ERROR: Action is for people only; an agent may not call it."),
        (Fault::NotConfirmed, "CONFIRMATION_REQUIRED: Action \"act\" requires explicit confirmation."),
        (Fault::Denied, "AUTHORIZATION_ERROR: Action is not authorized."),
        (Fault::KeyUsed, "CONFLICT: The idempotency key was used before with another input."),
        (Fault::Full, "CONCURRENCY_LIMIT: Action runs 1 times already, which is its limit."),
        (Fault::Middleware, "MIDDLEWARE_FAILED: stop"),
        (Fault::Handler, "HANDLER_FAILED: stop"),
        (
            Fault::TooLarge,
            "OUTPUT_SERIALIZATION_ERROR: Action returned a value that cannot be safely serialized as JSON: it is larger \
             than 8388608 bytes.",
        ),
        (Fault::BadOutput, "OUTPUT_VALIDATION_ERROR: Action returned invalid output."),
    ];
    let mut faults: BTreeSet<Fault> = order.iter().map(|(fault, _)| *fault).collect();
    for (fault, expected) in order {
        let called = invoke_with(&faults).await;
        let failure = called.0.error().unwrap();
        assert_eq!(format!("{}: {}", failure.code, failure.message), expected, "with {faults:?}");
        faults.remove(&fault);
    }
    assert_eq!(invoke_with(&faults).await.expect_ok(), json!("fine"));
}

// Panics

struct Panicking;

#[async_trait]
impl Middleware for Panicking {
    async fn call(&self, _: MiddlewareCall<'_>, _: Next<'_>) -> Result<Value, ActionError> {
        panic!("hunter2")
    }
}

struct PanickingInput;

impl<'de> Deserialize<'de> for PanickingInput {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("hunter2")
    }
}

impl JsonSchema for PanickingInput {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PanickingInput".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object"})
    }
}

#[derive(JsonSchema)]
struct PanickingOutput;

impl Serialize for PanickingOutput {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("hunter2")
    }
}

// clause: A18
#[tokio::test]
async fn a_panic_anywhere_in_the_application_becomes_an_envelope() {
    let handler = open("act").handler(|_, _| async { panic!("hunter2") });
    let before_the_future = open("act").handler(|_, _| -> std::future::Ready<_> { panic!("hunter2") });
    let reading =
        Action::define("act", "Reads.").typed(|_: PanickingInput, _| async { Ok::<_, ActionError>(1) });
    let writing =
        Action::define("act", "Writes.").typed(|_: Task, _| async { Ok::<_, ActionError>(PanickingOutput) });
    let logging = open("act").handler(|_, ctx| async move {
        ctx.logger().info("log", runyard_actions::Fields::new().with("bad", &PanickingOutput));
        Ok(json!(1))
    });
    for builder in [
        Runtime::builder().action(handler),
        Runtime::builder().action(before_the_future),
        Runtime::builder().action(reading),
        Runtime::builder().action(writing),
        Runtime::builder().action(logging),
        Runtime::builder().action(open("act").handler(echo)).middleware(Panicking),
    ] {
        let called = TestApp::new(builder).call("act", json!({"title": "x"})).await;
        let failure = called.expect_error("INTERNAL_ERROR");
        assert_eq!(failure.message, "The action failed because of an internal error.");
        assert!(!failure.retryable);
        assert!(!serde_json::to_string(&called.0).unwrap().contains("hunter2"));
    }
}

enum BadHook {
    Panics,
    NeverEnds,
    /// Written without `#[async_trait]`'s sugar, this panics before there is a future.
    PanicsAtOnce,
}

impl Hook for BadHook {
    fn started<'a, 'b, 'c>(&'a self, _: &'b Context) -> Told<'c>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        self.misbehave()
    }

    fn ended<'a, 'b, 'c>(&'a self, _: &'b runyard_actions::Envelope) -> Told<'c>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        self.misbehave()
    }
}

type Told<'a> = std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl BadHook {
    fn misbehave<'a>(&self) -> Told<'a> {
        match self {
            BadHook::Panics => Box::pin(async { panic!("hunter2") }),
            BadHook::NeverEnds => Box::pin(std::future::pending()),
            BadHook::PanicsAtOnce => panic!("hunter2"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_or_never_ends_changes_nothing() {
    for hook in [BadHook::Panics, BadHook::NeverEnds] {
        let app = TestApp::new(Runtime::builder().action(open("act").handler(echo)).hook(hook));
        assert_eq!(app.call("act", json!({"a": 1})).await.expect_ok(), json!({"a": 1}));
        app.call("nope", json!({})).await.expect_error("ACTION_NOT_FOUND");
    }
}

#[tokio::test]
async fn a_hook_that_panics_before_it_gives_a_future_changes_nothing() {
    let app = TestApp::new(Runtime::builder().action(open("act").handler(echo)).hook(BadHook::PanicsAtOnce));
    assert_eq!(app.call("act", json!({"a": 1})).await.expect_ok(), json!({"a": 1}));
}

struct PanicsAtOnce;

impl PermissionChecker for PanicsAtOnce {
    fn check<'a, 'b, 'c>(&'a self, _: PermissionRequest<'b>) -> Answered<'c>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        panic!("hunter2")
    }
}

type Answered<'a> = std::pin::Pin<Box<dyn Future<Output = Result<Permission, ActionError>> + Send + 'a>>;

#[tokio::test]
async fn a05_a_checker_that_panics_before_it_gives_a_future_denies() {
    let app =
        TestApp::new(Runtime::builder().action(open("act").handler(echo)).permission_checker(PanicsAtOnce));
    app.call("act", json!({})).await.expect_error("AUTHORIZATION_ERROR");
}

struct NeverAnswers;

#[async_trait]
impl PermissionChecker for NeverAnswers {
    async fn check(&self, _: PermissionRequest<'_>) -> Result<Permission, ActionError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a05_a_checker_that_never_answers_denies() {
    let app =
        TestApp::new(Runtime::builder().action(open("act").handler(echo)).permission_checker(NeverAnswers));
    app.call("act", json!({})).await.expect_error("AUTHORIZATION_ERROR");
}

/// An executor without timers is the host's fault; the caller gets an envelope all the same.
#[test]
fn invoking_does_not_panic_on_an_executor_without_timers() {
    struct Silent;
    impl Hook for Silent {}
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let slow = open("slow").timeout_ms(10).handler(echo);
    let app = TestApp::new(Runtime::builder().action(open("act").handler(echo)).action(slow).hook(Silent));
    for name in ["act", "slow"] {
        let code = executor.block_on(app.call(name, json!({}))).0.error().map(|failure| failure.code.clone());
        assert!(code.is_none_or(|code| code == Code::InternalError), "{name}");
    }
}
