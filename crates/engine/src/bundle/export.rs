//! Writing a bundle from a store, which may be written to meanwhile.

use std::io::Write;

use runyard_domain::{BlobId, RunId, Timestamp};
use runyard_store::{BreakKind, Chain, RunRow, StorageError, Store};
use serde_json::Value;

use super::account::Account;
use super::family::family;
use super::format::{
    ApprovalLine, ApprovalTold, BlobLine, FORMAT, Header, HeaderLine, LeftOutLine, Part, SealedLog, VERSION,
    WhyLeftOut, audit_line,
};
use super::key::{Fingerprint, SigningKey};
use super::lines::LineWriter;
use super::{BLOB_BYTES_MAX, BLOBS_BYTES_MAX, BundleBreakKind, BundleError};
use crate::installation::INSTALLATION;

/// How many events are read at once.
const PAGE: u32 = 500;

/// What a bundle says about its own making.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The run that it is about.
    pub run: RunId,
    /// When it is made.
    pub made_at: Timestamp,
    /// By whom.
    pub made_by: String,
    /// The version of Runyard that makes it.
    pub runyard: String,
}

/// What a bundle holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// How many runs.
    pub runs: usize,
    /// How many events of them.
    pub events: u64,
    /// How many approvals.
    pub approvals: usize,
    /// How many entries of the installation's log.
    pub entries: u64,
    /// How many blobs.
    pub blobs: usize,
    /// The blobs that are too large to be in it, are no longer stored, or are private.
    pub left_out: Vec<BlobId>,
    /// How many of those are pictures that no person has passed.
    pub private: usize,
    /// Whose key sealed it.
    pub key: Fingerprint,
}

/// Writes everything that is recorded of a run, up to where it stands now, and seals it.
///
/// What is recorded is checked on the way: what does not hold is not sealed. When it fails, what was written so far is no bundle.
pub async fn export(
    store: &dyn Store,
    key: &SigningKey,
    origin: Origin,
    into: &mut (dyn Write + Send),
) -> Result<Exported, BundleError> {
    // Before the runs: every entry then has its event among those that follow.
    let installation = store.run(INSTALLATION).await?.filter(|row| row.sequence > 0);
    let rows = family(store, origin.run).await?;
    let (mut lines, mut account) = (LineWriter::new(into), Account::of(origin.run));
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        run_id: origin.run,
        made_at: origin.made_at,
        made_by: origin.made_by,
        runyard: origin.runyard,
    };
    lines.write_json(Part::Header, &HeaderLine { bundle: header })?;
    for row in &rows {
        events(store, row, &mut account, &mut lines).await?;
    }
    for told in &account.approvals {
        check_approval(store, told).await?;
        lines.write_json(Part::Approvals, &ApprovalLine { approval: told })?;
    }
    let (log, entries) = match installation {
        Some(row) => audit(store, &row, &account, &mut lines).await?,
        None => (None, 0),
    };
    let (blobs, left_out, private) = write_blobs(store, &mut account, &mut lines).await?;
    account.check_diffs()?;
    let ends = account.ends();
    let exported = Exported {
        runs: ends.len(),
        events: ends.iter().map(|end| end.events).sum(),
        approvals: account.approvals.len(),
        entries,
        blobs,
        left_out,
        private,
        key: key.fingerprint(),
    };
    let seal = serde_json::to_vec(&lines.tally.seal(origin.run, ends, log, key.public_key()))?;
    let mut line = b"{\"seal\":".to_vec();
    line.extend_from_slice(&seal);
    line.extend_from_slice(format!(",\"signature\":\"{}\"}}", key.sign(&seal)).as_bytes());
    lines.write(Part::Seal, &line)?;
    Ok(exported)
}

