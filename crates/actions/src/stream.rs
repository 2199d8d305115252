//! Following an invocation live: its logs, progress and artifacts as they come, then exactly one result.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use futures_core::Stream;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::context::Context;
use crate::record::Entry;
use crate::{Artifact, Envelope, LogEntry};

/// One thing that happened in an invocation.
#[derive(Clone, Debug, PartialEq)]
pub enum InvocationEvent {
    /// A log entry.
    Log(LogEntry),
    /// A progress report; it stands in the envelope's logs, too.
    Progress(LogEntry),
    /// An artifact.
    Artifact(Artifact),
    /// The end: the envelope. Always the last event, and exactly one.
    Result(Box<Envelope>),
}

impl InvocationEvent {
    /// The event's type on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            InvocationEvent::Log(_) => "log",
            InvocationEvent::Progress(_) => "progress",
            InvocationEvent::Artifact(_) => "artifact",
            InvocationEvent::Result(_) => "result",
        }
    }

    fn to_json(&self) -> Value {
        match self {
            InvocationEvent::Log(log) => {
                json!({"type": "log", "level": log.level, "message": log.message, "time": wire_time(log), "fields": log.fields})
            }
            InvocationEvent::Progress(log) => json!({
                "type": "progress",
                "message": log.message,
                "percent": log.fields.get("percent"),
                "time": wire_time(log),
                "fields": log.fields,
            }),
            InvocationEvent::Artifact(artifact) => json!({"type": "artifact", "artifact": artifact}),
            InvocationEvent::Result(envelope) => json!({"type": "result", "envelope": envelope}),
        }
    }
}

fn wire_time(log: &LogEntry) -> String {
    format!("{:.3}", log.time)
}

impl Serialize for InvocationEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl From<Entry> for InvocationEvent {
    fn from(entry: Entry) -> Self {
        match entry {
            Entry::Log(log) if log.fields.get("type") == Some(&Value::from("progress")) => {
                InvocationEvent::Progress(log)
            }
            Entry::Log(log) => InvocationEvent::Log(log),
            Entry::Artifact(artifact) => InvocationEvent::Artifact(artifact),
        }
    }
}

/// A running invocation that is followed.
///
/// The stream drives the invocation itself: the handler goes on only after what it reported so far was taken, so a slow
/// reader slows it down and nothing piles up. Dropping the stream ends the invocation with `CANCELLED`.
pub struct InvocationStream {
    context: Context,
    state: State,
}

enum State {
    Running(Pin<Box<dyn Future<Output = Envelope> + Send>>),
    Ended(Option<Box<Envelope>>),
}

impl InvocationStream {
    pub(crate) fn new(context: Context, run: impl Future<Output = Envelope> + Send + 'static) -> Self {
        context.0.record.follow();
        InvocationStream { context, state: State::Running(Box::pin(run)) }
    }

    /// The next event, or nothing after the result.
    pub async fn next(&mut self) -> Option<InvocationEvent> {
        std::future::poll_fn(|task| Pin::new(&mut *self).poll_next(task)).await
    }
}

impl Stream for InvocationStream {
    type Item = InvocationEvent;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Option<InvocationEvent>> {
        loop {
            if let Poll::Ready(entry) = self.context.0.record.next(task.waker()) {
                return Poll::Ready(Some(entry.into()));
            }
            match &mut self.state {
                State::Running(run) => match run.as_mut().poll(task) {
                    Poll::Ready(envelope) => self.state = State::Ended(Some(Box::new(envelope))),
                    Poll::Pending => {
                        // The poll may have reported something.
                        return match self.context.0.record.next(task.waker()) {
                            Poll::Ready(entry) => Poll::Ready(Some(entry.into())),
                            Poll::Pending => Poll::Pending,
                        };
                    }
                },
                State::Ended(envelope) => return Poll::Ready(envelope.take().map(InvocationEvent::Result)),
            }
        }
    }
}

impl std::fmt::Debug for InvocationStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "InvocationStream({:?})", self.context)
    }
}
