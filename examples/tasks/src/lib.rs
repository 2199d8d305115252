//! A task list: the example application, built only on the public `runyard` crate.

mod store;

use runyard::{ActionError, App, Code, Context, Exposure, Surface, action, fields};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use store::{StoreError, Tasks};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Its id, such as `t1`.
    pub id: String,
    /// What is to be done.
    pub title: String,
    /// How urgent it is.
    pub priority: Priority,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Whether it is done.
    pub done: bool,
}

/// How urgent a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// When there is time.
    Low,
    /// As usual.
    #[default]
    Normal,
    /// Now.
    High,
}

/// What a new task is made of.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct CreateTask {
    /// What is to be done.
    #[schemars(length(min = 1, max = 200))]
    pub title: String,
    /// How urgent it is.
    #[serde(default)]
    pub priority: Priority,
    /// Words to find it by.
    #[serde(default)]
    #[schemars(length(max = 20), inner(length(min = 1, max = 40)))]
    pub tags: Vec<String>,
}

/// Which tasks are listed.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ListTasks {
    /// Only those that are done, or not.
    pub done: Option<bool>,
    /// Only those with this tag.
    pub tag: Option<String>,
    /// At most so many.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: u32,
}

fn fifty() -> u32 {
    50
}

/// A list of tasks.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TaskList {
    /// The tasks, oldest first.
    pub tasks: Vec<Task>,
    /// How many there are in all that fit.
    pub total: u64,
}

/// Which task is meant.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct TaskId {
    /// The task's id.
    #[schemars(length(min = 1, max = 40))]
    pub id: String,
}

/// Create a task.
#[action(
    side_effects = "write",
    idempotency = "non_idempotent",
    permissions = ["tasks.write"],
    http = "POST /api/v1/tasks",
    example = r#"{"title": "Buy milk", "tags": ["home"]}"#
)]
pub async fn task_create(input: CreateTask, ctx: &Context) -> Result<Task, ActionError> {
    let tasks = ctx.service::<Tasks>()?;
    // Files and locks block, so they are used where that holds up nobody else.
    let task = match ctx.blocking(move || tasks.create(input)).await? {
        Err(StoreError::Full) => {
            return Err(ActionError::application("TASKS_FULL", "The task list is full."));
        }
        created => created?,
    };
    ctx.logger().info("task created", fields! { id: task.id });
    Ok(task)
}

/// List tasks, oldest first.
#[action(idempotency = "idempotent", permissions = ["tasks.read"], http = "GET /api/v1/tasks")]
pub async fn task_list(input: ListTasks, ctx: &Context) -> Result<TaskList, ActionError> {
    let store = ctx.service::<Tasks>()?;
    let mut tasks = ctx.blocking(move || store.all()).await??;
    tasks.retain(|task| input.done.is_none_or(|done| task.done == done));
    tasks.retain(|task| input.tag.as_ref().is_none_or(|tag| task.tags.contains(tag)));
    let total = tasks.len() as u64;
    tasks.truncate(input.limit as usize);
    Ok(TaskList { tasks, total })
}

/// Mark a task as done.
#[action(
    side_effects = "write",
    idempotency = "idempotent",
    permissions = ["tasks.write"],
    http = "POST /api/v1/tasks/{id}/complete"
)]
pub async fn task_complete(input: TaskId, ctx: &Context) -> Result<Task, ActionError> {
    let (tasks, id) = (ctx.service::<Tasks>()?, input.id.clone());
    ctx.blocking(move || tasks.complete(&id)).await??.ok_or_else(|| not_found(&input.id))
}

/// Delete a task for good.
#[action(
    side_effects = "destructive",
    idempotency = "conditional",
    permissions = ["tasks.write"],
    http = "DELETE /api/v1/tasks/{id}"
)]
pub async fn task_delete(input: TaskId, ctx: &Context) -> Result<Task, ActionError> {
    let (tasks, id) = (ctx.service::<Tasks>()?, input.id.clone());
    ctx.blocking(move || tasks.delete(&id)).await??.ok_or_else(|| not_found(&input.id))
}

fn not_found(id: &str) -> ActionError {
    ActionError::new(Code::NotFound, format!("There is no task \"{id}\"."))
}

/// The actions of the task list.
pub fn actions() -> [Result<runyard::Action, runyard::DefinitionError>; 4] {
    [task_create(), task_list(), task_complete(), task_delete()]
}

/// The destructive action is offered over the wire too; it still asks for confirmation.
pub fn exposure() -> Exposure {
    Exposure::new().destructive("task_delete", [Surface::Http, Surface::Mcp, Surface::AiSdk])
}

/// The whole application on one store of tasks.
pub fn app(tasks: Tasks) -> App {
    App::new("tasks", "A task list, callable from everywhere.")
        .version(env!("CARGO_PKG_VERSION"))
        .service(tasks)
        .actions(actions())
        .exposure(exposure())
}
