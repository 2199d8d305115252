//! An answer on its way back: piece by piece, so that an agent hears what its model says as it is said.
//!
//! What the provider cut is cut here too: an answer that is not whole never looks as if it were.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use runyard_llm::http::Connection;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

use super::course::Course;
use super::limits::Limits;
use super::listening::Visit;
use super::mask::Mask;
use super::runs::Open;
use super::tally::Tally;

/// So many pieces wait for an agent that does not read them; then the provider is not read either.
const PIECES_MAX: usize = 16;
/// An answer may be so long; a longer one is cut.
const ANSWER_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The connection ends here, and nothing says that the answer is whole.
#[derive(Debug, thiserror::Error)]
#[error("the answer was cut")]
pub(super) struct Cut;

/// The body of what an agent gets.
pub(super) enum Out {
    /// All of it.
    Whole(Option<Bytes>),
    /// Whatever comes.
    Pieces {
        pieces: mpsc::Receiver<Piece>,
        /// Whether it is known that no more will come.
        broken: bool,
    },
}

/// A piece of an answer, or its proper end.
pub(super) enum Piece {
    Bytes(Bytes),
    End,
}

impl Out {
    pub(super) fn whole(text: String) -> Self {
        Out::Whole(Some(text.into()))
    }

    pub(super) fn pieces() -> (mpsc::Sender<Piece>, Self) {
        let (sender, pieces) = mpsc::channel(PIECES_MAX);
        (sender, Out::Pieces { pieces, broken: false })
    }
}

impl Body for Out {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match &mut *self {
            Out::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Out::Pieces { broken: true, .. } => Poll::Ready(Some(Err(Cut))),
            Out::Pieces { pieces, broken } => match std::task::ready!(pieces.poll_recv(context)) {
                Some(Piece::Bytes(bytes)) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Piece::End) => Poll::Ready(None),
                None => {
                    // Once more round, so that what came before the cut is written first.
                    *broken = true;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Out::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Out::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Out::Pieces { .. } => SizeHint::default(),
        }
    }
}

/// Carries one answer from a provider to an agent.
pub(super) struct Pump {
    pub(super) body: Incoming,
    pub(super) course: Course,
    pub(super) mask: Mask,
    /// None where nothing is counted.
    pub(super) tally: Option<Tally>,
    pub(super) pieces: mpsc::Sender<Piece>,
    pub(super) limits: Limits,
    // Both are held as long as the answer is on its way.
    pub(super) _place: OwnedSemaphorePermit,
    pub(super) _connection: Connection,
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The agent has it all.
    Whole,
    /// The provider broke off, was silent for too long, or sent what is no answer.
    Broken,
    /// The agent went away.
    Left,
    /// The agent does not read.
    Unread,
}

/// Carries it until it is over or the run's lease is.
pub(super) fn start(pump: Pump, open: Arc<Open>, visit: Arc<Visit>) {
    tokio::spawn(async move {
        let end = tokio::select! {
            biased;
            () = open.closed() => End::Unread,
            end = pump.run() => end,
        };
        if end != End::Whole {
            tracing::debug!(run = %open.run, ?end, "an answer through the gateway was cut");
        }
        if end == End::Unread {
            visit.cut.notify_one();
        }
    });
}

impl Pump {
    async fn run(mut self) -> End {
        let mut taken = 0_u64;
        loop {
            let frame = tokio::select! {
                () = self.pieces.closed() => return End::Left,
                frame = timeout(self.limits.provider.idle, self.body.frame()) => frame,
            };
            let data = match frame {
                Err(_) | Ok(Some(Err(_))) => return End::Broken,
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
                Ok(None) => break,
            };
            taken = taken.saturating_add(data.len() as u64);
            if taken > ANSWER_BYTES_MAX {
                return End::Broken;
            }
            let out = self.course.push(&data);
            self.count();
            let Some(out) = out else { return End::Broken };
            let out = self.mask.push(&out);
            if let Some(end) = self.send(out).await {
                return end;
            }
            if self.course.is_over() {
                break;
            }
        }
        let last = self.course.finish();
        self.count();
        let mut out = self.mask.push(&last);
        out.extend(self.mask.finish());
        if let Some(end) = self.send(out).await {
            return end;
        }
        // What it cost is known before the agent can ask for more.
        drop(self.tally.take());
        self.give(Piece::End).await.unwrap_or(End::Whole)
    }

    /// Keeps what is known of the cost up to date, since the answer may end at any time.
    fn count(&mut self) {
        if let Some(tally) = &mut self.tally {
            tally.told = self.course.told();
            tally.said_bytes = self.course.said_bytes();
        }
    }

    async fn send(&mut self, out: Vec<u8>) -> Option<End> {
        if out.is_empty() { None } else { self.give(Piece::Bytes(out.into())).await }
    }

    async fn give(&mut self, piece: Piece) -> Option<End> {
        match timeout(self.limits.unread, self.pieces.send(piece)).await {
            Ok(Ok(())) => None,
            Ok(Err(_)) => Some(End::Left),
            Err(_) => Some(End::Unread),
        }
    }
}
