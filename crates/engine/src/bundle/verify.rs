//! Checking a bundle with nothing but the bundle, from its first line to its last.

use std::collections::BTreeSet;
use std::io::BufRead;

use runyard_domain::run::{ApprovalResolved, Resolution};
use runyard_domain::{ApprovalId, BlobId, Event, RunId, Timestamp};
use runyard_store::{Hash, blob_id};
use serde::{Deserialize, Serialize};

use super::account::Account;
use super::format::{
    ApprovalLine, BlobLine, FORMAT, Header, HeaderLine, LeftOutLine, Part, Seal, SealLine, SealedChain,
    VERSION, WhyLeftOut, audit_entry,
};
use super::key::{Fingerprint, signed_by};
use super::lines::{Tally, next_line};
use super::{BundleBreak, BundleBreakKind};
use crate::installation::is_installation;

type Kind = BundleBreakKind;

/// A bundle that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The run that it is about.
    pub run: RunId,
    /// When it was made.
    pub made_at: Timestamp,
    /// By whom, as they called themselves.
    pub made_by: String,
    /// The version of Runyard that made it.
    pub runyard: String,
    /// The runs in it.
    pub runs: Vec<CheckedRun>,
    /// How many approvals.
    pub approvals: usize,
    /// How many entries of the installation's log.
    pub entries: u64,
    /// How many blobs.
    pub blobs: usize,
    /// The blobs that are left out.
    pub left_out: Vec<BlobId>,
    /// How many of those are pictures that no person has passed.
    pub private: usize,
    /// Whose key sealed it.
    pub key: Fingerprint,
}

/// A run of a bundle that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedRun {
    /// The run.
    pub run: RunId,
    /// The state that its events lead to.
    pub state: String,
    /// How many events.
    pub events: u64,
    /// The last event's hash.
    pub head: String,
}

/// Reads a bundle to its end, and names the first line that is not as it was sealed, or cannot have come about. The outer error
/// is that of reading.
///
/// It says whose key sealed it, not whether that is the right one.
pub fn verify(mut input: impl BufRead) -> std::io::Result<Result<Checked, BundleBreak>> {
    let (mut line, mut number) = (Vec::new(), 0);
    let mut reading: Option<Reading> = None;
    loop {
        number += 1;
        let at = |kind| Ok(Err(BundleBreak { line: number, kind }));
        match next_line(&mut input, &mut line)? {
            Some(Ok(())) => {}
            Some(Err(kind)) => return at(kind),
            None => return at(Kind::Cut),
        }
        let taken = match &mut reading {
            None => Reading::begin(&line).map(|begun| {
                reading = Some(begun);
                None
            }),
            Some(reading) => reading.take(&line),
        };
        match taken {
            Err(kind) => return at(kind),
            Ok(None) => {}
            Ok(Some(_)) if !input.fill_buf()?.is_empty() => {
                return Ok(Err(BundleBreak { line: number + 1, kind: Kind::Trailing }));
            }
            Ok(Some(checked)) => return Ok(Ok(*checked)),
        }
    }
}

/// How far a check has come.
struct Reading {
    header: Header,
    account: Account,
    tally: Tally,
    part: Part,
    approvals: usize,
    entries: u64,
    last_entry: Option<(u64, Hash)>,
    blobs: BTreeSet<BlobId>,
    left_out: Vec<BlobId>,
    private: usize,
}

impl Reading {
    fn begin(line: &[u8]) -> Result<Self, Kind> {
        #[derive(Deserialize)]
        struct AnyHeader {
            bundle: AnyVersion,
        }
        #[derive(Deserialize)]
        struct AnyVersion {
            format: String,
            version: u32,
        }
        let found: AnyHeader = serde_json::from_slice(line).map_err(|_| Kind::Unreadable)?;
        if found.bundle.format != FORMAT {
            return Err(Kind::Unreadable);
        }
        if found.bundle.version != VERSION {
            return Err(Kind::OtherVersion { found: found.bundle.version, known: VERSION });
        }
        let header = exact::<HeaderLine>(line)?.bundle;
        let mut tally = Tally::new();
        tally.take(Part::Header, line);
        Ok(Reading {
            account: Account::of(header.run_id),
            header,
            tally,
            part: Part::Events,
            approvals: 0,
            entries: 0,
            last_entry: None,
            blobs: BTreeSet::new(),
            left_out: Vec::new(),
            private: 0,
        })
    }

    /// Takes the next line; the seal is the last.
    fn take(&mut self, line: &[u8]) -> Result<Option<Box<Checked>>, Kind> {
        let part = Part::of(line).ok_or(Kind::Unreadable)?;
        if part < self.part {
            return Err(Kind::OutOfPlace);
        }
        if part > Part::Approvals && self.approvals < self.account.approvals.len() {
            let approval = self.account.approvals[self.approvals].id;
            return Err(Kind::Approval { approval });
        }
        self.part = part;
        match part {
            Part::Header => return Err(Kind::OutOfPlace),
            Part::Events => self.account.take(line)?,
            Part::Approvals => self.approval(line)?,
            Part::Audit => self.audit(line)?,
            Part::Blobs => self.blob(line)?,
            Part::Seal => return self.seal(line).map(Box::new).map(Some),
        }
        self.tally.take(part, line);
        Ok(None)
    }

    fn approval(&mut self, line: &[u8]) -> Result<(), Kind> {
        let told = self.account.approvals.get(self.approvals).ok_or(Kind::OutOfPlace)?;
        let expected = serde_json::to_vec(&ApprovalLine { approval: told }).map_err(|_| Kind::Unreadable)?;
        if line != expected {
            return Err(Kind::Approval { approval: told.id });
        }
        self.approvals += 1;
        Ok(())
    }

