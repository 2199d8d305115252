//! MCP, in both wire revisions: on standard input and output, a program for each vector, and over HTTP, one server for all.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};
use runyard::Surface;
use runyard::surfaces::mcp::{ENVELOPE_KEY, OPTIONS_KEY};
use serde_json::{Value, json};

use super::http::HttpDriver;
use super::{Answer, Driver, Status};
use crate::http_client::{Request, Response};
use crate::process::{Conversation, eventually};
use crate::{Call, Input};

/// A revision of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// 2025-11-25: a handshake, then a session.
    Session,
    /// 2026-07-28: every request says all there is to say.
    Stateless,
}

impl Revision {
    fn version(self) -> &'static str {
        match self {
            Revision::Session => "2025-11-25",
            Revision::Stateless => "2026-07-28",
        }
    }

    /// `tools/call` as a text, because an input need not be JSON.
    fn tool_call(self, id: u64, call: &Call) -> Result<String> {
        let mut meta = json!({ OPTIONS_KEY: call.options });
        if self == Revision::Stateless {
            meta["io.modelcontextprotocol/protocolVersion"] = json!(self.version());
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let arguments = match &call.input {
            Input::Missing => String::new(),
            Input::Json(value) => format!("\"arguments\":{value},"),
            Input::Raw(text) => format!("\"arguments\":{text},"),
            Input::RawPayload(_) => bail!("there is no payload of one's own around a tool call"),
        };
        let name = Value::from(call.action.as_str());
        Ok(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{{arguments}\"name\":{name},\"_meta\":{meta}}}}}"
        ))
    }
}

