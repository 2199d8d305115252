//! The hub over MCP: the control plane's actions as tools, resources and prompts, runs as tasks, and word of what changes.
//!
//! It decides nothing by itself: whatever a client sees or does is an action, called as whoever the guard let in.

mod approvals;
mod changes;
mod runs;
mod tried;

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

/// The route `/mcp`, to stand behind the guard.
pub(crate) fn routes(
    name: &str,
    version: &str,
    runtime: &Runtime,
    engine: &Engine,
    stop: &CancellationToken,
) -> Router {
    let changes = Changes::default();
    let api = McpApi::new(name, version, runtime.clone())
        .about(ABOUT)
        .changes(changes.clone())
        .followed_tasks(Arc::new(RunTasks::new(runtime.clone())));
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
    let Beside { engine, runtime, changes, stop, begun } = &*beside;
    // What changes is told from the first request on: a hub that nobody speaks MCP with follows nothing.
    if !begun.swap(true, Ordering::Relaxed) {
        tokio::spawn(changes::tell(engine.clone(), changes.clone(), stop.clone()));
    }
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
