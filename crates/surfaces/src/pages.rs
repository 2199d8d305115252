//! The console's pages and what they load, embedded: the same for everybody, so that they say nothing of anybody.
//!
//! Every address of the console answers with the one page, which finds its way by itself; only language, theme and a few words about
//! this server are filled in. An application has the pages of its own actions (`/dev`) and the login, a hub has all of them.

mod page;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use runyard_ui_assets::{Asset, asset};

use crate::dev;
use crate::http::HttpApi;
use crate::http::routes::unknown_path;

/// What the pages may do: load their own scripts, styles, fonts and pictures, talk to this server, and show what they made
/// themselves. No script or style in the page itself counts, and no other host is ever asked.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; font-src 'self'; \
                   connect-src 'self'; frame-src blob:; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
                   frame-ancestors 'none'";
/// What a page could ask a browser for and never does.
const PERMISSIONS: &str = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), \
                           microphone=(), midi=(), payment=(), usb=()";
/// What every page is sent with.
const OF_A_PAGE: [(HeaderName, &str); 5] = [
    (header::CONTENT_TYPE, "text/html; charset=utf-8"),
    (header::VARY, "Cookie, Accept-Language"),
    (header::CONTENT_SECURITY_POLICY, CSP),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), PERMISSIONS),
];
/// A name that changes with the content is kept for a year.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Which pages a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// A hub: runs, approvals and everything around them.
    Hub,
    /// An application: its actions.
    Application,
}

impl Pages {
    /// The first parts of the addresses that stand for pages, with everything below them.
    const fn roots(self) -> &'static [&'static str] {
        match self {
            Pages::Hub => &["dev", "runs", "approvals", "agents", "edges", "policy", "audit", "settings"],
            Pages::Application => &["dev"],
        }
    }

    /// Whether an address is that of a page.
    fn is_page(self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix('/') else { return false };
        let mut parts = rest.split('/');
        let root = parts.next().unwrap_or_default();
        let is_api = root == "dev" && parts.next() == Some("api");
        path == "/login" || path == "/" || (self.roots().contains(&root) && !is_api)
    }

    /// Whether an address is that of a page or of what pages load, which anybody may have.
    pub(crate) fn has(self, path: &str) -> bool {
        self.is_page(path) || path.starts_with("/assets/")
    }

    /// The routes that no action can have.
    pub(crate) fn routes(self) -> Vec<String> {
        let below = self
            .roots()
            .iter()
            .flat_map(|root| [format!("/{root}"), format!("/{root}/"), format!("/{root}/{{*rest}}")]);
        below.chain(["/", "/login", "/assets/{*path}"].map(str::to_owned)).collect()
    }
}

/// All pages and what they load.
pub(crate) fn router(api: Arc<HttpApi>) -> Router {
    let pages = api.guard.pages();
    let mut router = Router::new()
        .route("/assets/{*path}", get(load))
        .route("/login", get(show))
        .route("/", if pages == Pages::Hub { get(show) } else { get(to_dev) });
    for root in pages.roots() {
        router = router.route(&format!("/{root}"), get(show)).route(&format!("/{root}/"), get(show));
        // What is no page below the dev page is for its own surface to refuse.
        let below = if *root == "dev" { get(show).fallback(dev::unknown) } else { get(show) };
        router = router.route(&format!("/{root}/{{*rest}}"), below);
    }
    router.with_state(api)
}

/// The page, for whoever asks for one. A program that asks for something else has lost its way, and is told so.
async fn show(State(api): State<Arc<HttpApi>>, request: Request) -> Response {
    let pages = api.guard.pages();
    if !pages.is_page(request.uri().path()) {
        return dev::unknown(request).await;
    }
    if !accepts(request.headers(), &header::ACCEPT, "text/html") {
        return unknown_path(request).await;
    }
    let Some(text) = page_for(&api, request.headers()) else { return unknown_path(request).await };
    let etag = runyard_ui_assets::etag(text.as_bytes());
    let mut response = match is_known(request.headers(), &etag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => text.into_response(),
    };
    set(&mut response, &OF_A_PAGE);
    set(&mut response, &[(header::CACHE_CONTROL, "no-cache"), (header::ETAG, &etag)]);
    response
}

fn page_for(api: &HttpApi, headers: &HeaderMap) -> Option<String> {
    let about = page::About {
        name: &api.name,
        version: &api.version,
        hub: api.guard.pages() == Pages::Hub,
        instance: api.guard.instance(),
    };
    page::of(&about, headers)
}

