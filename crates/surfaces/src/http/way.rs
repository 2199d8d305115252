//! Which way in a request has: fixed by its path, and for the API by whether it shows a page's key.

use axum::http::{HeaderMap, Method};
use runyard_domain::Surface;

use super::{API_PREFIX, LOGINS_PATH, SESSION_PATH};
use crate::pages::Pages;

/// The header in which a page shows its key.
pub(super) const PAGE_KEY: &str = "x-runyard-page";

/// How one gets in to a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// With a bearer token.
    Token,
    /// As anybody: a page or script that is the same for all and says nothing of anybody.
    Open,
    /// As one of our own pages, of a person who is about to log in.
    Login,
    /// As one of our own pages, in a session; calls are then on this surface.
    Session(Surface),
}

impl Way {
    pub(super) fn to(pages: Pages, method: &Method, path: &str, headers: &HeaderMap) -> Self {
        let reads = method == Method::GET || method == Method::HEAD;
        match path {
            // A session makes no session.
            LOGINS_PATH => Way::Token,
            SESSION_PATH => Way::Session(Surface::React),
            _ if path.strip_prefix(API_PREFIX).is_some_and(|rest| rest.starts_with('/')) => {
                if headers.contains_key(PAGE_KEY) { Way::Session(Surface::React) } else { Way::Token }
            }
            _ if reads && pages.has(path) => Way::Open,
            "/login" => Way::Login,
            "/logout" | "/dev" => Way::Session(Surface::Dev),
            _ if path.starts_with("/dev/") => Way::Session(Surface::Dev),
            _ => Way::Token,
        }
    }

    /// The surface that a refusal names.
    pub(super) const fn surface(self) -> Surface {
        match self {
            Way::Token => Surface::Http,
            Way::Open | Way::Login => Surface::Dev,
            Way::Session(surface) => surface,
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const DEV: Way = Way::Session(Surface::Dev);
    const REACT: Way = Way::Session(Surface::React);

    #[track_caller]
    fn check(pages: Pages, method: &Method, path: &str, plain: Way, with_key: Way) {
        let with = HeaderMap::from_iter([(PAGE_KEY.parse().unwrap(), HeaderValue::from_static("x"))]);
        assert_eq!(Way::to(pages, method, path, &HeaderMap::new()), plain, "{pages:?} {method} {path}");
        assert_eq!(Way::to(pages, method, path, &with), with_key, "{pages:?} {method} {path} with a key");
    }

    #[test]
    fn each_path_has_one_way_in_and_the_api_two_that_never_mix() {
        for (method, path, way) in [
            (Method::GET, "/login", Way::Open),
            (Method::HEAD, "/dev", Way::Open),
            (Method::GET, "/", Way::Open),
            (Method::GET, "/dev/task_create", Way::Open),
            (Method::GET, "/assets/x.js", Way::Open),
            (Method::POST, "/login", Way::Login),
            (Method::PUT, "/login", Way::Login),
            (Method::POST, "/dev/task_create", DEV),
            (Method::POST, "/dev", DEV),
            (Method::POST, "/logout", DEV),
            (Method::GET, "/logout", DEV),
            (Method::GET, "/dev/api", DEV),
            (Method::GET, "/dev/api/actions", DEV),
            (Method::POST, "/api/v1/logins", Way::Token),
            (Method::GET, "/api/v1/session", REACT),
            (Method::GET, "/login/", Way::Token),
            (Method::GET, "/device", Way::Token),
            (Method::GET, "//dev", Way::Token),
            (Method::GET, "//runs", Way::Token),
            (Method::POST, "/", Way::Token),
            (Method::POST, "/assets/x.js", Way::Token),
            (Method::POST, "/mcp", Way::Token),
            (Method::GET, "/mcp", Way::Token),
            (Method::GET, "/api", Way::Token),
            (Method::GET, "/api/v1", Way::Token),
            (Method::GET, "/api/v10/actions", Way::Token),
        ] {
            check(Pages::Application, &method, path, way, way);
            check(Pages::Hub, &method, path, way, way);
        }
        for pages in [Pages::Application, Pages::Hub] {
            check(pages, &Method::GET, "/api/v1/actions", Way::Token, REACT);
            check(pages, &Method::POST, "/api/v1/runs", Way::Token, REACT);
            check(pages, &Method::GET, "/api/v1/nowhere", Way::Token, REACT);
        }
        for path in ["/runs", "/runs/run_1/diff", "/approvals", "/settings", "/audit"] {
            check(Pages::Hub, &Method::GET, path, Way::Open, Way::Open);
            check(Pages::Hub, &Method::POST, path, Way::Token, Way::Token);
            check(Pages::Application, &Method::GET, path, Way::Token, Way::Token);
        }
    }
}
