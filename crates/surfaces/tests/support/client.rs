//! A client that puts exactly the given bytes on the wire, and checks on every answer what must hold for all of them.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::WAIT_MAX;
use super::server::TOKENS;

/// A request, written as it stands: nothing is added, encoded or corrected.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, target: &str) -> Self {
        Request {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// One more header, also if there is one of that name.
    pub(crate) fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// This header in place of those of that name.
    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// Said by the holder of this token.
    pub(crate) fn by(self, token: &str) -> Self {
        self.with("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.with("Content-Type", "application/json").body(body.to_string())
    }

    /// A body with its length.
    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.with("Content-Length", &length)
    }

    /// A body in chunks of this size, its length not said beforehand.
    pub(crate) fn chunked(mut self, body: &[u8], size: usize) -> Self {
        self.body = Vec::new();
        for chunk in body.chunks(size) {
            self.body.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            self.body.extend(chunk);
            self.body.extend(b"\r\n");
        }
        self.body.extend(b"0\r\n\r\n");
        self.without("Content-Length").with("Transfer-Encoding", "chunked")
    }

    /// Follows the invocation.
    pub(crate) fn followed(self) -> Self {
        self.with("Accept", "text/event-stream")
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        [text.into_bytes(), self.body.clone()].concat()
    }

    pub(crate) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

/// What came back.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body: String = String::from_utf8_lossy(&self.body).chars().take(1000).collect();
        write!(f, "{} {:?} {body}", self.status, self.headers)
    }
}

impl Answer {
    /// The values of a header, in their order.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// The only value of a header.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        match self.all(name)[..] {
            [value] => value,
            _ => panic!("there is not exactly one header {name}: {self:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The code of the failure envelope, or `OK`.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        let envelope = self.json();
        match envelope["ok"].as_bool() {
            Some(true) => "OK".to_owned(),
            Some(false) => envelope["error"]["code"].as_str().unwrap().to_owned(),
            None => panic!("no envelope: {envelope}"),
        }
    }

    /// Status and code, as most tables compare them.
    #[track_caller]
    pub(crate) fn outcome(&self) -> (u16, String) {
        (self.status, self.code())
    }

    /// The data of a success envelope.
    #[track_caller]
    pub(crate) fn data(&self) -> Value {
        assert_eq!(self.outcome(), (200, "OK".to_owned()), "{}", self.json());
        self.json()["data"].clone()
    }

    /// The issues of a failure envelope as `path: message`.
    #[track_caller]
    pub(crate) fn issues(&self) -> Vec<String> {
        let envelope = self.json();
        let issue = |issue: &Value| {
            let path: Vec<String> = issue["path"].as_array().unwrap().iter().map(part).collect();
            format!("{}: {}", path.join("."), issue["message"].as_str().unwrap())
        };
        envelope["error"]["issues"].as_array().unwrap().iter().map(issue).collect()
    }

    /// What holds for every answer that the application gives, whatever was asked.
    #[track_caller]
    fn check(&self) {
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(self.header(name), value);
        }
        assert!(self.header("cache-control").starts_with("no-"), "{self:?}");
        let content_type = self.header("content-type");
        assert!(["application/json", "text/event-stream"].contains(&content_type), "{content_type}");
        let cors =
            self.headers.iter().find(|(name, _)| name.to_ascii_lowercase().starts_with("access-control"));
        assert_eq!(cors, None, "nothing is ever said to other origins");
        if self.status == 401 {
            assert_eq!(self.header("www-authenticate"), "Bearer");
        }
        self.check_tokens();
    }

    #[track_caller]
    fn check_tokens(&self) {
        let text = format!("{:?}{}", self.headers, String::from_utf8_lossy(&self.body));
        assert!(!TOKENS.iter().any(|token| text.contains(token)), "an answer repeats a token: {text}");
    }
}

fn part(segment: &Value) -> String {
    segment.as_str().map_or_else(|| segment.to_string(), str::to_owned)
}

