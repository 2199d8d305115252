//! What the events of a bundle's runs say, taken one by one: the same for whoever writes a bundle and whoever checks it.

use std::collections::{BTreeMap, BTreeSet};

use runyard_domain::run::{ArtifactReady, DiffReady, Run, RunEvent};
use runyard_domain::{ArtifactFacts, BlobId, DiffFile, Event, RunId};
use runyard_store::{BreakKind, Chain};
use serde_json::Value;

use super::format::{ApprovalTold, SealedChain};
use super::{BundleBreakKind, RUNS_MAX};

/// How deep a payload is looked into for blobs.
const DEPTH_MAX: usize = 16;

/// What was told so far.
pub(super) struct Account {
    of: RunId,
    chains: Vec<(RunId, Chain, Option<Run>)>,
    pub(super) approvals: Vec<ApprovalTold>,
    /// In the order in which events first refer to them.
    pub(super) blobs: Vec<BlobId>,
    known_blobs: BTreeSet<BlobId>,
    /// Pictures that may show what is private, and those that a person has passed.
    unreviewed: BTreeSet<BlobId>,
    passed: BTreeSet<BlobId>,
    diffs: Vec<(RunId, DiffReady)>,
    /// The lists of files that were seen, by blob.
    files: BTreeMap<BlobId, Vec<DiffFile>>,
}

impl Account {
    /// Nothing is told yet of this run.
    pub(super) fn of(run: RunId) -> Self {
        Account {
            of: run,
            chains: Vec::new(),
            approvals: Vec::new(),
            blobs: Vec::new(),
            known_blobs: BTreeSet::new(),
            unreviewed: BTreeSet::new(),
            passed: BTreeSet::new(),
            diffs: Vec::new(),
            files: BTreeMap::new(),
        }
    }

    /// Takes the stored bytes of the next event.
    pub(super) fn take(&mut self, body: &[u8]) -> Result<(), BundleBreakKind> {
        let event: Event = serde_json::from_slice(body).map_err(|_| BundleBreakKind::Unreadable)?;
        let (run, sequence) = (event.run_id, event.sequence);
        if self.chains.last().is_none_or(|(last, ..)| *last != run) {
            self.begin(run)?;
        }
        let Some((_, chain, folded)) = self.chains.last_mut() else {
            return Err(BundleBreakKind::OutOfPlace);
        };
        if sequence > chain.sequence() + 1 {
            let (sequence, kind) = (chain.sequence() + 1, BreakKind::Missing);
            return Err(BundleBreakKind::Event { run, sequence, kind });
        }
        chain.follow(body).map_err(|kind| BundleBreakKind::Event { run, sequence, kind })?;
        let said = RunEvent::read(&event.kind, &event.payload);
        let said = said.map_err(|source| BundleBreakKind::UnknownEvent { run, sequence, source })?;
        let next = Run::fold(folded.take(), run, event.timestamp, &said);
        *folded = Some(next.map_err(|source| BundleBreakKind::Illegal { run, sequence, source })?);
        self.note(run, &said, event.payload)
    }

    fn begin(&mut self, run: RunId) -> Result<(), BundleBreakKind> {
        let is_known = self.chains.iter().any(|(known, ..)| *known == run);
        let is_first = self.chains.is_empty();
        if is_known || (is_first && run != self.of) || self.chains.len() == RUNS_MAX {
            return Err(BundleBreakKind::OutOfPlace);
        }
        self.chains.push((run, Chain::of(run), None));
        Ok(())
    }

    fn note(&mut self, run: RunId, said: &RunEvent, payload: Value) -> Result<(), BundleBreakKind> {
        if let RunEvent::Created(created) = said
            && run != self.of
            && !created.parent_run_id.is_some_and(|parent| parent != run && self.holds(parent))
        {
            return Err(BundleBreakKind::Foreign { run });
        }
        self.refer(None, &payload, DEPTH_MAX);
        match said {
            RunEvent::ApprovalRequested(asked) => {
                let told =
                    ApprovalTold { id: asked.approval_id, run_id: run, request: payload, decision: None };
                self.approvals.push(told);
            }
            RunEvent::ApprovalResolved(resolved) => {
                let id = resolved.approval_id;
                let told = self.approvals.iter_mut().find(|told| told.id == id && told.run_id == run);
                told.ok_or(BundleBreakKind::Approval { approval: id })?.decision = Some(payload);
            }
            RunEvent::DiffReady(diff) => self.diffs.push((run, diff.clone())),
            RunEvent::ArtifactReady(artifact) => self.review(artifact),
            _ => {}
        }
        Ok(())
    }

