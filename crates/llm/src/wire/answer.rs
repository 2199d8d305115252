//! An answer as it comes in: its bytes are read as the events are asked for, and no wait is without an end.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use hyper::body::{Body, Incoming};
use tokio::time::{Instant, Sleep, sleep};

use super::decoder::Decoder;
use crate::http::{Answer, Connection};
use crate::inference::{Fault, InterruptCause, ModelEvent};

/// How long is waited for more of an answer of which the end was said: only what it cost can be missing.
const END_TIME_MAX: Duration = Duration::from_secs(5);

/// An answer on its way. Dropping it ends the connection.
pub(super) struct Answering {
    body: Incoming,
    decoder: Decoder,
    /// What was read and not yet asked for.
    ready: VecDeque<Result<ModelEvent, Fault>>,
    idle: Duration,
    stalled: Pin<Box<Sleep>>,
    _connection: Connection,
}

impl Answering {
    pub(super) fn new(answer: Answer, decoder: Decoder, idle: Duration) -> Self {
        let Answer { response, connection } = answer;
        Answering {
            body: response.into_body(),
            decoder,
            ready: VecDeque::new(),
            idle,
            stalled: Box::pin(sleep(idle)),
            _connection: connection,
        }
    }
}

impl Stream for Answering {
    type Item = Result<ModelEvent, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            if this.decoder.is_over() {
                return Poll::Ready(None);
            }
            let read = match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let mut read = this.decoder.push(frame.data_ref().map_or(&[][..], AsRef::as_ref));
                    let ends = this.decoder.has_said_its_end();
                    let idle = if ends { this.idle.min(END_TIME_MAX) } else { this.idle };
                    this.stalled.as_mut().reset(Instant::now() + idle);
                    if read.is_empty() && !this.decoder.is_over() {
                        read.push(Ok(ModelEvent::Alive));
                    }
                    read
                }
                // It ended, as it should or not: an answer whose end was not said is not whole.
                Poll::Ready(Some(Err(_)) | None) => this.decoder.end(InterruptCause::ConnectionReset),
                Poll::Pending => {
                    std::task::ready!(this.stalled.as_mut().poll(context));
                    this.decoder.end(InterruptCause::IdleStall)
                }
            };
            this.ready.extend(read);
        }
    }
}
