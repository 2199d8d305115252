//! Text that comes in small pieces, on its way to the log: redacted as one stream, and put together by time and size.

use runyard_redact::{Kind, Redactor, Safe, Stream};

/// A piece is as large as this at most.
pub const DELTA_BYTES_MAX: usize = 4 * 1024;
/// A piece waits no longer than this for more.
pub const DELTA_AGE_MAX_MS: u64 = 100;

/// One stream of text. Time is the caller's: milliseconds on any clock that does not go back.
///
/// A secret that is cut by the pieces is found all the same: what could be its beginning is held back until it is known.
pub struct Deltas {
    redacted: Stream,
    waiting: Safe<Vec<u8>>,
    since_ms: Option<u64>,
}

impl Deltas {
    /// A new stream.
    pub fn new(redactor: &Redactor) -> Self {
        Deltas { redacted: redactor.stream(Kind::Text), waiting: Safe::empty(), since_ms: None }
    }

    /// Takes a piece, and gives what is due now.
    pub fn push(&mut self, piece: &[u8], now_ms: u64) -> Vec<Safe<String>> {
        let more = self.redacted.push(piece);
        if !more.is_empty() {
            self.since_ms.get_or_insert(now_ms);
            self.waiting.append(more);
        }
        self.due(now_ms)
    }

    /// What is due by now. To be called at [`due_at_ms`](Deltas::due_at_ms) when nothing comes.
    pub fn due(&mut self, now_ms: u64) -> Vec<Safe<String>> {
        let mut due = Vec::new();
        while self.waiting.len() >= DELTA_BYTES_MAX {
            let cut = whole_characters(&self.waiting[..DELTA_BYTES_MAX]);
            due.push(self.waiting.take_first(cut).into_text());
            self.since_ms = Some(now_ms);
        }
        if self.due_at_ms().is_some_and(|at_ms| at_ms <= now_ms) {
            let cut = whole_characters(&self.waiting);
            if cut > 0 {
                due.push(self.waiting.take_first(cut).into_text());
            }
            self.since_ms = None;
        }
        if self.waiting.is_empty() {
            self.since_ms = None;
        }
        due
    }

    /// When something is due, if anything waits.
    pub fn due_at_ms(&self) -> Option<u64> {
        self.since_ms.map(|since_ms| since_ms + DELTA_AGE_MAX_MS)
    }

    /// The rest, at the end of the stream.
    pub fn finish(mut self) -> Vec<Safe<String>> {
        self.waiting.append(self.redacted.finish());
        let mut rest = Vec::new();
        while !self.waiting.is_empty() {
            let piece = self.waiting.len().min(DELTA_BYTES_MAX);
            let cut = match whole_characters(&self.waiting[..piece]) {
                0 => piece,
                whole if piece < self.waiting.len() => whole,
                _ => piece,
            };
            rest.push(self.waiting.take_first(cut).into_text());
        }
        rest
    }
}

/// How many of the bytes end with a whole character. What is no UTF-8 anyway is not waited for.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    for start in (tail..bytes.len()).rev() {
        let needed = match bytes[start] {
            0b1100_0000..=0b1101_1111 => 2,
            0b1110_0000..=0b1110_1111 => 3,
            0b1111_0000..=0b1111_0111 => 4,
            0b1000_0000..=0b1011_1111 => continue,
            _ => return bytes.len(),
        };
        return if bytes.len() - start < needed { start } else { bytes.len() };
    }
    bytes.len()
}
