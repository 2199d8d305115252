//! The routes: every request is kept, then answered as its scenario says.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
    routing::{get, post},
};
use futures_core::Stream;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time};

use crate::{
    answer::{Frame, Reply},
    conversation::Place,
    requests::{Recorded, RequestLog},
    scenario::{Ending, Library, Refusal, Step},
};

/// The model that the list names; any other is answered too.
const MODEL: &str = "demo";

const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Few, so that a client that does not read holds the stream back.
const EVENTS_WAITING_MAX: usize = 4;

/// What every request needs.
pub(crate) struct Shared {
    pub(crate) library: Library,
    pub(crate) log: RequestLog,
    /// The only key that is accepted, if not every one is.
    pub(crate) bearer: Option<String>,
    /// Tells this provider's ids from another's.
    pub(crate) seed: String,
}

pub(crate) fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/responses", post(respond))
        .route("/v1/models", get(list_models))
        .fallback(not_here)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(shared)
}

async fn list_models(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request = recorded(&method, &uri, &headers, &body);
    let wrong = wrong_key(shared.bearer.as_deref(), &request);
    shared.log.keep(request);
    match wrong {
        Some(refusal) => refuse(&refusal),
        None => {
            let model = json!({"id": MODEL, "object": "model", "created": 0, "owned_by": "runyard"});
            Json(json!({"object": "list", "data": [model]})).into_response()
        }
    }
}

async fn not_here(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    shared.log.keep(recorded(&method, &uri, &headers, &body));
    refuse(&refusal(404, "invalid_request_error", None, "The demo provider has no such route."))
}

async fn respond(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut request = recorded(&method, &uri, &headers, &body);
    let asked: Value = request.json();
    let place = Place::of(&asked["input"]);
    let (name, scenario) = shared.library.find(place.scenario.as_deref());
    let step = scenario.step_after(place.results);
    request.played = Some((name.to_owned(), step));
    let argument = place.argument.as_deref().unwrap_or(&scenario.argument);

    let scenario_bearer = scenario.bearer.as_ref().map(|bearer| bearer.replace("{argument}", argument));
    let wrong = wrong_key(shared.bearer.as_deref(), &request)
        .or_else(|| wrong_key(scenario_bearer.as_deref(), &request))
        .or_else(|| (asked["stream"] != true).then(not_streaming));
    let number = shared.log.keep(request);
    if let Some(refusal) = wrong {
        return refuse(&refusal);
    }
    match &scenario.steps[step] {
        Step::Refuse(refusal) => refuse(refusal),
        Step::Answer(answer) => {
            let reply = Reply {
                id: &format!("{}_{number}", shared.seed),
                model: asked["model"].as_str().unwrap_or(MODEL),
                argument,
                asked_chars: body.len(),
            };
            stream(reply.frames(answer), answer.end)
        }
    }
}

fn stream(frames: Vec<Frame>, end: Ending) -> Response {
    let (sender, receiver) = mpsc::channel(EVENTS_WAITING_MAX);
    tokio::spawn(async move {
        for frame in frames {
            time::sleep(frame.pause).await;
            let kind = frame.event["type"].as_str().unwrap_or_default();
            let event = Event::default().event(kind).data(frame.event.to_string());
            if sender.send(Ok(event)).await.is_err() {
                return;
            }
        }
        match end {
            Ending::Completed | Ending::Unfinished => {}
            Ending::Stall => sender.closed().await,
            Ending::Cut => {
                // An error of the body makes the server drop the connection without ending the body.
                let _ = sender.send(Err(io::ErrorKind::ConnectionAborted.into())).await;
            }
        }
    });
    Sse::new(Received(receiver)).into_response()
}

struct Received(mpsc::Receiver<Result<Event, io::Error>>);

impl Stream for Received {
    type Item = Result<Event, io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

fn recorded(method: &Method, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Recorded {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Recorded {
        number: 0,
        method: method.to_string(),
        path: uri.to_string(),
        headers: headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect(),
        body: text(body),
        played: None,
    }
}

fn wrong_key(wanted: Option<&str>, request: &Recorded) -> Option<Refusal> {
    let wrong = wanted.is_some_and(|wanted| request.bearer() != Some(wanted));
    wrong.then(|| {
        refusal(401, "invalid_request_error", Some("invalid_api_key"), "Incorrect API key provided.")
    })
}

fn not_streaming() -> Refusal {
    refusal(
        400,
        "invalid_request_error",
        None,
        "The demo provider only streams: send JSON with `stream: true`.",
    )
}

fn refusal(status: u16, kind: &str, code: Option<&str>, message: &str) -> Refusal {
    Refusal {
        status,
        kind: kind.to_owned(),
        code: code.map(str::to_owned),
        message: message.to_owned(),
        retry_after_s: None,
    }
}

fn refuse(refusal: &Refusal) -> Response {
    let Refusal { status, kind, code, message, retry_after_s } = refusal;
    let body = json!({"error": {"message": message, "type": kind, "param": null, "code": code}});
    let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(body)).into_response();
    if let Some(seconds) = retry_after_s {
        response.headers_mut().insert(header::RETRY_AFTER, (*seconds).into());
    }
    response
}
