//! One request to an address, and its answer with a limit on every wait and every byte.

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request};
use runyard_domain::Code;
use runyard_llm::http::{Address, Answer, Client, Failed, Limits, Unusable, is_encoded};
use tokio::time::timeout;

use super::RemoteError;
use crate::spec::ApiKey;

const AGENT: &str = concat!("runyard/", env!("CARGO_PKG_VERSION"));

/// A URL, taken apart once.
#[derive(Debug, Clone)]
pub(super) struct Place {
    address: Address,
    target: String,
}

/// What is sent.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) accept: &'static str,
    pub(super) key: Option<&'a ApiKey>,
    pub(super) body: Vec<u8>,
}

impl Place {
    pub(super) fn parse(url: &str) -> Result<Self, Unusable> {
        // The whole of it first: what is none must not become one by being cut.
        Address::parse(url)?;
        let (path, query) = url.split_once('?').map_or((url, ""), |(path, query)| (path, query));
        let begin = path.find("://").map_or(0, |at| at + 3);
        let (base, name) = match path[begin..].rfind('/') {
            Some(at) => (&path[..begin + at], &path[begin + at + 1..]),
            None => (path, ""),
        };
        let base = if query.is_empty() { base.to_owned() } else { format!("{base}/?{query}") };
        let address = Address::parse(&base)?;
        let target = address.below(name);
        Ok(Place { address, target })
    }

    /// Whether both are on the same host and port, and both or neither behind TLS.
    pub(super) fn is_beside(&self, other: &Place) -> bool {
        let (one, other) = (&self.address, &other.address);
        one.secure == other.secure && one.port == other.port && one.host.eq_ignore_ascii_case(&other.host)
    }

    /// Host and port, for messages: the rest may hold what is nobody's business.
    pub(super) fn authority(&self) -> &str {
        &self.address.authority
    }

    pub(super) async fn ask(
        &self,
        client: &Client,
        limits: &Limits,
        ask: Ask<'_>,
    ) -> Result<Answer, RemoteError> {
        let request = self.request(ask).ok_or_else(|| failed(&Failed::Unusable))?;
        let answer = client.send(limits, &self.address, request).await.map_err(|failure| failed(&failure))?;
        // Of an answer that is no success nobody reads more than the status.
        if answer.response.status().is_success() && is_encoded(answer.response.headers()) {
            return Err(failed(&Failed::Unusable));
        }
        Ok(answer)
    }

    fn request(&self, ask: Ask<'_>) -> Option<Request<Full<Bytes>>> {
        let Ask { method, accept, key, body } = ask;
        let has_body = !body.is_empty();
        let mut request = Request::new(Full::new(body.into()));
        *request.method_mut() = method;
        *request.uri_mut() = self.target.parse().ok()?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(&self.address.authority).ok()?);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if has_body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(key) = key {
            let text = zeroize::Zeroizing::new(format!("Bearer {}", key.expose()));
            let mut value = HeaderValue::from_str(&text).ok()?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Some(request)
    }
}

/// What an answer's status means, where it is no success.
pub(super) fn refused(status: u16, place: &Place) -> RemoteError {
    let code = match status {
        400 | 413 | 415 | 422 => Code::InferenceInvalidRequest,
        401 | 403 => Code::InferenceUnauthorized,
        404 => Code::RuntimeAgentNotFound,
        408 | 504 => Code::InferenceTimeout,
        409 => Code::RuntimeThreadAlreadyRunning,
        429 => Code::InferenceRateLimited,
        503 | 529 => Code::InferenceOverloaded,
        _ => Code::InferenceProvider,
    };
    RemoteError { code, message: format!("{} answered {status}", place.authority()) }
}

fn failed(failure: &Failed) -> RemoteError {
    let code = if failure.is_late() { Code::InferenceTimeout } else { Code::InferenceProvider };
    RemoteError { code, message: failure.to_string() }
}

/// The next bytes of a body; nothing at its end.
pub(super) async fn piece(body: &mut Incoming, limits: &Limits) -> Result<Option<Bytes>, RemoteError> {
    let broken = |code, message: &str| RemoteError { code, message: message.to_owned() };
    match timeout(limits.idle, body.frame()).await {
        Err(_) => {
            Err(broken(Code::InferenceStreamInterrupted, "the answer broke off: nothing came for too long"))
        }
        Ok(None) => Ok(None),
        Ok(Some(Err(_))) => {
            Err(broken(Code::InferenceStreamInterrupted, "the answer broke off: the connection ended"))
        }
        Ok(Some(Ok(frame))) => Ok(Some(frame.into_data().unwrap_or_default())),
    }
}

/// A whole body of at most so many bytes.
pub(super) async fn whole(
    mut body: Incoming,
    limits: &Limits,
    bytes_max: usize,
) -> Result<Vec<u8>, RemoteError> {
    let mut bytes = Vec::new();
    while let Some(piece) = piece(&mut body, limits).await? {
        if bytes.len() + piece.len() > bytes_max {
            return Err(too_long(bytes_max));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

pub(super) fn too_long(bytes_max: usize) -> RemoteError {
    let message = format!("the answer is longer than {bytes_max} bytes");
    RemoteError { code: Code::InferenceProvider, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_goes_out_as_it_was_written() {
        for (url, target) in [
            ("http://h", "/"),
            ("http://h/", "/"),
            ("http://h/run", "/run"),
            ("https://h:8443/a/b/run", "/a/b/run"),
            ("https://h/a/run/", "/a/run/"),
            ("https://h/a/run?x=1&y=2", "/a/run?x=1&y=2"),
            ("https://h?x=1", "/?x=1"),
        ] {
            assert_eq!(Place::parse(url).unwrap().target, target, "{url}");
        }
        for url in ["", "h/run", "ftp://h", "https://user:Sorrel64@h/run", "http://h/run#part"] {
            assert!(Place::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn beside_means_the_same_host_port_and_scheme() {
        let place = |url: &str| Place::parse(url).unwrap();
        let here = place("https://h/a");
        assert!(here.is_beside(&place("https://H:443/b?c")));
        for other in ["http://h/a", "https://h:8443/a", "https://g/a"] {
            assert!(!here.is_beside(&place(other)), "{other}");
        }
    }
}