/// Around the guard: a person whose browser went to an address that is no page sees the page, which says so. It is refused all the
/// same; only the words are other ones.
pub(crate) async fn for_the_lost(State(api): State<Arc<HttpApi>>, request: Request, next: Next) -> Response {
    let lost = is_visit(&api, &request).then(|| request.headers().clone());
    let mut response = next.run(request).await;
    if let Some(headers) = lost.filter(|_| response.status() == StatusCode::UNAUTHORIZED)
        && let Some(text) = page_for(&api, &headers)
    {
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = text.into();
        set(&mut response, &OF_A_PAGE);
    }
    response
}

/// Whether a browser follows a person to an address where no program of theirs would ask.
fn is_visit(api: &HttpApi, request: &Request) -> bool {
    let (headers, path) = (request.headers(), request.uri().path());
    let says = |name: &str, value: &str| headers.get(name).is_some_and(|found| found == value);
    let for_programs = ["/api", "/mcp", "/dev/api"].iter().any(|root| path.starts_with(root));
    request.method() == Method::GET
        && !for_programs
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
        && accepts(headers, &header::ACCEPT, "text/html")
        && !headers.contains_key(header::AUTHORIZATION)
        // There its scripts would come from another address, which no page takes.
        && !api.guard.is_by_alias(headers, request.uri().authority().map(|authority| authority.as_str()))
}

/// An application has nothing but its actions to show.
async fn to_dev(request: Request) -> Response {
    if !accepts(request.headers(), &header::ACCEPT, "text/html") {
        return unknown_path(request).await;
    }
    (StatusCode::SEE_OTHER, [(header::LOCATION, HeaderValue::from_static("/dev"))]).into_response()
}

/// `GET /assets/…`: what pages load, by its exact name.
async fn load(request: Request) -> Response {
    // As it stands in the address: a name of ours needs no escapes.
    match request.uri().path().strip_prefix('/').and_then(asset) {
        Some(asset) => serve(asset, request.headers()),
        None => unknown_path(request).await,
    }
}

fn serve(asset: &'static Asset, headers: &HeaderMap) -> Response {
    let gzip = asset.gzip().filter(|_| accepts(headers, &header::ACCEPT_ENCODING, "gzip"));
    let etag = match gzip {
        Some(_) => asset.etag.replacen("\"", "\"gzip-", 1),
        None => asset.etag.clone(),
    };
    let mut response = match is_known(headers, &etag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => gzip.unwrap_or(asset.bytes).into_response(),
    };
    let cached = if asset.immutable { FOR_EVER } else { "no-cache" };
    let values = [
        (header::CONTENT_TYPE, asset.media_type),
        (header::CACHE_CONTROL, cached),
        (header::ETAG, &etag),
        (header::VARY, "Accept-Encoding"),
    ];
    set(&mut response, &values);
    if gzip.is_some() {
        set(&mut response, &[(header::CONTENT_ENCODING, "gzip")]);
    }
    response
}

fn set(response: &mut Response, values: &[(HeaderName, &str)]) {
    for (name, value) in values {
        // All of them are ours, and plain text.
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
}

/// Whether a header that lists what is taken names exactly this, and not as what is not wanted.
fn accepts(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(wanted));
        is_named && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// Whether the browser has it already.
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let given = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    given
        .flat_map(|value| value.split(','))
        .any(|tag| matches!(tag.trim().trim_start_matches("W/"), tag if tag == etag || tag == "*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_one_of_a_few_addresses_and_never_an_api() {
        for path in ["/", "/login", "/dev", "/dev/task_create", "/dev/"] {
            assert!(Pages::Hub.is_page(path) && Pages::Application.is_page(path), "{path}");
        }
        for path in [
            "/runs",
            "/runs/",
            "/runs/new",
            "/runs/run_1/artifacts/art_1",
            "/approvals/apr_1",
            "/agents",
            "/edges",
            "/policy",
            "/audit",
            "/settings",
        ] {
            assert!(Pages::Hub.is_page(path) && !Pages::Application.is_page(path), "{path}");
        }
        for path in [
            "",
            "runs",
            "//",
            "//runs",
            "/api",
            "/api/v1/runs",
            "/dev/api",
            "/dev/api/actions",
            "/login/",
            "/login/x",
            "/logout",
            "/mcp",
            "/runsx",
            "/Runs",
            "/%72uns",
            "/index.html",
            "/favicon.ico",
        ] {
            assert!(!Pages::Hub.is_page(path) && !Pages::Application.is_page(path), "{path}");
        }
    }

    #[test]
    fn what_is_taken_is_named_and_not_refused() {
        let check = |value: &str, taken: bool| {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(value).unwrap())]);
            assert_eq!(accepts(&headers, &header::ACCEPT, "text/html"), taken, "{value}");
        };
        check("text/html,application/xhtml+xml,*/*;q=0.8", true);
        check("application/json, Text/HTML; q=0.1", true);
        for other in ["*/*", "application/json", "text/html;q=0", "text/html-x", "text/*", ""] {
            check(other, false);
        }
    }
}
