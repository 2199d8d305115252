//! Who may come in: the Host and Origin that are ours, and then a bearer token or a browser session.
//!
//! The API takes either, and never both: a request that shows a page's key comes by its session, any other by its token. Everything
//! else has one way in, fixed by its path (`way.rs`). A cookie alone counts for nothing anywhere. The surface is the way's: `react`
//! and `dev`, where a page asks the person, are a session's alone, and a session counts only at the origin where it was started.
//! Nothing is ever said to other origins (no CORS).

mod links;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use runyard_actions::ActionError;
use runyard_domain::{Actor, ActorKind, Code};
use tokio::time::Instant;

pub(super) use self::links::{Asking, Wanted};
use super::hosts::{Hosts, Name};
use super::origin::PageOrigin;
use super::peer::Connection;
use super::request::discard;
use super::respond::refusal;
use super::sessions::{Sessions, random_text};
use super::tokens::{TokenDigest, TokenHolders};
use super::visit::{Shown, Visit};
use super::way::{PAGE_KEY, Way};
use crate::pages::Pages;

/// Of so many cookies of our name one may be ours. Other servers of this host can set some, too: one for each path above an address
/// and each domain above a name, and a browser sends ours, with the shortest path, last. No address of ours has room for so many,
/// and each is looked up, so that it cannot be all that fit into a header.
const COOKIES_MAX: usize = 64;
/// How long the keys of a session are.
const KEY_LENGTH: usize = 64;
/// So much of a random text tells one start of a server from another.
const INSTANCE_LENGTH: usize = 16;

/// What a request must show before any route sees it.
#[derive(Clone)]
pub struct Guard {
    hosts: Hosts,
    /// Pages elsewhere that may ask as our own do.
    origins: Vec<PageOrigin>,
    pages: Pages,
    instance: String,
    /// Cookies go to every port of a host, so that each server needs a name of its own.
    cookie: String,
    tokens: Arc<dyn TokenHolders>,
    sessions: Arc<Sessions>,
    /// Whose program is at the other end of a connection.
    user_of: fn(Connection) -> Option<u32>,
}

/// That the guard found a browser session: it stands in the request's extensions, and what may be called in one only asks for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InSession;

/// What becomes of a request that the guard does not refuse.
enum Admitted {
    Anybody,
    Caller(Arc<Actor>, Visit),
    /// The page is to be asked for at this address.
    Elsewhere(String),
}

impl Guard {
    /// Lets in requests to this address, with one of these tokens. Of a loopback address programs may also say localhost; browsers
    /// that do are led to the address.
    pub fn new(address: SocketAddr, tokens: impl TokenHolders + 'static) -> Self {
        Guard {
            hosts: Hosts::new(address),
            origins: Vec::new(),
            pages: Pages::Application,
            instance: random_text().unwrap_or_default().chars().take(INSTANCE_LENGTH).collect(),
            cookie: format!("runyard_session_{}", address.port()),
            tokens: Arc::new(tokens),
            sessions: Arc::new(Sessions::new(random_text)),
            user_of: Connection::user,
        }
    }

    /// One more name that this server is known by, with its port where that is not the scheme's own.
    #[must_use]
    pub fn known_as(mut self, host: impl Into<String>) -> Self {
        self.hosts.add(&host.into());
        self
    }

    /// One more page that may ask as our own do, such as a development server that passes requests on.
    #[must_use]
    pub fn origin(mut self, origin: PageOrigin) -> Self {
        self.origins.push(origin);
        self
    }

    /// Which pages there are; those of an application unless said otherwise.
    #[must_use]
    pub fn with_pages(mut self, pages: Pages) -> Self {
        self.pages = pages;
        self
    }

    /// Which pages there are.
    pub(crate) fn pages(&self) -> Pages {
        self.pages
    }

