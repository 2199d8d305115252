//! A hub on a real socket, with an engine in memory, an edge that the test plays, and a client that reads what comes.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

#[path = "../../../engine/tests/support/mod.rs"]
pub mod engine;

use std::net::SocketAddr;
use std::time::Duration;

use runyard_actions::Runtime;
use runyard_engine::{Engine, Role};
use runyard_server::Hub;
use runyard_surfaces::http::{Guard, Listening, TokenDigest, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use engine::{PlayedEdge, World, person};

/// The token of the installation's owner.
pub const OWNER: &str = "owner-0123456789abcdef0123456789abcdef";
/// Only something that hangs takes so long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A hub that is served.
pub struct Served {
    pub engine: Engine,
    pub edge: PlayedEdge,
    pub address: SocketAddr,
    pub stop: CancellationToken,
}

impl Served {
    pub async fn start() -> Served {
        Served::start_with(Runtime::builder()).await
    }

    /// A hub with these actions beside the control plane.
    pub async fn start_with(actions: runyard_actions::RuntimeBuilder) -> Served {
        let (engine, edge) = World::default().hub_and_edge().await;
        let runtime = runyard_control::install(actions, engine.clone()).build().unwrap();
        let listening = Listening::on(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let (address, stop) = (listening.address, CancellationToken::new());
        let hub = Hub {
            name: "runyard".to_owned(),
            version: "1.2.3".to_owned(),
            engine: engine.clone(),
            runtime,
            stop: stop.clone(),
        };
        let guard = Guard::new(address, hub.tokens(TokenDigest::of(OWNER)));
        tokio::spawn(serve(listening, hub.router(guard).unwrap(), stop.clone()));
        Served { engine, edge, address, stop }
    }

    /// Somebody who calls with this token.
    pub fn by(&self, token: &str) -> Client {
        Client { address: self.address, token: token.to_owned() }
    }

    pub fn owner(&self) -> Client {
        self.by(OWNER)
    }

    /// A person with a named token of this role.
    pub async fn with_role(&self, role: Role) -> Client {
        let who = (&person()).into();
        let made = self.engine.installation().create_token(role.as_str(), role, None, &who).await;
        self.by(&made.unwrap().1.reveal())
    }

    /// The browser of whoever holds this token, logged in.
    pub async fn browser(&self, client: &Client) -> Browser {
        let link = client.post("/logins", json!({})).await.data()["url"].as_str().unwrap().to_owned();
        let code = json!({ "code": link.split_once('#').unwrap().1 });
        let browser = Browser { address: self.address, cookie: String::new(), page_key: String::new() };
        let answer = whole(browser.request("POST", "/login", Some(code)).await).await;
        let cookie = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let page_key = answer.data()["pageKey"].as_str().unwrap().to_owned();
        Browser { cookie: cookie.split(';').next().unwrap().to_owned(), page_key, ..browser }
    }

    /// A run that was asked for over HTTP; its id.
    pub async fn run(&self) -> String {
        let task = json!({ "task": "Tidy up", "agent": "demo", "workspace": "site" });
        self.owner().post("/runs", task).await.data()["run"]["id"].as_str().unwrap().to_owned()
    }
}

/// Somebody with a token.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    pub token: String,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The data of a success.
    #[track_caller]
    pub fn data(&self) -> Value {
        let mut envelope = self.json();
        assert_eq!((self.status, &envelope["ok"]), (200, &Value::Bool(true)), "{envelope}");
        envelope["data"].take()
    }

    /// Status and code of a failure.
    #[track_caller]
    pub fn refused(&self) -> (u16, String) {
        let envelope = self.json();
        assert_eq!(envelope["ok"], Value::Bool(false), "{envelope}");
        (self.status, envelope["error"]["code"].as_str().unwrap().to_owned())
    }

    /// Where the input was wrong, and how.
    #[track_caller]
    pub fn issue(&self) -> (String, String) {
        assert_eq!(self.refused(), (400, "VALIDATION_ERROR".to_owned()));
        let issue = &self.json()["error"]["issues"][0];
        let path: Vec<&str> =
            issue["path"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
        (path.join("."), issue["message"].as_str().unwrap().to_owned())
    }
}

impl Client {
    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None, &[]).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None, &[]).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some(body), &[]).await
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Answer {
        whole(self.request(method, path, body, headers).await).await
    }

    /// Follows a run.
    pub async fn follow(&self, run: &str, after: u64) -> Messages {
        Messages::of(self.request("GET", &format!("/runs/{run}/stream?after={after}"), None, &[]).await).await
    }

    /// Follows the whole hub.
    pub async fn follow_hub(&self) -> Messages {
        Messages::of(self.request("GET", "/stream", None, &[]).await).await
    }

    /// In HTTP/1.0, so that the body is what comes until the end.
    async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> TcpStream {
        let mut text = format!(
            "{method} /api/v1{path} HTTP/1.0\r\nHost: {}\r\nAuthorization: Bearer {}\r\n",
            self.address, self.token
        );
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        if !body.is_empty() {
            text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).await.unwrap();
        stream
    }
}

