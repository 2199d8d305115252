//! Messages as lines, in bounded memory. What cannot be read is answered, and the next line is read.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcError, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// The longest message.
pub(super) const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A client at the other end of two pipes.
pub(super) struct Lines<R, W> {
    input: BufReader<R>,
    output: Arc<Mutex<W>>,
    /// The line that is being read: whoever waits for it may stop waiting and come back.
    line: Vec<u8>,
    too_long: bool,
    /// A refusal that is being written, beside whoever waits for a line: half of one would spoil the next message. One at a
    /// time, so that a client that does not read is not read either.
    refusing: Option<JoinHandle<()>>,
}

enum Read {
    Line(Vec<u8>),
    TooLong,
    End,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    pub(super) fn new(input: R, output: W) -> Self {
        Lines {
            input: BufReader::new(input),
            output: Arc::new(Mutex::new(output)),
            line: Vec::new(),
            too_long: false,
            refusing: None,
        }
    }

    async fn read(&mut self) -> std::io::Result<Read> {
        loop {
            let available = self.input.fill_buf().await?;
            let ended = available.is_empty();
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |at| at + 1);
            self.too_long |= self.line.len() + taken > LINE_BYTES_MAX;
            if !self.too_long {
                self.line.extend_from_slice(&available[..taken]);
            }
            self.input.consume(taken);
            if ended || end.is_some() {
                let (line, too_long) = (std::mem::take(&mut self.line), std::mem::take(&mut self.too_long));
                return Ok(match (too_long, ended && line.is_empty()) {
                    (true, _) => Read::TooLong,
                    (false, true) => Read::End,
                    (false, false) => Read::Line(line),
                });
            }
        }
    }

    fn refuse(&mut self, id: Option<RequestId>, code: ErrorCode, why: &'static str) {
        let refusal = JsonRpcError::new(id, ErrorData::new(code, why, None));
        let line = serde_json::to_vec(&refusal).unwrap_or_default();
        let output = Arc::clone(&self.output);
        // A client that does not read has gone, which the next read tells.
        self.refusing = Some(tokio::spawn(async move { drop(write(output, line).await) }));
    }

    /// Waits until the last refusal is written; whoever waits may stop waiting and come back.
    async fn refused(&mut self) {
        if let Some(refusing) = &mut self.refusing {
            let _ = refusing.await;
            self.refusing = None;
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(output: Arc<Mutex<W>>, mut line: Vec<u8>) -> std::io::Result<()> {
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

/// The id of a message that is JSON and yet no message of the protocol.
fn id_of(message: &Value) -> Option<RequestId> {
    serde_json::from_value(message.get("id")?.clone()).ok()
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = std::io::Result<()>> + Send + 'static {
        let line = serde_json::to_vec(&message).map_err(std::io::Error::other);
        let output = Arc::clone(&self.output);
        async move { write(output, line?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.refused().await;
            let line = match self.read().await {
                Err(_) | Ok(Read::End) => return None,
                Ok(Read::TooLong) => {
                    self.refuse(None, ErrorCode::INVALID_REQUEST, "The message is too long.");
                    continue;
                }
                Ok(Read::Line(line)) => line,
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice(&line) {
                Ok(message) => return Some(message),
                Err(_) => match serde_json::from_slice::<Value>(&line) {
                    Err(_) => self.refuse(None, ErrorCode::PARSE_ERROR, "The line is not JSON."),
                    Ok(value) => {
                        let id = id_of(&value);
                        self.refuse(id, ErrorCode::INVALID_REQUEST, "The line is no request.");
                    }
                },
            }
        }
    }

    async fn close(&mut self) -> std::io::Result<()> {
        self.refused().await;
        self.output.lock().await.flush().await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn heard(input: Vec<u8>) -> (Vec<String>, String) {
        let (writer, mut reader) = tokio::io::duplex(1024 * 1024);
        let mut lines = Lines::new(std::io::Cursor::new(input), writer);
        let mut messages = Vec::new();
        while let Some(message) = lines.receive().await {
            messages.push(serde_json::to_value(&message).unwrap()["id"].to_string());
        }
        drop(lines);
        let mut answered = String::new();
        reader.read_to_string(&mut answered).await.unwrap();
        (messages, answered)
    }

    #[tokio::test]
    async fn what_is_no_message_is_answered_and_the_next_one_is_heard() {
        let ping = |id: u8| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        let input = format!("{}nonsense\n\n{{\"id\":7}}\n[1]\n{}", ping(1), ping(2).trim_end());
        let (messages, answered) = heard(input.into_bytes()).await;
        assert_eq!(messages, ["1", "2"], "the last line needs no end");
        let codes: Vec<Value> = answered.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let codes: Vec<_> =
            codes.iter().map(|error| (error["id"].clone(), error["error"]["code"].clone())).collect();
        assert_eq!(
            codes,
            [(Value::Null, (-32700).into()), (7.into(), (-32600).into()), (Value::Null, (-32600).into())]
        );
    }

    #[tokio::test]
    async fn whoever_stops_waiting_for_a_line_does_not_cut_a_refusal_short() {
        let (writer, mut reader) = tokio::io::duplex(8);
        let input = b"nonsense\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        let mut lines = Lines::new(std::io::Cursor::new(input.to_vec()), writer);
        let mut begin = [0; 4];
        tokio::select! {
            _ = lines.receive() => panic!("the refusal does not fit before it is read"),
            read = reader.read_exact(&mut begin) => assert_eq!(read.unwrap(), begin.len()),
        }
        let mut rest = String::new();
        let mut reader = BufReader::new(reader);
        let (message, read) = tokio::join!(lines.receive(), reader.read_line(&mut rest));
        assert!(message.is_some() && read.is_ok());
        let line = String::from_utf8(begin.to_vec()).unwrap() + &rest;
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["error"]["code"], -32700, "{line}");
    }

    #[tokio::test]
    async fn a_line_without_end_is_not_kept() {
        let mut input = vec![b'x'; LINE_BYTES_MAX + 10];
        input.extend_from_slice(b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
        let (messages, answered) = heard(input).await;
        assert_eq!(messages, ["1"]);
        assert!(answered.contains("too long"), "{answered}");
    }
}
