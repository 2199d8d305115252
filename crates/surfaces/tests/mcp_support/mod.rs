//! What the MCP tests share: a real server with `/mcp`, requests of both wire revisions, and messages as they come.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses a part; a failed expectation fails the test"
)]

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use runyard_actions::{
    Action, Context, DefinitionError, Exposure, Question, Runtime, SideEffects, TaskUse, Visibility, fields,
};
use runyard_domain::{Actor, RunId, Surface};
use runyard_surfaces::http::{BearerTokens, Guard, HttpApi, Listening, TokenDigest, serve};
use runyard_surfaces::mcp::{McpApi, endpoint};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

use crate::support::client::{Answer, Client, Request};
use crate::support::server::{ADA, BOB, BOT, Server};

pub(crate) const OLDER: &str = "2025-11-25";
pub(crate) const NEWER: &str = "2026-07-28";

/// A wire revision.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Newer,
    Older,
}

/// A server, and how often something was erased.
pub(crate) struct McpServer {
    server: Server,
    erased: Arc<AtomicUsize>,
    begun: Arc<AtomicUsize>,
}

impl Deref for McpServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

pub(crate) type Defined = Result<Action, DefinitionError>;

fn actions(erased: &Arc<AtomicUsize>, begun: &Arc<AtomicUsize>) -> Vec<Defined> {
    let object = |field: &str| json!({"type": "object", "properties": {field: {"type": "string"}}, "required": [field], "additionalProperties": false});
    let erasing = |name: &str| {
        let erased = Arc::clone(erased);
        let action = Action::define(name, "Erases.").side_effects(SideEffects::Destructive);
        action.input_schema(object("what")).handler(move |input, _| {
            erased.fetch_add(1, Ordering::SeqCst);
            async move { Ok(json!({"erased": input["what"]})) }
        })
    };
    let (both, begun) = (Arc::new(Barrier::new(2)), Arc::clone(begun));
    let meet = Action::define("meet", "Waits for a second call.").input_schema(object("name"));
    let asking = |name: &str, task| {
        Action::define(name, "Asks for a name.").task(task).handler(|_, ctx: Context| async move {
            let schema =
                json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
            let answer = ctx.ask("name", Question::form("Who?", schema)).await?;
            Ok(answer.filled_in().map_or(Value::Null, |content| content["name"].clone()))
        })
    };
    vec![
        erasing("erase"),
        erasing("erase_more"),
        meet.handler(move |input, ctx: Context| {
            let both = Arc::clone(&both);
            begun.fetch_add(1, Ordering::SeqCst);
            async move {
                both.wait().await;
                ctx.logger().info(format!("met by {}", input["name"].as_str().unwrap()), fields! {});
                both.wait().await;
                Ok(input["name"].clone())
            }
        }),
        asking("ask_name", TaskUse::Never),
        asking("ask_in_task", TaskUse::Possible),
        Action::define("order_lines", "The lines of an order.")
            .resource("shop://orders/{id}/lines")
            .input_schema(object("id"))
            .handler(|input, _| async move { Ok(input) }),
        Action::define("hidden", "Is for this machine only.")
            .visibility(Visibility::Local)
            .handler(|_, _| async { Ok(Value::Null) }),
    ]
}

/// An application on a free port, in the default configuration.
pub(crate) async fn mcp_server() -> McpServer {
    let (erased, begun) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let exposed = [Surface::Http, Surface::Mcp];
    let exposure = Exposure::new().destructive("erase", exposed).destructive("erase_more", exposed);
    let runtime = Runtime::builder().actions(actions(&erased, &begun)).exposure(exposure).build().unwrap();
    McpServer { server: served(McpApi::new("tasks", "1.2.3", runtime)).await, erased, begun }
}

/// Any application on a free port.
pub(crate) async fn mcp_server_of(api: McpApi) -> McpServer {
    McpServer { server: served(api).await, erased: Arc::default(), begun: Arc::default() }
}

async fn served(mcp: McpApi) -> Server {
    let runtime = mcp.runtime().clone();
    let listening = Listening::on(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listening.address;
    let tokens = BearerTokens::new()
        .with(TokenDigest::of(ADA), Actor::owner("ada"))
        .with(TokenDigest::of(BOB), Actor::service("bob", ["tasks.read"]))
        .with(TokenDigest::of(BOT), Actor::agent("bot", RunId::from_parts(1, &[2; 10]), ["tasks.read"]));
    let stop = CancellationToken::new();
    let mcp = endpoint(&mcp, stop.clone());
    let guard = Guard::new(address, tokens);
    let api = HttpApi { name: "tasks".to_owned(), version: "1.2.3".to_owned(), runtime, guard };
    let router = api.router_with(Vec::new(), |routes| routes.merge(mcp)).unwrap();
    let serving = tokio::spawn(serve(listening, router, stop.clone()));
    Server { address, stop, serving }
}

/// The parameters of a tool's call.
pub(crate) fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// A request of the newer wire, of a client that can show forms and follow tasks unless its `_meta` says otherwise.
pub(crate) fn newer(server: &Server, token: &str, id: u32, method: &str, mut params: Value) -> Request {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": NEWER,
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {"form": {}},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        },
    });
    if let Some(given) = params["_meta"].as_object() {
        meta.as_object_mut().unwrap().extend(given.clone());
    }
    params["_meta"] = meta;
    let name = ["name", "uri", "taskId"].into_iter().find_map(|key| params[key].as_str()).map(str::to_owned);
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let request =
        message_to(server, token, &message).with("MCP-Protocol-Version", NEWER).with("Mcp-Method", method);
    match name {
        Some(name) => request.with("Mcp-Name", &name),
        None => request,
    }
}

