//! What there is to choose from: agents, edges, sessions. Backends have a module of their own.

use std::collections::HashMap;

use runyard_actions::{Action, ActionError, Context, DefinitionError, action};
use runyard_domain::run::OnReject;
use runyard_domain::{AgentProfile, RunId, SessionId, Timestamp};
use runyard_engine::{EdgeInfo, Engine, EngineError, Standing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failed::failed;
use crate::page::{LIMIT_MAX, limit_default, page};
use crate::run_view::{WorkspaceView, states};
use crate::scope::{bound_to, id};

/// Sessions are found among so many of the latest runs; older ones are found by their runs.
const SESSION_RUNS_MAX: usize = 20_000;
/// So many of them are read at a time.
const RUNS_AT_ONCE: u32 = 1_000;

pub(crate) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![agent_list(), edge_list(), session_list(), session_close()]
}

#[derive(Serialize, JsonSchema)]
struct Agents {
    /// The agent profiles, by id.
    agents: Vec<AgentView>,
}

/// An agent profile: what a user picks.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AgentView {
    /// Its id.
    id: String,
    /// Its name for people.
    label: String,
    /// The backend profile that it runs on unless the caller names another.
    backend_profile: String,
    /// What it can do.
    capabilities: Vec<String>,
    /// The gate's preset: default or strict.
    preset: &'static str,
    /// What a rejected approval means: cancel or continue.
    on_reject: &'static str,
    /// What its runs may do unless the caller says otherwise.
    execution_policy: Value,
    /// How many of its runs may be active at a time.
    runs_max: usize,
}

impl AgentView {
    fn of(engine: &Engine, agent: &AgentProfile) -> Result<Self, ActionError> {
        let capability = |capability| match serde_json::to_value(capability) {
            Ok(Value::String(word)) => word,
            _ => String::new(),
        };
        Ok(AgentView {
            id: agent.id.clone(),
            label: agent.label.clone(),
            backend_profile: agent.backend_profile.clone(),
            capabilities: agent.capabilities.iter().map(capability).collect(),
            preset: engine.preset_of(&agent.id, None).as_str(),
            on_reject: match agent.on_reject {
                OnReject::Cancel => "cancel",
                OnReject::Continue => "continue",
            },
            execution_policy: serde_json::to_value(&agent.execution_policy)?,
            runs_max: agent.runs_max,
        })
    }
}

/// List the agent profiles that a run can be given to.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/agents"
)]
async fn agent_list(ctx: &Context) -> Result<Agents, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let agents = engine.catalog().agents.values().map(|agent| AgentView::of(&engine, agent));
    let agents = agents.collect::<Result<_, _>>()?;
    Ok(Agents { agents })
}

#[derive(Serialize, JsonSchema)]
struct Edges {
    /// The edges, by id.
    edges: Vec<EdgeView>,
}

/// An edge: what executes next to the files.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EdgeView {
    /// Its id.
    id: String,
    /// Its version.
    version: String,
    /// What confines the processes that it starts.
    sandbox: String,
    /// Whether it can be reached.
    connected: bool,
    /// How many runs are active on it.
    active_runs: usize,
}

impl From<EdgeInfo> for EdgeView {
    fn from(edge: EdgeInfo) -> Self {
        let EdgeInfo { id, version, sandbox, connected, active_runs } = edge;
        EdgeView { id, version, sandbox, connected, active_runs }
    }
}

/// List the edges that were seen since the hub began.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/edges"
)]
async fn edge_list(ctx: &Context) -> Result<Edges, ActionError> {
    Ok(Edges { edges: ctx.service::<Engine>()?.edges().into_iter().map(EdgeView::from).collect() })
}

#[derive(Deserialize, JsonSchema)]
struct SessionsInput {
    /// Only sessions whose latest run is older than this one: the `next` of the page before.
    before: Option<String>,
    /// How many at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = LIMIT_MAX))]
    limit: u32,
}

