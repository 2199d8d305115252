//! Messages on a stream of bytes: each as JSON behind its length, four bytes with the highest first.
//!
//! It frames and nothing else: it repeats no message, and after an error the stream is of no more use.

use std::io;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};

/// No message is longer, as JSON.
pub const FRAME_BYTES_MAX: usize = 8 * 1024 * 1024;

const HEAD_BYTES: usize = 4;
/// So much is read at once, at most.
const READ_BYTES: usize = 64 * 1024;

/// Why a stream cannot be read or written any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A message is too long.
    #[error("a message has {bytes} bytes; at most {FRAME_BYTES_MAX} are taken")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// The stream ended within a message.
    #[error("the stream ended within a message")]
    Cut,
    /// A message is none of ours.
    #[error("a message cannot be read: {0}")]
    Malformed(#[source] serde_json::Error),
    /// The stream failed.
    #[error("the stream failed: {0}")]
    Io(#[from] io::Error),
}

/// Both ends of a stream, for the messages that come and those that go.
pub fn frames<S, In, Out>(io: S) -> (Reader<ReadHalf<S>, In>, Writer<WriteHalf<S>, Out>)
where
    S: AsyncRead + AsyncWrite,
    In: DeserializeOwned,
    Out: Serialize,
{
    let (read, write) = tokio::io::split(io);
    (Reader::new(read), Writer::new(write))
}

/// The messages that come.
pub struct Reader<R, T> {
    io: R,
    /// What came, with what a dropped `next` had read.
    came: Vec<u8>,
    /// How much of it was taken.
    taken: usize,
    message: PhantomData<fn() -> T>,
}

impl<R: AsyncRead + Unpin, T: DeserializeOwned> Reader<R, T> {
    /// Reads from here.
    pub fn new(io: R) -> Self {
        Reader { io, came: Vec::new(), taken: 0, message: PhantomData }
    }

    /// The next message; none when the other side closed the stream after a whole one. Dropping it loses nothing.
    pub async fn next(&mut self) -> Result<Option<T>, FrameError> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            self.came.drain(..std::mem::take(&mut self.taken));
            if self.came.is_empty() {
                // What one large message needed is not kept for the small ones after it.
                self.came.shrink_to(READ_BYTES);
            }
            self.came.reserve(READ_BYTES);
            if self.io.read_buf(&mut self.came).await? == 0 {
                return if self.came.is_empty() { Ok(None) } else { Err(FrameError::Cut) };
            }
        }
    }

    fn take(&mut self) -> Result<Option<T>, FrameError> {
        let came = &self.came[self.taken..];
        let Some(head) = came.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let bytes = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
        if bytes > FRAME_BYTES_MAX {
            return Err(FrameError::TooLarge { bytes });
        }
        let end = HEAD_BYTES + bytes;
        let Some(body) = came.get(HEAD_BYTES..end) else { return Ok(None) };
        let message = serde_json::from_slice(body).map_err(FrameError::Malformed)?;
        self.taken += end;
        Ok(Some(message))
    }
}

/// The messages that go.
pub struct Writer<W, T> {
    io: W,
    message: PhantomData<fn(T)>,
}

impl<W: AsyncWrite + Unpin, T: Serialize> Writer<W, T> {
    /// Writes to here.
    pub fn new(io: W) -> Self {
        Writer { io, message: PhantomData }
    }

    /// What it writes to.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.io
    }

    /// Writes a message, whole. After it was dropped halfway the stream is of no more use.
    pub async fn send(&mut self, message: &T) -> Result<(), FrameError> {
        let mut frame = vec![0; HEAD_BYTES];
        serde_json::to_writer(&mut frame, message).map_err(FrameError::Malformed)?;
        let bytes = frame.len() - HEAD_BYTES;
        let head = u32::try_from(bytes).ok().filter(|_| bytes <= FRAME_BYTES_MAX);
        let head = head.ok_or(FrameError::TooLarge { bytes })?;
        frame[..HEAD_BYTES].copy_from_slice(&head.to_be_bytes());
        self.io.write_all(&frame).await?;
        Ok(self.io.flush().await?)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    type Both = (
        Reader<ReadHalf<tokio::io::DuplexStream>, String>,
        Writer<WriteHalf<tokio::io::DuplexStream>, String>,
    );

    #[tokio::test]
    async fn c18_messages_arrive_whole_and_in_order_through_a_stream_that_takes_seven_bytes_at_a_time() {
        let (near, far) = duplex(7);
        let (mut reader, _kept): Both = frames(near);
        let (_, mut writer): Both = frames(far);
        let sent = ["", "one", "zwölf Boxkämpfer", &"x".repeat(1000)].map(str::to_owned);
        let sending = async {
            for message in &sent {
                writer.send(message).await.unwrap();
            }
        };
        let receiving = async {
            let mut received = Vec::new();
            while received.len() < sent.len() {
                received.push(reader.next().await.unwrap().unwrap());
            }
            received
        };
        assert_eq!(tokio::join!(sending, receiving).1, sent);
    }

    async fn first_of(bytes: &[u8]) -> Result<Option<String>, FrameError> {
        Reader::<_, String>::new(bytes).next().await
    }

    #[tokio::test]
    async fn a_stream_that_ends_between_messages_is_closed_and_one_that_ends_within_is_cut() {
        assert!(matches!(first_of(b"").await, Ok(None)));
        assert!(matches!(first_of(b"\0\0").await, Err(FrameError::Cut)));
        assert!(matches!(first_of(b"\0\0\0\x04\"a").await, Err(FrameError::Cut)));
        assert!(matches!(first_of(b"\0\0\0\x03\"a\"").await, Ok(Some(text)) if text == "a"));
    }

    #[tokio::test]
    async fn garbage_and_lengths_beyond_the_limit_are_refused_before_anything_is_held() {
        assert!(matches!(first_of(b"\0\0\0\x02{]").await, Err(FrameError::Malformed(_))));
        assert!(matches!(first_of(b"GET / HTTP/1.1").await, Err(FrameError::TooLarge { .. })));
        let mut writer = Writer::new(tokio::io::sink());
        let too_long = "x".repeat(FRAME_BYTES_MAX);
        assert!(matches!(writer.send(&too_long).await, Err(FrameError::TooLarge { .. })));
    }
}
