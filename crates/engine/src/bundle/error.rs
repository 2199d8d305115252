//! Why a bundle was not made, and where one does not hold.

use runyard_domain::run::{Illegal, UnreadableEvent};
use runyard_domain::{ApprovalId, BlobId, Code, RunId};
use runyard_store::{BreakKind, StorageError};

use super::key::Fingerprint;
use super::{LINE_BYTES_MAX, RUNS_MAX};

/// Why a bundle was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The store said no.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// It could not be written.
    #[error("the bundle cannot be written: {0}")]
    Io(#[from] std::io::Error),
    /// What is recorded does not hold, so there is nothing to seal.
    #[error("what is recorded does not hold: {0}")]
    Broken(Box<BundleBreakKind>),
    /// Something cannot be written as JSON.
    #[error("cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Too many runs came from this one.
    #[error("more than {RUNS_MAX} runs came from run {run}")]
    TooManyRuns {
        /// The run.
        run: RunId,
    },
    /// The key that is kept is none.
    #[error("the signing key is no Ed25519 key in PKCS#8")]
    NotAKey,
    /// The system gave no random bytes.
    #[error("the system gives no random bytes")]
    NoRandomness,
}

impl BundleError {
    /// Its row in the error table.
    pub fn code(&self) -> Code {
        match self {
            BundleError::Storage(error) => error.code(),
            BundleError::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                Code::StorageDiskFull
            }
            BundleError::Io(_) | BundleError::NotAKey | BundleError::NoRandomness => Code::StorageIo,
            BundleError::Broken(_) => Code::StorageCorrupt,
            BundleError::Json(_) => Code::InternalError,
            BundleError::TooManyRuns { .. } => Code::StorageValidation,
        }
    }
}

impl From<BundleBreakKind> for BundleError {
    fn from(kind: BundleBreakKind) -> Self {
        BundleError::Broken(Box::new(kind))
    }
}

/// Where a bundle does not hold: its first line that is wrong.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct BundleBreak {
    /// The line, counted from 1.
    pub line: u64,
    /// What is wrong with it.
    #[source]
    pub kind: BundleBreakKind,
}

/// What is wrong with a bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleBreakKind {
    /// There is no end, or the last line is not whole.
    #[error("the bundle is cut off here: its seal is missing")]
    Cut,
    /// The line is longer than any line of a bundle.
    #[error("it is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// It is no line of a bundle.
    #[error("it is no line of an audit bundle, or was changed")]
    Unreadable,
    /// The format is of another version.
    #[error(
        "this is version {found} of the format, and this program knows only version {known}: use the version of Runyard that made it"
    )]
    OtherVersion {
        /// Its version.
        found: u32,
        /// The one that is known.
        known: u32,
    },
    /// It stands where lines of its kind cannot stand.
    #[error("it does not belong here: a line was moved, added or removed")]
    OutOfPlace,
    /// An event does not follow from the one before it.
    #[error("event {sequence} of {run}: {kind}")]
    Event {
        /// The run.
        run: RunId,
        /// Its place.
        sequence: u64,
        /// What is wrong.
        kind: BreakKind,
    },
    /// An event cannot be read.
    #[error("event {sequence} of {run}: {source}")]
    UnknownEvent {
        /// The run.
        run: RunId,
        /// Its place.
        sequence: u64,
        /// What is wrong.
        source: UnreadableEvent,
    },
    /// An event cannot have happened there.
    #[error("event {sequence} of {run} cannot have happened there: {source}")]
    Illegal {
        /// The run.
        run: RunId,
        /// Its place.
        sequence: u64,
        /// Why.
        source: Illegal,
    },
    /// A run that has nothing to do with this one.
    #[error("{run} did not come from the run of this bundle")]
    Foreign {
        /// The run.
        run: RunId,
    },
    /// The run is not in the state that its events lead to.
    #[error("the state of {run} is not the one that its events lead to")]
    State {
        /// The run.
        run: RunId,
    },
    /// An approval is not what the events say.
    #[error("{approval} is not as the events tell it")]
    Approval {
        /// The approval.
        approval: ApprovalId,
    },
    /// An entry of the installation's log is not what was stored, or is not about these runs.
    #[error("it is no entry of the audit about these runs, or was changed")]
    Audit,
    /// An entry of the installation's log is not in its order.
    #[error("entry {sequence} of the audit does not follow from the entry before it")]
    AuditOrder {
        /// Its place.
        sequence: u64,
    },
    /// An entry says otherwise than the events.
    #[error("entry {sequence} of the audit does not say the same about {approval} as the events")]
    AuditDecision {
        /// Its place.
        sequence: u64,
        /// The approval.
        approval: ApprovalId,
    },
    /// The content of a blob is another than its id says.
    #[error("the content of blob {blob} is not its own")]
    Blob {
        /// The blob.
        blob: BlobId,
    },
    /// No event refers to the blob, or it is here twice.
    #[error("no event refers to blob {blob}, or it stands here already")]
    BlobUnasked {
        /// The blob.
        blob: BlobId,
    },
    /// An event refers to a blob that is neither here nor said to be left out.
    #[error("blob {blob}, which an event refers to, is missing")]
    BlobMissing {
        /// The blob.
        blob: BlobId,
    },
    /// A blob is said to be private, and no event says so.
    #[error("blob {blob} is left out as private, and is none by the events")]
    BlobNotPrivate {
        /// The blob.
        blob: BlobId,
    },
    /// The files of a diff are not those that the event counts.
    #[error("the diff of {run} is not the one that its event describes")]
    Diff {
        /// The run.
        run: RunId,
    },
    /// The seal is of other lines.
    #[error("{part} of this bundle are not what was sealed")]
    Part {
        /// Which lines.
        part: &'static str,
    },
    /// The seal says otherwise about a chain.
    #[error(
        "{run} does not end with the event that was sealed: events were changed, added or removed at its end"
    )]
    Head {
        /// The run.
        run: RunId,
    },
    /// The seal says otherwise about the whole.
    #[error("the lines before the seal are not the ones that were sealed")]
    Sealed,
    /// The signature is not that of the key.
    #[error("the signature does not hold")]
    Signature,
    /// Something comes after the seal.
    #[error("there is something after the seal")]
    Trailing,
    /// Another key signed it than the reader expects.
    #[error("{found} signed it, and not {expected}")]
    OtherKey {
        /// Who signed.
        found: Fingerprint,
        /// Who was to.
        expected: Fingerprint,
    },
}
