//! The JSON runner: payloads on standard input, one envelope a line on standard output.
//!
//! Input is one JSON value after another: a single payload over several lines, or one payload a line. A line that is no
//! JSON is answered with an error and the next line is read as if nothing had happened; of a broken payload over several
//! lines, those that are set in or close a bracket go with it.

use std::sync::Arc;

use runyard_actions::{ActionError, Envelope, Invocation, InvocationOptions, Issue, Runtime};
use runyard_domain::{Actor, Code, Surface};
use serde_json::{Map, Value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use crate::json_text::json_reason;

/// A payload may be so large; the input in it is limited further by the runtime.
pub const PAYLOAD_BYTES_MAX: usize = 2 * 1024 * 1024;
/// So much of a value over several lines is read again to find a mistake early.
const READ_IN_VAIN_MAX: usize = 256 * 1024;

/// Answers every payload of `input` on `output`, in order. Returns the exit code of the first failure, or 0; an error
/// means that the answers cannot be written.
pub async fn run(
    runtime: &Runtime,
    actor: Arc<Actor>,
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin,
    cancel: CancellationToken,
) -> std::io::Result<u8> {
    run_spelled(runtime, actor, input, output, cancel, |json| json).await
}

/// As [`run`], with each answer's JSON spelled as the output needs it.
pub(crate) async fn run_spelled(
    runtime: &Runtime,
    actor: Arc<Actor>,
    input: impl AsyncBufRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    cancel: CancellationToken,
    spell: fn(String) -> String,
) -> std::io::Result<u8> {
    let mut payloads = Payloads::new(input);
    let mut exit = 0;
    while let Some(payload) = payloads.next().await {
        let envelope = match payload {
            Ok(payload) => invoke(runtime, Arc::clone(&actor), payload, cancel.clone()).await,
            Err(reason) => refuse(None, reason),
        };
        let mut line = spell(serde_json::to_string(&envelope)?);
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        output.flush().await?;
        if exit == 0 {
            exit = envelope.exit_code();
        }
        if cancel.is_cancelled() {
            break;
        }
    }
    Ok(exit)
}

/// Invokes the action that one payload names.
pub async fn invoke(
    runtime: &Runtime,
    actor: Arc<Actor>,
    payload: Value,
    cancel: CancellationToken,
) -> Envelope {
    let Value::Object(mut payload) = payload else {
        return refuse(None, "JSON runner payload must be an object.".to_owned());
    };
    let action = match payload.shift_remove("action") {
        Some(Value::String(name)) => name,
        Some(_) => {
            return refuse(
                None,
                "The field \"action\" of a JSON runner payload must be a string.".to_owned(),
            );
        }
        None => return refuse(None, "JSON runner payload must name an \"action\".".to_owned()),
    };
    let (input, options) = take_call(&mut payload);
    let invocation =
        Invocation::new(action, input, Surface::Json, actor).options(options).cancel_with(cancel);
    runtime.invoke(invocation).await
}

/// Takes the input and the options out of a payload; what is left over is an issue.
pub(crate) fn take_call(payload: &mut Map<String, Value>) -> (Value, InvocationOptions) {
    let input = payload.shift_remove("input").unwrap_or_else(|| Value::Object(Map::new()));
    let mut options = InvocationOptions::take_from(payload);
    for key in payload.keys() {
        options.refuse(Issue::at(key, format!("Unexpected property \"{key}\".")));
    }
    (input, options)
}

fn refuse(action: Option<&str>, reason: String) -> Envelope {
    Envelope::refusal(Surface::Json, action, ActionError::new(Code::InvalidJsonRunnerPayload, reason))
}

/// Cuts a stream of text into JSON values.
struct Payloads<R> {
    input: R,
    /// What was read; the part from `start` on is not yet answered.
    text: Vec<u8>,
    start: usize,
    /// Set while the value at `start` needs more lines.
    unfinished: Option<Unfinished>,
    /// A value over several lines was broken: lines that are set in or close something are still part of it, and what
    /// is in them must never be taken for a payload.
    skipping: bool,
    ended: bool,
}

type Payload = Result<Value, String>;

impl<R: AsyncBufRead + Unpin> Payloads<R> {
    fn new(input: R) -> Self {
        Payloads { input, text: Vec::new(), start: 0, unfinished: None, skipping: false, ended: false }
    }

    async fn next(&mut self) -> Option<Payload> {
        loop {
            if let Some(payload) = self.take() {
                return Some(payload);
            }
            if self.ended {
                return None;
            }
            self.text.drain(..std::mem::take(&mut self.start));
            match read_line(&mut self.input).await {
                Ok(Line::End) => self.ended = true,
                Ok(Line::Whole(line)) => self.text.extend(line),
                Ok(Line::TooLong) => {
                    self.text.clear();
                    self.skipping = self.unfinished.take().is_some();
                    return Some(Err(format!(
                        "JSON runner payload is larger than {PAYLOAD_BYTES_MAX} bytes."
                    )));
                }
                Err(error) => {
                    self.text.clear();
                    self.ended = true;
                    return Some(Err(format!("JSON runner payload cannot be read: {}.", error.kind())));
                }
            }
        }
    }

    /// The next value, if the text holds one, or what is wrong with its first line.
    fn take(&mut self) -> Option<Payload> {
        while self.skipping && self.start < self.text.len() {
            let goes_on = matches!(self.text[self.start], b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
            self.skipping = goes_on;
            if goes_on {
                self.drop_line();
            }
        }
        self.start = self.text.len() - self.text[self.start..].trim_ascii_start().len();
        let text = &self.text[self.start..];
        let may_go_on = !self.ended && text.len() <= PAYLOAD_BYTES_MAX;
        if may_go_on && self.unfinished.as_mut().is_some_and(|unfinished| !unfinished.worth_reading(text)) {
            return None;
        }
        let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                self.start += values.byte_offset();
                self.unfinished = None;
                Some(Ok(value))
            }
            Some(Err(error)) if error.is_eof() && may_go_on => {
                self.unfinished.get_or_insert_default().read_in_vain += text.len();
                None
            }
            Some(Err(error)) => {
                self.skipping = self.unfinished.take().is_some();
                self.drop_line();
                Some(Err(format!("JSON runner payload is not valid JSON: {}.", json_reason(&error))))
            }
            None => None,
        }
    }

    fn drop_line(&mut self) {
        let end = self.text[self.start..].iter().position(|byte| *byte == b'\n');
        self.start = end.map_or(self.text.len(), |end| self.start + end + 1);
    }
}

