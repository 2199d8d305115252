//! What is sent back for a request, as bytes in time; and the sending of it.
//!
//! It knows HTTP and nothing of what is said.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_core::Stream;
use serde_json::Value;
use tokio::{sync::mpsc, task, time};

use crate::scenario::Refusal;

/// Few, so that a client that does not read holds the stream back.
const PIECES_WAITING_MAX: usize = 4;

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    /// Headers that say when to come back.
    pub(crate) retry_after: Vec<(&'static str, String)>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) close: Close,
}

/// A piece of the body, and how long to wait before it.
pub(crate) struct Piece {
    pub(crate) pause: Duration,
    pub(crate) text: String,
}

/// What happens after the last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Close {
    /// The body ends.
    Proper,
    /// The connection is cut.
    Cut,
    /// Nothing, until the client goes away.
    Stall,
}

impl Piece {
    pub(crate) fn now(text: impl Into<String>) -> Self {
        Self { pause: Duration::ZERO, text: text.into() }
    }
}

impl Reply {
    fn whole(content_type: &'static str, text: impl Into<String>) -> Self {
        Self {
            status: 200,
            content_type,
            retry_after: Vec::new(),
            pieces: vec![Piece::now(text)],
            close: Close::Proper,
        }
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self::whole("application/json", value.to_string())
    }

    pub(crate) fn page(html: &str) -> Self {
        Self::whole("text/html; charset=utf-8", html)
    }

    /// An error with this body.
    pub(crate) fn refusal(refusal: &Refusal, body: &Value) -> Self {
        let Refusal { status, retry_after_s, retry_after_ms, retry_after, .. } = refusal;
        let headers = [
            ("retry-after", retry_after_s.map(|seconds| seconds.to_string())),
            ("retry-after", retry_after.clone()),
            ("retry-after-ms", retry_after_ms.map(|ms| ms.to_string())),
        ];
        let retry_after = headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        Self { status: *status, retry_after, ..Self::json(body) }
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let Self { status, content_type, retry_after, mut pieces, close } = self;
        let at_once = close == Close::Proper && pieces.iter().all(|piece| piece.pause.is_zero());
        let body = match pieces.pop() {
            Some(only) if at_once && pieces.is_empty() => Body::from(only.text),
            last => {
                pieces.extend(last);
                Body::from_stream(streamed(pieces, close))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        for (name, value) in retry_after {
            // A scenario may hold what is no header; then there is none.
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        response
    }
}

fn streamed(pieces: Vec<Piece>, close: Close) -> Received {
    let (sender, receiver) = mpsc::channel(PIECES_WAITING_MAX);
    tokio::spawn(async move {
        for Piece { pause, text } in pieces {
            // Even no pause at all takes the timer a millisecond.
            let gone = !pause.is_zero() && time::timeout(pause, sender.closed()).await.is_ok();
            if gone || sender.send(Ok(text.into())).await.is_err() {
                return;
            }
        }
        match close {
            Close::Proper => {}
            Close::Stall => sender.closed().await,
            Close::Cut => {
                // What is on its way goes first: the server, which has one thread, sends what it took before it waits
                // for more. Then an error of the body makes it drop the connection without ending the body.
                let _ = sender.reserve_many(PIECES_WAITING_MAX).await.map(drop);
                task::yield_now().await;
                let _ = sender.send(Err(io::ErrorKind::ConnectionAborted.into())).await;
            }
        }
    });
    Received(receiver)
}

struct Received(mpsc::Receiver<io::Result<Bytes>>);

impl Stream for Received {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}
