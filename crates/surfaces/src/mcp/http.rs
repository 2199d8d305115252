//! MCP over HTTP, behind the guard that every route stands behind.
//!
//! Host, Origin and token were checked before a request comes here. A session of the older wire is bound to whoever began it: its
//! id is sealed for that caller, so to anybody else it does not exist.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use rmcp::ErrorData;
use rmcp::model::JsonRpcError;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use runyard_domain::Actor;
use tokio_util::sync::CancellationToken;

use super::listeners::NO_ROOM;
use super::server::McpServer;
use super::{McpApi, Shared};
use crate::http::BODY_BYTES_MAX;

/// So many sessions of the older wire are open at a time.
const SESSIONS_MAX: usize = 1_000;
/// So many of them may be one caller's.
const SESSIONS_OF_CALLER_MAX: usize = 100;
/// One that is silent for so long is closed.
const SESSION_SILENT_MAX: Duration = Duration::from_secs(30 * 60);
const SESSION_HEADER: &str = "mcp-session-id";
const JSON: &str = "application/json";
/// So much of a refusal in plain words is passed on.
const WORDS_BYTES_MAX: usize = 4096;

/// The route `/mcp`, to stand behind a guard that puts the caller (`Arc<Actor>`) into the request's extensions.
pub fn endpoint(api: &McpApi, stop: CancellationToken) -> Router {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_SILENT_MAX);
    let sessions = Arc::new(sessions);
    let config = StreamableHttpServerConfig::default()
        // The guard has checked both, with the names that this server is known by.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_json_response(true)
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .with_cancellation_token(stop);
    let made = api.clone();
    let service =
        StreamableHttpService::new(move || Ok(McpServer::new(&made, None)), Arc::clone(&sessions), config);
    let binding = Binding { shared: Arc::clone(&api.0), sessions, holders: Arc::default() };
    Router::new().route_service("/mcp", service).layer(axum::middleware::from_fn_with_state(binding, bind))
}

#[derive(Clone)]
struct Binding {
    shared: Arc<Shared>,
    sessions: Arc<LocalSessionManager>,
    /// Who began each session; one that has ended is forgotten when the next begins.
    holders: Arc<Mutex<HashMap<Arc<str>, String>>>,
}

/// Opens the session's id on the way in and seals it on the way out.
async fn bind(State(binding): State<Binding>, mut request: Request, next: Next) -> Response {
    let Some(actor) = request.extensions().get::<Arc<Actor>>().cloned() else {
        return refusal(
            StatusCode::UNAUTHORIZED,
            ErrorData::invalid_request("A valid token is needed.", None),
        );
    };
    let holder = actor.to_string();
    let sealed = request.headers().get(SESSION_HEADER).cloned();
    let begins = sealed.is_none();
    if let Some(sealed) = sealed {
        let opened = sealed.to_str().ok().and_then(|sealed| binding.open(&holder, sealed));
        let Some(id) = opened else {
            let error = ErrorData::invalid_request("There is no such session.", None);
            return refusal(StatusCode::NOT_FOUND, error);
        };
        request.headers_mut().insert(SESSION_HEADER, id);
    }
    let is_json = request.headers().get(header::CONTENT_TYPE).is_some_and(|media_type| {
        media_type.to_str().is_ok_and(|text| text.split(';').next().is_some_and(|name| name.trim() == JSON))
    });
    // On the older wire a client is told what changes on a stream that it asks for.
    let room = match *request.method() {
        Method::GET => match binding.shared.listeners.enter(&actor) {
            None => {
                let error = ErrorData::invalid_request(NO_ROOM, None);
                return refusal(StatusCode::SERVICE_UNAVAILABLE, error);
            }
            room => room,
        },
        _ => None,
    };
    let mut response = next.run(request).await;
    if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return unreadable();
    }
    let failed = response.status().is_client_error() || response.status().is_server_error();
    if failed && !response.headers().contains_key(header::CONTENT_TYPE) {
        return worded(response).await;
    }
    if let Some(id) = response.headers().get(SESSION_HEADER) {
        if begins && !binding.admit(id, &holder).await {
            let error = ErrorData::invalid_request("Too many sessions are open.", None);
            return refusal(StatusCode::SERVICE_UNAVAILABLE, error);
        }
        let sealed = binding.shared.seal.close(&["session", &holder], id.as_bytes());
        match HeaderValue::from_str(&sealed) {
            Ok(sealed) => drop(response.headers_mut().insert(SESSION_HEADER, sealed)),
            Err(_) => drop(response.headers_mut().remove(SESSION_HEADER)),
        }
    }
    match room {
        // It is taken for as long as the stream is open.
        Some(room) => response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _taken = &room;
                frame
            }))
        }),
        None => response,
    }
}

/// The body said that it is JSON, and then it was none, or no message of the protocol.
fn unreadable() -> Response {
    let error = ErrorData::parse_error("The body is no JSON, or no message of the protocol.", None);
    refusal(StatusCode::BAD_REQUEST, error)
}

/// A refusal in plain words, as a message of the protocol.
async fn worded(response: Response) -> Response {
    let status = response.status();
    let words = axum::body::to_bytes(response.into_body(), WORDS_BYTES_MAX).await.unwrap_or_default();
    let words = String::from_utf8_lossy(&words).into_owned();
    refusal(status, ErrorData::invalid_request(words, None))
}

fn refusal(status: StatusCode, error: ErrorData) -> Response {
    let body = serde_json::to_string(&JsonRpcError::new(None, error)).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, JSON)], body).into_response()
}

impl Binding {
    /// Whether there was room for one more session. Only the answer to a request says whether it began one.
    async fn admit(&self, id: &HeaderValue, holder: &str) -> bool {
        let Ok(id) = id.to_str().map(Arc::<str>::from) else { return false };
        let has_room = {
            let open = self.sessions.sessions.read().await;
            let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
            holders.retain(|id, _| open.contains_key(id));
            let own = holders.values().filter(|other| *other == holder).count();
            let has_room = open.len() <= SESSIONS_MAX && own < SESSIONS_OF_CALLER_MAX;
            if has_room {
                holders.insert(Arc::clone(&id), holder.to_owned());
            }
            has_room
        };
        if !has_room {
            // One that is gone by itself is as well.
            let _ = self.sessions.close_session(&id).await;
        }
        has_room
    }

    fn open(&self, holder: &str, sealed: &str) -> Option<HeaderValue> {
        let id = self.shared.seal.open(&["session", holder], sealed)?;
        HeaderValue::from_bytes(&id).ok()
    }
}
