//! What a process prints, as text in pieces.

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::Stream;

/// The largest piece, in bytes, before what is no text is replaced.
const PIECE_BYTES_MAX: usize = 8 * 1024;

type Pipe = Pin<Box<dyn AsyncRead + Send>>;

/// Both streams of a process.
pub(super) struct Output {
    stdout: Reader,
    stderr: Reader,
}

/// One stream. A character that is cut in two by a read waits for its rest.
struct Reader {
    pipe: Option<Pipe>,
    buffer: Box<[u8; PIECE_BYTES_MAX]>,
    kept: usize,
}

impl Output {
    pub(super) fn new(stdout: Option<Pipe>, stderr: Option<Pipe>) -> Self {
        Output { stdout: Reader::new(stdout), stderr: Reader::new(stderr) }
    }

    /// The next piece; nothing when both streams are at their end. What was not taken yet stays for the next call.
    pub(super) async fn next(&mut self) -> Option<(Stream, String)> {
        while self.stdout.pipe.is_some() || self.stderr.pipe.is_some() {
            let (stream, piece) = tokio::select! {
                piece = self.stdout.next(), if self.stdout.pipe.is_some() => (Stream::Stdout, piece),
                piece = self.stderr.next(), if self.stderr.pipe.is_some() => (Stream::Stderr, piece),
            };
            if let Some(text) = piece {
                return Some((stream, text));
            }
        }
        None
    }
}

impl Reader {
    fn new(pipe: Option<Pipe>) -> Self {
        Reader { pipe, buffer: Box::new([0; PIECE_BYTES_MAX]), kept: 0 }
    }

    async fn next(&mut self) -> Option<String> {
        let pipe = self.pipe.as_mut()?;
        // A pipe that cannot be read is at its end: how the process ended says the rest.
        let read = pipe.read(&mut self.buffer[self.kept..]).await.unwrap_or(0);
        let filled = self.kept + read;
        let whole = if read == 0 { filled } else { whole_characters(&self.buffer[..filled]) };
        let text = String::from_utf8_lossy(&self.buffer[..whole]).into_owned();
        self.buffer.copy_within(whole..filled, 0);
        self.kept = filled - whole;
        if read == 0 {
            self.pipe = None;
        }
        (!text.is_empty()).then_some(text)
    }
}

/// How many bytes there are before a character that may only lack its end.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Something in the middle is no text; only the last few bytes could still become some.
        Err(_) => (bytes.len().saturating_sub(3)..bytes.len())
            .find(|at| {
                std::str::from_utf8(&bytes[*at..])
                    .is_err_and(|e| e.error_len().is_none() && e.valid_up_to() == 0)
            })
            .unwrap_or(bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(bytes: &[u8]) -> String {
        let (mut writer, reader) = tokio::io::duplex(bytes.len().max(1));
        // Byte by byte, so that every character is cut wherever it can be.
        let bytes = bytes.to_vec();
        let writing = tokio::spawn(async move {
            for byte in bytes {
                tokio::io::AsyncWriteExt::write_all(&mut writer, &[byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let mut output = Output::new(Some(Box::pin(reader)), None);
        let mut text = String::new();
        while let Some((stream, piece)) = output.next().await {
            assert_eq!(stream, Stream::Stdout);
            text.push_str(&piece);
        }
        writing.await.unwrap();
        text
    }

    #[tokio::test]
    async fn characters_stay_whole_however_they_are_read_and_what_is_no_text_is_replaced() {
        for text in ["", "plain\n", "größe 漢字 🦀"] {
            assert_eq!(read_all(text.as_bytes()).await, text);
        }
        assert_eq!(read_all(b"a\xff\xf0\x9f\xa6\x80b").await, "a\u{fffd}🦀b");
        assert_eq!(read_all(b"cut \xf0\x9f").await, "cut \u{fffd}");
    }
}
