//! Envelopes as HTTP answers, and invocations as event streams.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use runyard_actions::{ActionError, Envelope, InvocationStream};
use runyard_domain::{Code, Surface};

/// How often a silent event stream says that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The envelope with the status of its code, and `Retry-After` where a wait is known.
pub(super) fn answer(envelope: &Envelope) -> Response {
    let status = StatusCode::from_u16(envelope.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = serde_json::to_vec(envelope).unwrap_or_default();
    let mut response = (status, Body::from(body)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(failure) = envelope.error() {
        if let Some(wait_ms) = failure.retry_after_ms {
            response.headers_mut().insert(header::RETRY_AFTER, wait_ms.div_ceil(1000).into());
        }
        if failure.code == Code::AuthenticationError {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
    }
    response
}

/// A failure envelope for a request that reached no action.
pub fn refusal(surface: Surface, action: Option<&str>, error: ActionError) -> Response {
    answer(&Envelope::refusal(surface, action, error))
}

/// The invocation as server-sent events: `log`, `progress`, `artifact`, then one `result`.
///
/// The stream drives the invocation, so a slow reader slows it down, and one that goes away ends it.
pub(super) fn events(stream: InvocationStream) -> Response {
    let mut response =
        Sse::new(Events(stream)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct Events(InvocationStream);

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(task).map(|event| {
            let event = event?;
            // JSON has no raw line breaks, so one data line holds it.
            let data = serde_json::to_string(&event).unwrap_or_default();
            Some(Ok(Event::default().event(event.kind()).data(data)))
        })
    }
}
