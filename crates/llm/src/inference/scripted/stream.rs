//! A scripted answer as a stream.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use serde_json::Value;
use tokio::time::{Sleep, sleep};

use super::script::{ScriptedCall, Step};
use crate::inference::{Fault, ModelEvent};

/// An answer, made ready once for all who ask.
pub(super) type Beats = Arc<[Beat]>;

#[derive(Debug, Clone)]
pub(super) enum Beat {
    Event(ModelEvent),
    Fault(Fault),
    Delay(Duration),
    Stall,
}

pub(super) fn beats(steps: Vec<Step>) -> Beats {
    let mut beats = Vec::with_capacity(steps.len());
    let mut calls = 0;
    for step in steps {
        beats.push(match step {
            Step::Text(text) => Beat::Event(ModelEvent::Text(text)),
            Step::Reasoning(text) => Beat::Event(ModelEvent::Reasoning(text)),
            Step::ReasoningEnded(sealed) => {
                let sealed = (!sealed.is_null()).then_some(sealed);
                Beat::Event(ModelEvent::ReasoningEnded { sealed })
            }
            Step::Call(call) => {
                push_call(&mut beats, calls, call);
                calls += 1;
                continue;
            }
            Step::CallStarted { index, id, name } => {
                calls = calls.max(index.saturating_add(1));
                Beat::Event(ModelEvent::ToolCallStarted { index, id, name })
            }
            Step::CallArguments { index, text } => Beat::Event(ModelEvent::ToolCallArguments { index, text }),
            Step::CallEnded { index } => Beat::Event(ModelEvent::ToolCallEnded { index }),
            Step::Usage(usage) => Beat::Event(ModelEvent::Usage(usage.into())),
            Step::Stop(stop) => Beat::Event(ModelEvent::Stopped(stop)),
            Step::Fault(fault) => Beat::Fault(fault.into()),
            Step::DelayMs(ms) => Beat::Delay(Duration::from_millis(ms)),
            Step::Stall => Beat::Stall,
        });
    }
    beats.into()
}

fn push_call(beats: &mut Vec<Beat>, index: u32, call: ScriptedCall) {
    let ScriptedCall { id, name, arguments } = call;
    beats.push(Beat::Event(ModelEvent::ToolCallStarted { index, id, name }));
    if !matches!(arguments, Value::Null) {
        beats.push(Beat::Event(ModelEvent::ToolCallArguments { index, text: arguments.to_string() }));
    }
    beats.push(Beat::Event(ModelEvent::ToolCallEnded { index }));
}

/// An answer that is being said.
pub(super) struct Playing {
    beats: Beats,
    next: usize,
    delay: Option<Pin<Box<Sleep>>>,
}

impl Playing {
    pub(super) fn new(beats: Beats) -> Self {
        Playing { beats, next: 0, delay: None }
    }
}

impl Stream for Playing {
    type Item = Result<ModelEvent, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(delay) = &mut self.delay {
                ready!(delay.as_mut().poll(context));
                self.delay = None;
            }
            let item = match self.beats.get(self.next) {
                None => return Poll::Ready(None),
                Some(Beat::Stall) => return Poll::Pending,
                Some(Beat::Delay(wait)) => Err(*wait),
                Some(Beat::Event(event)) => Ok(Ok(event.clone())),
                Some(Beat::Fault(fault)) => Ok(Err(fault.clone())),
            };
            self.next += 1;
            match item {
                Ok(item) => return Poll::Ready(Some(item)),
                Err(wait) => self.delay = Some(Box::pin(sleep(wait))),
            }
        }
    }
}
