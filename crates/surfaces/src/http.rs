//! Actions over HTTP: list, invoke, follow, declared routes, and the OpenAPI document; and logging in with a browser.
//!
//! The path of one request: `guard` (Host, Origin, token or session), `routes` (which action), `request` (its input), the runtime,
//! `respond` (the envelope with its status). A client that goes away drops the request's future, which ends the action.

mod guard;
mod hosts;
mod launch;
mod login;
mod openapi;
mod origin;
mod peer;
pub(crate) mod request;
pub(crate) mod respond;
pub(crate) mod routes;
mod serve;
mod sessions;
mod tokens;
mod visit;
mod way;

use std::sync::Arc;

use axum::Router;
use axum::routing::MethodRouter;
use runyard_actions::{DefinitionError, HttpRoute};
// What whoever adds routes or holds tokens has to name.
pub use runyard_actions::{ActionError, Runtime};
pub use runyard_domain::{Actor, Code, Surface};

pub use self::guard::Guard;
pub(crate) use self::guard::InSession;
pub use self::launch::{Launch, LaunchError, Opened, announce, launch_flags, read_or_make_token};
use self::login::SESSION_PATH;
pub use self::login::{LOGINS_PATH, LoggedIn};
pub use self::openapi::openapi;
pub use self::origin::{NoPageOrigin, PageOrigin};
pub use self::request::BODY_BYTES_MAX;
pub use self::respond::refusal;
pub use self::serve::{Listening, serve};
pub use self::tokens::{BearerTokens, TokenDigest, TokenHolders};
pub use self::visit::Visit;
pub use crate::pages::Pages;
use crate::{dev, pages};

/// Where the API stands.
pub const API_PREFIX: &str = "/api/v1";

/// An application on HTTP.
#[derive(Clone)]
pub struct HttpApi {
    /// Its name, for the OpenAPI document.
    pub name: String,
    /// Its version, likewise.
    pub version: String,
    /// Its actions.
    pub runtime: Runtime,
    /// Who may come in.
    pub guard: Guard,
}

/// A route that is no action: an event stream, a download, metrics. It stands behind the same guard, which puts the caller
/// (`Arc<Actor>`) and how they came in ([`Visit`]) into the request's extensions.
#[derive(Clone, Debug)]
pub struct PlainRoute {
    /// Its path, as in `/api/v1/runs/{id}/stream`.
    pub path: &'static str,
    /// What answers there.
    pub methods: MethodRouter,
}

/// Why an application cannot be put on HTTP.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// Two actions have routes that would answer the same request, or one stands where the API itself does.
    #[error("the route \"{route}\" of action \"{action}\" is taken by {by}")]
    Taken {
        /// The action.
        action: String,
        /// Its route.
        route: String,
        /// What has it already.
        by: String,
    },
    /// A plain route stands where another route does.
    #[error("the plain route \"{path}\" cannot stand beside the others: {source}")]
    Plain {
        /// Its path.
        path: &'static str,
        /// What it collides with.
        source: matchit::InsertError,
    },
    /// A definition is wrong.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
}

impl HttpApi {
    /// All routes, guarded. Fails where two declared routes collide.
    pub fn router(self) -> Result<Router, RouteError> {
        self.router_with(Vec::new(), |routes| routes)
    }

    /// All routes and these plain ones, guarded. `inside` may put layers around all of them, behind the guard.
    pub fn router_with(
        self,
        mut plain: Vec<PlainRoute>,
        inside: impl FnOnce(Router) -> Router,
    ) -> Result<Router, RouteError> {
        check_routes(&self.runtime, self.guard.pages(), &plain)?;
        let (guard, api) = (Arc::new(self.guard.clone()), Arc::new(self));
        plain.push(login::links(Arc::clone(&api)));
        let login = login::router(Arc::clone(&api)).merge(pages::router(Arc::clone(&api)));
        let pages = dev::router(Arc::clone(&api)).merge(login);
        let pages = pages.method_not_allowed_fallback(dev::wrong_method);
        let routes = inside(routes::router(Arc::clone(&api), plain).merge(pages));
        let guarded = routes.layer(axum::middleware::from_fn_with_state(guard, guard::check));
        Ok(guarded.layer(axum::middleware::from_fn_with_state(api, pages::for_the_lost)))
    }
}

/// axum panics on colliding routes, so they are looked for beforehand.
fn check_routes(runtime: &Runtime, pages: Pages, plain: &[PlainRoute]) -> Result<(), RouteError> {
    let api = ["actions", "actions/{name}/invoke", "openapi.json", "tools", "tools/call"]
        .map(|path| format!("{API_PREFIX}/{path}"));
    let pages =
        pages.routes().into_iter().chain([LOGINS_PATH, SESSION_PATH, "/logout", "/mcp"].map(str::to_owned));
    let mut paths = matchit::Router::new();
    for path in api.into_iter().chain(pages) {
        // The API's own paths do not collide with each other.
        let _ = paths.insert(path, ());
    }
    for PlainRoute { path, .. } in plain {
        paths.insert(*path, ()).map_err(|source| RouteError::Plain { path, source })?;
    }
    let own = paths.clone();
    let routed = runtime.actions().filter_map(|action| Some((action.name(), action.spec().http.as_ref()?)));
    let mut taken: Vec<(&str, &HttpRoute)> = Vec::new();
    for (action, route) in routed {
        let refused =
            |by: String| RouteError::Taken { action: action.to_owned(), route: route.to_string(), by };
        // A fixed name in the place of `{name}` does not collide, but would take that action's invocations away.
        if own.at(&route.path).is_ok() {
            return Err(refused("the API itself".to_owned()));
        }
        if let Some((other, _)) = taken.iter().find(|(_, other)| same_shape(other, route)) {
            return Err(refused(format!("action \"{other}\"")));
        }
        let same_path = taken.iter().any(|(_, other)| other.path == route.path);
        if !same_path && let Err(error) = paths.insert(route.path.clone(), ()) {
            return Err(refused(format!("another route ({error})")));
        }
        taken.push((action, route));
    }
    Ok(())
}

fn same_shape(one: &HttpRoute, other: &HttpRoute) -> bool {
    let shape = |route: &HttpRoute| {
        route
            .path
            .split('/')
            .map(|part| {
                part.starts_with('{').then_some(()).map_or_else(|| part.to_owned(), |()| "{}".to_owned())
            })
            .collect::<Vec<_>>()
    };
    one.method == other.method && shape(one) == shape(other)
}