    /// A name for this start of the server.
    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    pub(super) fn tokens(&self) -> &dyn TokenHolders {
        &*self.tokens
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Who asks and how, where that is known, once everything is shown that this way in needs.
    fn check(self: &Arc<Self>, way: Way, request: &Request) -> Result<Admitted, ActionError> {
        let headers = request.headers();
        let authority = request.uri().authority().map(ToString::to_string);
        self.check_page(headers, authority.as_deref())?;
        let by_alias = self.is_by_alias(headers, authority.as_deref());
        let (actor, shown) = match way {
            Way::Open if by_alias => return Ok(Admitted::Elsewhere(self.elsewhere(request.uri()))),
            Way::Open => return Ok(Admitted::Anybody),
            Way::Login | Way::Session(_) if by_alias => return Err(self.only_at_the_address()),
            Way::Login => {
                return self.check_own_page(request.method(), headers).map(|()| Admitted::Anybody);
            }
            Way::Token => self.check_token(headers)?,
            Way::Session(_) => self.check_session(request.method(), headers)?,
        };
        Ok(Admitted::Caller(actor, Visit { surface: way.surface(), shown, guard: Arc::clone(self) }))
    }

    /// Whether the request came by a name under which another program of this machine may answer, too.
    pub(crate) fn is_by_alias(&self, headers: &HeaderMap, authority: Option<&str>) -> bool {
        let mut names = only(headers, &header::HOST).into_iter().chain(authority);
        names.any(|name| self.hosts.name(name) == Some(Name::Alias))
    }

    /// The same page at the address that surely leads here.
    fn elsewhere(&self, page: &Uri) -> String {
        let page = page.path_and_query().map_or("/", |page| page.as_str());
        format!("{}{page}", self.hosts.address_origin())
    }

    fn only_at_the_address(&self) -> ActionError {
        let message = format!(
            "Under this name another program of this machine may answer, so that browsers log in at {} alone: go there, and let a proxy \
             pass requests on to there.",
            self.hosts.address_origin()
        );
        ActionError::new(Code::HostNotAllowed, message)
    }

    /// That the request is for us, and that no foreign page sent it.
    fn check_page(&self, headers: &HeaderMap, authority: Option<&str>) -> Result<(), ActionError> {
        let refused = |code, message: &str| Err(ActionError::new(code, message));
        // A target may name a host as well, which wins over the header; then both must be ours.
        let ours = |name: &str| self.hosts.name(name).is_some();
        if !only(headers, &header::HOST).is_some_and(ours) || !authority.is_none_or(ours) {
            return refused(
                Code::HostNotAllowed,
                "The Host header names no host that this server is known by; start it with --known-as HOST to add one.",
            );
        }
        if headers.contains_key(header::ORIGIN) {
            let origin = only(headers, &header::ORIGIN).map(str::to_ascii_lowercase).unwrap_or_default();
            if !host_of(&origin).is_some_and(ours) && !self.is_further(&origin) {
                return refused(
                    Code::OriginNotAllowed,
                    "The Origin header names a page that is not this server's.",
                );
            }
        }
        let mut sites = headers.get_all("sec-fetch-site").iter();
        if !sites.all(|site| matches!(site.as_bytes(), b"same-origin" | b"none")) {
            return refused(Code::OriginNotAllowed, "The request comes from another site's page.");
        }
        Ok(())
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(Arc<Actor>, Shown), ActionError> {
        let token = bearer(headers);
        let found = token.and_then(|token| Some((self.tokens.holder(token)?, Shown::Token(token.into()))));
        found.ok_or_else(|| {
            ActionError::new(
                Code::AuthenticationError,
                "A valid token is needed: Authorization: Bearer TOKEN.",
            )
        })
    }

    /// Cookie and page key together, from one of our own pages; whose token it is by now is asked each time.
    fn check_session(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<(Arc<Actor>, Shown), ActionError> {
        let refused = |message: &str| Err(ActionError::new(Code::AuthenticationError, message));
        if headers.contains_key(header::AUTHORIZATION) {
            return refused("A token does not count here: this takes a browser session, and never both.");
        }
        self.check_own_page(method, headers)?;
        let (host, origin) = (only(headers, &header::HOST), only(headers, &header::ORIGIN));
        // What only reads names no page. Our own must then have been called by the same name; requests of a further one are passed on
        // under ours, and are no different from these.
        let is_of = |started: &str| match origin {
            Some(origin) => started.eq_ignore_ascii_case(origin),
            None => self.is_further(started) || is_at(started, host.unwrap_or_default()),
        };
        let (now, page) = (Instant::now(), only(headers, &HeaderName::from_static(PAGE_KEY)));
        let found = page.map(TokenDigest::of).and_then(|page| {
            let mut cookies = self.cookies(headers);
            cookies.find_map(|text| {
                let cookie = TokenDigest::of(text);
                Some((text, self.sessions.token(cookie, page, is_of, now)?, Shown::Session { cookie, page }))
            })
        });
        let Some((cookie, token, shown)) = found else {
            return refused("There is no such browser session; a new one-time link starts one.");
        };
        match self.person(token.reveal()) {
            Some(person) => Ok((person, shown)),
            None => {
                self.sessions.end(cookie, now);
                refused("The token that this browser session was started with does not count any more.")
            }
        }
    }

    /// That the browser itself says: a page of exactly this origin asks, or one that is known to be as good. It sends no Origin
    /// with what only reads, and then must say so otherwise.
    fn check_own_page(&self, method: &Method, headers: &HeaderMap) -> Result<(), ActionError> {
        let host = only(headers, &header::HOST).unwrap_or_default();
        let origin = only(headers, &header::ORIGIN);
        let is_own = |origin: &str| is_at(origin, host) || self.is_further(origin);
        let site = only(headers, &HeaderName::from_static("sec-fetch-site"));
        let same_site = site == Some("same-origin");
        let from_here = match origin {
            Some(origin) => is_own(origin) && (same_site || !headers.contains_key("sec-fetch-site")),
            None => method == Method::GET && !headers.contains_key(header::ORIGIN) && same_site,
        };
        from_here.then_some(()).ok_or_else(|| {
            ActionError::new(Code::OriginNotAllowed, "Only this server's own pages may ask for this.")
        })
    }

    /// Whether it is the origin of a page elsewhere that may ask as our own do.
    fn is_further(&self, origin: &str) -> bool {
        self.origins.iter().any(|known| known.is(origin))
    }

    /// Sessions are for people: no service, and never an agent.
    pub(super) fn person(&self, token: &str) -> Option<Arc<Actor>> {
        self.tokens.holder(token).filter(|actor| actor.kind == ActorKind::Person)
    }

    /// The name of the cookie.
    pub(super) fn cookie_name(&self) -> &str {
        &self.cookie
    }

    fn cookies<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        // Another server of this host may have set cookies of our name: what cannot be ours does not count.
        let ours =
            |value: &&str| value.len() == KEY_LENGTH && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        pairs.filter(|(name, _)| *name == self.cookie).map(|(_, value)| value).filter(ours).take(COOKIES_MAX)
    }
}

/// The token of a request that shows exactly one.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = only(headers, &header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// Host and port of an origin.
fn host_of(origin: &str) -> Option<&str> {
    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
}

/// Whether an origin is at this host.
fn is_at(origin: &str, host: &str) -> bool {
    host_of(origin).is_some_and(|named| named.eq_ignore_ascii_case(host))
}

/// The value of a header that is there exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// The middleware around every route, the one that is not found included.
pub(super) async fn check(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    let way = Way::to(guard.pages, request.method(), request.uri().path(), request.headers());
    let mut response = match guard.check(way, &request) {
        Ok(Admitted::Anybody) => next.run(request).await,
        Ok(Admitted::Caller(actor, visit)) => {
            request.extensions_mut().insert(actor);
            if visit.is_session() {
                request.extensions_mut().insert(InSession);
            }
            request.extensions_mut().insert(visit);
            next.run(request).await
        }
        Ok(Admitted::Elsewhere(address)) => {
            // For now: tomorrow something else may listen there.
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, address)]).into_response()
        }
        Err(error) => {
            tracing::warn!(code = %error.code(), path = %request.uri().path().escape_debug(), "a request was refused");
            let (parts, body) = request.into_parts();
            discard(&parts.headers, body).await;
            refusal(way.surface(), None, error)
        }
    };
    harden(&mut response);
    response
}

/// What a browser must not do with any answer.
fn harden(response: &mut Response<Body>) {
    const HEADERS: [(&str, &str); 5] = [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ];
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .entry(HeaderName::from_static(name))
            .or_insert(HeaderValue::from_static(value));
    }
}
