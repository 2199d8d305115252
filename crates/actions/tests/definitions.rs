//! Definitions: what is refused when an action is defined, and what it is when nothing else is said.
#![allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use runyard_actions::testing::{TestApp, defined};
use runyard_actions::{
    Action, ActionBuilder, ActionError, BuildError, Context, DefinitionError, Deprecation, Exposure,
    RetryPolicy, Runtime, Schema, SideEffects, Visibility,
};
use runyard_domain::Surface;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

async fn echo(input: Value, _: Context) -> Result<Value, ActionError> {
    Ok(input)
}

fn named(name: &str) -> ActionBuilder {
    Action::define(name, "Does something.")
}

fn taking(field: &str) -> ActionBuilder {
    named("act").input_schema(json!({"type": "object", "properties": {field: {"type": "string"}}}))
}

#[track_caller]
fn refused(builder: ActionBuilder) -> DefinitionError {
    builder.handler(echo).unwrap_err()
}

fn act() -> String {
    "act".to_owned()
}

#[test]
fn a_name_is_lower_case_letters_digits_and_underscores() {
    for name in ["a", "create_task", "v2", "a_", "a__b", &"a".repeat(64)] {
        assert_eq!(defined(named(name).handler(echo)).name(), name);
    }
    for name in ["", "A", "2a", "_a", "create-task", "create task", "täsk", "a.b", "a\n", &"a".repeat(65)] {
        assert_eq!(refused(named(name)), DefinitionError::InvalidName { name: name.to_owned() });
    }
}

#[test]
fn a_description_says_something() {
    for description in ["", " ", "\n\t"] {
        let error = refused(Action::define("act", description));
        assert_eq!(error, DefinitionError::NoDescription { action: act() });
    }
}

#[test]
fn a_schema_is_valid_and_its_defaults_satisfy_it() {
    for schema in [
        json!({"type": "no such type"}),
        json!({"type": "object", "required": "title"}),
        json!({"pattern": "("}),
        json!({"properties": {"n": {"type": "integer", "default": "three"}}}),
        json!({"properties": {"in": {"properties": {"n": {"maximum": 2, "default": 3}}}}}),
        json!({"properties": {"list": {"items": {"properties": {"n": {"enum": ["a"], "default": "b"}}}}}}),
        json!({"properties": {"n": {"$ref": "#/$defs/n", "default": -1}}, "$defs": {"n": {"minimum": 0}}}),
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"$ref": "file:///etc/passwd"}),
        json!(7),
    ] {
        for builder in [named("act").input_schema(schema.clone()), named("act").output_schema(schema.clone())]
        {
            assert!(matches!(refused(builder), DefinitionError::InvalidSchema { .. }), "{schema}");
        }
    }
    let fine =
        json!({"properties": {"n": {"$ref": "#/$defs/n", "default": 1}}, "$defs": {"n": {"minimum": 0}}});
    defined(named("act").input_schema(fine).handler(echo));
}

#[test]
fn the_default_of_a_type_is_checked_when_its_schema_is() {
    #[derive(Deserialize, JsonSchema)]
    struct Sized {
        #[serde(default = "three")]
        #[schemars(range(max = 2))]
        #[allow(dead_code, reason = "only its schema matters")]
        size: u32,
    }
    fn three() -> u32 {
        3
    }
    let action = defined(named("act").typed(|_: Sized, _| async { Ok::<_, ActionError>(()) }));
    assert!(matches!(action.spec().input.check(), Err(DefinitionError::InvalidSchema { .. })));
}

#[test]
fn a_route_is_a_method_and_a_path() {
    for route in ["POST /a", "POST /api/v1/tasks", "PUT /a/{title}", "DELETE /a.b/c-d_e", "PATCH /{title}/x"]
    {
        let action = defined(taking("title").side_effects(SideEffects::Write).http(route).handler(echo));
        assert_eq!(action.spec().http.as_ref().unwrap().to_string(), route);
    }
    for route in [
        "",
        "POST",
        "/a",
        "POST a",
        "post /a",
        "HEAD /a",
        "POST  /a",
        "POST /",
        "POST //a",
        "POST /a/",
        "POST /a b",
        "POST /a?b",
        "POST /a%20b",
        "POST /{}",
        "POST /{title",
        "POST /title}",
        "POST /x{title}",
        "POST /{*rest}",
        "POST /ä",
    ] {
        let error = refused(taking("title").side_effects(SideEffects::Write).http(route));
        assert_eq!(error, DefinitionError::InvalidRoute { route: route.to_owned() });
    }
}

