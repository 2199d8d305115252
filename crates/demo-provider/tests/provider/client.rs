//! A client that knows bytes and nothing else: what it reads is what is on the wire.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// What came back on a connection that the server then closed.
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// As sent, names in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
    /// Whether the body came to its proper end.
    pub(crate) whole: bool,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The events of a stream: the name of each is the type that its data says.
    pub(crate) fn events(&self) -> Vec<Value> {
        let frames = self.body.split_terminator("\n\n");
        frames
            .map(|frame| {
                let (name, data) = frame.split_once('\n').unwrap();
                let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
                assert_eq!(event["type"], name.strip_prefix("event: ").unwrap());
                event
            })
            .collect()
    }

    /// The chunks of a stream of chat completions, and whether `[DONE]` stands at its end.
    pub(crate) fn chunks(&self) -> (Vec<Value>, bool) {
        let data: Vec<_> =
            self.body.split_terminator("\n\n").map(|frame| frame.strip_prefix("data: ").unwrap()).collect();
        let (chunks, done) = match data.split_last() {
            Some((&"[DONE]", chunks)) => (chunks, true),
            _ => (data.as_slice(), false),
        };
        (chunks.iter().map(|chunk| serde_json::from_str(chunk).unwrap()).collect(), done)
    }

    /// The last event's response, which is the whole of it.
    pub(crate) fn response(&self) -> Value {
        self.events().last().unwrap()["response"].clone()
    }

    pub(crate) fn event_types(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }
}

/// A conversation of one text by the user.
pub(crate) fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

/// Asks for the next response of a conversation.
pub(crate) async fn respond(address: SocketAddr, key: &str, input: Value) -> Reply {
    let body = json!({"model": "m-1", "stream": true, "input": input}).to_string();
    request(address, "POST", "/v1/responses", key, &body).await
}

/// Asks for the next completion of a conversation, streamed and with its usage.
pub(crate) async fn complete(address: SocketAddr, key: &str, messages: Value) -> Reply {
    let options = json!({"include_usage": true});
    let body =
        json!({"model": "m-1", "stream": true, "stream_options": options, "messages": messages}).to_string();
    request(address, "POST", "/v1/chat/completions", key, &body).await
}

/// Asks for an answer to this text as one JSON body.
pub(crate) async fn ask_whole(address: SocketAddr, path: &str, key: &str, text: &str) -> Reply {
    let body =
        json!({"model": "m-1", "max_tokens": 100, "input": text, "messages": [{"role": "user", "content": text}]})
            .to_string();
    request(address, "POST", path, key, &body).await
}

pub(crate) async fn request(address: SocketAddr, method: &str, path: &str, key: &str, body: &str) -> Reply {
    let stream = send(address, method, path, key, body).await;
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader).await;
    let mut raw = Vec::new();
    // A cut may show as an error as well as an end.
    let ended = reader.read_to_end(&mut raw).await.is_ok();
    let (body, whole) = if head.contains("transfer-encoding: chunked") {
        unchunk(&raw)
    } else {
        (String::from_utf8(raw).unwrap(), ended)
    };
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head, body, whole }
}

/// Sends a request and leaves the reading to the caller.
pub(crate) async fn send(address: SocketAddr, method: &str, path: &str, key: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: demo\r\nconnection: close\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\nanthropic-version: 2023-06-01\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn read_head(reader: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).await.unwrap(), 0, "closed in the head: {head}");
    }
    head.to_lowercase()
}

/// The body without its chunk sizes, and whether the last chunk, which has none, was there.
fn unchunk(raw: &[u8]) -> (String, bool) {
    let mut rest = raw;
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return (String::from_utf8(body).unwrap(), true);
        }
        rest = &rest[end + 2..];
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
    (String::from_utf8(body).unwrap(), false)
}
