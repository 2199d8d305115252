//! The hub over MCP: what an agent hears, how long anybody does, and runs as tasks and resources.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use runyard_actions::Runtime;
use runyard_backend::Signal;
use runyard_backend::link::Report;
use runyard_engine::Role;
use runyard_server::Hub;
use runyard_surfaces::http::{Guard, Listening, TokenDigest, serve};
use serde_json::{Value, json};
use support::engine::asked;
use support::{OWNER, Served};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const NEWER: &str = "2026-07-28";
/// Only something that hangs takes so long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Somebody who speaks the newer wire, in HTTP/1.0, so that a body is what comes until the end.
struct Mcp {
    address: SocketAddr,
    token: String,
}

impl Mcp {
    fn of(served: &Served, token: &str) -> Mcp {
        Mcp { address: served.address, token: token.to_owned() }
    }

    async fn sent(&self, method: &str, mut params: Value) -> BufReader<TcpStream> {
        let able = json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": NEWER,
            "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1.0.0"},
            "io.modelcontextprotocol/clientCapabilities": able,
        });
        let name = ["name", "uri", "taskId"].into_iter().find_map(|key| params[key].as_str());
        let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let Mcp { address, token } = self;
        let head = format!(
            "POST /mcp HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{name}Mcp-Method: {method}\r\n\
             MCP-Protocol-Version: {NEWER}\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        BufReader::new(stream)
    }

    /// The message that a request is answered with.
    async fn answer(&self, method: &str, params: Value) -> Value {
        let text = rest(&mut self.sent(method, params).await).await;
        let last = text.lines().rfind(|line| line.contains("\"jsonrpc\""));
        let last = last.unwrap_or_else(|| panic!("no answer: {text}"));
        serde_json::from_str(last.strip_prefix("data:").unwrap_or(last).trim()).unwrap()
    }

    async fn result(&self, method: &str, params: Value) -> Value {
        let mut answer = self.answer(method, params).await;
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].take()
    }

    /// The message of the error.
    async fn refused(&self, method: &str, params: Value) -> String {
        let answer = self.answer(method, params).await;
        answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Listens, and is told that it is listened to.
    async fn listen(&self, uri: &str) -> BufReader<TcpStream> {
        let mut stream = self.sent("subscriptions/listen", watching(uri)).await;
        let begun = message(&mut stream).await.unwrap();
        assert_eq!(begun["method"], "notifications/subscriptions/acknowledged", "{begun}");
        stream
    }

    /// What is read at an address.
    async fn read(&self, uri: &str) -> Value {
        let read = self.result("resources/read", json!({ "uri": uri })).await;
        serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap()
    }
}

fn watching(uri: &str) -> Value {
    json!({"notifications": {"resourceSubscriptions": [uri]}})
}

/// All that comes until the end.
async fn rest(stream: &mut BufReader<TcpStream>) -> String {
    let mut text = String::new();
    timeout(WAIT_MAX, stream.read_to_string(&mut text)).await.expect("an end").unwrap();
    text
}

/// The next message of a stream; none at its end.
async fn message(stream: &mut BufReader<TcpStream>) -> Option<Value> {
    loop {
        let mut line = String::new();
        if timeout(WAIT_MAX, stream.read_line(&mut line)).await.expect("something comes").unwrap() == 0 {
            return None;
        }
        let data = line.strip_prefix("data:").map(str::trim).filter(|data| !data.is_empty());
        if let Some(data) = data {
            return Some(serde_json::from_str(data).unwrap());
        }
    }
}

#[tokio::test]
async fn c24_an_agent_hears_of_its_own_run_only_and_of_nothing_when_that_is_over() {
    let mut served = Served::start().await;
    let own = served.run().await;
    let open = served.edge.start().await;
    let (agent, owner) = (Mcp::of(&served, &open.run_token), Mcp::of(&served, OWNER));
    for uri in ["runyard://runs", "runyard://approvals"] {
        let refused = agent.refused("subscriptions/listen", watching(uri)).await;
        assert_eq!(refused, format!("An agent may read {uri}, and may not watch it."));
        owner.listen(uri).await;
    }
    assert_eq!(agent.read("runyard://runs").await["runs"].as_array().unwrap().len(), 1);
    let address = format!("runyard://runs/{own}");
    let mut listening = agent.listen(&address).await;
    let asked_for = message_after(&mut listening, async {
        served.edge.recorded(&open, 4, vec![asked("a1", "make clean")]).await;
    });
    assert_eq!(asked_for.await["params"]["uri"], address.as_str());
    served.owner().post(&format!("/runs/{own}/cancel"), json!({})).await.data();
    served.edge.closes(open.run).await;
    let ended = rest(&mut listening).await;
    assert!(ended.ends_with(": the token is not valid any more\n\n"), "{ended}");
    assert_eq!(served.by(&open.run_token).get("/health").await.refused().0, 401);
}

/// What is told after something happened.
async fn message_after(stream: &mut BufReader<TcpStream>, happens: impl Future<Output = ()>) -> Value {
    happens.await;
    message(stream).await.expect("the stream goes on")
}

