//! One request of an agent: whose it is, whether it may be, and its body.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, HOST, HeaderMap, HeaderName};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, Version};
use runyard_domain::Wire;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::forward::forward;
use super::listening::{Server, Visit};
use super::refusal::Refusal;
use super::runs::{API_KEY, Digest, Open};
use super::stream::{Cut, Out};
use super::tally::Reserved;

/// The body of a request may be so large.
pub(super) const REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// So much of a body that is refused is read and thrown away, so that the client hears of the refusal.
const UNWANTED_BYTES_MAX: usize = 2 * REQUEST_BYTES_MAX;
/// The same, of one that comes without a token.
const STRANGER_BYTES_MAX: usize = 64 * 1024;
/// Room for a body is taken in pieces of this size.
const ROOM_BYTES: usize = 1024 * 1024;

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Responses,
    Chat,
    Messages,
    Models,
}

/// What a request has been given.
pub(super) struct Admitted {
    pub(super) route: Route,
    pub(super) place: OwnedSemaphorePermit,
    /// None where nothing is counted.
    pub(super) reserved: Option<Reserved>,
}

/// A body that has been read, and the room that it takes.
pub(super) struct Taken {
    pub(super) bytes: Bytes,
    pub(super) room: OwnedSemaphorePermit,
}

/// Answers a request.
pub(super) async fn answer(
    server: Arc<Server>,
    request: Request<Incoming>,
    visit: Arc<Visit>,
) -> Result<Response<Out>, Cut> {
    let (head, body) = request.into_parts();
    let welcomed = welcome(&server, &head, &visit).and_then(|open| {
        // Those of a run are bounded by themselves, so that they keep nobody else out.
        visit.known(open.connection().ok_or(Refusal::Busy)?);
        Ok(open)
    });
    let open = match welcomed {
        Ok(open) => open,
        Err(refusal) => {
            throw_away(body, STRANGER_BYTES_MAX, server.limits.stranger_body).await;
            return Ok(refusal.response());
        }
    };
    tokio::select! {
        biased;
        () = open.closed() => Err(Cut),
        answered = answered(&server, &open, head, body, visit) => {
            Ok(answered.unwrap_or_else(|refusal| {
                let response = refusal.response();
                tracing::debug!(run = %open.run, status = %response.status(), "the gateway refused a request");
                response
            }))
        }
    }
}

/// Whose request it is.
fn welcome(server: &Server, head: &Parts, visit: &Visit) -> Result<Arc<Open>, Refusal> {
    if head.version != Version::HTTP_11 {
        return Err(Refusal::Version);
    }
    if !is_for_loopback(head) {
        return Err(Refusal::NotLoopback);
    }
    let find = |token| {
        let digest = Digest::of(token);
        visit.only.is_none_or(|only| only == digest).then(|| server.runs.find(digest)).flatten()
    };
    let open = match bearer(&head.headers) {
        Some(token) => find(token),
        // Clients of that API have a header of their own for it.
        None => {
            only(&head.headers, API_KEY).and_then(find).filter(|open| open.target.spoken == Wire::Messages)
        }
    };
    open.ok_or(Refusal::Unauthorized)
}

/// What it is for.
fn route(head: &Parts, spoken: Wire) -> Result<Route, Refusal> {
    let route = match (&head.method, head.uri.path(), spoken) {
        (&Method::POST, "/v1/responses", Wire::Responses) => Route::Responses,
        (&Method::POST, "/v1/chat/completions", Wire::Chat) => Route::Chat,
        (&Method::POST, "/v1/messages", Wire::Messages) => Route::Messages,
        (&Method::GET, "/v1/models", _) => Route::Models,
        _ => return Err(Refusal::NoRoute(spoken)),
    };
    if head.headers.contains_key(CONTENT_ENCODING) {
        return Err(Refusal::Encoded);
    }
    Ok(route)
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

/// The token where every client may put it.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = only(headers, AUTHORIZATION)?.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

/// The value of a header that is there once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&[u8]> {
    let mut values = headers.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    Some(value.as_bytes())
}

async fn answered(
    server: &Arc<Server>,
    open: &Arc<Open>,
    head: Parts,
    body: Incoming,
    visit: Arc<Visit>,
) -> Result<Response<Out>, Refusal> {
    let limits = server.limits;
    let mut admitted = match admit(open, &head, limits.provider.head).await {
        Ok(admitted) => admitted,
        Err(refusal) => {
            throw_away(body, UNWANTED_BYTES_MAX, limits.request_body).await;
            return Err(refusal);
        }
    };
    let taken = read(&server.bodies, body, limits.request_body).await?;
    if let Some(reserved) = &mut admitted.reserved {
        reserved.resize(taken.bytes.len());
    }
    forward(server, open, admitted, &head.headers, taken, visit).await
}

async fn admit(open: &Arc<Open>, head: &Parts, limit: Duration) -> Result<Admitted, Refusal> {
    let route = route(head, open.target.spoken)?;
    let place = open.place().ok_or(Refusal::Busy)?;
    // Until it is known how large it is, it is taken to be as large as it may be.
    let length = announced(&head.headers).unwrap_or(REQUEST_BYTES_MAX as u64);
    if length > REQUEST_BYTES_MAX as u64 {
        return Err(Refusal::TooLarge);
    }
    let reserved = match route {
        Route::Responses | Route::Chat | Route::Messages => Some(Reserved::of(open, length, limit).await?),
        Route::Models => None,
    };
    Ok(Admitted { route, place, reserved })
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn read(bodies: &Arc<Semaphore>, mut body: Incoming, limit: Duration) -> Result<Taken, Refusal> {
    let mut is_full = false;
    let reading = async {
        let mut bytes = Vec::new();
        let mut room = room(bodies, 0).await?;
        while let Some(frame) = body.frame().await {
            let data = frame.map_err(|_| Refusal::Unread)?.into_data().unwrap_or_default();
            if bytes.len() + data.len() > REQUEST_BYTES_MAX {
                return Err(Refusal::TooLarge);
            }
            if bytes.len() + data.len() > bytes.capacity() {
                let more = data.len().max(ROOM_BYTES);
                is_full = true;
                room.merge(self::room(bodies, more).await?);
                is_full = false;
                bytes.reserve_exact(more);
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Taken { bytes: bytes.into(), room })
    };
    let read = timeout(limit, reading).await;
    let read = read.unwrap_or_else(|_| Err(if is_full { Refusal::Full } else { Refusal::Unread }));
    if read.is_err() {
        throw_away(body, UNWANTED_BYTES_MAX, limit).await;
    }
    read
}

async fn room(bodies: &Arc<Semaphore>, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
    let bytes = u32::try_from(bytes).map_err(|_| Refusal::TooLarge)?;
    Arc::clone(bodies).acquire_many_owned(bytes).await.map_err(|_| Refusal::Full)
}

/// A socket that is closed while something unread is in it takes the answer away from its client.
async fn throw_away(mut body: Incoming, most: usize, limit: Duration) {
    let reading = async {
        let mut thrown = 0;
        while let Some(Ok(frame)) = body.frame().await {
            thrown += frame.data_ref().map_or(0, Bytes::len);
            if thrown > most {
                break;
            }
        }
    };
    let _ = timeout(limit, reading).await;
}
