//! One exchange with the hub's `/mcp`: a request over HTTP, and the messages that it is answered with, as they come.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use runyard::Envelope;
use serde_json::Value;
use tokio::net::TcpStream;

/// The largest message of the hub.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);
pub(super) const SESSION: &str = "mcp-session-id";
/// The code of a failure between here and the hub: the range that is left to implementations.
const LOST: i32 = -32_000;

/// What is said about a message beside it.
pub(super) type Headers = Vec<(&'static str, String)>;

/// A hub, and how one comes in.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    authority: String,
    token: String,
}

/// What went wrong on the way, as a client hears it.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) code: i32,
    pub(super) message: String,
    pub(super) why: Why,
}

/// What is known about a message that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The hub was not reached at all, so that nothing can have come of it.
    Unreached,
    /// The hub refused it because it does not know its session.
    UnknownSession,
    /// Something may have come of it.
    Unclear,
}

impl Lost {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Lost { code, message: message.into(), why: Why::Unclear }
    }

    pub(super) fn because(message: &str) -> Self {
        let message = message.trim_end_matches('.');
        Lost::new(LOST, format!("The hub cannot be talked to: {message}."))
    }

    pub(super) fn unknown_session() -> Self {
        let message = "The hub does not know this session any more: connect anew.";
        Lost { why: Why::UnknownSession, ..Lost::new(LOST, message) }
    }
}

impl Endpoint {
    pub(super) fn at(url: &str, token: &str) -> Option<Self> {
        let authority = url.strip_prefix("http://")?.trim_end_matches('/');
        let plain = !authority.is_empty() && !authority.contains(['/', '@', '?', '#']);
        plain.then(|| Endpoint { authority: authority.to_owned(), token: token.to_owned() })
    }

    #[cfg(test)]
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Sends, and gives what comes back. Dropping it closes the connection.
    pub(super) async fn send(
        &self,
        method: Method,
        body: Option<&Value>,
        headers: &[(&'static str, String)],
    ) -> Result<Answer, Lost> {
        let stream = match tokio::time::timeout(CONNECT, TcpStream::connect(&self.authority)).await {
            Ok(Ok(stream)) => stream,
            _ => return Err(Lost { why: Why::Unreached, ..Lost::because("it does not answer") }),
        };
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|_| Lost::because("it does not speak HTTP"))?;
        let connection = Connection(tokio::spawn(async move {
            // What breaks is seen by whoever reads the answer.
            let _ = connection.await;
        }));
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header(header::HOST, &self.authority)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::ACCEPT, "application/json, text/event-stream");
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(Full::new(Bytes::from(body)));
        let request = request.map_err(|_| Lost::because("the token or a name does not fit into a header"))?;
        let response =
            sender.send_request(request).await.map_err(|_| Lost::because("it closed the connection"))?;
        Ok(Answer { response, buffer: Buffer::default(), over: false, _connection: connection })
    }
}