#[tokio::test]
async fn c24_whoever_listens_hears_nothing_more_when_their_token_is_revoked() {
    let served = Served::start().await;
    let viewer = served.with_role(Role::Viewer).await;
    let mut listening = Mcp::of(&served, &viewer.token).listen("runyard://runs").await;
    let mut owners = Mcp::of(&served, OWNER).listen("runyard://runs").await;
    assert_eq!(served.owner().delete("/tokens/viewer").await.status, 200);
    let ended = rest(&mut listening).await;
    assert!(ended.ends_with(": the token is not valid any more\n\n"), "{ended}");
    served.run().await;
    let told = message(&mut owners).await.unwrap();
    assert_eq!(told["params"]["uri"], "runyard://runs", "others go on");
}

#[tokio::test]
async fn j05_a_run_is_the_same_task_after_a_restart_and_nobody_elses_who_may_not_see_it() {
    let mut served = Served::start().await;
    let run = json!({"task": "Tidy up", "agent": "demo", "workspace": "site"});
    let owner = Mcp::of(&served, OWNER);
    let begun = owner.result("tools/call", json!({"name": "run_create", "arguments": run})).await;
    assert_eq!(begun["resultType"], "task", "{begun}");
    let task = begun["taskId"].as_str().unwrap().to_owned();
    served.edge.start().await;

    // Another server on the same store knows none of the seals of the first.
    let listening = Listening::on(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let (address, stop) = (listening.address, CancellationToken::new());
    let engine = served.engine.clone();
    let runtime = runyard_control::install(Runtime::builder(), engine.clone()).build().unwrap();
    let (name, version) = ("runyard".to_owned(), "1.2.3".to_owned());
    let hub = Hub { name, version, engine, runtime, stop: stop.clone() };
    let guard = Guard::new(address, hub.tokens(TokenDigest::of(OWNER)));
    tokio::spawn(serve(listening, hub.router(guard).unwrap(), stop));
    let again = Mcp { address, token: OWNER.to_owned() };
    let looked = again.result("tasks/get", json!({ "taskId": task })).await;
    assert_eq!([&looked["taskId"], &looked["status"]], [&json!(task), &json!("working")], "{looked}");

    served.run().await;
    let other = served.edge.start().await;
    let agent = Mcp { address, token: other.run_token };
    for method in ["tasks/get", "tasks/cancel"] {
        for id in [&task, "nothing", "run_1", "cnVu.c2VhbA"] {
            let refused = agent.refused(method, json!({ "taskId": id })).await;
            assert_eq!(refused, "There is no such task.", "{method} {id}");
        }
    }
    again.result("tasks/cancel", json!({ "taskId": task })).await;
    let looked = again.result("tasks/get", json!({ "taskId": task })).await;
    assert_eq!(looked["status"], "cancelled", "{looked}");
}

#[tokio::test]
async fn j01_the_events_of_a_run_are_read_from_their_end() {
    let mut served = Served::start().await;
    let run = served.run().await;
    let open = served.edge.start().await;
    let read = |number: u32| Report::Signal(Signal::FileRead { path: format!("{number}.md") });
    served.edge.recorded(&open, 4, (0..120).map(read).collect()).await;
    let last = served.owner().get(&format!("/runs/{run}")).await.data()["run"]["lastSequence"].clone();
    assert!(last.as_u64().unwrap() > 120);
    let owner = Mcp::of(&served, OWNER);
    let page = owner.read(&format!("runyard://runs/{run}/events")).await;
    let events = page["events"].as_array().unwrap();
    assert_eq!((events.len(), &events[99]["sequence"], &page["next"]), (100, &last, &Value::Null));
    let called = json!({"name": "run_events", "arguments": {"id": run}});
    let called = owner.result("tools/call", called).await["structuredContent"].take();
    assert_eq!(called["events"][0]["sequence"], 1, "a tool reads on from where it is told to");
}

#[tokio::test]
async fn c12_whoever_confirms_a_decision_reads_what_is_asked() {
    let mut served = Served::start().await;
    served.run().await;
    let open = served.edge.start().await;
    served.edge.recorded(&open, 4, vec![asked("a1", "make clean")]).await;
    let approval = served.owner().get("/approvals").await.data()["approvals"][0].clone();
    let owner = Mcp::of(&served, OWNER);
    for (digest, is_stale) in [(approval["digest"].clone(), false), (json!("another"), true)] {
        let decision = json!({"id": approval["id"], "digest": digest, "decision": "approve"});
        let asked =
            owner.result("tools/call", json!({"name": "approval_resolve", "arguments": decision})).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let form = &asked["inputRequests"]["io.runyard/confirm"]["params"]["message"];
        let form = form.as_str().unwrap();
        assert!(form.contains("command: make clean") && form.contains("\"decision\": \"approve\""), "{form}");
        assert_eq!(form.contains("names other content"), is_stale, "{form}");
    }
}
