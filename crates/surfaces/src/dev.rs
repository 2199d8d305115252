//! The dev page: every action as a form in the browser, for a person who is logged in.
//!
//! The page asks for confirmation itself, as clause A04 has it, so this surface is given to a browser session alone (the guard sees
//! to that). It is plain HTML, one stylesheet and a few scripts, embedded as they stand; there is no build step and no framework.

mod api;
mod pages;

use std::sync::Arc;

use axum::Router;
use axum::routing::{any, get, post};

pub(crate) use self::api::wrong_method;
pub(crate) use self::pages::is_open;
use crate::http::HttpApi;

/// All routes of the page. The guard stands before them.
pub(crate) fn router(api: Arc<HttpApi>) -> Router {
    let mut router = Router::new()
        .route("/dev", get(pages::dev))
        .route("/dev/api/actions", get(api::list))
        .route("/dev/api/actions/{name}/invoke", post(api::invoke))
        .route("/dev/", any(api::unknown))
        .route("/dev/{*rest}", any(api::unknown));
    for asset in &pages::ASSETS {
        router = router.route(asset.path, get(move || async move { asset.respond() }));
    }
    router.with_state(api)
}
