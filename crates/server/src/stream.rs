//! A run's events as server-sent events: what is stored after the reader's cursor, then what comes, until the run has ended.
//!
//! Every message is one event as it is stored, with its sequence as `id:` and its type as `event:`. Whoever reconnects with
//! `Last-Event-ID` goes on exactly there. A stream is no task of its own and holds one page at most: a slow reader is served
//! from the store, at its own pace.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use runyard_control::plain;
use runyard_engine::{Engine, EngineError, Standing};
use runyard_surfaces::http::{ActionError, Actor, Code, Visit, refusal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::Shared;
use crate::frames::{Frames, Place};

/// So many streams are open at once; the server's other connections are left for everything else, and some of those for MCP.
pub const STREAMS_MAX: usize = 1_536;
/// How often a silent stream says that it is alive.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);
/// So many events are read from the store at a time.
const PAGE_EVENTS_MAX: u32 = 64;
/// Events are handed over together up to this size. One event may be larger.
const FRAME_BYTES_MAX: usize = 16 * 1024;

/// The last word to a reader whose token was revoked or has expired. It is no event: whoever comes back is told as anyone is.
pub(crate) const NOT_VALID: &[u8] = b": the token is not valid any more\n\n";
/// Likewise to a browser whose session was ended or has run out.
const SESSION_OVER: &[u8] = b": the browser session is over\n\n";
/// What a silent stream says.
pub(crate) const ALIVE: &[u8] = b":\n\n";

/// The streams that are open.
pub(crate) struct Streams {
    places: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Streams {
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Streams { places: Arc::new(Semaphore::new(STREAMS_MAX)), stop }
    }

    /// How many are open.
    pub(crate) fn count(&self) -> u64 {
        STREAMS_MAX.saturating_sub(self.places.available_permits()) as u64
    }

    /// A stream of what `write` puts, for as long as whoever asked would be let in and the server runs.
    pub(crate) fn open<F: Future<Output = ()> + Send + 'static>(
        &self,
        visit: Visit,
        write: impl FnOnce(Place) -> F + Send + 'static,
    ) -> Result<Response, ActionError> {
        let (place, stop) = (self.enter()?, self.stop.clone());
        let frames = Frames::of(move |out| async move {
            let _place = place;
            tokio::select! {
                // In this order, so that what the reader may not see any more is not even looked for, and no frame is lost.
                biased;
                () = stop.cancelled() => {}
                () = visit.over() => {
                    let farewell = if visit.is_session() { SESSION_OVER } else { NOT_VALID };
                    out.put(Bytes::from_static(farewell)).await;
                }
                () = write(out.clone()) => {}
            }
        });
        let mut response = Body::from_stream(frames).into_response();
        let values = [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-store"),
            (header::HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        response.headers_mut().extend(values.map(|(name, value)| (name, HeaderValue::from_static(value))));
        Ok(response)
    }

    fn enter(&self) -> Result<OwnedSemaphorePermit, ActionError> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let message = format!("{STREAMS_MAX} event streams are open already.");
            ActionError::new(Code::ConcurrencyLimit, message).retry_after(HEARTBEAT)
        })
    }
}

/// `GET /api/v1/runs/{id}/stream`.
pub(crate) async fn stream(
    State(shared): State<Arc<Shared>>,
    Extension(actor): Extension<Arc<Actor>>,
    Extension(visit): Extension<Visit>,
    Path(run): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let surface = visit.surface();
    match begin(&shared, &actor, visit, &run, (&headers, &uri)).await {
        Ok(response) => response,
        Err(error) => refusal(surface, None, error),
    }
}

async fn begin(
    shared: &Shared,
    actor: &Actor,
    visit: Visit,
    run: &str,
    (headers, uri): (&HeaderMap, &Uri),
) -> Result<Response, ActionError> {
    let after = cursor(headers, uri)?;
    let (standing, after) = plain::follow(&shared.engine, actor, run, after.as_deref()).await?;
    if is_over(&standing, after) {
        // A browser that is told "no content" does not come back for more.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let engine = shared.engine.clone();
    shared.streams.open(visit, move |out| async move {
        if let Err(error) = follow(&engine, &standing, after, &out).await {
            // The reader comes back with its cursor and is told what is wrong.
            tracing::error!(run = %standing.run.id, %error, "an event stream broke off");
        }
    })
}

/// The token of a request that the guard has let in.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (_, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    Some(token.trim())
}

/// The place after which the reader wants to go on. A reader that comes back says it in `Last-Event-ID`, which is newer than
/// what its address says.
fn cursor(headers: &HeaderMap, uri: &Uri) -> Result<Option<String>, ActionError> {
    if let Some(last) = headers.get("last-event-id") {
        // What is no text is no number either, and is told so.
        return Ok(Some(last.to_str().unwrap_or("?").to_owned()));
    }
    let mut after = None;
    for pair in uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("after", value)) if after.is_none() => after = Some(value.to_owned()),
            _ => {
                let message =
                    "A stream takes one parameter: after, the sequence of the last event that is known.";
                return Err(ActionError::new(Code::InvalidRequest, message));
            }
        }
    }
    Ok(after)
}

