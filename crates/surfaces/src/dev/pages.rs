//! The pages and what they load, embedded; the same for everybody, so that they say nothing of anybody.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::http::HttpApi;

/// What the pages may do: load their own script and style, and talk to this server. No script or style in the page itself counts,
/// and no text can become a script.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
                   form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// A file that is served as it stands.
#[derive(Debug)]
pub(super) struct Asset {
    pub(super) path: &'static str,
    media_type: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

const PAGE: Asset = Asset { path: "/dev", media_type: HTML, text: include_str!("page.html") };

/// All but the page itself, which only who is logged in is shown.
pub(super) static ASSETS: [Asset; 7] = [
    Asset { path: "/login", media_type: HTML, text: include_str!("login.html") },
    Asset { path: "/dev/login.js", media_type: SCRIPT, text: include_str!("login.js") },
    Asset { path: "/dev/page.js", media_type: SCRIPT, text: include_str!("page.js") },
    Asset { path: "/dev/form.js", media_type: SCRIPT, text: include_str!("form.js") },
    Asset { path: "/dev/call.js", media_type: SCRIPT, text: include_str!("call.js") },
    Asset { path: "/dev/result.js", media_type: SCRIPT, text: include_str!("result.js") },
    Asset { path: "/dev/page.css", media_type: CSS, text: include_str!("page.css") },
];

/// Whether a path is that of a page or of what pages load.
pub(crate) fn is_open(path: &str) -> bool {
    path == PAGE.path || ASSETS.iter().any(|asset| asset.path == path)
}

impl Asset {
    pub(super) fn respond(&self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static(self.media_type)),
            (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CSP)),
            (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
        ];
        (headers, self.text).into_response()
    }
}

/// `GET /dev`: the page, or the way to log in.
pub(super) async fn dev(State(api): State<Arc<HttpApi>>, request: Request) -> Response {
    if api.guard.has_cookie(request.headers()) {
        return PAGE.respond();
    }
    (StatusCode::SEE_OTHER, [(header::LOCATION, HeaderValue::from_static("/login"))]).into_response()
}