/// A value that began and has not ended.
#[derive(Default)]
struct Unfinished {
    /// So much of it was looked at for brackets.
    scanned: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    read_in_vain: usize,
}

impl Unfinished {
    /// Whether it may be whole now, or so little was read in vain that looking for a mistake in it costs nothing.
    /// Without this, a value over many lines would be read as often as it has lines.
    fn worth_reading(&mut self, text: &[u8]) -> bool {
        for byte in &text[self.scanned..] {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.scanned = text.len();
        self.depth == 0 || self.read_in_vain <= READ_IN_VAIN_MAX + 2 * text.len()
    }
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
    End,
}

/// Reads a line in bounded memory; a longer one is skipped to its end.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Line> {
    let (mut line, mut too_long) = (Vec::new(), false);
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            return Ok(match (too_long, line.is_empty()) {
                (true, _) => Line::TooLong,
                (false, true) => Line::End,
                (false, false) => Line::Whole(line),
            });
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |at| at + 1);
        too_long |= line.len() + taken > PAYLOAD_BYTES_MAX;
        if !too_long {
            line.extend_from_slice(&available[..taken]);
        }
        input.consume(taken);
        if end.is_some() {
            return Ok(if too_long { Line::TooLong } else { Line::Whole(line) });
        }
    }
}