    fn audit(&mut self, line: &[u8]) -> Result<(), Kind> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Decided {
            approval_id: ApprovalId,
            resolution: Resolution,
            digest: String,
        }
        let stored = audit_entry(line).ok_or(Kind::Audit)?;
        let entry: Event = serde_json::from_slice(stored).map_err(|_| Kind::Audit)?;
        let about: Option<RunId> = entry.payload["runId"].as_str().and_then(|run| run.parse().ok());
        if !is_installation(entry.run_id) || !about.is_some_and(|run| self.account.holds(run)) {
            return Err(Kind::Audit);
        }
        let sequence = entry.sequence;
        let follows = match self.last_entry {
            Some((last, hash)) if sequence == last + 1 => entry.prev_hash == Some(hash.to_string()),
            Some((last, _)) => sequence > last,
            None => true,
        };
        if !follows {
            return Err(Kind::AuditOrder { sequence });
        }
        if entry.kind == "audit.decision" {
            let decided = Decided::deserialize(&entry.payload).map_err(|_| Kind::Audit)?;
            let approval = decided.approval_id;
            if self.decision(approval) != Some((decided.resolution, decided.digest.as_str())) {
                return Err(Kind::AuditDecision { sequence, approval });
            }
        }
        self.last_entry = Some((sequence, Hash::of(stored)));
        self.entries += 1;
        Ok(())
    }

    /// How the events say that an approval ended, and what it was about.
    fn decision(&self, approval: ApprovalId) -> Option<(Resolution, &str)> {
        let told = self.account.approvals.iter().find(|told| told.id == approval)?;
        let resolved = ApprovalResolved::deserialize(told.decision.as_ref()?).ok()?;
        Some((resolved.resolution, told.request["digest"].as_str()?))
    }

    fn blob(&mut self, line: &[u8]) -> Result<(), Kind> {
        let (blob, content) = if line.starts_with(b"{\"leftOut\":") {
            let LeftOutLine { left_out: blob, why } = exact(line)?;
            if why == WhyLeftOut::Private {
                if !self.account.is_private(blob) {
                    return Err(Kind::BlobNotPrivate { blob });
                }
                self.private += 1;
            }
            self.left_out.push(blob);
            (blob, None)
        } else {
            let found = exact::<BlobLine>(line)?;
            let (blob, bytes) = (found.blob, found.bytes);
            let content = found.content().ok_or(Kind::Unreadable)?;
            if blob_id(&content) != blob || content.len() as u64 != bytes {
                return Err(Kind::Blob { blob });
            }
            (blob, Some(content))
        };
        if !self.account.refers_to(blob) || !self.blobs.insert(blob) {
            return Err(Kind::BlobUnasked { blob });
        }
        match content {
            Some(content) => self.account.take_blob(blob, &content),
            None => Ok(()),
        }
    }

    /// Whether all is here, and is what was sealed.
    fn seal(&self, line: &[u8]) -> Result<Checked, Kind> {
        if let Some(blob) = self.account.blobs.iter().find(|blob| !self.blobs.contains(blob)) {
            return Err(Kind::BlobMissing { blob: *blob });
        }
        self.account.check_diffs()?;
        let SealLine { seal, signature } = exact::<SealLine>(line)?;
        let content = serde_json::to_vec(&seal).map_err(|_| Kind::Unreadable)?;
        let ends = self.account.ends();
        let key = signed_by(&seal.public_key, &content, &signature).ok_or(Kind::Signature)?;
        let expected =
            self.tally.seal(self.header.run_id, ends, seal.installation.clone(), seal.public_key.clone());
        compare(&seal, &expected)?;
        let beyond = match (&seal.installation, self.last_entry) {
            (None, Some(_)) => true,
            (Some(log), Some((last, hash))) => {
                last > log.entries || (last == log.entries && hash.to_string() != log.head)
            }
            (_, None) => false,
        };
        if beyond {
            return Err(Kind::Sealed);
        }
        let run = |chain: SealedChain| CheckedRun {
            run: chain.run_id,
            state: chain.state,
            events: chain.events,
            head: chain.head,
        };
        Ok(Checked {
            run: self.header.run_id,
            made_at: self.header.made_at,
            made_by: self.header.made_by.clone(),
            runyard: self.header.runyard.clone(),
            runs: expected.chains.into_iter().map(run).collect(),
            approvals: self.approvals,
            entries: self.entries,
            blobs: self.blobs.len() - self.left_out.len(),
            left_out: self.left_out.clone(),
            private: self.private,
            key,
        })
    }
}

/// Whether what was found is what was sealed; if not, what of it is another.
fn compare(sealed: &Seal, found: &Seal) -> Result<(), Kind> {
    let changed = sealed.chains.iter().find(|chain| !found.chains.contains(chain));
    let changed = changed.or_else(|| found.chains.iter().find(|chain| !sealed.chains.contains(chain)));
    if let Some(chain) = changed {
        return Err(Kind::Head { run: chain.run_id });
    }
    let changed = sealed.parts.iter().zip(&found.parts).find(|(one, other)| one != other);
    match changed {
        Some((part, _)) => Err(Kind::Part { part: part.part.name() }),
        None if sealed != found => Err(Kind::Sealed),
        None => Ok(()),
    }
}

/// The line's content, if it is written exactly as such a line is.
fn exact<T: for<'a> Deserialize<'a> + Serialize>(line: &[u8]) -> Result<T, Kind> {
    let read: T = serde_json::from_slice(line).map_err(|_| Kind::Unreadable)?;
    match serde_json::to_vec(&read) {
        Ok(written) if written == line => Ok(read),
        _ => Err(Kind::Unreadable),
    }
}
