//! `#[action]`: what it makes of a function, and what it says of one that cannot be an action.

use std::collections::BTreeSet;

use runyard_actions::testing::{TestApp, defined};
use runyard_actions::{
    Action, ActionError, Concurrency, Context, DefinitionError, Deprecation, Idempotency, RetryPolicy,
    Runtime, SideEffects, Visibility, action,
};
use runyard_domain::Surface;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct CreateTask {
    title: String,
}

#[derive(Serialize, JsonSchema)]
struct Task {
    id: u32,
    title: String,
}

/// Create a task in the user's inbox.
#[action(crate = "runyard_actions", side_effects = "write", http = "POST /api/v1/tasks")]
async fn create_task(input: CreateTask, ctx: &Context) -> Result<Task, ActionError> {
    ctx.logger().info("creating", runyard_actions::fields! { title: input.title });
    Ok(Task { id: 1, title: input.title })
}

/// Shout a title.
#[action(crate = "runyard_actions")]
async fn shout(CreateTask { mut title }: CreateTask) -> Result<String, ActionError> {
    title.make_ascii_uppercase();
    Ok(title)
}

/// Say who is calling.
#[action(crate = "::runyard_actions")]
async fn who(ctx: &runyard_actions::Context) -> Result<String, ActionError> {
    Ok(ctx.actor().to_string())
}

/// Answer.
#[action(crate = "runyard_actions")]
async fn answer() -> Result<u32, ActionError> {
    Ok(42)
}

fn app() -> TestApp {
    TestApp::new(Runtime::builder().actions([create_task(), shout(), who(), answer()]))
}

#[tokio::test]
async fn all_four_signatures_can_be_called() {
    let app = app();
    let created = app.call("create_task", json!({"title": "milk"})).await;
    assert_eq!(created.expect_log("creating").expect_ok(), json!({"id": 1, "title": "milk"}));
    assert_eq!(app.call("shout", json!({"title": "milk"})).await.expect_ok(), json!("MILK"));
    assert_eq!(app.call("who", json!({})).await.expect_ok(), json!("person test"));
    assert_eq!(app.call("answer", json!({})).await.expect_ok(), json!(42));
}

#[tokio::test]
async fn the_input_is_checked_against_the_schema_of_its_type() {
    let failure = app().call("create_task", json!({"title": 7})).await.expect_error("VALIDATION_ERROR");
    assert_eq!(failure.issues.len(), 1);
    assert_eq!(failure.issues[0].path, [runyard_actions::PathSegment::Key("title".into())]);
}

#[test]
fn without_keys_the_defaults_are_those_of_a_definition() {
    let (made, by_hand) =
        (defined(answer()), defined(Action::define("answer", "Answer.").typed_without_input(by_hand)));
    assert_eq!(made.manifest(), by_hand.manifest());

    async fn by_hand(_: Context) -> Result<u32, ActionError> {
        Ok(42)
    }
}

/// This doc comment is not the description.
#[action(
    crate = "runyard_actions",
    name = "archive",
    title = "Put away",
    description = "Archive a task.",
    version = "2.1.0",
    side_effects = "destructive",
    idempotency = "non_idempotent",
    owns_idempotency_key,
    visibility = "local",
    people_only,
    permissions = ["tasks.write", "tasks.archive"],
    surfaces = ["cli", "ai-sdk"],
    timeout_ms = 5_000,
    deadline_ms = 60_000,
    retry(retries = 4, delay_ms = 250),
    requires_confirmation = false,
    concurrency(max = 2, wait_ms = 30),
    deprecated(message = "Nobody needs it.", since = "2.0.0", replacement = "delete"),
    example = r#"{"title":"milk"}"#,
    example = r#"{"title":"bread"}"#,
    http = "DELETE /api/v1/tasks/{title}"
)]
async fn every_key(_input: CreateTask) -> Result<(), ActionError> {
    Ok(())
}

#[test]
fn every_key_is_in_the_specification() {
    let action = defined(every_key());
    let spec = action.spec();
    assert_eq!((&*spec.name, &*spec.title, &*spec.version), ("archive", "Put away", "2.1.0"));
    assert_eq!(spec.description, "Archive a task.");
    assert_eq!(spec.side_effects, SideEffects::Destructive);
    assert_eq!(spec.idempotency, Idempotency::NonIdempotent);
    assert_eq!(spec.visibility, Visibility::Local);
    assert!(spec.owns_idempotency_key && spec.people_only && !spec.requires_confirmation);
    assert_eq!(spec.permissions, ["tasks.write", "tasks.archive"]);
    assert_eq!(spec.surfaces, BTreeSet::from([Surface::Cli, Surface::AiSdk]));
    assert_eq!((spec.timeout_ms, spec.deadline_ms), (Some(5_000), Some(60_000)));
    assert_eq!(spec.retry, RetryPolicy { retries: 4, delay_ms: 250 });
    assert_eq!(spec.concurrency, Some(Concurrency { max: 2, wait_ms: 30 }));
    let deprecation = Deprecation {
        message: "Nobody needs it.".into(),
        since: Some("2.0.0".into()),
        replacement: Some("delete".into()),
    };
    assert_eq!(spec.deprecation, Some(deprecation));
    assert_eq!(spec.examples, [json!({"title": "milk"}), json!({"title": "bread"})]);
    assert_eq!(spec.http.as_ref().map(ToString::to_string).as_deref(), Some("DELETE /api/v1/tasks/{title}"));
}