/// The events of a run, up to where its row says that it stands.
async fn events(
    store: &dyn Store,
    row: &RunRow,
    account: &mut Account,
    lines: &mut LineWriter<'_>,
) -> Result<(), BundleError> {
    let broken = |sequence, kind| BundleBreakKind::Event { run: row.run, sequence, kind };
    let mut sequence = 0;
    while sequence < row.sequence {
        let page = store.read(row.run, sequence, PAGE).await?;
        if page.is_empty() {
            return Err(broken(sequence + 1, BreakKind::Missing).into());
        }
        for event in page.iter().take_while(|event| event.sequence <= row.sequence) {
            account.take(&event.body)?;
            lines.write(Part::Events, &event.body)?;
        }
        sequence = page.last().map_or(row.sequence, |last| last.sequence);
    }
    let end = account.ends().pop();
    let head = row.head.map(|head| head.to_string());
    if end.as_ref().map(|end| (end.events, &end.head)) != head.as_ref().map(|head| (row.sequence, head)) {
        return Err(broken(row.sequence, BreakKind::NotTheHead).into());
    }
    if end.is_some_and(|end| end.state != row.status) {
        return Err(BundleBreakKind::State { run: row.run }.into());
    }
    Ok(())
}

/// Whether the approval that is stored is the one that the events tell of.
async fn check_approval(store: &dyn Store, told: &ApprovalTold) -> Result<(), BundleError> {
    let differs = BundleBreakKind::Approval { approval: told.id };
    let Some(row) = store.approval(told.id).await? else { return Err(differs.into()) };
    let is = |stored: &[u8], told: &Value| {
        serde_json::from_slice::<Value>(stored).is_ok_and(|stored| stored == *told)
    };
    // It may have been answered since the events were read.
    let same_decision = told
        .decision
        .as_ref()
        .is_none_or(|told| row.decision.as_deref().is_some_and(|stored| is(stored, told)));
    if row.run == told.run_id && is(&row.request, &told.request) && same_decision {
        Ok(())
    } else {
        Err(differs.into())
    }
}

/// The installation's entries about these runs, and where its log stands.
async fn audit(
    store: &dyn Store,
    row: &RunRow,
    account: &Account,
    lines: &mut LineWriter<'_>,
) -> Result<(Option<SealedLog>, u64), BundleError> {
    let broken = |sequence, kind| BundleBreakKind::Event { run: row.run, sequence, kind };
    let (mut chain, mut entries) = (Chain::of(row.run), 0);
    while chain.sequence() < row.sequence {
        let page = store.read(row.run, chain.sequence(), PAGE).await?;
        if page.is_empty() {
            return Err(broken(chain.sequence() + 1, BreakKind::Missing).into());
        }
        for event in page.iter().take_while(|event| event.sequence <= row.sequence) {
            chain.follow(&event.body).map_err(|kind| broken(event.sequence, kind))?;
            let about = event.envelope()?.payload["runId"].as_str().and_then(|run| run.parse().ok());
            if about.is_some_and(|run| account.holds(run)) {
                lines.write(Part::Audit, &audit_line(&event.body))?;
                entries += 1;
            }
        }
    }
    if chain.head() != row.head {
        return Err(broken(row.sequence, BreakKind::NotTheHead).into());
    }
    let log = chain.head().map(|head| SealedLog { entries: chain.sequence(), head: head.to_string() });
    Ok((log, entries))
}

/// The blobs that the events refer to, as far as they fit and may be shown to anybody: how many are written, which are left out,
/// and how many of those are private.
async fn write_blobs(
    store: &dyn Store,
    account: &mut Account,
    lines: &mut LineWriter<'_>,
) -> Result<(usize, Vec<BlobId>, usize), BundleError> {
    let (mut written, mut bytes, mut left_out, mut private) = (0, 0, Vec::new(), 0);
    for blob in account.blobs.clone() {
        let why = match store.get(blob).await {
            _ if account.is_private(blob) => WhyLeftOut::Private,
            Ok(content) if content.len() <= BLOB_BYTES_MAX && bytes + content.len() <= BLOBS_BYTES_MAX => {
                bytes += content.len();
                account.take_blob(blob, &content)?;
                lines.write_json(Part::Blobs, &BlobLine::of(blob, content))?;
                written += 1;
                continue;
            }
            Ok(_) => WhyLeftOut::TooLarge,
            Err(StorageError::NotFound(..)) => WhyLeftOut::NotStored,
            Err(error) => return Err(error.into()),
        };
        private += usize::from(why == WhyLeftOut::Private);
        lines.write_json(Part::Blobs, &LeftOutLine { left_out: blob, why })?;
        left_out.push(blob);
    }
    Ok((written, left_out, private))
}
