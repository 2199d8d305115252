//! What the page asks for: the actions, and one call. The surface is fixed, whatever a request says.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::response::Response;
use runyard_actions::{Action, ActionError, Envelope, Invocation};
use runyard_domain::{Actor, Code, Surface};
use serde_json::json;

use crate::http::request::{self, Asked, Plus};
use crate::http::respond::{answer, events};
use crate::http::routes::{CALL_TIME_MAX_MS, wants_events};
use crate::http::{HttpApi, InSession, refusal};

/// `GET /dev/api/actions`: who asks, and what this surface shows them; with where else each action can be called.
pub(super) async fn list(
    State(api): State<Arc<HttpApi>>,
    Extension(InSession): Extension<InSession>,
    Extension(actor): Extension<Arc<Actor>>,
) -> Response {
    let also_on = |surface: Surface, name: &str| {
        api.runtime.listed(surface, &actor).any(|action| action.name() == name)
    };
    let action = |action: &Action| {
        let mut manifest = action.manifest();
        manifest["onCommandLine"] = also_on(Surface::Cli, action.name()).into();
        manifest["onHttp"] = also_on(Surface::Http, action.name()).into();
        manifest
    };
    let actions: Vec<_> = api.runtime.listed(Surface::Dev, &actor).map(action).collect();
    let app = json!({ "name": api.name, "version": api.version });
    let data = json!({ "app": app, "actor": *actor, "actions": actions });
    answer(&Envelope::of_data(Surface::Dev, data))
}

/// `POST /dev/api/actions/{name}/invoke`. A page that goes away drops the request, and the action ends with it.
pub(super) async fn invoke(
    State(api): State<Arc<HttpApi>>,
    Extension(InSession): Extension<InSession>,
    Extension(actor): Extension<Arc<Actor>>,
    request: Request,
) -> Response {
    let path = request.uri().path();
    let encoded = path.strip_prefix("/dev/api/actions/").and_then(|rest| rest.strip_suffix("/invoke"));
    let name = match request::decode(encoded.unwrap_or_default(), Plus::IsPlus) {
        Ok(name) => name,
        Err(error) => return refusal(Surface::Dev, None, error),
    };
    let (parts, body) = request.into_parts();
    let Asked { input, options } = match request::invoke(&parts.headers, body).await {
        Ok(asked) => asked,
        Err(error) => return refusal(Surface::Dev, Some(&name), error),
    };
    let invocation =
        Invocation::new(name, input, Surface::Dev, actor).options(options).within_ms(CALL_TIME_MAX_MS);
    if wants_events(&parts.headers) {
        return events(api.runtime.stream(invocation));
    }
    answer(&api.runtime.invoke(invocation).await)
}

pub(crate) async fn unknown(request: Request) -> Response {
    refused(request, Code::NotFound, "There is nothing at this address; the page is at /dev.").await
}

pub(crate) async fn wrong_method(request: Request) -> Response {
    let message = "This method is not allowed here; the Allow header lists those that are.";
    refused(request, Code::MethodNotAllowed, message).await
}

async fn refused(request: Request, code: Code, message: &str) -> Response {
    let (parts, body) = request.into_parts();
    request::discard(&parts.headers, body).await;
    refusal(Surface::Dev, None, ActionError::new(code, message))
}
