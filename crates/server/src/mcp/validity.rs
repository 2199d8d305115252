//! Streams that end with the token that they were opened with: whoever is let in no more is told nothing more.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use futures_core::Stream;
use runyard_engine::Engine;

use crate::frames::Frames;
use crate::stream::{NOT_VALID, bearer};

/// How often it is looked whether the token of a silent stream is valid.
const LOOK: Duration = Duration::from_secs(1);

/// The token of a request, if it is one that can be revoked, expire or end with its run.
pub(super) fn ending_token(engine: &Engine, headers: &HeaderMap) -> Option<String> {
    bearer(headers).filter(|token| is_valid(engine, token)).map(str::to_owned)
}

fn is_valid(engine: &Engine, token: &str) -> bool {
    engine.installation().holder(token).is_some() || engine.run_token_holder(token).is_some()
}

/// The response; if it is a stream of events, then for as long as the token is valid.
pub(super) fn while_valid(engine: &Engine, token: Option<String>, response: Response) -> Response {
    let media_type = response.headers().get(header::CONTENT_TYPE);
    let streams =
        media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"text/event-stream"));
    let Some(token) = token.filter(|_| streams) else { return response };
    let engine = engine.clone();
    response.map(|body| {
        Body::from_stream(Frames::of(move |out| async move {
            let (mut body, mut changed) = (body.into_data_stream(), engine.installation().changed());
            while is_valid(&engine, &token) {
                // A token that expires or ends with its run changes nothing else: that is looked at now and then.
                let frame = tokio::select! {
                    Ok(()) = changed.changed() => continue,
                    () = tokio::time::sleep(LOOK) => continue,
                    frame = next(&mut body) => frame,
                };
                let Some(frame) = frame else { return };
                if !is_valid(&engine, &token) {
                    break;
                }
                out.put(frame).await;
            }
            out.put(Bytes::from_static(NOT_VALID)).await;
        }))
    })
}

/// The next piece of a body; none at its end, and none where it broke off.
async fn next(body: &mut BodyDataStream) -> Option<Bytes> {
    poll_fn(|task| Pin::new(&mut *body).poll_next(task)).await?.ok()
}
