//! What agents look for over MCP and does not exist, for the audit, as one does that looks for secrets.
//!
//! What they may not do is refused and recorded by the actions themselves. It refuses nothing, and tells no name: an agent could
//! fill the audit with names that it makes up.

use runyard_surfaces::http::{Runtime, Surface};
use serde_json::Value;

const TOOL: &str = "POST /mcp tools/call of an unknown tool";
const PROMPT: &str = "POST /mcp prompts/get of an unknown prompt";
const RESOURCE: &str = "POST /mcp of an unknown resource";

/// What the message asks for, where there is no such thing. What is named in no way that can be read is not there either.
pub(super) fn missing(runtime: &Runtime, body: &[u8]) -> Option<&'static str> {
    let message: Value = serde_json::from_slice(body).ok()?;
    let params = &message["params"];
    let exposed = || runtime.actions().filter(|action| runtime.exposes(action, Surface::Mcp));
    let is_there = |prompt: bool| {
        exposed().any(|action| action.spec().prompt == prompt && params["name"] == action.name())
    };
    let can_be_read = |uri: &Value| {
        let uri = uri.as_str().unwrap_or_default();
        exposed().any(|action| {
            action.spec().resource.as_ref().is_some_and(|resource| resource.matched(uri).is_some())
        })
    };
    let (there, what) = match message["method"].as_str()? {
        "tools/call" => (is_there(false), TOOL),
        "prompts/get" => (is_there(true), PROMPT),
        "resources/read" | "resources/subscribe" => (can_be_read(&params["uri"]), RESOURCE),
        "subscriptions/listen" => {
            let there = match &params["notifications"]["resourceSubscriptions"] {
                Value::Null => true,
                Value::Array(watched) => watched.iter().all(can_be_read),
                _ => false,
            };
            (there, RESOURCE)
        }
        _ => return None,
    };
    (!there).then_some(what)
}

#[cfg(test)]
mod tests {
    use runyard_actions::Action;
    use serde_json::json;

    use super::*;

    #[test]
    fn c24_what_cannot_be_read_hides_nothing_that_an_agent_looks_for() {
        let tool = Action::define("look", "Looks.")
            .resource("shop://orders")
            .handler(|_, _| async { Ok(Value::Null) });
        let runtime = Runtime::builder().actions([tool]).build().unwrap();
        let check = |method: &str, params: Value, expected: Option<&str>| {
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
            assert_eq!(missing(&runtime, message.as_bytes()), expected, "{message}");
        };
        check("tools/call", json!({"name": "look"}), None);
        check("tools/call", json!({"name": "look", "uri": 1, "notifications": []}), None);
        check("tools/call", json!({"name": "secret"}), Some(TOOL));
        check("tools/call", json!({"name": "secret", "uri": 1}), Some(TOOL));
        check("tools/call", json!({"name": ["secret"]}), Some(TOOL));
        check("tools/call", json!(["secret"]), Some(TOOL));
        check("prompts/get", json!({"name": "secret", "notifications": 1}), Some(PROMPT));
        check("resources/read", json!({"uri": "shop://orders", "name": 1}), None);
        check("resources/read", json!({"uri": "file:///etc/passwd", "name": 1}), Some(RESOURCE));
        check("resources/subscribe", json!({"uri": {}}), Some(RESOURCE));
        let listen = |watched: Value| json!({"name": 1, "notifications": {"resourceSubscriptions": watched}});
        check("subscriptions/listen", json!({}), None);
        check("subscriptions/listen", listen(json!(["shop://orders"])), None);
        check("subscriptions/listen", listen(json!(["shop://orders", "shop://secrets"])), Some(RESOURCE));
        check("subscriptions/listen", listen(json!(["shop://orders", 1])), Some(RESOURCE));
        check("subscriptions/listen", listen(json!("shop://secrets")), Some(RESOURCE));
        check("tools/list", json!({"name": "secret"}), None);
    }
}
