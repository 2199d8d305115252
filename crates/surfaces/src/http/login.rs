//! Logging in with a browser: a person's token asks for a one-time link, and the page behind it trades the link for a session.

use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use axum::routing::post;
use runyard_actions::{ActionError, Envelope, Issue};
use runyard_domain::{Actor, Code, Grants, Surface, Timestamp};
use serde_json::{Map, Value, json};

use super::guard::{Asking, Wanted, bearer};
use super::origin::NoPageOrigin;
use super::peer::Connection;
use super::request::{discard, read_json, read_optional_json};
use super::respond::{answer, refusal};
use super::sessions::{LINK_TIME_MAX, SESSION_TIME_MAX};
use super::{HttpApi, InSession, PlainRoute};
use crate::pages::Pages;

/// Where a link is asked for, with a token.
pub const LOGINS_PATH: &str = "/api/v1/logins";
/// Where a page asks who is logged in.
pub(super) const SESSION_PATH: &str = "/api/v1/session";
/// The longest address that a link can lead to.
const NEXT_CHARS_MAX: usize = 200;

/// In the extensions of the answer that began a browser's session: whose it is.
#[derive(Clone, Debug)]
pub struct LoggedIn(pub Arc<Actor>);

/// What the pages ask for; the guard has seen to it that they are ours.
pub(super) fn router(api: Arc<HttpApi>) -> Router {
    Router::new().route("/login", post(log_in)).route("/logout", post(log_out)).with_state(api)
}

/// The one route with a token.
pub(super) fn links(api: Arc<HttpApi>) -> PlainRoute {
    PlainRoute { path: LOGINS_PATH, methods: post(make_link).with_state(api) }
}

/// `POST /api/v1/logins` with `{next?, origin?}`: the guard has let a token in already; only a person's gets a link.
async fn make_link(State(api): State<Arc<HttpApi>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let wanted = read_optional_json(&parts.headers, body).await.and_then(wanted);
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let asking = Asking { host, connection: parts.extensions.get::<Connection>().copied() };
    let token = bearer(&parts.headers).unwrap_or_default();
    match wanted.and_then(|wanted| api.guard.link(token, asking, &wanted)) {
        Ok(url) => answer(&Envelope::of_data(Surface::Http, json!({ "url": url, "expiresAt": link_end() }))),
        Err(error) => refusal(Surface::Http, None, error),
    }
}

/// Where the link is to lead; what is not known is refused rather than passed over.
fn wanted(given: Option<Value>) -> Result<Wanted, ActionError> {
    let (mut wanted, mut issues) = (Wanted::default(), Vec::new());
    let given = match given {
        None => Map::new(),
        Some(Value::Object(given)) => given,
        Some(_) => return Err(ActionError::invalid_input(vec![Issue::root("Expected object.")])),
    };
    for (name, value) in given {
        match (name.as_str(), value.as_str()) {
            ("next", Some(next)) if is_own_address(next) => wanted.next = Some(next.to_owned()),
            ("next", _) => {
                let message = format!(
                    "Expected the address of a page: a path of at most {NEXT_CHARS_MAX} plain characters."
                );
                issues.push(Issue::at("next", message));
            }
            ("origin", Some(origin)) => match origin.parse() {
                Ok(origin) => wanted.origin = Some(origin),
                Err(NoPageOrigin) => issues.push(Issue::at("origin", format!("{NoPageOrigin}."))),
            },
            ("origin", None) => issues.push(Issue::at("origin", "Expected string.")),
            (other, _) => issues.push(Issue::at(other, format!("Unexpected property \"{other}\"."))),
        }
    }
    if issues.is_empty() { Ok(wanted) } else { Err(ActionError::invalid_input(issues)) }
}

/// Whether it is a path on this server, of nothing that means anything to a URL, a shell or a page.
fn is_own_address(next: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_-.".contains(&byte);
    let leads_elsewhere = next.starts_with("//") || next.split('/').any(|part| matches!(part, "." | ".."));
    next.starts_with('/') && !leads_elsewhere && next.len() <= NEXT_CHARS_MAX && next.bytes().all(plain)
}

fn link_end() -> Timestamp {
    let end = SystemTime::now() + LINK_TIME_MAX;
    let since = end.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// `POST /login` with `{code}`: sets the cookie and answers the key that the page keeps.
async fn log_in(State(api): State<Arc<HttpApi>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let refused = |error| refusal(Surface::Dev, None, error);
    let given = match read_json(&parts.headers, body).await {
        Ok(given) => given,
        Err(error) => return refused(error),
    };
    let Some(code) = given.get("code").and_then(|code| code.as_str()) else {
        return refused(ActionError::invalid_input(vec![Issue::at("code", "Expected string.")]));
    };
    let connection = parts.extensions.get::<Connection>().copied();
    let (keys, person) = match api.guard.log_in(code, &parts.headers, connection) {
        Ok(started) => started,
        Err(error) => return refused(error),
    };
    tracing::info!(actor = %person, "a browser session was started");
    let envelope = Envelope::of_data(Surface::Dev, json!({ "pageKey": keys.page }));
    let mut answer = answer(&envelope);
    answer.extensions_mut().insert(LoggedIn(person));
    with_cookie(&api, &parts.headers, answer, &keys.cookie, SESSION_TIME_MAX.as_secs())
}

/// `POST /logout`: the guard has found the session.
async fn log_out(State(api): State<Arc<HttpApi>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    discard(&parts.headers, body).await;
    api.guard.log_out(&parts.headers);
    let envelope = Envelope::of_data(Surface::Dev, json!({}));
    with_cookie(&api, &parts.headers, answer(&envelope), "", 0)
}

/// `GET /api/v1/session`: who is logged in, what they may do, and where. Only a session gets here.
pub(super) async fn session(
    State(api): State<Arc<HttpApi>>,
    Extension(InSession): Extension<InSession>,
    Extension(actor): Extension<Arc<Actor>>,
) -> Response {
    let permissions = match &actor.grants {
        Grants::All => json!(["*"]),
        Grants::Only(permissions) => json!(permissions),
    };
    let data = json!({
        // Sessions are for people only.
        "actor": { "id": actor.id, "kind": "person" },
        "permissions": permissions,
        "name": api.name,
        "version": api.version,
        "hub": api.guard.pages() == Pages::Hub,
    });
    answer(&Envelope::of_data(Surface::React, data))
}

fn with_cookie(
    api: &HttpApi,
    headers: &HeaderMap,
    mut response: Response,
    value: &str,
    seconds: u64,
) -> Response {
    let encrypted =
        headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    let secure = if encrypted { "; Secure" } else { "" };
    let name = api.guard.cookie_name();
    let cookie = format!("{name}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{secure}");
    match HeaderValue::try_from(cookie) {
        Ok(cookie) => {
            response.headers_mut().append(header::SET_COOKIE, cookie);
            response
        }
        Err(_) => refusal(
            Surface::Dev,
            None,
            ActionError::new(Code::DevServerError, "The cookie could not be written."),
        ),
    }
}
