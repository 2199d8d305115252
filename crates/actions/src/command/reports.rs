//! What a command says on its standard error while it runs: logs, progress and artifacts, one in each line.

use runyard_redact::process;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use crate::{Artifact, Context, Fields, LogLevel, Progress};

/// What a line has beyond this is left out.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Reads lines until there are no more, and reports each. A stream that fails ends like one that is closed.
pub(super) async fn follow(mut stream: impl AsyncBufRead + Unpin, context: &Context) {
    let mut line = Line::default();
    loop {
        let Ok(available) = stream.fill_buf().await else { return line.report(context) };
        if available.is_empty() {
            return line.report(context);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        line.extend(&available[..end.unwrap_or(available.len())]);
        let used = end.map_or(available.len(), |end| end + 1);
        stream.consume(used);
        if end.is_some() {
            std::mem::take(&mut line).report(context);
        }
    }
}

#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    cut: bool,
}

impl Line {
    fn extend(&mut self, more: &[u8]) {
        let room = LINE_BYTES_MAX - self.bytes.len();
        self.cut |= more.len() > room;
        self.bytes.extend_from_slice(&more[..more.len().min(room)]);
    }

    fn report(self, context: &Context) {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        let object = if self.cut || !text.starts_with('{') { None } else { serde_json::from_str(text).ok() };
        match object.map_or(Report::Plain, Report::of) {
            Report::Plain => {
                let rest = if self.cut { "…" } else { "" };
                context.logger().info(process::text(text) + rest, Fields::new());
            }
            Report::Progress(progress) => context.progress().report(progress),
            Report::Artifact(artifact) => drop(context.artifacts().add(artifact)),
            Report::Log { level, message, fields } => {
                context.logger().log(level, process::text(&message), fields)
            }
        }
    }
}

/// What a line stands for.
#[derive(Debug)]
enum Report {
    Plain,
    Progress(Progress),
    Artifact(Artifact),
    Log { level: LogLevel, message: String, fields: Fields },
}

impl Report {
    fn of(mut object: Map<String, Value>) -> Report {
        match object.get("type").and_then(Value::as_str) {
            Some("progress") => return Report::Progress(progress(object)),
            Some("artifact") => {
                if let Some(Value::Object(artifact)) = object.get_mut("artifact").map(Value::take) {
                    return Report::Artifact(Artifact::from_json(artifact));
                }
            }
            _ => {}
        }
        let Some(Value::String(message)) = object.shift_remove("message") else { return Report::Plain };
        let level = level(object.shift_remove("level"));
        if let Some(Value::Object(fields)) = object.get_mut("fields").map(Value::take) {
            object.shift_remove("fields");
            object.extend(fields);
        }
        Report::Log { level, message, fields: Fields::from_map(object) }
    }
}

fn progress(mut object: Map<String, Value>) -> Progress {
    object.shift_remove("type");
    let percent = object.shift_remove("percent").as_ref().and_then(Value::as_f64);
    let mut progress = percent.map_or_else(Progress::default, Progress::percent);
    if let Some(Value::String(message)) = object.shift_remove("message") {
        progress = progress.message(process::text(&message));
    }
    object.iter().fold(progress, |progress, (key, value)| progress.field(key, value))
}

/// A level that is not known is no reason to lose the message.
fn level(value: Option<Value>) -> LogLevel {
    let word = value.as_ref().and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    match word.as_str() {
        "debug" | "trace" => LogLevel::Debug,
        "warn" | "warning" => LogLevel::Warn,
        "error" | "critical" | "fatal" => LogLevel::Error,
        _ => LogLevel::Info,
    }
}