    fn review(&mut self, artifact: &ArtifactReady) {
        let Some(content) = &artifact.content else { return };
        match &artifact.facts {
            Some(facts) if facts.needs_review() => self.unreviewed.insert(content.blob),
            Some(ArtifactFacts::Screenshot { .. }) => self.passed.insert(content.blob),
            _ => false,
        };
    }

    /// Whether it may show what is private, whatever else it is said to be.
    pub(super) fn is_private(&self, blob: BlobId) -> bool {
        self.unreviewed.contains(&blob) && !self.passed.contains(&blob)
    }

    /// Whether the run is one of these.
    pub(super) fn holds(&self, run: RunId) -> bool {
        self.chains.iter().any(|(known, ..)| *known == run)
    }

    /// Finds the blobs that a payload refers to, by the names of the fields that hold such references.
    fn refer(&mut self, name: Option<&str>, value: &Value, depth: usize) {
        match value {
            Value::String(text) if name.is_some_and(refers) => {
                if let Ok(blob) = text.parse()
                    && self.known_blobs.insert(blob)
                {
                    self.blobs.push(blob);
                }
            }
            Value::Array(items) if depth > 0 => {
                items.iter().for_each(|item| self.refer(name, item, depth - 1));
            }
            Value::Object(fields) if depth > 0 => {
                fields.iter().for_each(|(name, field)| self.refer(Some(name), field, depth - 1));
            }
            _ => {}
        }
    }

    /// Whether an event refers to it.
    pub(super) fn refers_to(&self, blob: BlobId) -> bool {
        self.known_blobs.contains(&blob)
    }

    /// Takes a blob's content, where it is a list of files of one of the diffs.
    pub(super) fn take_blob(&mut self, blob: BlobId, content: &[u8]) -> Result<(), BundleBreakKind> {
        let of = self.diffs.iter().find(|(_, diff)| diff.parts.files.contains(&blob));
        let Some((run, _)) = of else { return Ok(()) };
        let files = serde_json::from_slice(content).map_err(|_| BundleBreakKind::Diff { run: *run })?;
        self.files.insert(blob, files);
        Ok(())
    }

    /// Whether each diff whose lists of files are all here is the one that its event counts.
    pub(super) fn check_diffs(&self) -> Result<(), BundleBreakKind> {
        for (run, diff) in &self.diffs {
            let lists: Option<Vec<_>> = diff.parts.files.iter().map(|blob| self.files.get(blob)).collect();
            let Some(lists) = lists.filter(|lists| !lists.is_empty()) else { continue };
            let files = || lists.iter().flat_map(|list| list.iter());
            let sum = |of: fn(&DiffFile) -> u64| files().map(of).fold(0, u64::saturating_add);
            let counted = (files().count() as u64, sum(|file| file.insertions), sum(|file| file.deletions));
            if counted != (diff.stats.files, diff.stats.insertions, diff.stats.deletions) {
                return Err(BundleBreakKind::Diff { run: *run });
            }
        }
        Ok(())
    }

    /// The ends of the chains.
    pub(super) fn ends(&self) -> Vec<SealedChain> {
        let end = |(run, chain, folded): &(RunId, Chain, Option<Run>)| {
            let folded = folded.as_ref()?;
            Some(SealedChain {
                run_id: *run,
                parent_run_id: folded.created.parent_run_id,
                state: folded.state.name().to_owned(),
                events: chain.sequence(),
                head: chain.head()?.to_string(),
            })
        };
        self.chains.iter().filter_map(end).collect()
    }
}

/// Whether a field of this name refers to blobs.
fn refers(name: &str) -> bool {
    matches!(name, "blob" | "blobs" | "files" | "texts")
}