#[test]
fn a_route_fits_its_action() {
    for side_effects in [SideEffects::Write, SideEffects::Destructive] {
        let error = refused(taking("title").side_effects(side_effects).http("GET /a"));
        assert_eq!(error, DefinitionError::UnsafeGet { action: act() });
    }
    defined(taking("title").http("GET /a/{title}").handler(echo));
    let error = refused(taking("title").http("GET /a/{id}"));
    assert_eq!(error, DefinitionError::UnknownPathField { action: act(), field: "id".to_owned() });
    for field in ["confirm", "idempotencyKey", "timeoutMs", "retry"] {
        let error = refused(taking(field).http("GET /a"));
        assert_eq!(error, DefinitionError::ReservedField { action: act(), field: field.to_owned() });
        defined(taking(field).handler(echo));
    }
}

#[test]
fn numbers_stay_in_their_ranges() {
    #[track_caller]
    fn check(builder: ActionBuilder, what: &'static str) {
        assert_eq!(refused(builder), DefinitionError::OutOfRange { action: act(), what });
    }
    let waits = "a timeout, deadline or wait";
    check(named("act").timeout_ms(DAY_MS + 1), waits);
    check(named("act").deadline_ms(u64::MAX), waits);
    check(named("act").concurrency(1, DAY_MS + 1), waits);
    check(named("act").concurrency(0, 0), "the concurrency limit");
    check(named("act").retry(RetryPolicy { retries: 101, delay_ms: 0 }), "retry");
    check(named("act").retry(RetryPolicy { retries: 1, delay_ms: DAY_MS + 1 }), "retry");
    let most = named("act").timeout_ms(DAY_MS).deadline_ms(DAY_MS).concurrency(u32::MAX, DAY_MS);
    defined(most.retry(RetryPolicy { retries: 100, delay_ms: DAY_MS }).handler(echo));
}

#[test]
fn a_runtime_refuses_what_does_not_fit_together_and_says_all_of_it() {
    let build = |builder: runyard_actions::RuntimeBuilder| builder.build().map(drop).unwrap_err();
    let twice = Runtime::builder().action(named("act").handler(echo)).action(named("act").handler(echo));
    assert_eq!(build(twice), BuildError(vec![DefinitionError::Duplicate { name: act() }]));

    let exposure = Exposure::new().destructive("nope", [Surface::Http]);
    let unknown = Runtime::builder().action(named("act").handler(echo)).exposure(exposure);
    assert_eq!(build(unknown), BuildError(vec![DefinitionError::UnknownExposed { name: "nope".to_owned() }]));

    let bad = Runtime::builder().actions([named("A").handler(echo), named("B").handler(echo)]);
    let BuildError(errors) = build(bad);
    assert_eq!(errors.len(), 2);
}

#[test]
fn an_error_says_what_to_do() {
    let error = refused(taking("title").http("POST tasks"));
    assert_eq!(
        error.to_string(),
        "\"POST tasks\" is not a route: write GET, POST, PUT, PATCH or DELETE and a path, as in \
         \"POST /api/v1/tasks/{id}\""
    );
}

// clause: A02
#[test]
fn an_action_is_this_when_nothing_else_is_said() {
    let action = defined(named("create_task").handler(echo));
    assert_eq!(
        action.manifest(),
        json!({
            "name": "create_task",
            "version": "1.0.0",
            "title": "Create Task",
            "description": "Does something.",
            "inputSchema": {"type": "object", "properties": {}, "additionalProperties": false},
            "outputSchema": null,
            "visibility": "public",
            "sideEffects": "read",
            "idempotency": "unspecified",
            "peopleOnly": false,
            "permissions": [],
            "supportedSurfaces": ["cli", "json", "http", "mcp", "react", "dev", "ai-sdk"],
            "timeoutMs": null,
            "deadlineMs": null,
            "retry": {"retries": 0, "delayMs": 100},
            "requiresConfirmation": false,
            "concurrency": null,
            "deprecated": false,
            "deprecation": null,
            "http": null,
            "examples": [],
        })
    );
}

