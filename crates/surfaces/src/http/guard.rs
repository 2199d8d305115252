//! Who may come in: the Host and Origin that are ours, and then a bearer token or a browser session.
//!
//! The API takes either, and never both: a request that shows a page's key comes by its session, any other by its token. Everything
//! else has one way in, fixed by its path (`way.rs`). A cookie alone counts for nothing anywhere. The surface is the way's: `react`
//! and `dev`, where a page asks the person, are a session's alone. Nothing is ever said to other origins (no CORS).

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use runyard_actions::{ActionError, Issue};
use runyard_domain::{Actor, ActorKind, Code};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::Instant;

use super::origin::{PageOrigin, is_this_machine};
use super::request::discard;
use super::respond::refusal;
use super::sessions::{HeldToken, Keys, Sessions, random_text};
use super::visit::{Shown, Visit};
use super::way::{PAGE_KEY, Way};
use crate::pages::Pages;

/// Of so many cookies of our name one may be ours: other servers of this machine can set some, too.
const COOKIES_MAX: usize = 8;
/// How long the keys of a session are.
const KEY_LENGTH: usize = 64;
/// So much of a random text tells one start of a server from another.
const INSTANCE_LENGTH: usize = 16;

/// The SHA-256 of a token. The token itself is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// The digest of a token. Tokens are random and long, so no slow hash is needed.
    pub fn of(token: &str) -> Self {
        TokenDigest(Sha256::digest(token.as_bytes()).into())
    }

    /// Compares without telling by its time how much was equal.
    pub(super) fn matches(self, other: TokenDigest) -> bool {
        self.0.iter().zip(other.0).fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
    }
}

/// Who holds which token. It is asked on every request, so it must not block.
pub trait TokenHolders: Send + Sync {
    /// Who holds the token, if anybody does. The time that the answer takes must not tell how much of a token was right.
    fn holder(&self, token: &str) -> Option<Arc<Actor>>;

    /// Told whenever a token may have stopped to count; nothing where they never do. One that expires does so without a word.
    fn changes(&self) -> Option<watch::Receiver<u64>>;
}

/// Tokens that never change, and who holds each.
#[derive(Clone, Debug, Default)]
pub struct BearerTokens(Vec<(TokenDigest, Arc<Actor>)>);

impl BearerTokens {
    /// No token: nobody comes in.
    pub fn new() -> Self {
        BearerTokens::default()
    }

    /// One more token.
    #[must_use]
    pub fn with(mut self, token: TokenDigest, actor: Actor) -> Self {
        self.0.push((token, Arc::new(actor)));
        self
    }
}