/// A notification of the newer wire.
pub(crate) fn newer_notification(server: &Server, token: &str, message: &Value) -> Request {
    let method = message["method"].as_str().unwrap();
    message_to(server, token, message).with("MCP-Protocol-Version", NEWER).with("Mcp-Method", method)
}

/// A message of the older wire, in a session.
pub(crate) fn older(server: &Server, token: &str, session: Option<&str>, message: &Value) -> Request {
    let request = message_to(server, token, message);
    match session {
        Some(session) => request.with("Mcp-Session-Id", session).with("MCP-Protocol-Version", OLDER),
        None => request,
    }
}

fn message_to(server: &Server, token: &str, message: &Value) -> Request {
    server.post("/mcp", message).by(token).with("Accept", "application/json, text/event-stream")
}

/// The result in a message.
#[track_caller]
pub(crate) fn result(message: &Value) -> &Value {
    assert!(message["result"].is_object(), "no result: {message}");
    &message["result"]
}

impl McpServer {
    /// How often something was erased.
    pub(crate) fn erased(&self) -> usize {
        self.erased.load(Ordering::SeqCst)
    }

    /// How often `meet` was begun.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// Begins a session and returns its id.
    pub(crate) async fn session(&self, token: &str, capabilities: Value) -> String {
        let client = json!({"name": "tests", "version": "1.0.0"});
        let params = json!({"protocolVersion": OLDER, "capabilities": capabilities, "clientInfo": client});
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = self.any(older(self, token, None, &initialize)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let session = answer.header("mcp-session-id").to_owned();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.any(older(self, token, Some(&session), &initialized)).await.status, 202);
        session
    }

    /// Sends one request on a connection of its own and reads whatever is answered.
    pub(crate) async fn any(&self, request: Request) -> Answer {
        let mut client = self.connect().await;
        client.write(&request.bytes()).await;
        client.any_answer().await.unwrap()
    }

    /// All messages of an answer, the response last.
    pub(crate) async fn told(&self, request: Request) -> Vec<Value> {
        let answer = self.any(request).await;
        let text = String::from_utf8(answer.body.clone()).unwrap();
        let messages = match answer.header("content-type") {
            "application/json" => vec![answer.json()],
            "text/event-stream" => text.split("\n\n").filter_map(message_in).collect(),
            other => panic!("{other}: {text}"),
        };
        assert!(!messages.is_empty(), "{answer:?}");
        messages
    }

    /// The result that a request ends with.
    pub(crate) async fn result(&self, request: Request) -> Value {
        result(&self.told(request).await.pop().unwrap()).clone()
    }

    /// The result of a tool's call without arguments.
    pub(crate) async fn called(&self, kind: Kind, token: &str, name: &str) -> Value {
        let params = call(name, json!({}));
        match kind {
            Kind::Newer => self.result(newer(self, token, 1, "tools/call", params)).await,
            Kind::Older => {
                let session = self.session(token, json!({})).await;
                let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
                self.result(older(self, token, Some(&session), &asked)).await
            }
        }
    }

    /// Sends a request whose answer is read message by message.
    pub(crate) async fn stream(&self, request: &Request) -> Messages {
        let mut client = self.connect().await;
        client.write(&request.bytes()).await;
        let answer = client.head_only().await;
        assert_eq!((answer.status, answer.header("content-type")), (200, "text/event-stream"));
        Messages(client)
    }

    async fn task(&self, token: &str, task: &str) -> Value {
        self.result(newer(self, token, 1, "tasks/get", json!({ "taskId": task }))).await
    }

    /// The task once it waits for an answer.
    pub(crate) async fn until_task_asks(&self, token: &str, task: &str) -> Value {
        self.until_task(token, task, |status| status == "input_required").await
    }

    /// The task once it has ended.
    pub(crate) async fn until_task_ends(&self, token: &str, task: &str) -> Value {
        self.until_task(token, task, |status| status == "completed").await
    }

    /// The task once its status is so.
    pub(crate) async fn until_task(&self, token: &str, task: &str, is_so: impl Fn(&str) -> bool) -> Value {
        const LOOKS_MAX: usize = 2_000;
        for _ in 0..LOOKS_MAX {
            let looked = self.task(token, task).await;
            if is_so(looked["status"].as_str().unwrap()) {
                return looked;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("the task never came so far");
    }
}

/// The messages of an event stream, as they come.
pub(crate) struct Messages(Client);

impl Messages {
    /// The next one; `None` at the end.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let size = usize::from_str_radix(&self.0.line().await, 16).unwrap();
            let event = self.0.line().await;
            if size == 0 {
                return None;
            }
            if let Some(message) = message_in(event.trim_end()) {
                return Some(message);
            }
        }
    }

    /// The last one.
    pub(crate) async fn last_message(&mut self) -> Value {
        let mut last = Value::Null;
        while let Some(message) = self.message().await {
            last = message;
        }
        last
    }
}

/// The message of an event; one that only keeps the connection has none.
fn message_in(event: &str) -> Option<Value> {
    let data = event.lines().find_map(|line| line.strip_prefix("data:"))?.trim();
    (!data.is_empty()).then(|| serde_json::from_str(data).unwrap())
}