#[derive(Serialize, JsonSchema)]
struct Sessions {
    /// The sessions of the latest runs, the latest first.
    sessions: Vec<SessionView>,
    /// Where the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A conversation that runs share, as its latest run shows it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SessionView {
    /// Its id.
    id: String,
    /// The agent profile of its latest run.
    agent_id: String,
    /// Where that run works.
    workspace: WorkspaceView,
    /// How many of the latest runs are in it.
    runs: u64,
    /// Its latest run.
    last_run_id: String,
    /// Where that run stands.
    #[schemars(schema_with = "states")]
    state: &'static str,
    /// When something last happened in any of them.
    last_event_at: String,
}

/// List the sessions of the latest 20,000 runs.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/sessions"
)]
async fn session_list(input: SessionsInput, ctx: &Context) -> Result<Sessions, ActionError> {
    let before = input.before.map(|text| id("before", &text)).transpose()?;
    let engine = ctx.service::<Engine>()?;
    let mut found = Found::default();
    match bound_to(ctx.actor()) {
        Some(own) => found.add(&[engine.run(own).await.map_err(failed)?]),
        None => {
            let mut last = None;
            loop {
                let (runs, more) = engine.runs(None, last, RUNS_AT_ONCE).await.map_err(failed)?;
                found.add(&runs);
                last = runs.last().map(|last| last.run.id);
                let enough = found.older(before).count() > input.limit as usize;
                if !more || runs.is_empty() || enough || found.runs >= SESSION_RUNS_MAX {
                    break;
                }
            }
        }
    }
    let (sessions, more) = page(found.older(before), input.limit);
    let next = sessions.last().filter(|_| more).map(|last| last.last_run_id.clone());
    Ok(Sessions { sessions, next })
}

#[derive(Deserialize, JsonSchema)]
struct SessionInput {
    /// The session's id.
    id: String,
}

#[derive(Serialize, JsonSchema)]
struct ClosedSession {
    /// The session.
    session: String,
}

/// Close a session whose runs are all over: what agents keep of its conversation is removed, and what was recorded stays.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "idempotent",
    people_only,
    permissions = ["runs.write"],
    http = "POST /api/v1/sessions/{id}/close"
)]
async fn session_close(input: SessionInput, ctx: &Context) -> Result<ClosedSession, ActionError> {
    let unknown = || EngineError::NotFound { what: format!("session {}", input.id) };
    let session: SessionId = input.id.parse().map_err(|_| failed(unknown()))?;
    ctx.service::<Engine>()?.close_session(session, ctx.actor()).await.map_err(failed)?;
    Ok(ClosedSession { session: session.to_string() })
}

/// The sessions of the runs that were looked at so far, the latest first.
#[derive(Default)]
struct Found {
    runs: usize,
    sessions: Vec<Session>,
    places: HashMap<SessionId, usize>,
}

struct Session {
    last_run: RunId,
    last_event_at: Timestamp,
    view: SessionView,
}

impl Found {
    /// Takes further runs, which come newest first.
    fn add(&mut self, runs: &[Standing]) {
        for standing in runs {
            self.runs += 1;
            let created = &standing.run.created;
            match self.places.get(&created.session_id).and_then(|place| self.sessions.get_mut(*place)) {
                Some(session) => {
                    session.view.runs += 1;
                    session.last_event_at = standing.updated_at.max(session.last_event_at);
                }
                None => {
                    self.places.insert(created.session_id, self.sessions.len());
                    self.sessions.push(Session::of(standing));
                }
            }
        }
    }

    /// Those whose latest run is older than this one.
    fn older(&self, before: Option<RunId>) -> impl Iterator<Item = SessionView> {
        let older = move |session: &&Session| before.is_none_or(|before| session.last_run < before);
        self.sessions.iter().filter(older).map(|session| SessionView {
            last_event_at: session.last_event_at.to_string(),
            ..session.view.clone()
        })
    }
}

impl Session {
    /// As its latest run shows it.
    fn of(standing: &Standing) -> Self {
        let (run, created) = (&standing.run, &standing.run.created);
        let view = SessionView {
            id: created.session_id.to_string(),
            agent_id: created.agent_id.clone(),
            workspace: (&created.workspace).into(),
            runs: 1,
            last_run_id: run.id.to_string(),
            state: run.state.name(),
            last_event_at: String::new(),
        };
        Session { last_run: run.id, last_event_at: standing.updated_at, view }
    }
}
