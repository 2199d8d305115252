//! Lines on their way into a file and out of it, counted and digested.

use std::io::{BufRead, Read, Write};

use runyard_domain::RunId;
use runyard_store::Hash;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::format::{FORMAT, Part, Seal, SealedChain, SealedLog, SealedPart, VERSION};
use super::{BundleBreakKind, LINE_BYTES_MAX};

/// What was counted and digested so far.
#[derive(Clone)]
pub(super) struct Tally {
    lines: u64,
    bytes: u64,
    all: Sha256,
    parts: [(u64, Sha256); Part::SEALED.len()],
}

impl Tally {
    pub(super) fn new() -> Self {
        Tally { lines: 0, bytes: 0, all: Sha256::new(), parts: std::array::from_fn(|_| (0, Sha256::new())) }
    }

    /// Takes a line without its end.
    pub(super) fn take(&mut self, part: Part, line: &[u8]) {
        self.lines += 1;
        self.bytes += line.len() as u64 + 1;
        let own = Part::SEALED.iter().zip(&mut self.parts).find(|(sealed, _)| **sealed == part);
        let own = own.map(|(_, (lines, digest))| {
            *lines += 1;
            digest
        });
        for digest in own.into_iter().chain([&mut self.all]) {
            digest.update(line);
            digest.update(b"\n");
        }
    }

    /// The seal of all that was taken.
    pub(super) fn seal(
        &self,
        run_id: RunId,
        chains: Vec<SealedChain>,
        installation: Option<SealedLog>,
        public_key: String,
    ) -> Seal {
        let part = |(part, (lines, digest)): (Part, &(u64, Sha256))| SealedPart {
            part,
            lines: *lines,
            sha256: hexadecimal(digest),
        };
        Seal {
            format: FORMAT.to_owned(),
            version: VERSION,
            run_id,
            lines: self.lines,
            bytes: self.bytes,
            sha256: hexadecimal(&self.all),
            parts: Part::SEALED.into_iter().zip(&self.parts).map(part).collect(),
            chains,
            installation,
            public_key,
        }
    }
}

fn hexadecimal(digest: &Sha256) -> String {
    Hash::from_bytes(digest.clone().finalize().into()).to_string()
}

/// Writes lines.
pub(super) struct LineWriter<'a> {
    into: &'a mut (dyn Write + Send),
    pub(super) tally: Tally,
}

impl<'a> LineWriter<'a> {
    pub(super) fn new(into: &'a mut (dyn Write + Send)) -> Self {
        LineWriter { into, tally: Tally::new() }
    }

    pub(super) fn write(&mut self, part: Part, line: &[u8]) -> std::io::Result<()> {
        self.tally.take(part, line);
        self.into.write_all(line)?;
        self.into.write_all(b"\n")
    }

    pub(super) fn write_json(&mut self, part: Part, line: &impl Serialize) -> std::io::Result<()> {
        self.write(part, &serde_json::to_vec(line)?)
    }
}

/// The next line without its end into `line`; nothing at the end of the file.
pub(super) fn next_line(
    input: &mut impl BufRead,
    line: &mut Vec<u8>,
) -> std::io::Result<Option<Result<(), BundleBreakKind>>> {
    line.clear();
    let limit = LINE_BYTES_MAX as u64 + 1;
    let read = input.by_ref().take(limit).read_until(b'\n', line)?;
    Ok(match line.pop() {
        None => None,
        Some(b'\n') => Some(Ok(())),
        Some(_) if read as u64 == limit => Some(Err(BundleBreakKind::TooLong)),
        Some(_) => Some(Err(BundleBreakKind::Cut)),
    })
}
