//! One request of an agent: whose it is, whether it may be, and its body.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, HOST, HeaderMap};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, Version};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::forward::forward;
use super::listening::Server;
use super::refusal::Refusal;
use super::runs::Open;
use super::stream::{Cut, Out};

/// The body of a request may be so large.
pub(super) const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;
/// So much of a body that is refused is read and thrown away, so that the client hears of the refusal.
const UNWANTED_BYTES_MAX: usize = 2 * REQUEST_BYTES_MAX;

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Responses,
    Models,
}

/// Answers a request. `cut` ends the connection at once, whatever the client has read.
pub(super) async fn answer(
    server: Arc<Server>,
    request: Request<Incoming>,
    cut: Arc<Notify>,
) -> Result<Response<Out>, Cut> {
    let (head, body) = request.into_parts();
    let (open, route) = match admit(&server, &head) {
        Ok(admitted) => admitted,
        Err(refusal) => {
            throw_away(body, server.limits.request_body).await;
            return Ok(refusal.response());
        }
    };
    tokio::select! {
        biased;
        () = open.closed() => Err(Cut),
        answered = admitted(&server, &open, route, head, body, cut) => {
            Ok(answered.unwrap_or_else(|refusal| {
                let response = refusal.response();
                tracing::debug!(run = %open.run, status = %response.status(), "the gateway refused a request");
                response
            }))
        }
    }
}

/// Whose request it is, and for what.
fn admit(server: &Server, head: &Parts) -> Result<(Arc<Open>, Route), Refusal> {
    if head.version != Version::HTTP_11 {
        return Err(Refusal::Version);
    }
    if !is_for_loopback(head) {
        return Err(Refusal::NotLoopback);
    }
    let open =
        token(&head.headers).and_then(|token| server.runs.by_token(token)).ok_or(Refusal::Unauthorized)?;
    let route = match (&head.method, head.uri.path()) {
        (&Method::POST, "/v1/responses") => Route::Responses,
        (&Method::GET, "/v1/models") => Route::Models,
        _ => return Err(Refusal::NoRoute),
    };
    if head.headers.contains_key(CONTENT_ENCODING) {
        return Err(Refusal::Encoded);
    }
    Ok((open, route))
}

/// Also where the first line names a host. A page in a browser that reaches this machine under a name of its own is so kept out.
fn is_for_loopback(head: &Parts) -> bool {
    let mut hosts = head.headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    let is_loopback = |authority: &Authority| {
        let host = authority.host();
        !authority.as_str().contains('@')
            && ["127.0.0.1", "[::1]", "localhost"].iter().any(|ours| host.eq_ignore_ascii_case(ours))
    };
    host.as_ref().is_some_and(is_loopback) && head.uri.authority().is_none_or(is_loopback)
}

fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

async fn admitted(
    server: &Arc<Server>,
    open: &Arc<Open>,
    route: Route,
    head: Parts,
    body: Incoming,
    cut: Arc<Notify>,
) -> Result<Response<Out>, Refusal> {
    let limit = server.limits.request_body;
    let place = open.place().ok_or(Refusal::Busy);
    let allowed = place.and_then(|place| match route {
        Route::Responses if !open.has_budget() => Err(Refusal::Budget),
        _ if announced(&head.headers) > REQUEST_BYTES_MAX as u64 => Err(Refusal::TooLarge),
        _ => Ok(place),
    });
    let place = match allowed {
        Ok(place) => place,
        Err(refusal) => {
            throw_away(body, limit).await;
            return Err(refusal);
        }
    };
    let body = read(body, limit).await?;
    forward(server, open, route, &head.headers, body, place, cut).await
}

fn announced(headers: &HeaderMap) -> u64 {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    length.and_then(|length| length.parse().ok()).unwrap_or_default()
}

async fn read(mut body: Incoming, limit: Duration) -> Result<Bytes, Refusal> {
    let reading = async {
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            let data = frame.map_err(|_| Refusal::Unread)?.into_data().unwrap_or_default();
            if read.len() + data.len() > REQUEST_BYTES_MAX {
                return Err(Refusal::TooLarge);
            }
            read.extend_from_slice(&data);
        }
        Ok(read.into())
    };
    let read = timeout(limit, reading).await.unwrap_or(Err(Refusal::Unread));
    if read.is_err() {
        throw_away(body, limit).await;
    }
    read
}

/// A socket that is closed while something unread is in it takes the answer away from its client.
async fn throw_away(mut body: Incoming, limit: Duration) {
    let reading = async {
        let mut thrown = 0;
        while let Some(Ok(frame)) = body.frame().await {
            thrown += frame.data_ref().map_or(0, Bytes::len);
            if thrown > UNWANTED_BYTES_MAX {
                break;
            }
        }
    };
    let _ = timeout(limit, reading).await;
}