#[test]
fn an_action_is_what_was_said() {
    let deprecation =
        Deprecation { message: "old".to_owned(), since: Some("2.0".to_owned()), replacement: None };
    let action = defined(
        taking("title")
            .title("Wipe")
            .version("2.1.0")
            .side_effects(SideEffects::Destructive)
            .visibility(Visibility::Local)
            .people_only()
            .permissions(["admin"])
            .surfaces([Surface::Dev, Surface::Cli])
            .timeout_ms(1000)
            .deadline_ms(5000)
            .retry(RetryPolicy::DEFAULT)
            .concurrency(2, 30)
            .deprecated(deprecation)
            .http("DELETE /a/{title}")
            .example(json!({"title": "x"}))
            .handler(echo),
    );
    let manifest = action.manifest();
    let field = |name: &str| manifest[name].clone();
    assert_eq!(field("supportedSurfaces"), json!(["cli", "dev"]));
    assert_eq!(field("requiresConfirmation"), json!(true));
    assert_eq!(field("concurrency"), json!({"max": 2, "waitMs": 30}));
    assert_eq!(field("retry"), json!({"retries": 2, "delayMs": 100}));
    assert_eq!(field("deprecation"), json!({"message": "old", "since": "2.0"}));
    assert_eq!(field("http"), json!("DELETE /a/{title}"));
    assert_eq!((field("visibility"), field("deprecated")), (json!("local"), json!(true)));
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Task {
    title: String,
    #[serde(default)]
    size: u32,
    inner: Option<Inner>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Inner {
    on: bool,
}

// clause: A03
#[tokio::test]
async fn a_typed_input_refuses_properties_that_its_type_does_not_know() {
    let action = named("act").typed(|task: Task, _| async { Ok::<_, ActionError>(task) });
    let app = TestApp::new(Runtime::builder().action(action));
    let data = app.call("act", json!({"title": "x"})).await.expect_ok();
    assert_eq!(data, json!({"title": "x", "size": 0, "inner": null}));
    for (input, path) in [
        (json!({"title": "x", "titel": "y"}), json!(["titel"])),
        (json!({"title": "x", "inner": {"on": true, "off": 1}}), json!(["inner", "off"])),
        (json!({"title": "x", "toString": 1}), json!(["toString"])),
        (json!({"title": "x", "__proto__": {}}), json!(["__proto__"])),
        (json!({"title": "x", "size": 4_294_967_296u64}), json!(["size"])),
        (json!({"title": "x", "size": -1}), json!(["size"])),
        (json!({"title": "x", "size": 1.5}), json!(["size"])),
    ] {
        let failure = app.call("act", input.clone()).await.expect_error("VALIDATION_ERROR");
        assert_eq!(serde_json::to_value(&failure.issues).unwrap()[0]["path"], path, "{input}");
        assert_eq!(failure.issues.len(), 1, "{input}: {:?}", failure.issues);
    }
}

#[tokio::test]
async fn an_action_without_input_takes_an_empty_object_only() {
    let action = named("act").typed_without_input(|_| async { Ok::<_, ActionError>(1) });
    let app = TestApp::new(Runtime::builder().action(action));
    app.call("act", json!({})).await.expect_ok();
    for input in [json!({"a": 1}), json!(null), json!([])] {
        app.call("act", input).await.expect_error("VALIDATION_ERROR");
    }
}

#[test]
fn the_schema_of_an_output_leaves_room_for_what_comes_later() {
    let output = Schema::of_output::<Task>();
    let value = json!({"title": "x", "size": 1, "inner": null, "more": true});
    assert_eq!(output.issues(&value), Ok(vec![]));
}

// clause: A13
#[tokio::test]
async fn a_deprecated_action_says_so_in_the_log() {
    let deprecation =
        Deprecation { message: "old".to_owned(), since: None, replacement: Some("new".to_owned()) };
    let app = TestApp::new(Runtime::builder().action(named("act").deprecated(deprecation).handler(echo)));
    let called = app.call("act", json!({})).await;
    let log = serde_json::to_value(&called.0.logs[0]).unwrap();
    assert_eq!(json!([log["level"], log["message"]]), json!(["warn", "Action is deprecated."]));
    assert_eq!(log["fields"], json!({"message": "old", "since": null, "replacement": "new"}));
}
