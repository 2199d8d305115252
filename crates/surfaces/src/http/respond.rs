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
use runyard_actions::{ActionError, Envelope, InvocationEvent, InvocationStream};
use runyard_domain::{Code, Surface};
use tokio::sync::mpsc;

/// How often a silent event stream says that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// So many events wait between an invocation and its reader.
const EVENTS_AHEAD_MAX: usize = 4;
/// A reader that takes nothing for this long is given up.
const STALL_TIME_MAX: Duration = Duration::from_secs(30);

/// The envelope with the status of its code, and `Retry-After` where a wait is known.
pub(crate) fn answer(envelope: &Envelope) -> Response {
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
/// It runs in a task of its own and goes on only as the reader takes what there is. One that goes away ends it, and so does
/// one that takes nothing for [`STALL_TIME_MAX`]: while it waits neither timeout nor deadline runs, and it holds its place.
pub(crate) fn events(stream: InvocationStream) -> Response {
    let (sender, receiver) = mpsc::channel(EVENTS_AHEAD_MAX);
    tokio::spawn(drive(stream, sender));
    let mut response =
        Sse::new(Events(receiver)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

async fn drive(mut stream: InvocationStream, reader: mpsc::Sender<InvocationEvent>) {
    loop {
        let event = tokio::select! {
            () = reader.closed() => return,
            event = stream.next() => event,
        };
        let Some(event) = event else { return };
        if reader.send_timeout(event, STALL_TIME_MAX).await.is_err() {
            return;
        }
    }
}

struct Events(mpsc::Receiver<InvocationEvent>);

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(task).map(|event| {
            let event = event?;
            // JSON has no raw line breaks, so one data line holds it.
            let data = serde_json::to_string(&event).unwrap_or_default();
            Some(Ok(Event::default().event(event.kind()).data(data)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use runyard_actions::{Action, Invocation, Runtime, fields};
    use runyard_domain::Actor;
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_given_up_and_the_action_with_it() {
        let held = Arc::new(());
        let action = Action::define("chat", "Chats.").handler({
            let held = Arc::clone(&held);
            move |_, ctx| {
                let held = Arc::clone(&held);
                async move {
                    let _held = held;
                    loop {
                        ctx.logger().info("still here", fields! {});
                        tokio::task::yield_now().await;
                    }
                }
            }
        });
        let runtime = Runtime::builder().action(action).build().unwrap();
        let call = Invocation::new("chat", json!({}), Surface::Http, Arc::new(Actor::owner("ada")));
        let (sender, unread) = mpsc::channel(EVENTS_AHEAD_MAX);
        let running = Arc::strong_count(&held);
        drive(runtime.stream(call), sender).await;
        assert_eq!(Arc::strong_count(&held), running, "the handler is dropped");
        drop(unread);
    }
}