#[test]
fn short_forms_stand_for_the_usual_values() {
    /// Short.
    #[action(
        crate = "runyard_actions",
        idempotency = "conditional",
        visibility = "private",
        permissions = [],
        surfaces = [],
        retry = true,
        concurrency(max = 1),
        deprecated = "Old.",
    )]
    async fn short() -> Result<(), ActionError> {
        Ok(())
    }
    /// Shorter.
    #[action(crate = "runyard_actions", retry(retries = 7), idempotency = "idempotent")]
    async fn shorter() -> Result<(), ActionError> {
        Ok(())
    }
    /// Never again.
    #[action(crate = "runyard_actions", retry = false, idempotency = "unspecified", visibility = "public")]
    async fn never() -> Result<(), ActionError> {
        Ok(())
    }
    let [short, shorter, never] = [short(), shorter(), never()].map(defined);
    assert_eq!(short.spec().retry, RetryPolicy::DEFAULT);
    assert_eq!(short.spec().concurrency, Some(Concurrency { max: 1, wait_ms: 0 }));
    assert_eq!(short.spec().idempotency, Idempotency::Conditional);
    assert_eq!(short.spec().visibility, Visibility::Private);
    assert!(short.spec().permissions.is_empty() && short.spec().surfaces.is_empty());
    let deprecation = Deprecation { message: "Old.".into(), since: None, replacement: None };
    assert_eq!(short.spec().deprecation, Some(deprecation));
    assert_eq!(shorter.spec().retry, RetryPolicy { retries: 7, ..RetryPolicy::DEFAULT });
    assert_eq!(shorter.spec().idempotency, Idempotency::Idempotent);
    assert_eq!(never.spec().retry, RetryPolicy::NONE);
    assert_eq!(
        (never.spec().idempotency, never.spec().visibility),
        (Idempotency::Unspecified, Visibility::Public)
    );
}

#[test]
fn the_macro_knows_every_surface() {
    /// Everywhere.
    #[action(crate = "runyard_actions", surfaces = ["cli", "json", "http", "mcp", "react", "dev", "ai-sdk"])]
    async fn everywhere() -> Result<(), ActionError> {
        Ok(())
    }
    assert_eq!(defined(everywhere()).spec().surfaces, Surface::DEFAULT.into());
}

#[test]
fn the_lines_of_a_paragraph_are_one_line_of_the_description() {
    /// Sync the tasks
    /// with the server.
    ///
    ///
    ///   What is newer wins.
    #[doc(alias = "refresh")]
    #[action(crate = "runyard_actions")]
    async fn sync() -> Result<(), ActionError> {
        Ok(())
    }
    assert_eq!(defined(sync()).spec().description, "Sync the tasks with the server.\nWhat is newer wins.");
}

#[tokio::test]
async fn any_error_can_be_returned_with_a_question_mark() {
    /// Read a number.
    #[action(crate = "runyard_actions")]
    async fn number(input: CreateTask) -> Result<u32, ActionError> {
        Ok(input.title.parse()?)
    }
    /// Read a number and fail with the very error.
    #[action(crate = "runyard_actions")]
    async fn own_error(input: CreateTask) -> Result<u32, std::num::ParseIntError> {
        input.title.parse()
    }
    let app = TestApp::new(Runtime::builder().actions([number(), own_error()]));
    for action in ["number", "own_error"] {
        assert_eq!(app.call(action, json!({"title": "7"})).await.expect_ok(), json!(7));
        app.call(action, json!({"title": "seven"})).await.expect_error("INTERNAL_ERROR");
    }
}

#[test]
fn the_return_type_may_have_another_name() {
    type Outcome = Result<u32, ActionError>;
    /// Answer.
    #[action(crate = "runyard_actions")]
    async fn alias() -> Outcome {
        Ok(42)
    }
    assert!(defined(alias()).spec().output.is_some());
}

#[test]
fn an_example_that_is_no_json_is_told_when_the_action_is_defined() {
    /// Answer.
    #[action(crate = "runyard_actions", example = "{}", example = "{title}")]
    async fn mistyped() -> Result<(), ActionError> {
        Ok(())
    }
    let Err(DefinitionError::InvalidSchema { reason }) = mistyped() else { panic!("expected an error") };
    assert!(reason.starts_with("example 2 of \"mistyped\" is not JSON: "), "{reason}");
}

#[test]
fn attributes_and_visibility_stay_with_the_function() {
    mod inner {
        use runyard_actions::{ActionError, action};

        #[action(crate = "runyard_actions", description = "Answer.")]
        #[cfg(any())]
        pub(super) async fn r#loop() -> Result<u32, ActionError> {
            Ok(0)
        }

        #[action(crate = "runyard_actions", description = "Answer.")]
        #[cfg(test)]
        #[allow(non_snake_case, reason = "lints are about what one sees")]
        #[inline]
        pub(super) async fn r#loop() -> Result<u32, ActionError> {
            let Answer = 42;
            Ok(Answer)
        }
    }
    assert_eq!(defined(inner::r#loop()).name(), "loop");
}

#[test]
fn the_macro_explains_what_is_wrong() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