/// The whole answer.
async fn whole(mut stream: TcpStream) -> Answer {
    let mut answer = Vec::new();
    timeout(WAIT_MAX, stream.read_to_end(&mut answer)).await.expect("an answer").unwrap();
    let end = position(&answer, b"\r\n\r\n").expect("a head");
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: answer[end + 4..].to_vec() }
}

/// A person's browser, with what it keeps of a session.
#[derive(Clone)]
pub struct Browser {
    address: SocketAddr,
    pub cookie: String,
    pub page_key: String,
}

impl Browser {
    /// A request of one of our own pages; the path is the whole one.
    pub async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        whole(self.request(method, path, body).await).await
    }

    /// Follows a stream.
    pub async fn follow(&self, path: &str) -> Messages {
        Messages::of(self.request("GET", path, None).await).await
    }

    pub async fn request(&self, method: &str, path: &str, body: Option<Value>) -> TcpStream {
        let Browser { address, cookie, page_key } = self;
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let text = format!(
            "{method} {path} HTTP/1.0\r\nHost: {address}\r\nOrigin: http://{address}\r\nSec-Fetch-Site: same-origin\r\n\
             Cookie: {cookie}\r\nX-Runyard-Page: {page_key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }
}

/// A stream of events, as it comes.
pub struct Messages {
    stream: TcpStream,
    came: Vec<u8>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: u64,
    pub event: String,
    pub data: String,
}

impl Messages {
    async fn of(stream: TcpStream) -> Messages {
        let mut messages = Messages { stream, came: Vec::new() };
        let head = messages.take(b"\r\n\r\n").await.expect("a head");
        assert!(head.starts_with("HTTP/1.0 200"), "{head}");
        assert!(head.contains("text/event-stream"), "{head}");
        messages
    }

    /// The next word of a hub's stream: what changed.
    pub async fn changed(&mut self) -> Option<Value> {
        loop {
            let block = self.take(b"\n\n").await?;
            if let Some(data) = block.strip_prefix("event: changed\ndata: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
            assert!(block.starts_with(':'), "no message: {block}");
        }
    }

    /// The next one; none at the end.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            let block = self.take(b"\n\n").await?;
            if block.starts_with(':') {
                continue;
            }
            return Some(message(&block));
        }
    }

    /// All that comes until the end, as it comes.
    pub async fn rest_as_text(mut self) -> String {
        let mut text = String::from_utf8(std::mem::take(&mut self.came)).unwrap();
        timeout(WAIT_MAX, self.stream.read_to_string(&mut text)).await.expect("an end").unwrap();
        text
    }

    pub async fn rest(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        messages
    }

    async fn take(&mut self, mark: &[u8]) -> Option<String> {
        loop {
            if let Some(end) = position(&self.came, mark) {
                let taken: Vec<u8> = self.came.drain(..end + mark.len()).collect();
                return Some(String::from_utf8(taken[..end].to_vec()).unwrap());
            }
            let read =
                timeout(WAIT_MAX, self.stream.read_buf(&mut self.came)).await.expect("something comes");
            if read.unwrap() == 0 {
                assert!(self.came.is_empty(), "the stream ends with a whole message");
                return None;
            }
        }
    }
}

/// The messages of a body that has come to its end.
pub fn messages(body: &[u8]) -> Vec<Message> {
    let text = std::str::from_utf8(body).unwrap();
    text.split_terminator("\n\n").filter(|block| !block.starts_with(':')).map(message).collect()
}

/// Exactly three lines: id, event, data.
fn message(block: &str) -> Message {
    let lines: Vec<(&str, &str)> = block.lines().map(|line| line.split_once(": ").unwrap()).collect();
    let [("id", id), ("event", event), ("data", data)] = lines[..] else { panic!("no message: {block}") };
    Message { id: id.parse().unwrap(), event: event.to_owned(), data: data.to_owned() }
}

/// What a reader of a run's log must see.
pub async fn log(engine: &Engine, run: &str) -> Vec<Message> {
    let events = engine.events(run.parse().unwrap(), 0, 1_000).await.unwrap();
    let message = |event: &runyard_store::LoggedEvent| Message {
        id: event.sequence,
        event: event.envelope().unwrap().kind,
        data: String::from_utf8(event.body.to_vec()).unwrap(),
    };
    events.iter().map(message).collect()
}

fn position(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}
