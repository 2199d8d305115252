//! A run as answers show it.

use runyard_domain::run::{CancelRequested, Metrics, Run, RunState, Stopping, Task};
use runyard_domain::{Code, WorkspaceRef};
use runyard_engine::Standing;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

/// So much of a task's text stands in a list.
const LISTED_TASK_CHARS_MAX: usize = 500;

/// A run. What is absent is left out.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunView {
    /// Its id.
    id: String,
    /// Where it stands.
    #[schemars(schema_with = "states")]
    state: &'static str,
    /// The place of its last event.
    last_sequence: u64,
    /// When that was recorded.
    last_event_at: String,
    /// The agent profile.
    agent_id: String,
    /// The backend profile.
    backend_profile: String,
    /// The program that drives it, as it is configured, and the version that ran; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<RanOnView>,
    /// The conversation.
    session_id: String,
    /// Where it works.
    workspace: WorkspaceView,
    /// The edge that executes it, once it is planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    edge_id: Option<String>,
    /// The run that it goes on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_run_id: Option<String>,
    /// What cannot be relied on.
    #[serde(skip_serializing_if = "Option::is_none")]
    degraded: Option<DegradedView>,
    /// Why it failed or was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// What kind of failure it was, where a backend failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_kind: Option<&'static str>,
    /// The code of what our own agent loop failed with, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    /// What to do first.
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<String>,
    /// What happened, or why somebody ended it or is ending it.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// What is to be done.
    task: TaskView,
    /// Whether redaction changed the task: it is executed as it stands here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    task_redacted: bool,
    /// When it was made.
    created_at: String,
    /// The approvals that it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open_approvals: Vec<String>,
    /// Until when it waits for a further turn, where it is kept open and nothing else is left to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_open_until: Option<String>,
    /// What the agent said last; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<String>,
    /// What it may use at most, where that is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Value>,
    /// Time, tokens and cost so far.
    metrics: MetricsView,
}

/// The program that drives a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RanOnView {
    /// Its kind.
    kind: String,
    /// What is started, with its arguments, where something is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    command: Vec<String>,
    /// What the edge found: the program and its version, once the run has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<String>,
}

impl RanOnView {
    fn of(run: &Run) -> Option<Self> {
        let planned = run.planned.as_ref()?.backend.as_ref()?;
        Some(RanOnView {
            kind: planned.backend_kind.clone(),
            command: planned.command.clone(),
            found: run.started.as_ref().and_then(|started| started.checks.get("backend").cloned()),
        })
    }
}

/// The directory that a run works on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct WorkspaceView {
    /// Its id.
    id: String,
    /// Its name for people.
    label: String,
}

impl From<&WorkspaceRef> for WorkspaceView {
    fn from(workspace: &WorkspaceRef) -> Self {
        WorkspaceView { id: workspace.id.to_string(), label: workspace.label.clone() }
    }
}

/// What cannot be relied on in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct DegradedView {
    /// Every reason, in the order in which it was found.
    reason: String,
}

/// What is to be done: a text for an agent, or one action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
enum TaskView {
    /// A text for an agent.
    Text(String),
    /// One action.
    Action {
        /// The action's name.
        action: String,
        /// Its input; not in lists.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
    },
}

/// Time, tokens and cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MetricsView {
    /// From creation to the end, or to the last event.
    wall_ms: u64,
    /// The same without the time in which it waited for people.
    active_ms: u64,
    /// Tokens in, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    /// Tokens out, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    /// What it cost in US dollars, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

/// The ten words, from the one place that has them.
pub(crate) fn states(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": RunState::NAMES })
}

impl RunView {
    /// The whole of it.
    pub fn of(standing: &Standing) -> Self {
        let Standing { run, sequence, updated_at } = standing;
        let created = &run.created;
        let ending = Ending::of(run);
        let (task, task_redacted) = match &created.task {
            Task::Text { text, redacted } => (TaskView::Text(text.clone()), *redacted),
            Task::Action { action, input } => {
                (TaskView::Action { action: action.clone(), input: Some(input.clone()) }, false)
            }
        };
        RunView {
            id: run.id.to_string(),
            state: run.state.name(),
            last_sequence: *sequence,
            last_event_at: updated_at.to_string(),
            agent_id: created.agent_id.clone(),
            backend_profile: created.backend_profile.clone(),
            backend: RanOnView::of(run),
            session_id: created.session_id.to_string(),
            workspace: (&created.workspace).into(),
            edge_id: run.planned.as_ref().map(|planned| planned.edge_id.clone()),
            parent_run_id: created.parent_run_id.map(|parent| parent.to_string()),
            degraded: (!run.degraded.is_empty()).then(|| DegradedView { reason: run.degraded.join("; ") }),
            code: ending.code.map(Code::as_str),
            failure_kind: ending.failure_kind,
            cause: ending.cause,
            recovery: ending.recovery,
            message: ending.message,
            task,
            task_redacted,
            created_at: run.created_at.to_string(),
            open_approvals: run.state.open().map(|(id, _)| id.to_string()).collect(),
            kept_open_until: run.kept_open_until().map(|until| until.to_string()),
            response: Some(run.response.clone()).filter(|response| !response.is_empty()),
            budget: created.execution_policy.budget.and_then(|budget| serde_json::to_value(budget).ok()),
            metrics: MetricsView::of(standing),
        }
    }

    /// As it stands in a list: with the beginning of its task, and without its response.
    pub(crate) fn listed(standing: &Standing) -> Self {
        let mut view = RunView::of(standing);
        (view.response, view.backend) = (None, None);
        match &mut view.task {
            TaskView::Text(text) => {
                if let Some((end, _)) = text.char_indices().nth(LISTED_TASK_CHARS_MAX) {
                    text.truncate(end);
                    text.push('…');
                }
            }
            TaskView::Action { input, .. } => *input = None,
        }
        view
    }
}

/// What is said about the end of a run that did not end well.
#[derive(Default)]
struct Ending {
    code: Option<Code>,
    failure_kind: Option<&'static str>,
    cause: Option<&'static str>,
    recovery: Option<String>,
    message: Option<String>,
}

impl Ending {
    fn of(run: &Run) -> Self {
        match &run.state {
            RunState::Applying { .. } => {
                Ending { message: run.stopping.as_ref().map(stopping), ..Ending::default() }
            }
            RunState::Failed { failure } => Ending {
                code: Some(failure.code),
                failure_kind: failure.failure_kind.map(|kind| kind.code().as_str()),
                cause: failure.cause.map(Code::as_str),
                recovery: Some(failure.recovery.clone()),
                message: Some(failure.message.clone()),
            },
            RunState::Cancelled { cancelled } => Ending {
                code: cancelled.code,
                failure_kind: None,
                cause: None,
                recovery: cancelled.code.map(|code| code.row().recovery.to_owned()),
                message: Some(cancelled.reason.clone()),
            },
            _ => Ending::default(),
        }
    }
}

/// What is said of a run while what it applied is taken back.
fn stopping(why: &Stopping) -> String {
    match why {
        Stopping::Cancelled(CancelRequested { by, reason }) => {
            format!("Being cancelled by {}: {reason}", by.id)
        }
        Stopping::Late => "Applying took too long; what was written is taken back.".to_owned(),
    }
}

impl MetricsView {
    fn of(standing: &Standing) -> Self {
        let run = &standing.run;
        let Metrics { wall_ms, active_ms, usage } = run.metrics(standing.updated_at);
        let usage = usage.unwrap_or_default();
        MetricsView {
            wall_ms,
            active_ms,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cost_usd: usage.cost_usd,
        }
    }
}
