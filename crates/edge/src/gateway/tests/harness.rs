//! A provider that plays what it is told, an agent that sends what it is told, and a gateway between them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use runyard_domain::{RunId, Wire};
use runyard_llm::http::{self, Io, Roots};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::Secret;
use crate::gateway::limits::Limits;
use crate::gateway::{Gateway, Lease, Pass, Upstream, Used};

/// What the provider knows its customer by.
pub(super) const KEY: &str = "sk-Sorrel-Dipper/6464";

/// What the provider does once it has read a request.
#[derive(Clone)]
pub(super) enum Step {
    Send(Vec<u8>),
    /// Waits for a word of the test.
    Wait(Arc<Notify>),
    /// Waits until the other side is gone.
    UntilGone,
}

/// A request as it arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// With its first line, in lower case.
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

/// A provider that plays the same for every request.
pub(super) struct Provider {
    pub(super) address: SocketAddr,
    seen: watch::Receiver<Vec<Seen>>,
    gone: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Provider {
    pub(super) async fn playing(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (says_seen, seen) = watch::channel(Vec::new());
        let (says_gone, gone) = watch::channel(0);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(play(stream, steps.clone(), says_seen.clone(), says_gone.clone()));
            }
        });
        Provider { address, seen, gone, task }
    }

    /// A stream of events that is whole.
    pub(super) async fn streaming(pieces: &[&str]) -> Self {
        Provider::playing(vec![stream_head(), sent(&chunks(pieces)), sent("0\r\n\r\n")]).await
    }

    /// One answer that is no stream.
    pub(super) async fn answering(status: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}");
        Provider::playing(vec![sent(&format!("{head}content-length: {length}\r\n\r\n{body}"))]).await
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    /// Returns when it has read so many requests.
    pub(super) async fn asked(&self, count: usize) {
        self.seen.clone().wait_for(|seen| seen.len() >= count).await.unwrap();
    }

    /// Returns when this many of its connections were given up by the other side.
    pub(super) async fn left_by(&self, count: usize) {
        self.gone.clone().wait_for(|gone| *gone >= count).await.unwrap();
    }
}

pub(super) fn sent(text: &str) -> Step {
    Step::Send(text.as_bytes().to_vec())
}

pub(super) fn stream_head() -> Step {
    sent("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
}

/// Each piece as a chunk of its own.
pub(super) fn chunks(pieces: &[&str]) -> String {
    pieces.iter().map(|piece| format!("{:x}\r\n{piece}\r\n", piece.len())).collect()
}

async fn play<T: Io>(
    stream: T,
    steps: Vec<Step>,
    seen: watch::Sender<Vec<Seen>>,
    gone: watch::Sender<usize>,
) {
    let mut stream = BufReader::new(stream);
    let Some(request) = read_request(&mut stream).await else { return };
    seen.send_modify(|seen| seen.push(request));
    for step in steps {
        match step {
            Step::Send(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    break;
                }
                stream.flush().await.unwrap();
            }
            Step::Wait(word) => word.notified().await,
            Step::UntilGone => {
                let _ = stream.read_to_end(&mut Vec::new()).await;
                gone.send_modify(|gone| *gone += 1);
            }
        }
    }
    let _ = stream.shutdown().await;
}

/// Plays it on one connection that is already there.
pub(super) async fn play_on<T: Io>(stream: T, steps: Vec<Step>) -> Vec<Seen> {
    let seen = watch::Sender::default();
    play(stream, steps, seen.clone(), watch::Sender::default()).await;
    seen.borrow().clone()
}

async fn read_request<T: Io>(stream: &mut BufReader<T>) -> Option<Seen> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen { head, body })
}

/// What came back on a connection that was then closed.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// In lower case.
    pub(super) head: String,
    pub(super) body: String,
    /// Whether the body came to its proper end.
    pub(super) whole: bool,
}

impl Reply {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The code of a refusal.
    pub(super) fn code(&self) -> (u16, String) {
        (self.status, self.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
    }

    /// The events of a stream.
    pub(super) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

pub(super) async fn read_reply<T: Io>(stream: T) -> Option<Reply> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let mut raw = Vec::new();
    // A cut may show as an error as well as an end.
    let ended = stream.read_to_end(&mut raw).await.is_ok();
    let is_chunked = head.contains("transfer-encoding: chunked");
    let (body, whole) = if is_chunked { unchunked(&raw) } else { (raw, ended) };
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Reply { status, head, body: String::from_utf8(body).unwrap(), whole })
}

/// The body without its chunk sizes, and whether the last chunk was there.
fn unchunked(raw: &[u8]) -> (Vec<u8>, bool) {
    let (mut rest, mut body) = (raw, Vec::new());
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        rest = &rest[end + 2..];
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    (body, false)
}

pub(super) fn pass(base_url: &str, wire: Wire) -> Pass {
    let upstream = Upstream { base_url: base_url.to_owned(), wire, key: Secret::new(KEY.into()) };
    // Whoever speaks Responses is translated for chat completions.
    let spoken = if wire == Wire::Messages { wire } else { Wire::Responses };
    Pass { run: RunId::from_parts(1, &[7; 10]), upstream, spoken, tokens_left: None, socket: None }
}

/// A gateway with a lease to this provider.
pub(super) async fn lease(base_url: &str) -> Lease {
    Gateway::new().open(pass(base_url, Wire::Responses)).await.unwrap()
}

/// A gateway for those who wait for nothing: whatever takes longer than this is given up.
pub(super) fn impatient() -> Gateway {
    let short = Duration::from_millis(50);
    let limits = Limits {
        provider: http::Limits { head: short, idle: short, ..http::Limits::default() },
        request_head: short,
        request_body: short,
        stranger_body: short,
        unread: short,
    };
    Gateway::with(limits, Roots::System)
}

pub(super) fn request(lease: &Lease, body: &str) -> String {
    let (token, length) = (lease.token(), body.len());
    format!(
        "POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Sends these bytes and leaves the reading to the caller.
pub(super) async fn send(lease: &Lease, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", lease.port())).await.unwrap();
    // A gateway that has heard enough may close before all is sent.
    let _ = stream.write_all(bytes).await;
    stream
}

pub(super) async fn ask_raw(lease: &Lease, bytes: &[u8]) -> Reply {
    read_reply(send(lease, bytes).await).await.expect("an answer")
}

pub(super) async fn ask(lease: &Lease, body: &str) -> Reply {
    ask_raw(lease, request(lease, body).as_bytes()).await
}

/// What the run has used once that is so.
pub(super) async fn used_when(lease: &Lease, is_so: impl FnMut(&Used) -> bool) -> Used {
    *lease.used().wait_for(is_so).await.unwrap()
}