impl TokenHolders for BearerTokens {
    fn holder(&self, token: &str) -> Option<Arc<Actor>> {
        let digest = TokenDigest::of(token);
        // All are compared, so that the time does not tell which one it was.
        self.0.iter().fold(
            None,
            |found, (known, actor)| if known.matches(digest) { Some(Arc::clone(actor)) } else { found },
        )
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

/// What a request must show before any route sees it.
#[derive(Clone)]
pub struct Guard {
    hosts: Vec<String>,
    address: SocketAddr,
    /// The names of proxies, which encrypt.
    known_as: Vec<String>,
    /// Pages elsewhere that may ask as our own do.
    origins: Vec<PageOrigin>,
    pages: Pages,
    instance: String,
    /// Cookies go to every port of a host, so that each server needs a name of its own.
    cookie: String,
    tokens: Arc<dyn TokenHolders>,
    sessions: Arc<Sessions>,
}

/// Where a link is to lead.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// To a page elsewhere that may ask as our own do.
    pub(super) origin: Option<PageOrigin>,
    /// The address of the page that comes after logging in.
    pub(super) next: Option<String>,
}

/// That the guard found a browser session: it stands in the request's extensions, and what may be called in one only asks for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InSession;

impl Guard {
    /// Lets in requests to this address, with one of these tokens. A loopback address may also be called localhost.
    pub fn new(address: SocketAddr, tokens: impl TokenHolders + 'static) -> Self {
        let port = address.port();
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}")));
            // Clients leave the scheme's own port out.
            hosts.extend(
                ["localhost", "127.0.0.1", "[::1]"].into_iter().filter(|_| port == 80).map(str::to_owned),
            );
        }
        Guard {
            hosts,
            address,
            known_as: Vec::new(),
            origins: Vec::new(),
            pages: Pages::Application,
            instance: random_text().unwrap_or_default().chars().take(INSTANCE_LENGTH).collect(),
            cookie: format!("runyard_session_{port}"),
            tokens: Arc::new(tokens),
            sessions: Arc::new(Sessions::new(random_text)),
        }
    }

    /// One more name that this server is known by, with its port where that is not the scheme's own.
    #[must_use]
    pub fn known_as(mut self, host: impl Into<String>) -> Self {
        let host = host.into().to_ascii_lowercase();
        self.known_as.push(host.clone());
        self.hosts.push(host);
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
    fn check(
        self: &Arc<Self>,
        way: Way,
        request: &Request,
    ) -> Result<Option<(Arc<Actor>, Visit)>, ActionError> {
        let headers = request.headers();
        self.check_page(headers, request.uri().authority().map(ToString::to_string).as_deref())?;
        let (actor, shown) = match way {
            Way::Open => return Ok(None),
            Way::Login => return self.check_own_page(request.method(), headers).map(|()| None),
            Way::Token => self.check_token(headers)?,
            Way::Session(_) => self.check_session(request.method(), headers)?,
        };
        Ok(Some((actor, Visit { surface: way.surface(), shown, guard: Arc::clone(self) })))
    }

    /// That the request is for us, and that no foreign page sent it.
    fn check_page(&self, headers: &HeaderMap, authority: Option<&str>) -> Result<(), ActionError> {
        let refused = |code, message: &str| Err(ActionError::new(code, message));
        // A target may name a host as well, which wins over the header; then both must be ours.
        let ours = |name: &str| self.hosts.contains(&name.to_ascii_lowercase());
        if !only(headers, &header::HOST).is_some_and(ours) || !authority.is_none_or(ours) {
            return refused(
                Code::HostNotAllowed,
                "The Host header names no host that this server is known by; start it with --known-as HOST to add one.",
            );
        }
        if headers.contains_key(header::ORIGIN) {
            let origin = only(headers, &header::ORIGIN).map(str::to_ascii_lowercase).unwrap_or_default();
            let named = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            let ours = self.hosts.iter().any(|host| named == Some(host.as_str()));
            if !ours && !self.origins.iter().any(|known| known.is(&origin)) {
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
        let (now, page) = (Instant::now(), only(headers, &HeaderName::from_static(PAGE_KEY)));
        let found = page.map(TokenDigest::of).and_then(|page| {
            let mut cookies = self.cookies(headers);
            cookies.find_map(|text| {
                let cookie = TokenDigest::of(text);
                Some((text, self.sessions.token(cookie, page, now)?, Shown::Session { cookie, page }))
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
        let is_own = |origin: &str| {
            let named = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            named.is_some_and(|named| named.eq_ignore_ascii_case(host))
                || self.origins.iter().any(|known| known.is(origin))
        };
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

    /// Sessions are for people: no service, and never an agent.
    pub(super) fn person(&self, token: &str) -> Option<Arc<Actor>> {
        self.tokens.holder(token).filter(|actor| actor.kind == ActorKind::Person)
    }

    /// A one-time link for the person who holds this token: to the origin that they want, or to the name by which they asked. `next`
    /// is the address of the page that comes after logging in, checked already.
    pub(super) fn link(
        &self,
        token: &str,
        host: Option<&str>,
        wanted: &Wanted,
    ) -> Result<String, ActionError> {
        if self.person(token).is_none() {
            return Err(ActionError::new(Code::AuthorizationError, "Browser sessions are for people only."));
        }
        let origin = match &wanted.origin {
            Some(origin) if self.origins.contains(origin) => origin.to_string(),
            Some(_) => {
                let issue = "It is not one of those that may ask; [server] origins in runyard.toml names them.";
                return Err(ActionError::invalid_input(vec![Issue::at("origin", issue)]));
            }
            None => self.own_origin(host).ok_or_else(|| {
                let message = "A browser logs in on this machine, or through a proxy with TLS: start the server with --known-as \
                               NAME for the proxy's name.";
                ActionError::new(Code::Conflict, message)
            })?,
        };
        let code = self.sessions.link(token, Instant::now()).map_err(no_random)?;
        let next = wanted.next.as_ref().map(|next| format!("?next={next}")).unwrap_or_default();
        // After the number sign, so that it is sent to no server and stands in no log.
        Ok(format!("{origin}/login{next}#{code}"))
    }

    /// Where a browser reaches this server: by a name that it is known by, which is a proxy's with TLS, or on this machine.
    fn own_origin(&self, host: Option<&str>) -> Option<String> {
        let host = host.map(str::to_ascii_lowercase);
        let is_local = |host: &str| is_this_machine(host.rsplit_once(':').map_or(host, |(name, _)| name));
        match host {
            Some(host) if is_local(&host) => Some(format!("http://{host}")),
            Some(host) if self.known_as.contains(&host) => Some(format!("https://{host}")),
            _ if self.address.ip().is_loopback() => Some(format!("http://{}", self.address)),
            _ => self.known_as.first().map(|host| format!("https://{host}")),
        }
    }

    /// A session for whoever the link was made for; one that the browser has already ends.
    pub(super) fn log_in(&self, code: &str, headers: &HeaderMap) -> Result<(Keys, Arc<Actor>), ActionError> {
        let now = Instant::now();
        let found =
            self.sessions.redeem(code, now).and_then(|token| Some((self.person(token.reveal())?, token)));
        let (person, token): (Arc<Actor>, HeldToken) = found.ok_or_else(|| {
            let message = "The link does not work: it was used already, or it is older than two minutes.";
            ActionError::new(Code::AuthenticationError, message)
        })?;
        self.log_out(headers);
        let keys = self.sessions.start(token, now).map_err(no_random)?;
        Ok((keys, person))
    }

    /// Ends the session of whoever asks.
    pub(super) fn log_out(&self, headers: &HeaderMap) {
        self.cookies(headers).for_each(|cookie| self.sessions.end(cookie, Instant::now()));
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

fn no_random(error: std::io::Error) -> ActionError {
    tracing::error!(%error, "there are no random bytes");
    ActionError::new(Code::DevServerError, "The server could not make a key; its log says why.")
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("hosts", &self.hosts).finish_non_exhaustive()
    }
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
        Ok(admitted) => {
            if let Some((actor, visit)) = admitted {
                request.extensions_mut().insert(actor);
                if visit.is_session() {
                    request.extensions_mut().insert(InSession);
                }
                request.extensions_mut().insert(visit);
            }
            next.run(request).await
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What the server itself fails at is its failure, and nobody gets in by it.
    #[test]
    fn a17_without_random_bytes_there_is_no_link_and_no_session() {
        let tokens = BearerTokens::new().with(TokenDigest::of("token"), Actor::owner("ada"));
        let mut guard = Guard::new(SocketAddr::from(([127, 0, 0, 1], 1)), tokens);
        let link = guard.link("token", None, &Wanted::default()).unwrap();
        let (_, code) = link.split_once('#').unwrap();
        assert!(guard.log_in(code, &HeaderMap::new()).is_ok());
        guard.sessions = Arc::new(Sessions::new(|| Err(std::io::ErrorKind::NotFound.into())));
        let failed = guard.link("token", None, &Wanted::default()).unwrap_err();
        assert_eq!((*failed.code() == Code::DevServerError, Code::DevServerError.row().http), (true, 500));
    }
}
