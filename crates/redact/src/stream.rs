//! Redaction of a text that arrives in pieces. The result is the same however it is cut, and memory is bounded.

use std::sync::Arc;

use crate::json::Json;
use crate::kind::Kind;
use crate::lane::{Guesses, Lane};
use crate::output::Output;
use crate::rules::Rules;
use crate::safe::Safe;

/// However long the text, and whatever is in it, no more than this is held back after a push: a PEM block in JSON, every
/// byte of it written as six, and what an object under a sensitive key may be long.
pub const HELD_MAX: usize = 128 * 1024;

/// A long piece is taken in parts that fit into the cache.
const PART: usize = 65_536;

/// A text in pieces. Each push gives what is settled by then; the rest comes with later pushes or with the end.
#[derive(Debug)]
pub struct Stream {
    rules: Arc<Rules>,
    output: Output,
    reader: Reader,
}

#[derive(Debug)]
enum Reader {
    Text(Box<Lane>),
    Json(Box<Json>),
}

impl Stream {
    pub(crate) fn new(rules: Arc<Rules>, kind: Kind) -> Self {
        let lane = |guesses| Reader::Text(Box::new(Lane::new(guesses, 0)));
        let reader = match kind {
            Kind::Text => lane(Guesses::ByName),
            Kind::Diff => lane(Guesses::None),
            Kind::Headers => lane(Guesses::ByNameAndLine),
            Kind::Json => Reader::Json(Box::new(Json::new())),
        };
        Stream { rules, output: Output::default(), reader }
    }

    /// Takes the next piece, and gives what is settled.
    pub fn push(&mut self, bytes: &[u8]) -> Safe<Vec<u8>> {
        let mut out = Vec::with_capacity(bytes.len() + self.held());
        self.push_into(bytes, &mut out);
        Safe::vouch(out)
    }

    /// Ends the text, and gives the rest.
    pub fn finish(mut self) -> Safe<Vec<u8>> {
        let mut out = Vec::with_capacity(self.held());
        self.finish_into(&mut out);
        Safe::vouch(out)
    }

    /// How many bytes are held back, because what they are is not settled.
    pub fn held(&self) -> usize {
        self.output.held()
    }

    /// Takes a whole text.
    pub(crate) fn whole_into(mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut parts = bytes.chunks(PART);
        let last = parts.next_back().unwrap_or_default();
        for part in parts {
            self.output.push(part);
            self.read(part, false, out);
        }
        self.output.push(last);
        self.read(last, true, out);
    }

    pub(crate) fn push_into(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for part in bytes.chunks(PART) {
            self.output.push(part);
            self.read(part, false, out);
        }
    }

    pub(crate) fn finish_into(&mut self, out: &mut Vec<u8>) {
        self.read(b"", true, out);
    }

    fn read(&mut self, part: &[u8], ended: bool, out: &mut Vec<u8>) {
        let frontier = match &mut self.reader {
            Reader::Text(lane) => {
                lane.push(part, &self.rules);
                lane.scan(&self.rules, ended, self.output.spans())
            }
            Reader::Json(json) => json.read(&self.rules, &mut self.output, part, ended),
        };
        let frontier = if ended { self.output.end() } else { frontier };
        self.output.settle(frontier, out);
    }
}
