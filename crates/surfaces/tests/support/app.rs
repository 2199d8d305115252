//! An application with one action for each way in which actions differ over HTTP.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_actions::{
    Action, ActionBuilder, ActionError, Artifact, Context, DefinitionError, Envelope, Exposure, Hook, Issue,
    Progress, Runtime, RuntimeBuilder, SideEffects, Visibility, fields,
};
use runyard_domain::{Code, Surface};
use serde_json::{Value, json};

/// What can be seen of an application from outside its server.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Inner>);

#[derive(Default)]
struct Inner {
    started: AtomicUsize,
    dropped: AtomicUsize,
    ended: Mutex<Vec<String>>,
}

impl Seen {
    /// How many handlers have begun.
    pub(crate) fn started(&self) -> usize {
        self.0.started.load(Ordering::SeqCst)
    }

    /// How many handlers are over, finished or dropped.
    pub(crate) fn dropped(&self) -> usize {
        self.0.dropped.load(Ordering::SeqCst)
    }

    /// The code of each invocation that the hook saw end.
    pub(crate) fn ended(&self) -> Vec<String> {
        self.0.ended.lock().unwrap().clone()
    }

    /// Counts a handler in, and out when what is returned is dropped.
    pub(crate) fn enter(&self) -> Running {
        self.0.started.fetch_add(1, Ordering::SeqCst);
        Running(self.clone())
    }
}

/// Counts a handler out when it is dropped.
pub(crate) struct Running(Seen);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Hook for Seen {
    async fn ended(&self, envelope: &Envelope) {
        let code = envelope.error().map_or("OK", |failure| failure.code.as_str());
        self.0.ended.lock().unwrap().push(code.to_owned());
    }
}

/// Starts the definition of an action that takes any object.
pub(crate) fn open(name: &str) -> ActionBuilder {
    Action::define(name, "Does something.").input_schema(json!({"type": "object"}))
}

/// An action that says what it was given and by whom.
pub(crate) fn echoing(builder: ActionBuilder) -> Result<Action, DefinitionError> {
    builder.handler(|input, context: Context| async move {
        Ok(json!({"input": input, "actor": context.actor().id, "surface": context.surface()}))
    })
}

/// The whole application.
pub(crate) fn app(seen: &Seen) -> RuntimeBuilder {
    Runtime::builder()
        .hook(seen.clone())
        .action(echoing(open("echo")))
        .actions(task_actions())
        .actions(hidden_actions())
        .actions([failing(), following(), limited(seen.clone())])
        .actions([counting(seen.clone()), hanging(seen.clone()), waiting(seen.clone())])
        .exposure(Exposure::new().destructive("delete_task", [Surface::Http]))
}

/// The schema of a task; `id` is there for the routes that have it in their path.
pub(crate) fn task_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "title": {"type": "string", "minLength": 1},
            "done": {"type": "boolean", "default": false},
            "labels": {"type": "array", "items": {"type": "string"}},
            "owner": {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": false},
        },
        "additionalProperties": false,
    })
}

fn task_actions() -> [Result<Action, DefinitionError>; 5] {
    let task = |name: &str, route: &str| {
        Action::define(name, "Does something with a task.").input_schema(task_schema()).http(route)
    };
    [
        echoing(task("create_task", "POST /api/v1/tasks").side_effects(SideEffects::Write)),
        echoing(task("find_tasks", "GET /api/v1/tasks")),
        echoing(task("get_task", "GET /api/v1/tasks/{id}")),
        echoing(task("update_task", "PATCH /api/v1/tasks/{id}").side_effects(SideEffects::Write)),
        echoing(task("delete_task", "DELETE /api/v1/tasks/{id}").side_effects(SideEffects::Destructive)),
    ]
}

fn hidden_actions() -> [Result<Action, DefinitionError>; 6] {
    [
        echoing(open("private_thing").visibility(Visibility::Private).http("POST /api/v1/private")),
        echoing(open("local_thing").visibility(Visibility::Local).http("POST /api/v1/local")),
        echoing(open("wipe").side_effects(SideEffects::Destructive).http("POST /api/v1/wipe")),
        echoing(open("cli_only").surfaces([Surface::Cli])),
        echoing(open("people_thing").people_only().http("POST /api/v1/people")),
        echoing(open("guarded").permissions(["tasks.write"])),
    ]
}

/// Fails as it is told.
fn failing() -> Result<Action, DefinitionError> {
    open("fail").output_schema(json!({"type": "object"})).handler(|input, _| async move {
        let code = input["code"].as_str().unwrap_or_default().to_owned();
        Err(match code.as_str() {
            "OUTPUT_VALIDATION_ERROR" => return Ok(json!("not an object")),
            "OUTPUT_SERIALIZATION_ERROR" => return Ok(json!({"text": "x".repeat(9 * 1024 * 1024)})),
            "INTERNAL_ERROR" => ActionError::internal("the detail that nobody may read"),
            "VALIDATION_ERROR" => ActionError::invalid_input(vec![Issue::at("code", "Expected another.")]),
            "WAIT" => ActionError::external_service("Down.").retry_after(Duration::from_millis(1500)),
            "PANIC" => panic!("the detail that nobody may read"),
            other => match Code::parse(other) {
                Some(code) => ActionError::new(code, "As asked."),
                None => ActionError::application(other, "As asked."),
            },
        })
    })
}

/// Reports one of each kind, then ends.
fn following() -> Result<Action, DefinitionError> {
    open("follow").handler(|input, context: Context| async move {
        context.logger().info("begins", fields! { step: 1, text: "two\nlines" });
        tokio::task::yield_now().await;
        context.progress().report(Progress::percent(50.0).message("half"));
        tokio::task::yield_now().await;
        context.artifacts().add(Artifact::named("report.txt"));
        context.logger().warn("ends", fields! { step: 2 });
        match input.get("fail") {
            None => Ok(json!("done")),
            Some(_) => Err(ActionError::conflict("Told to.")),
        }
    })
}

/// Runs once at a time and until it is cancelled.
fn limited(seen: Seen) -> Result<Action, DefinitionError> {
    open("limited").concurrency(1, 0).handler(move |_, _| {
        let seen = seen.clone();
        async move {
            let _running = seen.enter();
            std::future::pending().await
        }
    })
}

/// Counts how often it ran.
fn counting(seen: Seen) -> Result<Action, DefinitionError> {
    open("count").side_effects(SideEffects::Write).http("POST /api/v1/counts").handler(move |_, _| {
        let seen = seen.clone();
        async move {
            let _running = seen.enter();
            Ok(json!(seen.started()))
        }
    })
}

/// Runs until it is dropped.
fn hanging(seen: Seen) -> Result<Action, DefinitionError> {
    open("hang").handler(move |_, _| {
        let seen = seen.clone();
        async move {
            let _running = seen.enter();
            std::future::pending().await
        }
    })
}

/// Waits as long as it is told.
fn waiting(seen: Seen) -> Result<Action, DefinitionError> {
    open("wait").handler(move |input, _| {
        let seen = seen.clone();
        async move {
            let _running = seen.enter();
            tokio::time::sleep(Duration::from_millis(input["ms"].as_u64().unwrap_or(0))).await;
            Ok(json!("waited"))
        }
    })
}
