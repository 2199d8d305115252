//! A stream of bytes that is written as one plain async function, and costs one allocation and no task.
//!
//! The function runs only while somebody asks for the next frame, so a slow reader holds it up and nothing piles up.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::Bytes;
use futures_core::Stream;

/// The stream that a reader sees.
pub(crate) struct Frames {
    /// None once it has come to its end.
    writing: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    place: Place,
}

/// Where one frame waits to be taken.
#[derive(Clone, Default)]
pub(crate) struct Place(Arc<Mutex<Option<Bytes>>>);

impl Place {
    /// Hands over a frame, and returns when the reader wants the next.
    pub(crate) async fn put(&self, frame: Bytes) {
        *self.frame() = Some(frame);
        // The reader takes it before it asks again, so nobody needs to be woken.
        poll_fn(|_| if self.frame().is_some() { Poll::Pending } else { Poll::Ready(()) }).await;
    }

    fn frame(&self) -> MutexGuard<'_, Option<Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Frames {
    /// What `write` puts, in order, until it returns.
    pub(crate) fn of<F: Future<Output = ()> + Send + 'static>(write: impl FnOnce(Place) -> F) -> Self {
        let place = Place::default();
        Frames { writing: Some(Box::pin(write(place.clone()))), place }
    }
}

impl Stream for Frames {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(writing) = &mut self.writing else { return Poll::Ready(None) };
        let written = writing.as_mut().poll(task);
        let frame = self.place.frame().take();
        if written.is_ready() {
            self.writing = None;
        }
        match (frame, written) {
            (Some(frame), _) => Poll::Ready(Some(Ok(frame))),
            (None, Poll::Ready(())) => Poll::Ready(None),
            (None, Poll::Pending) => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(frames: &mut Frames) -> Option<Bytes> {
        poll_fn(|task| Pin::new(&mut *frames).poll_next(task)).await.map(|Ok(frame)| frame)
    }

    #[tokio::test]
    async fn frames_come_in_order_and_only_as_they_are_asked_for() {
        let begun = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&begun);
        let mut frames = Frames::of(|place| async move {
            for number in 0..3_u8 {
                *counted.lock().unwrap() += 1;
                tokio::task::yield_now().await;
                place.put(Bytes::from(vec![number])).await;
            }
        });
        assert_eq!(*begun.lock().unwrap(), 0);
        for number in 0..3_u8 {
            assert_eq!(next(&mut frames).await, Some(Bytes::from(vec![number])));
            assert_eq!(*begun.lock().unwrap(), usize::from(number) + 1);
        }
        assert_eq!(next(&mut frames).await, None);
        assert_eq!(next(&mut frames).await, None, "the end stays the end");
    }

    #[tokio::test]
    async fn dropping_the_stream_drops_what_writes_it() {
        let held = Arc::new(());
        let kept = Arc::clone(&held);
        let mut frames = Frames::of(|place| async move {
            let _kept = kept;
            place.put(Bytes::from_static(b"one")).await;
            std::future::pending::<()>().await;
        });
        assert!(next(&mut frames).await.is_some());
        assert_eq!(Arc::strong_count(&held), 2);
        drop(frames);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
