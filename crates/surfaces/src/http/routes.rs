//! Which request means which action.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on, post};
use runyard_actions::{Action, ActionError, Envelope, HttpRoute, Invocation};
use runyard_domain::{Actor, Code, Surface};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::request::{self, Asked, Plus, decode};
use super::respond::{answer, events, refusal};
use super::{API_PREFIX, HttpApi, PlainRoute, SESSION_PATH, Visit, login, openapi};
use crate::llm_tools::{self, LlmTools};

/// A call over HTTP may take so long, retries and waits included; an action's own deadline may be shorter.
pub(crate) const CALL_TIME_MAX_MS: u64 = 60 * 60 * 1000;

pub(super) fn router(api: Arc<HttpApi>, plain: Vec<PlainRoute>) -> Router {
    let mut router = Router::new()
        .route(&format!("{API_PREFIX}/actions"), get(list))
        .route(&format!("{API_PREFIX}/actions/{{name}}/invoke"), post(invoke))
        .route(&format!("{API_PREFIX}/openapi.json"), get(document))
        .route(SESSION_PATH, get(login::session))
        .route(&format!("{API_PREFIX}/tools"), get(tools));
    // It lives as long as the routes: what it asked a person can be answered in a later request.
    let executing = LlmTools::new(api.runtime.clone());
    let call_tool = move |request: Request| call_tool(executing.clone(), request);
    router = router.route(&format!("{API_PREFIX}/tools/call"), post(call_tool));
    // A route of an action that nobody may see here would tell that it exists.
    let exposed = |action: &&Action| {
        [Surface::Http, Surface::AiSdk].into_iter().any(|surface| api.runtime.exposes(action, surface))
    };
    let actions: Vec<Action> = api.runtime.actions().filter(exposed).cloned().collect();
    for action in actions {
        let Some(route) = action.spec().http.clone() else { continue };
        let handler = move |state: State<Arc<HttpApi>>, request: Request| routed(state, action, request);
        router = router.route(&route.path, on(filter(&route), handler));
    }
    // Their own state, if any, is in them already.
    let plain =
        plain.into_iter().fold(Router::new(), |routes, plain| routes.route(plain.path, plain.methods));
    let router = router.with_state(api).merge(plain);
    router.method_not_allowed_fallback(wrong_method).fallback(unknown_path)
}

fn filter(route: &HttpRoute) -> MethodFilter {
    match route.method {
        "GET" => MethodFilter::GET,
        "PUT" => MethodFilter::PUT,
        "PATCH" => MethodFilter::PATCH,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::POST,
    }
}

/// Put there by the guard, which lets nobody in without it.
fn actor(extensions: &Extensions) -> Result<Arc<Actor>, ActionError> {
    let found = extensions.get::<Arc<Actor>>().cloned();
    found.ok_or_else(|| ActionError::new(Code::AuthenticationError, "A valid token is needed."))
}

/// The surface of the way in; also the guard's word.
fn entry(extensions: &Extensions) -> Surface {
    extensions.get::<Visit>().map_or(Surface::Http, Visit::surface)
}

async fn list(State(api): State<Arc<HttpApi>>, request: Request) -> Response {
    let entry = entry(request.extensions());
    let found = actor(request.extensions())
        .and_then(|actor| Ok((actor, request::surface(entry, request.headers())?)));
    let (actor, surface) = match found {
        Ok(found) => found,
        Err(error) => return refusal(entry, None, error),
    };
    let actions: Vec<_> = api.runtime.listed(surface, &actor).map(Action::manifest).collect();
    answer(&Envelope::of_data(surface, json!({ "actions": actions })))
}

async fn document(State(api): State<Arc<HttpApi>>, request: Request) -> Response {
    match actor(request.extensions()) {
        Err(error) => refusal(Surface::Http, None, error),
        Ok(actor) => {
            let text = openapi(&api.name, &api.version, &api.runtime, &actor).to_string();
            let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
            (StatusCode::OK, json, Body::from(text)).into_response()
        }
    }
}

/// The actor's tools in the format that the query names. The entry point is the surface: it is `ai-sdk` whatever a header says.
async fn tools(State(api): State<Arc<HttpApi>>, request: Request) -> Response {
    let asked = actor(request.extensions())
        .and_then(|actor| Ok((actor, request::tool_format(request.uri().query().unwrap_or_default())?)));
    match asked {
        Err(error) => refusal(Surface::AiSdk, None, error),
        Ok((actor, format)) => {
            let tools = llm_tools::definitions(&api.runtime, &actor, format);
            answer(&Envelope::of_data(Surface::AiSdk, json!({"format": format, "tools": tools})))
        }
    }
}