/// The connection's own task, which ends with the answer.
struct Connection(tokio::task::JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What the hub answers.
pub(super) struct Answer {
    response: Response<Incoming>,
    buffer: Buffer,
    over: bool,
    _connection: Connection,
}

impl Answer {
    pub(super) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(super) fn header(&self, name: &str) -> Option<String> {
        self.response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    }

    fn is(&self, media_type: &str) -> bool {
        self.header("content-type").is_some_and(|given| given.starts_with(media_type))
    }

    /// The next message; nothing when there are no more.
    pub(super) async fn next(&mut self) -> Result<Option<Value>, Lost> {
        if self.is("text/event-stream") && self.status().is_success() {
            return self.next_of_stream().await;
        }
        if std::mem::replace(&mut self.over, true) {
            return Ok(None);
        }
        while self.more().await? {}
        let text = std::mem::take(&mut self.buffer.bytes);
        match serde_json::from_slice::<Value>(&text) {
            Ok(message) if message.get("jsonrpc").is_some() => Ok(Some(message)),
            _ if self.status().is_success() && text.is_empty() => Ok(None),
            _ => Err(self.refused(&text)),
        }
    }

    async fn next_of_stream(&mut self) -> Result<Option<Value>, Lost> {
        loop {
            if let Some(block) = self.buffer.block() {
                match data(&block) {
                    Some(message) => return Ok(Some(message)),
                    // It keeps the connection alive, or says where to go on.
                    None => continue,
                }
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    /// Takes more of the body; false at its end.
    async fn more(&mut self) -> Result<bool, Lost> {
        match self.response.body_mut().frame().await {
            None => Ok(false),
            Some(Err(_)) => Err(Lost::because("it closed the connection")),
            Some(Ok(frame)) => {
                // Line ends are those of the protocol's texts, which have no raw ones in them.
                let bytes = frame.into_data().unwrap_or_default();
                self.buffer.bytes.extend(bytes.iter().filter(|byte| **byte != b'\r'));
                match self.buffer.bytes.len() <= MESSAGE_BYTES_MAX {
                    true => Ok(true),
                    false => Err(Lost::because("a message is too long")),
                }
            }
        }
    }

    /// What the hub says where it does not speak the protocol: an envelope, or a plain word.
    fn refused(&self, text: &[u8]) -> Lost {
        let failure =
            serde_json::from_slice::<Envelope>(text).ok().and_then(|envelope| envelope.outcome.err());
        match failure {
            Some(failure) => Lost::new(failure.code.row().json_rpc, failure.message),
            None => Lost::because(&format!("it answered with status {}", self.status().as_u16())),
        }
    }
}

/// What came of a body and was not taken yet.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// So many bytes were looked at, and no block ends in them.
    looked: usize,
}

impl Buffer {
    /// Takes the next block of a stream, once all of it is there.
    fn block(&mut self) -> Option<Vec<u8>> {
        // The last byte may be the first half of an end.
        let from = self.looked.saturating_sub(1);
        let rest = self.bytes.get(from..).unwrap_or_default();
        match rest.windows(2).position(|pair| pair == b"\n\n") {
            Some(end) => {
                self.looked = 0;
                Some(self.bytes.drain(..from + end + 2).collect())
            }
            None => {
                self.looked = self.bytes.len();
                None
            }
        }
    }
}

/// The message of one block of a stream.
fn data(block: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(block);
    let lines = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let data: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    serde_json::from_str(&data.join("\n")).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_block_holds_a_message_or_only_keeps_the_stream_alive() {
        assert_eq!(data(b"id: 1\ndata: {\"a\":\ndata: 1}\n\n"), Some(json!({"a": 1})));
        assert_eq!(data(b": keep\n\n"), None);
        assert_eq!(data(b"id: 0\nretry: 3000\ndata:\n\n"), None);
    }

    #[test]
    fn blocks_are_found_however_they_come_and_no_byte_is_looked_at_again() {
        let (mut buffer, mut found) = (Buffer::default(), Vec::new());
        for byte in b"data: 1\n\n\n\ndata: 2\ndata: 3\n\nrest" {
            buffer.bytes.push(*byte);
            found.extend(buffer.block());
            assert_eq!(buffer.looked, buffer.bytes.len());
        }
        assert_eq!(found, [&b"data: 1\n\n"[..], b"\n\n", b"data: 2\ndata: 3\n\n"]);
        buffer.bytes.extend(b"\n\ntwo\n\n");
        assert_eq!([buffer.block(), buffer.block()], [Some(b"rest\n\n".to_vec()), Some(b"two\n\n".to_vec())]);
        assert_eq!(buffer.block(), None);
    }

    #[test]
    fn an_address_is_a_host_with_a_port_and_nothing_else() {
        let at = |url: &str| Endpoint::at(url, "t").map(|endpoint| endpoint.authority);
        assert_eq!(at("http://127.0.0.1:4710/").as_deref(), Some("127.0.0.1:4710"));
        for wrong in ["127.0.0.1:4710", "https://x", "http://", "http://a/b", "http://a@b"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}
