//! Here-documents: their bodies, and what these run.

use super::quoting::Scan;
use super::reader::Reader;
use super::{Unparsed, Word};

impl Reader<'_> {
    /// Reads the bodies of the here-documents that the line just ended asked for.
    pub(super) fn documents(&mut self) -> Result<(), Unparsed> {
        if self.outer_pending {
            return Err(Unparsed::Construct);
        }
        for pending in std::mem::take(&mut self.pending) {
            let body = self.body(&pending.delimiter, pending.tabs_stripped)?;
            let word = if pending.quoted { Word::Literal(body) } else { self.expand(&body)? };
            self.line.documents[pending.number] = word;
        }
        Ok(())
    }

    fn body(&mut self, delimiter: &str, tabs_stripped: bool) -> Result<String, Unparsed> {
        let mut body = String::new();
        loop {
            if self.peek().is_none() {
                return Err(Unparsed::Unfinished);
            }
            let rest = &self.chars[self.at..];
            let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
            let line: String = rest[..length].iter().collect();
            self.at = (self.at + length + 1).min(self.chars.len());
            let line = if tabs_stripped { line.trim_start_matches('\t') } else { line.as_str() };
            if line == delimiter {
                return Ok(body);
            }
            body.push_str(line);
            body.push('\n');
        }
    }

    /// Reads what an unquoted body runs. A line that a backslash continues could hide the delimiter.
    fn expand(&mut self, body: &str) -> Result<Word, Unparsed> {
        if body.contains("\\\n") {
            return Err(Unparsed::Construct);
        }
        let mut scan = Scan::default();
        let mut inner = Reader::new(body, self.depth, self.line)?;
        inner.deeper()?;
        inner.double(&mut scan, None)?;
        Ok(if scan.expands { Word::Expanding(body.to_owned()) } else { Word::Literal(scan.text) })
    }
}