fn is_over(standing: &Standing, after: u64) -> bool {
    standing.run.state.is_terminal() && after == standing.sequence
}

/// Puts every event of the run after the place, until the one that ends it.
async fn follow(
    engine: &Engine,
    standing: &Standing,
    mut after: u64,
    out: &Place,
) -> Result<(), EngineError> {
    let run = standing.run.id;
    loop {
        let stored = engine.events(run, after, PAGE_EVENTS_MAX).await?;
        let Some(last) = stored.last() else { break };
        after = last.sequence;
        let over = put(stored.iter().map(|event| (event.sequence, &*event.body)), out).await;
        if over {
            return Ok(());
        }
    }
    let mut tail = engine.follow(run, after).await?;
    loop {
        // A heartbeat loses nothing: what the tail has not given, it gives the next time.
        match tokio::time::timeout(HEARTBEAT, tail.next()).await {
            Ok(events) => {
                let events = events?;
                let over = put(events.iter().map(|event| (event.sequence, &*event.body)), out).await;
                if over {
                    return Ok(());
                }
            }
            Err(_) => out.put(Bytes::from_static(ALIVE)).await,
        }
    }
}

/// Hands over events, several together where they are small. Says whether the run is over.
async fn put<'a>(events: impl Iterator<Item = (u64, &'a [u8])>, out: &Place) -> bool {
    let mut frame = Vec::new();
    let mut over = false;
    for (sequence, body) in events {
        over = write(&mut frame, sequence, body);
        if frame.len() >= FRAME_BYTES_MAX {
            out.put(std::mem::take(&mut frame).into()).await;
        }
        if over {
            break;
        }
    }
    if !frame.is_empty() {
        out.put(frame.into()).await;
    }
    over
}

/// One event as a message. Says whether it is one that ends a run.
fn write(frame: &mut Vec<u8>, sequence: u64, body: &[u8]) -> bool {
    let kind = kind(body);
    frame.reserve(body.len() + 64);
    frame.extend_from_slice(b"id: ");
    frame.extend_from_slice(sequence.to_string().as_bytes());
    frame.extend_from_slice(b"\nevent: ");
    frame.extend_from_slice(kind);
    // Stored JSON has no raw line breaks, so one data line holds it.
    frame.extend_from_slice(b"\ndata: ");
    frame.extend_from_slice(body);
    frame.extend_from_slice(b"\n\n");
    matches!(kind, b"run.completed" | b"run.failed" | b"run.cancelled")
}

/// The event's type. It stands before everything that an agent or a person said, and has no escapes.
fn kind(body: &[u8]) -> &[u8] {
    const MARK: &[u8] = b"\"type\":\"";
    let begin = body.windows(MARK.len()).position(|window| window == MARK).map(|at| at + MARK.len());
    let rest = begin.and_then(|begin| body.get(begin..)).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'"').unwrap_or_default();
    rest.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c06_a_message_is_the_stored_event_with_its_sequence_and_type() {
        let body = br#"{"sequence":7,"prevHash":"00","id":"evt_1","type":"run.message.delta","payload":{"type":"x"}}"#;
        let mut frame = Vec::new();
        assert!(!write(&mut frame, 7, body));
        let text = String::from_utf8(frame).unwrap();
        let stored = std::str::from_utf8(body).unwrap();
        assert_eq!(text, format!("id: 7\nevent: run.message.delta\ndata: {stored}\n\n"));
    }

    #[test]
    fn c22_each_event_that_ends_a_run_ends_the_stream() {
        for (kind, ends) in
            [("run.completed", true), ("run.failed", true), ("run.cancelled", true), ("run.degraded", false)]
        {
            let body = format!("{{\"sequence\":1,\"id\":\"evt_1\",\"type\":\"{kind}\",\"payload\":{{}}}}");
            assert_eq!(write(&mut Vec::new(), 1, body.as_bytes()), ends, "{kind}");
        }
    }

    #[test]
    fn c08_the_last_event_id_wins_over_the_address() {
        let headers = |last: Option<&'static str>| {
            let pairs = last.map(|last| ("last-event-id".parse().unwrap(), HeaderValue::from_static(last)));
            HeaderMap::from_iter(pairs)
        };
        let uri = |text: &str| text.parse::<Uri>().unwrap();
        let check = |last, address: &str, expected: Option<&str>| {
            assert_eq!(cursor(&headers(last), &uri(address)).unwrap().as_deref(), expected);
        };
        check(None, "/x", None);
        check(None, "/x?after=4", Some("4"));
        check(Some("9"), "/x?after=4", Some("9"));
        for wrong in ["/x?after=4&after=5", "/x?since=4", "/x?after"] {
            assert!(cursor(&headers(None), &uri(wrong)).is_err(), "{wrong}");
        }
    }
}
