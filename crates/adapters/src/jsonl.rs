//! JSON lines: one value in each line, each line bounded.
//!
//! It knows nothing of what the values mean, and repairs nothing: a line that is no JSON ends the reading.

use std::pin::Pin;

use runyard_backend::BackendError;
use runyard_domain::run::FailureKind;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};

use crate::cut::clip;

/// No line is longer, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// So much is read at once.
const READ_BYTES: usize = 64 * 1024;
/// How much of a line that is no JSON is shown.
const SHOWN_BYTES_MAX: usize = 200;

/// The values that come from a stream.
pub(crate) struct JsonLines<R> {
    reader: BufReader<R>,
    /// The beginning of the line whose end has not come yet.
    line: Vec<u8>,
    kept: Option<Kept>,
}

/// The lines as they came, since they were last taken: no more than fit into one read.
struct Kept {
    lines: Vec<String>,
    /// How much of each is kept, in bytes.
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> JsonLines<R> {
    /// Reads from here.
    pub(crate) fn new(reader: R) -> Self {
        JsonLines { reader: BufReader::with_capacity(READ_BYTES, reader), line: Vec::new(), kept: None }
    }

    /// From now on the lines are also kept as they come, so much of each, until they are taken.
    pub(crate) fn keep(&mut self, bytes_max: usize) {
        self.kept = Some(Kept { lines: Vec::new(), bytes_max });
    }

    /// The lines that were kept.
    pub(crate) fn take_kept(&mut self) -> Vec<String> {
        self.kept.as_mut().map(|kept| std::mem::take(&mut kept.lines)).unwrap_or_default()
    }

    /// The next value; none at the end. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>, BackendError> {
        loop {
            if let Some(value) = self.ready()? {
                return Ok(Some(value));
            }
            let read = self.reader.fill_buf().await.map_err(|error| {
                BackendError::new(FailureKind::BackendFailed, format!("cannot read its output: {error}"))
            })?;
            if read.is_empty() {
                let rest = std::mem::take(&mut self.line);
                return if rest.trim_ascii().is_empty() { Ok(None) } else { self.parse(&rest).map(Some) };
            }
        }
    }

    /// The next value, if the whole line is already there.
    pub(crate) fn ready(&mut self) -> Result<Option<Value>, BackendError> {
        loop {
            let there = self.reader.buffer();
            let end = there.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(there.len());
            if self.line.len() + taken > LINE_BYTES_MAX {
                let message = format!("a line of its output is longer than {LINE_BYTES_MAX} bytes");
                return Err(BackendError::new(FailureKind::BackendProtocolError, message));
            }
            self.line.extend_from_slice(&there[..taken]);
            let whole = end.is_some();
            Pin::new(&mut self.reader).consume(taken + usize::from(whole));
            if !whole {
                return Ok(None);
            }
            let line = std::mem::take(&mut self.line);
            if !line.trim_ascii().is_empty() {
                return self.parse(&line).map(Some);
            }
        }
    }

    fn parse(&mut self, line: &[u8]) -> Result<Value, BackendError> {
        if let Some(Kept { lines, bytes_max }) = &mut self.kept {
            lines.push(clip(&String::from_utf8_lossy(line), *bytes_max));
        }
        serde_json::from_slice(line).map_err(|error| {
            let shown = clip(&String::from_utf8_lossy(line), SHOWN_BYTES_MAX);
            let message = format!("a line of its output is no JSON ({error}): {shown}");
            BackendError::new(FailureKind::BackendJsonParseError, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::cut::tests::{SECRET, holds_no_part};

    async fn all(text: &[u8]) -> Result<Vec<Value>, FailureKind> {
        let mut lines = JsonLines::new(text);
        let mut values = Vec::new();
        while let Some(value) = lines.next().await.map_err(|error| error.failure_kind)? {
            values.push(value);
        }
        Ok(values)
    }

    #[tokio::test]
    async fn each_line_is_a_value_and_blank_lines_are_nothing() {
        let values = all(b"{\"a\":1}\n\n  \r\n[2]\r\n\"last\"").await;
        assert_eq!(values, Ok(vec![json!({"a": 1}), json!([2]), json!("last")]));
    }

    #[tokio::test]
    async fn b10_a_line_that_is_no_json_is_a_parse_error() {
        assert_eq!(all(b"{\"a\":1}\nWarning: hello\n").await, Err(FailureKind::BackendJsonParseError));
        assert_eq!(all(b"{\"cut\":").await, Err(FailureKind::BackendJsonParseError));
    }

    #[tokio::test]
    async fn c09_lines_are_kept_as_they_came_also_what_is_no_json() {
        let mut lines = JsonLines::new(&b"{\"a\": 1}\n\nnot json at all\n"[..]);
        lines.keep(12);
        assert!(lines.next().await.is_ok());
        assert!(lines.next().await.is_err());
        assert_eq!(lines.take_kept(), ["{\"a\": 1}", "not json…"]);
        assert_eq!(lines.take_kept(), [""; 0]);
    }

    #[tokio::test]
    async fn b12_neither_a_kept_line_nor_a_complaint_ends_with_part_of_a_secret() {
        for before in SHOWN_BYTES_MAX - SECRET.len() - 8..SHOWN_BYTES_MAX {
            let line = format!("{} \"{SECRET}\" {}", "-".repeat(before), "and so on".repeat(100));
            let mut lines = JsonLines::new(line.as_bytes());
            lines.keep(SHOWN_BYTES_MAX);
            let error = lines.next().await.unwrap_err();
            for shown in lines.take_kept().iter().chain([&error.message]) {
                assert!(shown.ends_with('…'), "{shown}");
                holds_no_part(&shown.replace(SECRET, ""));
            }
        }
    }

    #[tokio::test]
    async fn a_line_without_end_is_given_up() {
        let line = vec![b'1'; LINE_BYTES_MAX + 1];
        assert_eq!(all(&line).await, Err(FailureKind::BackendProtocolError));
    }

    #[tokio::test]
    async fn a_dropped_read_loses_nothing() {
        let (mut write, read) = tokio::io::duplex(64);
        let mut lines = JsonLines::new(read);
        write.write_all(b"{\"a\"").await.unwrap();
        for _ in 0..3 {
            tokio::select! {
                biased;
                _ = lines.next() => panic!("the line is not whole"),
                () = std::future::ready(()) => {}
            }
        }
        assert!(lines.ready().unwrap().is_none());
        write.write_all(b":1}\n[2]\n").await.unwrap();
        assert_eq!(lines.next().await.unwrap(), Some(json!({"a": 1})));
        assert_eq!(lines.ready().unwrap(), Some(json!([2])), "what is there is given without waiting");
    }
}