/// `{format, call, approval?, confirm?, …}` answers `{message, envelope, approval?}`. A call that was executed is 200 however it
/// ended, for its message goes to the model all the same; only what is no tool call is refused.
async fn call_tool(tools: LlmTools, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let asked = request::tool_call(&parts.headers, body).await;
    match actor(&parts.extensions).and_then(|actor| Ok((actor, asked?))) {
        Err(error) => refusal(Surface::AiSdk, None, error),
        Ok((actor, mut asked)) => {
            asked.within_ms = Some(CALL_TIME_MAX_MS);
            // The future is dropped with the request when the client goes away, and the action ends with it.
            let reply = tools.execute(actor, asked, CancellationToken::new()).await;
            answer(&Envelope::of_data(Surface::AiSdk, json!(reply)))
        }
    }
}

async fn invoke(State(api): State<Arc<HttpApi>>, request: Request) -> Response {
    let path = request.uri().path();
    let encoded = path
        .strip_prefix(API_PREFIX)
        .and_then(|rest| rest.strip_prefix("/actions/")?.strip_suffix("/invoke"));
    let name = match decode(encoded.unwrap_or_default(), Plus::IsPlus) {
        Ok(name) => name,
        Err(error) => return refusal(entry(request.extensions()), None, error),
    };
    let (parts, body) = request.into_parts();
    let asked = request::invoke(&parts.headers, body).await;
    run(&api, &name, asked, &parts).await
}

async fn routed(State(api): State<Arc<HttpApi>>, action: Action, request: Request) -> Response {
    let Some(route) = &action.spec().http else { return unknown_path(request).await };
    let (parts, body) = request.into_parts();
    let asked = match path_fields(route, parts.uri.path()) {
        Ok(path) => request::routed(&action, route, path, parts.uri.query(), &parts.headers, body).await,
        Err(error) => Err(error),
    };
    run(&api, action.name(), asked, &parts).await
}

/// The path's fields with their values; the router has matched the path already.
fn path_fields(route: &HttpRoute, path: &str) -> Result<Vec<(String, String)>, ActionError> {
    let pairs = route.path.split('/').zip(path.split('/'));
    let fields =
        pairs.filter_map(|(pattern, value)| Some((pattern.strip_prefix('{')?.strip_suffix('}')?, value)));
    fields.map(|(name, value)| Ok((name.to_owned(), decode(value, Plus::IsPlus)?))).collect()
}

async fn run(api: &HttpApi, name: &str, asked: Result<Asked, ActionError>, parts: &Parts) -> Response {
    let entry = entry(&parts.extensions);
    let caller =
        actor(&parts.extensions).and_then(|actor| Ok((actor, request::surface(entry, &parts.headers)?)));
    let (actor, surface) = match caller {
        Ok(caller) => caller,
        Err(error) => return refusal(entry, Some(name), error),
    };
    let Asked { input, options } = match asked {
        Ok(asked) => asked,
        Err(error) => return refusal(surface, Some(name), error),
    };
    let invocation =
        Invocation::new(name, input, surface, actor).options(options).within_ms(CALL_TIME_MAX_MS);
    if wants_events(&parts.headers) {
        return events(api.runtime.stream(invocation));
    }
    // The future is dropped with the request when the client goes away, and the action ends with it.
    answer(&api.runtime.invoke(invocation).await)
}

pub(crate) fn wants_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|media_type| {
        media_type.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("text/event-stream"))
    })
}

async fn wrong_method(request: Request) -> Response {
    let (parts, body) = request.into_parts();
    request::discard(&parts.headers, body).await;
    let method: String = parts.method.as_str().chars().take(32).collect();
    let message = format!("The method {method} is not allowed here; the Allow header lists those that are.");
    refusal(entry(&parts.extensions), None, ActionError::new(Code::MethodNotAllowed, message))
}

pub(crate) async fn unknown_path(request: Request) -> Response {
    let (parts, body) = request.into_parts();
    request::discard(&parts.headers, body).await;
    let message = format!("There is nothing at this address; {API_PREFIX}/openapi.json lists what there is.");
    refusal(entry(&parts.extensions), None, ActionError::new(Code::NotFound, message))
}
