//! A tiny HTTP/1.1 client for tests: one request a connection, read to its end.
//!
//! It knows no TLS, no redirects and no reuse of connections, and it never waits longer than [`PATIENCE`] for a byte.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// So long is waited for a connection, and for the next bytes on it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A request in the making.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// A request without headers and body. The target is a path with its query, encoded already.
    pub fn new(method: &str, target: &str) -> Self {
        Request {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// A GET request.
    pub fn get(target: &str) -> Self {
        Request::new("GET", target)
    }

    /// A POST request with a body that says it is JSON, whatever it really is.
    pub fn post_json(target: &str, body: impl Into<Vec<u8>>) -> Self {
        Request { body: body.into(), ..Request::new("POST", target) }
            .header("Content-Type", "application/json")
    }

    /// One more header. `Host`, `Connection` and `Content-Length` are there anyway unless given here.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a bearer token.
    #[must_use]
    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    /// Sends the request and reads the whole answer.
    pub fn send(&self, address: SocketAddr) -> Result<Response> {
        let mut stream = self.open(address)?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        Response::parse(&bytes)
    }

    /// Sends the request and leaves the answer to be read, or the connection to be dropped.
    pub fn open(&self, address: SocketAddr) -> Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&self.head(address))?;
        match stream.write_all(&self.body) {
            // A server may answer before it has read everything.
            Err(error) if !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Err(error)
            }
            _ => Ok(stream),
        }
    }

    fn head(&self, address: SocketAddr) -> Vec<u8> {
        let given = |name: &str| self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        let usual = [
            ("Host", address.to_string()),
            ("Connection", "close".to_owned()),
            ("Content-Length", self.body.len().to_string()),
        ];
        for (name, value) in usual.iter().filter(|(name, _)| !given(name)) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its headers, in order, as they came.
    pub headers: Vec<(String, String)>,
    /// Its body, chunks put together.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> Result<&str> {
        std::str::from_utf8(&self.body).map_err(|_| broken("the body is not UTF-8"))
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).map_err(|error| broken(&format!("the body is not JSON: {error}")))
    }

    /// Reads an answer that was read to the connection's end.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let end = find(bytes, b"\r\n\r\n").ok_or_else(|| broken("the answer has no end of its headers"))?;
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| broken("the headers are not UTF-8"))?;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| broken("the answer has no status line"))?;
        let headers: Option<Vec<(String, String)>> = lines
            .map(|line| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned())))
            .collect();
        let headers = headers.ok_or_else(|| broken("a header has no colon"))?;
        let mut response = Response { status, headers, body: bytes[end + 4..].to_vec() };
        if response.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            response.body = unchunked(&response.body)?;
        } else if let Some(length) = response.header("content-length") {
            let length: usize = length.parse().map_err(|_| broken("the content length is no number"))?;
            if response.body.len() != length {
                return Err(broken(&format!("{} bytes of {length} arrived", response.body.len())));
            }
        }
        Ok(response)
    }
}

fn unchunked(mut bytes: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = find(bytes, b"\r\n").ok_or_else(|| broken("a chunk has no size"))?;
        let size = std::str::from_utf8(&bytes[..end]).ok().and_then(|line| line.split(';').next());
        let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let size = size.ok_or_else(|| broken("the size of a chunk is no number"))?;
        bytes = &bytes[end + 2..];
        if size == 0 {
            return Ok(body);
        }
        let chunk = bytes.get(..size).filter(|_| bytes[size..].starts_with(b"\r\n"));
        body.extend_from_slice(chunk.ok_or_else(|| broken("a chunk did not arrive whole"))?);
        bytes = &bytes[size + 2..];
    }
}

/// Encodes one segment of a path.
pub fn encode_segment(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn broken(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_with_its_length_or_in_chunks() {
        let plain = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nX-A:  b \r\n\r\n{}";
        let plain = Response::parse(plain).unwrap();
        assert_eq!(
            (plain.status, plain.header("x-a"), plain.json().unwrap()),
            (404, Some("b"), serde_json::json!({}))
        );
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(Response::parse(chunked).unwrap().text().unwrap(), "abc0123456789");
    }

    #[test]
    fn an_answer_that_is_cut_off_is_an_error() {
        let cut: [&[u8]; 5] = [
            b"",
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ];
        for bytes in cut {
            assert!(Response::parse(bytes).is_err(), "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_segment_of_a_path_is_encoded_byte_by_byte() {
        assert_eq!(encode_segment("a_b/ü %"), "a_b%2F%C3%BC%20%25");
    }
}
