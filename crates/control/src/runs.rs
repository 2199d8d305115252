//! Runs: make, list, show, read what happened, tell them something, end them.

use runyard_actions::{Action, ActionError, Context, DefinitionError, action};
use runyard_domain::WantedExecution;
use runyard_domain::run::CommandKind;
use runyard_engine::{Engine, NewCancel, NewCommand, NewRun, Standing, reason_given};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failed::failed;
use crate::page::{LIMIT_MAX, limit_default, page};
use crate::run_input::{ExecutionPolicySchema, TaskInput};
use crate::run_view::{RunView, states};
use crate::scope::{bound_to, check_cursor, id, run_for};

pub(crate) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![run_create(), run_list(), run_show(), run_events(), run_cancel(), run_command()]
}

/// A run that somebody wants.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Create {
    /// What is to be done: a text for the agent, or {action, input} for a run that is a single action.
    task: TaskInput,
    /// The agent profile.
    #[schemars(length(min = 1, max = 128))]
    agent: String,
    /// A workspace's id or label, or an absolute path inside an allowed one.
    #[schemars(length(min = 1, max = 4096))]
    workspace: String,
    /// The backend profile, where it is not the agent profile's own.
    backend_profile: Option<String>,
    /// The session whose conversation it goes on with; a new one without.
    session: Option<String>,
    /// What it may do; the agent profile's own without.
    #[schemars(with = "Option<ExecutionPolicySchema>")]
    execution_policy: Option<WantedExecution>,
    /// The run that it goes on from, where that is not the last one of the session.
    continues: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct CreatedAnswer {
    /// The run.
    run: RunView,
    /// Whether its text was redacted: it is executed as stored.
    redacted: bool,
}

/// Start a run: an agent works on a task in a workspace.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "conditional",
    owns_idempotency_key,
    permissions = ["runs.write"],
    http = "POST /api/v1/runs",
    task = "possible",
    example = r#"{"task": "Tidy up the README", "agent": "demo", "workspace": "demo"}"#
)]
async fn run_create(input: Create, ctx: &Context) -> Result<CreatedAnswer, ActionError> {
    let new = NewRun {
        task: input.task.into(),
        agent: input.agent,
        workspace: input.workspace,
        backend_profile: input.backend_profile,
        session: input.session.map(|text| id("session", &text)).transpose()?,
        continues: input.continues.map(|text| id("continues", &text)).transpose()?,
        execution_policy: input.execution_policy,
        key: ctx.idempotency_key().map(str::to_owned),
    };
    let made = ctx.service::<Engine>()?.create_run(new, ctx.actor()).await.map_err(failed)?;
    Ok(CreatedAnswer { run: RunView::of(&made.standing), redacted: made.redacted })
}

#[derive(Deserialize, JsonSchema)]
struct List {
    /// Only runs in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "states")]
    state: Option<String>,
    /// Only runs older than this one: the `next` of the page before.
    before: Option<String>,
    /// How many at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = LIMIT_MAX))]
    limit: u32,
}

#[derive(Serialize, JsonSchema)]
struct Runs {
    /// The runs, newest first.
    runs: Vec<RunView>,
    /// Where the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// List runs, newest first.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/runs",
    resource = "runyard://runs",
    example = r#"{"state": "needs_approval", "limit": 20}"#
)]
async fn run_list(input: List, ctx: &Context) -> Result<Runs, ActionError> {
    let before = input.before.map(|text| id("before", &text)).transpose()?;
    let engine = ctx.service::<Engine>()?;
    if let Some(own) = bound_to(ctx.actor()) {
        let own = engine.run(own).await.map_err(failed)?;
        let state = input.state.as_deref();
        let listed = before.is_none_or(|before| own.run.id < before)
            && state.is_none_or(|state| state == own.run.state.name());
        let runs = listed.then(|| RunView::listed(&own)).into_iter().collect();
        return Ok(Runs { runs, next: None });
    }
    let (runs, more) = engine.runs(input.state.as_deref(), before, input.limit).await.map_err(failed)?;
    let next = runs.last().filter(|_| more).map(|last| last.run.id.to_string());
    Ok(Runs { runs: runs.iter().map(RunView::listed).collect(), next })
}

/// One run.
#[derive(Deserialize, JsonSchema)]
struct One {
    /// The run's id.
    id: String,
}

#[derive(Serialize, JsonSchema)]
struct RunAnswer {
    /// The run.
    run: RunView,
}