fn handshake() -> [Value; 2] {
    let client = json!({"name": "vectors", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]
}

/// The envelope in a result, after what A20 says of the rest of it.
fn envelope(revision: Revision, message: &Value) -> Result<Value> {
    let result = &message["result"];
    let envelope = &result["_meta"][ENVELOPE_KEY];
    ensure!(envelope.is_object(), "there is no envelope: {message}");
    let failed = envelope["ok"] == false;
    ensure!(result["isError"].as_bool().unwrap_or(false) == failed, "isError is not its opposite of ok");
    let structured = result.get("structuredContent");
    if failed {
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        ensure!(serde_json::from_str::<Value>(text)? == *envelope, "the text is not the envelope");
        ensure!(structured.is_none(), "a failure has structured content");
    } else if revision == Revision::Stateless || envelope["data"].is_object() {
        ensure!(structured == Some(&envelope["data"]), "the structured content is not the data: {result}");
    }
    Ok(envelope.clone())
}

/// Calls a program over its standard input and output.
#[derive(Debug)]
pub struct McpStdioDriver {
    program: PathBuf,
    revision: Revision,
}

impl McpStdioDriver {
    /// Drives `PROGRAM mcp`.
    pub fn new(program: impl Into<PathBuf>, revision: Revision) -> Self {
        McpStdioDriver { program: program.into(), revision }
    }

    fn start(&self) -> Result<Conversation> {
        let mut talk = Conversation::start(&self.program, ["mcp"])?;
        if self.revision == Revision::Session {
            let [initialize, initialized] = handshake();
            talk.say(&initialize.to_string())?;
            answer_to(&mut talk, 0)?;
            talk.say(&initialized.to_string())?;
        }
        Ok(talk)
    }

    fn one(&self, talk: &mut Conversation, id: u64, call: &Call) -> Result<Value> {
        talk.say(&self.revision.tool_call(id, call)?)?;
        envelope(self.revision, &answer_to(talk, id)?)
    }
}

/// The next message that answers this request; notifications come in between.
fn answer_to(talk: &mut Conversation, id: u64) -> Result<Value> {
    loop {
        let message: Value = serde_json::from_str(&talk.hear()?)?;
        if message["id"] == id {
            return Ok(message);
        }
        ensure!(message["method"].is_string(), "an answer to nothing: {message}");
    }
}

impl Driver for McpStdioDriver {
    fn surface(&self) -> Surface {
        Surface::Mcp
    }

    fn call(&self, calls: &[Call]) -> Result<Answer> {
        let mut talk = self.start()?;
        let mut last = None;
        for (id, call) in (1..).zip(calls) {
            last = Some(self.one(&mut talk, id, call)?);
        }
        Ok(Answer { envelope: last.context("there is no call")?, status: Status::Silent })
    }

    fn cancel(&self, call: &Call, marker: &Path) -> Result<Answer> {
        let mut talk = self.start()?;
        talk.say(&self.revision.tool_call(1, call)?)?;
        ensure!(eventually(|| marker.exists()), "{} was not made", marker.display());
        let params = json!({"requestId": 1, "reason": "no longer wanted"});
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        talk.say(&cancelled.to_string())?;
        // A cancelled request has no answer: the application says how it ended.
        let mut id = 2;
        let ended = last_envelope(&call.action, |question| {
            id += 1;
            self.one(&mut talk, id, question)
        })?;
        Ok(Answer { envelope: ended, status: Status::Silent })
    }
}

/// What the application kept of a call whose caller did not wait for its end.
fn last_envelope(action: &str, mut ask: impl FnMut(&Call) -> Result<Value>) -> Result<Value> {
    let question = Call::new("last_envelope", json!({ "action": action }));
    let mut found = Ok(Value::Null);
    let ended = eventually(|| {
        found = ask(&question).map(|envelope| envelope["data"].clone());
        !matches!(found, Ok(Value::Null))
    });
    ensure!(ended, "the call did not end after it was cancelled");
    found
}

/// Calls a server over HTTP.
#[derive(Debug)]
pub struct McpHttpDriver {
    server: HttpDriver,
    revision: Revision,
    session: Option<String>,
    next: Mutex<u64>,
}

impl McpHttpDriver {
    /// Starts `PROGRAM serve`, and a session where the revision has any. `name` is the application's.
    pub fn start(program: &Path, name: &str, revision: Revision) -> Result<Self> {
        let server = HttpDriver::start(program, name)?;
        let mut driver = McpHttpDriver { server, revision, session: None, next: Mutex::new(1) };
        if revision == Revision::Session {
            let [initialize, initialized] = handshake();
            let response = driver.post(&initialize.to_string(), None).send(driver.server.address())?;
            let session = response.header("mcp-session-id").context("there is no session")?;
            driver.session = Some(session.to_owned());
            let response = driver.post(&initialized.to_string(), None).send(driver.server.address())?;
            ensure!(response.status == 202, "a notification is answered with {}", response.status);
        }
        Ok(driver)
    }

    fn post(&self, body: &str, tool: Option<&str>) -> Request {
        let mut request = Request::post_json("/mcp", body)
            .bearer(self.server.token())
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", self.revision.version());
        if let Some(session) = &self.session {
            request = request.header("Mcp-Session-Id", session);
        }
        if let (Revision::Stateless, Some(tool)) = (self.revision, tool) {
            request = request.header("Mcp-Method", "tools/call").header("Mcp-Name", &header_text(tool));
        }
        request
    }

    fn request(&self, call: &Call) -> Result<(u64, Request)> {
        let id = {
            let mut next = self.next.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *next += 1;
            *next
        };
        Ok((id, self.post(&self.revision.tool_call(id, call)?, Some(&call.action))))
    }

    fn one(&self, call: &Call) -> Result<Value> {
        let (id, request) = self.request(call)?;
        let response = request.send(self.server.address())?;
        ensure!(response.status == 200, "the status is {}: {}", response.status, response.text()?);
        envelope(self.revision, &message_of(&response, id)?)
    }
}

/// What is not plain ASCII goes encoded.
fn header_text(text: &str) -> String {
    use base64::Engine as _;
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return text.to_owned();
    }
    format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(text))
}

/// The answer in a body that is JSON or an event stream.
fn message_of(response: &Response, id: u64) -> Result<Value> {
    let media_type = response.header("content-type").unwrap_or_default();
    if !media_type.starts_with("text/event-stream") {
        return Ok(response.json()?);
    }
    let text = response.text()?;
    let messages = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let messages = messages.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
    let mut answers = messages.filter(|message| message["id"] == id);
    answers.next().with_context(|| format!("there is no answer in {text}"))
}

impl Driver for McpHttpDriver {
    fn surface(&self) -> Surface {
        Surface::Mcp
    }

    fn call(&self, calls: &[Call]) -> Result<Answer> {
        let (last, before) = calls.split_last().context("there is no call")?;
        for call in before {
            self.one(call)?;
        }
        Ok(Answer { envelope: self.one(last)?, status: Status::Silent })
    }

    fn cancel(&self, call: &Call, marker: &Path) -> Result<Answer> {
        let (id, request) = self.request(call)?;
        let connection = request.open(self.server.address())?;
        ensure!(eventually(|| marker.exists()), "{} was not made", marker.display());
        if self.revision == Revision::Session {
            let params = json!({ "requestId": id });
            let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            let response = self.post(&cancelled.to_string(), None).send(self.server.address())?;
            ensure!(response.status == 202, "a notification is answered with {}", response.status);
        }
        // Where there is no session, to leave is to cancel.
        drop(connection);
        let ended = last_envelope(&call.action, |question| self.one(question))?;
        Ok(Answer { envelope: ended, status: Status::Silent })
    }
}
