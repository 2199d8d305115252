//! What agents look for over MCP and does not exist, for the audit, as one does that looks for secrets.
//!
//! What they may not do is refused and recorded by the actions themselves. It refuses nothing, and tells no name: an agent could
//! fill the audit with names that it makes up.

use runyard_surfaces::http::{Runtime, Surface};
use serde::Deserialize;

/// What of a message matters here.
#[derive(Deserialize)]
struct Message {
    method: String,
    #[serde(default)]
    params: Params,
}

#[derive(Default, Deserialize)]
struct Params {
    #[serde(default)]
    name: String,
    #[serde(default)]
    uri: String,
    #[serde(default)]
    notifications: Watched,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Watched {
    #[serde(default)]
    resource_subscriptions: Vec<String>,
}

/// What the message asks for, where there is no such thing.
pub(super) fn missing(runtime: &Runtime, body: &[u8]) -> Option<&'static str> {
    let Message { method, params } = serde_json::from_slice(body).ok()?;
    let exposed = || runtime.actions().filter(|action| runtime.exposes(action, Surface::Mcp));
    let is_there =
        |prompt: bool| exposed().any(|action| action.spec().prompt == prompt && action.name() == params.name);
    let can_be_read = |uri: &String| {
        exposed().any(|action| {
            action.spec().resource.as_ref().is_some_and(|resource| resource.matched(uri).is_some())
        })
    };
    let (there, what) = match method.as_str() {
        "tools/call" => (is_there(false), "POST /mcp tools/call of an unknown tool"),
        "prompts/get" => (is_there(true), "POST /mcp prompts/get of an unknown prompt"),
        "resources/read" | "resources/subscribe" => {
            (can_be_read(&params.uri), "POST /mcp of an unknown resource")
        }
        "subscriptions/listen" => {
            let watched = params.notifications.resource_subscriptions;
            (watched.iter().all(can_be_read), "POST /mcp of an unknown resource")
        }
        _ => return None,
    };
    (!there).then_some(what)
}