/// One event of a followed invocation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) data: Value,
}

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    /// Read from the socket and not yet used.
    received: Vec<u8>,
    /// The body of an event stream, its chunks taken apart.
    followed: Vec<u8>,
    /// Whether the last chunk has been read.
    ended: bool,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        Client::of(TcpStream::connect(address).await.unwrap())
    }

    /// A client whose kernel takes little before it is read.
    pub(crate) async fn narrow(address: SocketAddr) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        Client::of(socket.connect(address).await.unwrap())
    }

    fn of(stream: TcpStream) -> Client {
        stream.set_nodelay(true).unwrap();
        Client { stream, received: Vec::new(), followed: Vec::new(), ended: false }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        timeout(WAIT_MAX, self.stream.write_all(bytes)).await.unwrap().unwrap();
    }

    /// Writes what the server may refuse to read to its end.
    pub(crate) async fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        timeout(WAIT_MAX, self.stream.write_all(bytes)).await.unwrap()
    }

    /// Says that nothing more will be written, and goes on reading.
    pub(crate) async fn end_writing(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    pub(crate) async fn send(&mut self, request: &Request) -> Answer {
        self.write(&request.bytes()).await;
        if request.is_head() { self.head_only().await } else { self.answer().await }
    }

    /// The next answer of the application.
    pub(crate) async fn answer(&mut self) -> Answer {
        let mut answer = self.read_head().await.expect("an answer before the end");
        self.read_body(&mut answer).await;
        answer.check();
        answer
    }

    /// The next answer, which may come from below the application; `None` where the connection ended without one.
    pub(crate) async fn any_answer(&mut self) -> Option<Answer> {
        let mut answer = self.read_head().await?;
        self.read_body(&mut answer).await;
        answer.check_tokens();
        Some(answer)
    }

    /// Status and headers alone; what follows is read by other means, or there is nothing.
    pub(crate) async fn head_only(&mut self) -> Answer {
        let answer = self.read_head().await.expect("an answer before the end");
        answer.check();
        answer
    }

    /// The status and headers of a followed invocation; its events come from [`event`](Self::event).
    pub(crate) async fn follow(&mut self, request: &Request) -> Answer {
        self.write(&request.bytes()).await;
        let answer = self.head_only().await;
        assert_eq!((answer.status, answer.header("content-type")), (200, "text/event-stream"));
        answer
    }

    /// The next event, or nothing after the last.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = find(&self.followed, b"\n\n") {
                let block: Vec<u8> = self.followed.drain(..end + 2).collect();
                match parse_event(std::str::from_utf8(&block).unwrap()) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            if self.ended {
                assert!(self.followed.is_empty(), "the stream ends with a whole event");
                return None;
            }
            let chunk = self.chunk().await;
            self.ended = chunk.is_empty();
            self.followed.extend(chunk);
        }
    }

    /// Everything up to the end of the stream.
    pub(crate) async fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }

    /// Whether the server has closed the connection, and nothing is left to read.
    pub(crate) async fn is_at_end(&mut self) -> bool {
        self.received.is_empty() && !self.read_more().await
    }

    /// The next line, its end cut off.
    pub(crate) async fn line(&mut self) -> String {
        String::from_utf8(self.take_through(b"\r\n").await.expect("a line before the end")).unwrap()
    }

    async fn read_head(&mut self) -> Option<Answer> {
        let head = String::from_utf8(self.take_through(b"\r\n\r\n").await?).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
        let headers = lines.map(|line| line.split_once(": ").unwrap_or((line, "")));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Some(Answer { status, headers, body: Vec::new() })
    }

    async fn read_body(&mut self, answer: &mut Answer) {
        if answer.all("transfer-encoding") == ["chunked"] {
            loop {
                let chunk = self.chunk().await;
                if chunk.is_empty() {
                    return;
                }
                answer.body.extend(chunk);
            }
        }
        let length: usize = answer.all("content-length").first().map_or(0, |length| length.parse().unwrap());
        answer.body = self.take(length).await;
    }

    async fn chunk(&mut self) -> Vec<u8> {
        let size = usize::from_str_radix(&self.line().await, 16).unwrap();
        let chunk = self.take(size).await;
        assert_eq!(self.take(2).await, b"\r\n");
        chunk
    }

    async fn take(&mut self, length: usize) -> Vec<u8> {
        while self.received.len() < length {
            assert!(self.read_more().await, "the connection ended in the middle of an answer");
        }
        self.received.drain(..length).collect()
    }

    /// What comes before a mark, which is taken too; `None` where the connection ends first.
    async fn take_through(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = find(&self.received, mark) {
                let taken: Vec<u8> = self.received.drain(..at + mark.len()).collect();
                return Some(taken[..at].to_vec());
            }
            if !self.read_more().await {
                return None;
            }
        }
    }

    /// Reads what there is; a connection that was cut is at its end, too.
    async fn read_more(&mut self) -> bool {
        let mut bytes = vec![0; 64 * 1024];
        let read = timeout(WAIT_MAX, self.stream.read(&mut bytes)).await.expect("the server says nothing");
        let read = read.unwrap_or(0);
        self.received.extend(&bytes[..read]);
        read > 0
    }
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

/// An event of its lines; a comment is none.
fn parse_event(block: &str) -> Option<Event> {
    let value = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let (kind, data) = (value("event")?, value("data")?);
    Some(Event { kind: kind.to_owned(), data: serde_json::from_str(data).unwrap() })
}
