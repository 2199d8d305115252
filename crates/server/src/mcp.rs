//! The hub over MCP: the control plane's actions as tools, resources and prompts, runs as tasks, and word of what changes.
//!
//! It decides nothing by itself: whatever a client sees or does is an action, called as whoever the guard let in.

mod approvals;
mod changes;
mod runs;
mod tried;
mod validity;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use runyard_control::plain;
use runyard_engine::Engine;
use runyard_surfaces::http::{Actor, BODY_BYTES_MAX, Runtime};
use runyard_surfaces::mcp::{Changes, McpApi, endpoint};
use tokio_util::sync::CancellationToken;

use self::runs::RunTasks;

const ABOUT: &str = "Runyard runs AI agents in their own copy of a workspace. Start a run with run_create and follow it as a task \
                     or by its resources: runyard://runs/{id}, …/events, …/diff. What an agent wants to do and may not do \
                     without asking waits as an approval (runyard://approvals); only a person decides it, after reading exactly \
                     what is asked.";

/// What changes with every run. An agent reads its own part there, and would else hear of all the others.
const ACROSS_RUNS: [&str; 2] = [RUNS, APPROVALS];
const RUNS: &str = "runyard://runs";
const APPROVALS: &str = "runyard://approvals";

/// The route `/mcp`, to stand behind the guard.
pub(crate) fn routes(
    name: &str,
    version: &str,
    runtime: &Runtime,
    engine: &Engine,
    stop: &CancellationToken,
) -> Router {
    let changes = Changes::default();
    let runs = Arc::new(RunTasks::new(engine.clone(), runtime.clone()));
    let api = McpApi::new(name, version, runtime.clone())
        .about(ABOUT)
        .changes(changes.clone())
        .watched_by_people(ACROSS_RUNS)
        .followed_tasks(Arc::clone(&runs) as _)
        .described_by(runs);
    let beside = Beside {
        engine: engine.clone(),
        runtime: runtime.clone(),
        changes,
        stop: stop.clone(),
        begun: AtomicBool::new(false),
    };
    endpoint(&api, stop.clone()).layer(axum::middleware::from_fn_with_state(Arc::new(beside), beside_each))
}

/// What happens beside every request.
struct Beside {
    engine: Engine,
    runtime: Runtime,
    changes: Changes,
    stop: CancellationToken,
    begun: AtomicBool,
}

async fn beside_each(State(beside): State<Arc<Beside>>, request: Request, next: Next) -> Response {
    let Beside { engine, changes, stop, begun, .. } = &*beside;
    // What changes is told from the first request on: a hub that nobody speaks MCP with follows nothing.
    if !begun.swap(true, Ordering::Relaxed) {
        tokio::spawn(changes::tell(engine.clone(), changes.clone(), stop.clone()));
    }
    let token = validity::ending_token(engine, request.headers());
    let response = audited(&beside, request, next).await;
    validity::while_valid(engine, token, response)
}

/// What an agent looks for and is not there is recorded before it is told so.
async fn audited(beside: &Beside, request: Request, next: Next) -> Response {
    let Beside { engine, runtime, .. } = beside;
    let agent = request.extensions().get::<Arc<Actor>>().filter(|actor| actor.is_agent()).cloned();
    let Some(agent) = agent else { return next.run(request).await };
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    if let Some(missing) = tried::missing(runtime, &body) {
        plain::tried(engine, &agent, missing).await;
    }
    next.run(Request::from_parts(parts, Body::from(body))).await
}
