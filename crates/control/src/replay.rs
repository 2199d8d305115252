//! Replaying a run: derived from its log again, and held against what is stored.

use runyard_actions::{Action, ActionError, Context, DefinitionError, action};
use runyard_engine::{Engine, Replay, ReplayedThread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failed::failed;
use crate::run_view::{RunView, states};
use crate::scope::{check, id};

pub(crate) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![run_replay()]
}

#[derive(Deserialize, JsonSchema)]
struct One {
    /// The run's id.
    id: String,
}

#[derive(Serialize, JsonSchema)]
struct ReplayAnswer {
    /// What came of it.
    replay: ReplayView,
}

/// A run, derived from its log again.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReplayView {
    /// The run.
    run_id: String,
    /// How many events were folded: all, unless one of them cannot be.
    events: u64,
    /// The hash of the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    /// The states that it entered, in their order.
    states: Vec<EnteredView>,
    /// How many further ones are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    states_left_out: u64,
    /// The run as its log says that it is; absent where not even its first event can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    derived: Option<RunView>,
    /// The SHA-256 of what was derived, the same for every replay of the same log.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// The conversation, where the run's backend keeps it in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<ThreadView>,
    /// What is stored otherwise than the log says.
    differences: Vec<DifferenceView>,
    /// How many further differences are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    differences_left_out: u64,
    /// Whether nothing differs.
    same: bool,
}

/// A state that a run entered.
#[derive(Serialize, JsonSchema)]
struct EnteredView {
    /// Which.
    #[schemars(schema_with = "states")]
    state: &'static str,
    /// By the event at this place.
    sequence: u64,
    /// When.
    at: String,
}

/// A conversation, as the logs of its runs say it went.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ThreadView {
    /// How many messages it has.
    messages: u64,
    /// How many of them were there before this run.
    messages_before: u64,
    /// How many runs had part in it before this one.
    runs_before: u64,
    /// How many calls of tools it has.
    calls: u64,
    /// How many calls of this run have no result.
    calls_open: u64,
    /// The SHA-256 of the messages and of the agent's state.
    digest: String,
}

impl From<ReplayedThread> for ThreadView {
    fn from(thread: ReplayedThread) -> Self {
        let ReplayedThread { messages, messages_before, runs_before, calls, calls_open, digest } = thread;
        ThreadView { messages, messages_before, runs_before, calls, calls_open, digest }
    }
}

/// Something that is stored otherwise than the log says.
#[derive(Serialize, JsonSchema)]
struct DifferenceView {
    /// What: a field of the run, an approval, an event by its place, or the conversation.
    field: String,
    /// What the log says, or has to say there.
    derived: Value,
    /// What is stored.
    stored: Value,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl From<Replay> for ReplayView {
    fn from(replay: Replay) -> Self {
        let same = replay.differences.is_empty();
        let states = replay.states.into_iter().map(|entered| EnteredView {
            state: entered.state,
            sequence: entered.sequence,
            at: entered.at.to_string(),
        });
        let differences = replay.differences.into_iter().map(|found| DifferenceView {
            field: found.field,
            derived: found.derived,
            stored: found.stored,
        });
        ReplayView {
            run_id: replay.run.to_string(),
            events: replay.events,
            head: replay.head.map(|head| head.to_string()),
            states: states.collect(),
            states_left_out: replay.states_left_out,
            derived: replay.derived.as_ref().map(RunView::of),
            digest: replay.digest,
            thread: replay.thread.map(ThreadView::from),
            differences: differences.collect(),
            differences_left_out: replay.differences_left_out,
            same,
        }
    }
}

/// Derive a run from its log again, and say where what is stored differs.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/runs/{id}/replay"
)]
async fn run_replay(input: One, ctx: &Context) -> Result<ReplayAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let run = id("id", &input.id)?;
    // The run's row is not read before: it may be what is wrong.
    check(&engine, ctx.actor(), run, ctx.action()).await?;
    Ok(ReplayAnswer { replay: engine.replay(run).await.map_err(failed)?.into() })
}
