//! What the dev page asks for: every action as a form in the browser, for a person who is logged in.
//!
//! The page asks for confirmation itself, as clause A04 has it, so this surface is given to a browser session alone (the guard sees
//! to that). The page is one of the console's (`pages.rs`); here are only the actions and their calls.

mod api;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

pub(crate) use self::api::{unknown, wrong_method};
use crate::http::HttpApi;

/// What the page asks for. The guard stands before it.
pub(crate) fn router(api: Arc<HttpApi>) -> Router {
    Router::new()
        .route("/dev/api/actions", get(api::list))
        .route("/dev/api/actions/{name}/invoke", post(api::invoke))
        .with_state(api)
}
