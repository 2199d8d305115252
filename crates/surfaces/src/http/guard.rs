//! Who may come in: the Host and Origin that are ours, and a bearer token, on every route.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use runyard_actions::ActionError;
use runyard_domain::{Actor, Code, Surface};
use sha2::{Digest, Sha256};

use super::request::discard;
use super::respond::refusal;

/// The SHA-256 of a token. The token itself is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// The digest of a token. Tokens are random and long, so no slow hash is needed.
    pub fn of(token: &str) -> Self {
        TokenDigest(Sha256::digest(token.as_bytes()).into())
    }

    /// Compares without telling by its time how much was equal.
    fn matches(self, other: TokenDigest) -> bool {
        self.0.iter().zip(other.0).fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
    }
}

/// Who holds which token. It is asked on every request, so it must not block.
pub trait TokenHolders: Send + Sync {
    /// Who holds the token, if anybody does. The time that the answer takes must not tell how much of a token was right.
    fn holder(&self, token: &str) -> Option<Arc<Actor>>;
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
}

/// What a request must show before any route sees it.
#[derive(Clone)]
pub struct Guard {
    hosts: Vec<String>,
    tokens: Arc<dyn TokenHolders>,
}

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
        Guard { hosts, tokens: Arc::new(tokens) }
    }

    /// One more name that this server is known by, with its port where that is not the scheme's own.
    #[must_use]
    pub fn known_as(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into().to_ascii_lowercase());
        self
    }

    fn check(&self, headers: &HeaderMap, authority: Option<&str>) -> Result<Arc<Actor>, ActionError> {
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
            let ours = self.hosts.iter().any(|host| {
                origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
                    == Some(host.as_str())
            });
            if !ours {
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
        let bearer = only(headers, &header::AUTHORIZATION).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        match bearer.and_then(|token| self.tokens.holder(token)) {
            Some(actor) => Ok(actor),
            None => {
                refused(Code::AuthenticationError, "A valid token is needed: Authorization: Bearer TOKEN.")
            }
        }
    }
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
    let authority = request.uri().authority().map(ToString::to_string);
    let mut response = match guard.check(request.headers(), authority.as_deref()) {
        Ok(actor) => {
            request.extensions_mut().insert(actor);
            next.run(request).await
        }
        Err(error) => {
            tracing::warn!(code = %error.code(), path = %request.uri().path().escape_debug(), "a request was refused");
            let (parts, body) = request.into_parts();
            discard(&parts.headers, body).await;
            refusal(Surface::Http, None, error)
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
