//! One message of the client, as far as a relay has to understand it: what it is, which wire it is of, and its headers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::exchange::Headers;

/// The first revision without sessions.
const ROUNDS_FROM: &str = "2026-07-28";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// The longest value of a header; what is longer is refused by the hub, which compares it with the body.
const HEADER_CHARS_MAX: usize = 8 * 1024;

/// What a message is to the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is to be answered.
    Request,
    /// It is not.
    Notification,
    /// It answers what the hub asked.
    Response,
}

/// A message of the client.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) body: Value,
}

/// Why a line is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoMessage {
    NotJson,
    NotOne,
}

impl Message {
    pub(super) fn read(line: &[u8]) -> Result<Self, NoMessage> {
        let body: Value = serde_json::from_slice(line).map_err(|_| NoMessage::NotJson)?;
        let is_id = |id: &Value| id.is_string() || id.is_number();
        let kind = match (body.get("method"), body.get("id")) {
            (Some(Value::String(_)), None) => Kind::Notification,
            (Some(Value::String(_)), Some(id)) if is_id(id) => Kind::Request,
            (None, Some(id)) if is_id(id) || id.is_null() => Kind::Response,
            _ => return Err(NoMessage::NotOne),
        };
        Ok(Message { kind, body })
    }

    pub(super) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// Names a request among those that run; equal ids have equal names.
    pub(super) fn id(&self) -> String {
        self.body["id"].to_string()
    }

    /// The request that a `notifications/cancelled` is about.
    pub(super) fn cancels(&self) -> Option<String> {
        (self.method() == "notifications/cancelled").then(|| self.body["params"]["requestId"].to_string())
    }

    /// The revision that the message itself names, which only those without sessions do.
    pub(super) fn version(&self) -> Option<&str> {
        self.body["params"]["_meta"][VERSION_KEY].as_str().filter(|version| *version >= ROUNDS_FROM)
    }

    /// Whether it begins a session of the older wire.
    pub(super) fn begins_session(&self) -> bool {
        self.method() == "initialize"
    }

    /// The headers of a message that belongs to no session; nothing for one that may.
    pub(super) fn own_headers(&self) -> Option<Headers> {
        match self.version() {
            Some(version) => Some(self.headers(version)),
            None => self.begins_session().then(Vec::new),
        }
    }

    /// The headers that repeat what stands in the body, on the newer wire.
    fn headers(&self, version: &str) -> Headers {
        let mut headers = vec![("mcp-protocol-version", encoded(version))];
        if self.kind == Kind::Response {
            return headers;
        }
        headers.push(("mcp-method", encoded(self.method())));
        let named = match self.method() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return headers,
        };
        if let Some(name) = self.body["params"][named].as_str() {
            headers.push(("mcp-name", encoded(name)));
        }
        headers
    }
}

/// A text as a header's value.
fn encoded(text: &str) -> String {
    let text: String = text.chars().take(HEADER_CHARS_MAX).collect();
    let plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim() == text;
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    if plain && !looks_encoded { text } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

/// A failure as the client hears it.
pub(super) fn failure(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value) -> Result<Kind, NoMessage> {
        Message::read(body.to_string().as_bytes()).map(|message| message.kind)
    }

    #[test]
    fn a_line_is_one_message_or_none() {
        assert_eq!(read(&json!({"id": 1, "method": "ping"})), Ok(Kind::Request));
        assert_eq!(read(&json!({"id": "a", "method": "ping"})), Ok(Kind::Request));
        assert_eq!(read(&json!({"method": "notifications/initialized"})), Ok(Kind::Notification));
        assert_eq!(read(&json!({"id": 1, "result": {}})), Ok(Kind::Response));
        for wrong in
            [json!([]), json!(1), json!({}), json!({"id": {}, "method": "ping"}), json!({"method": 1})]
        {
            assert_eq!(read(&wrong), Err(NoMessage::NotOne), "{wrong}");
        }
        assert_eq!(Message::read(b"{").map(|_| ()), Err(NoMessage::NotJson));
    }

    #[test]
    fn a20_headers_repeat_the_body_and_hold_any_text() {
        let call = |name: &str| json!({"id": 1, "method": "tools/call", "params": {"name": name}});
        let headers =
            |name: &str| Message::read(call(name).to_string().as_bytes()).unwrap().headers("2026-07-28");
        let (version, method) =
            (("mcp-protocol-version", "2026-07-28".to_owned()), ("mcp-method", "tools/call".to_owned()));
        assert_eq!(
            headers("run_list"),
            [version.clone(), method.clone(), ("mcp-name", "run_list".to_owned())]
        );
        assert_eq!(headers("läuft")[2].1, "=?base64?bMOkdWZ0?=");
        assert_eq!(headers("=?base64?eA==?=")[2].1, "=?base64?PT9iYXNlNjQ/ZUE9PT89?=");
        assert_eq!(headers(" x")[2].1, "=?base64?IHg=?=");
        let list = Message::read(br#"{"id":1,"method":"tools/list"}"#).unwrap();
        assert_eq!(list.headers("2026-07-28").len(), 2);
    }

    #[test]
    fn only_a_message_without_a_session_names_its_revision() {
        let of = |version: &str| {
            let body = json!({"id": 1, "method": "x", "params": {"_meta": {VERSION_KEY: version}}});
            Message::read(body.to_string().as_bytes()).unwrap().version().map(str::to_owned)
        };
        assert_eq!(of("2026-07-28").as_deref(), Some("2026-07-28"));
        assert_eq!(of("2025-11-25"), None);
    }
}