impl From<&Standing> for RunAnswer {
    fn from(standing: &Standing) -> Self {
        RunAnswer { run: RunView::of(standing) }
    }
}

/// Show a run: where it stands, what it was asked for, and what came of it.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/runs/{id}",
    resource = "runyard://runs/{id}"
)]
async fn run_show(input: One, ctx: &Context) -> Result<RunAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    Ok((&run_for(&engine, ctx.actor(), &input.id, ctx.action()).await?).into())
}

#[derive(Deserialize, JsonSchema)]
struct Events {
    /// The run's id.
    id: String,
    /// Only events after this place: the sequence of the last one that is known.
    #[serde(default)]
    after: u64,
    /// How many at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = LIMIT_MAX))]
    limit: u32,
}

#[derive(Serialize, JsonSchema)]
struct EventsAnswer {
    /// The events, oldest first, exactly as they are stored.
    events: Vec<Value>,
    /// The place to go on after; absent where there is nothing more yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// Read what happened in a run, in order.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/runs/{id}/events",
    resource = "runyard://runs/{id}/events"
)]
async fn run_events(input: Events, ctx: &Context) -> Result<EventsAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let standing = run_for(&engine, ctx.actor(), &input.id, ctx.action()).await?;
    check_cursor(&standing, input.after)?;
    let stored = engine.events(standing.run.id, input.after, input.limit + 1).await.map_err(failed)?;
    let events = stored.iter().map(|event| serde_json::from_slice::<Value>(&event.body));
    let (events, more) = page(events.collect::<Result<Vec<_>, _>>()?, input.limit);
    let next = more.then(|| input.after + events.len() as u64);
    Ok(EventsAnswer { events, next })
}

#[derive(Deserialize, JsonSchema)]
struct Cancel {
    /// The run's id.
    id: String,
    /// Why.
    #[schemars(length(max = 2000))]
    reason: Option<String>,
}

/// End a run. What it waits for is withdrawn, and what it started is stopped. While something is applied the run ends as soon as it is
/// taken back, or found to be all in place.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "conditional",
    owns_idempotency_key,
    permissions = ["runs.write"],
    http = "POST /api/v1/runs/{id}/cancel"
)]
async fn run_cancel(input: Cancel, ctx: &Context) -> Result<RunAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let run = run_for(&engine, ctx.actor(), &input.id, ctx.action()).await?.run.id;
    let reason = reason_given(input.reason).unwrap_or_else(|| format!("Cancelled by {}.", ctx.actor().id));
    let cancel = NewCancel { reason, key: ctx.idempotency_key().map(str::to_owned) };
    Ok((&engine.cancel(run, cancel, ctx.actor()).await.map_err(failed)?).into())
}

/// What can be said to a live run.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Instruction {
    /// A further turn, after the one that runs.
    Turn,
    /// A word into the turn that runs.
    Steer,
    /// The end of the turn that runs.
    Interrupt,
    /// The end of a run that is kept open, as soon as no turn runs or waits.
    Finish,
}

#[derive(Deserialize, JsonSchema)]
struct Command {
    /// The run's id.
    id: String,
    /// What.
    kind: Instruction,
    /// What to tell the agent, with a turn or a steer.
    text: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct CommandAnswer {
    /// The command.
    command: CommandView,
    /// Whether its text was redacted: it is executed as stored.
    redacted: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CommandView {
    /// Its id.
    id: String,
    /// The run that it was given to.
    run_id: String,
    /// What.
    kind: Instruction,
}

/// Tell a live run something: a further turn, a word into the turn that runs, its end, or that the run is not to be kept open.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "conditional",
    owns_idempotency_key,
    permissions = ["runs.write"],
    http = "POST /api/v1/runs/{id}/commands"
)]
async fn run_command(input: Command, ctx: &Context) -> Result<CommandAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let run = run_for(&engine, ctx.actor(), &input.id, ctx.action()).await?.run.id;
    let kind = match input.kind {
        Instruction::Turn => CommandKind::Turn,
        Instruction::Steer => CommandKind::Steer,
        Instruction::Interrupt => CommandKind::Interrupt,
        Instruction::Finish => CommandKind::Finish,
    };
    let command = NewCommand { kind, text: input.text, key: ctx.idempotency_key().map(str::to_owned) };
    let (id, redacted) = engine.command(run, command, ctx.actor()).await.map_err(failed)?;
    let command = CommandView { id: id.to_string(), run_id: run.to_string(), kind: input.kind };
    Ok(CommandAnswer { command, redacted })
}
