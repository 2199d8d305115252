//! The lines of a bundle. What is written is also what a line must be, byte for byte, when it is read again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use runyard_domain::{ApprovalId, BlobId, RunId, Timestamp};
use runyard_store::Hash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the format.
pub(super) const FORMAT: &str = "runyard.audit";
/// Its version. Another one is another format.
pub(super) const VERSION: u32 = 1;

/// The parts of a bundle, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Part {
    Header,
    Events,
    Approvals,
    Audit,
    Blobs,
    Seal,
}

impl Part {
    /// All that the seal digests.
    pub(super) const SEALED: [Part; 5] =
        [Part::Header, Part::Events, Part::Approvals, Part::Audit, Part::Blobs];

    /// The part that a line belongs to, by how it begins.
    pub(super) fn of(line: &[u8]) -> Option<Self> {
        let begins = |with: &str| line.starts_with(with.as_bytes());
        match () {
            () if begins("{\"sequence\":") => Some(Part::Events),
            () if begins("{\"bundle\":") => Some(Part::Header),
            () if begins("{\"approval\":") => Some(Part::Approvals),
            () if begins("{\"audit\":") => Some(Part::Audit),
            () if begins("{\"blob\":") || begins("{\"leftOut\":") => Some(Part::Blobs),
            () if begins("{\"seal\":") => Some(Part::Seal),
            () => None,
        }
    }

    /// What it is called.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Part::Header => "the header",
            Part::Events => "the events",
            Part::Approvals => "the approvals",
            Part::Audit => "the entries of the audit",
            Part::Blobs => "the blobs",
            Part::Seal => "the seal",
        }
    }
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeaderLine {
    pub(super) bundle: Header,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) version: u32,
    pub(super) run_id: RunId,
    pub(super) made_at: Timestamp,
    pub(super) made_by: String,
    pub(super) runyard: String,
}

/// An approval, as the events tell it: what was asked and what was answered are their payloads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ApprovalLine<'a> {
    pub(super) approval: &'a ApprovalTold,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApprovalTold {
    pub(super) id: ApprovalId,
    pub(super) run_id: RunId,
    pub(super) request: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decision: Option<Value>,
}

/// An entry of the installation's log: its hash, and the exact bytes that were stored.
pub(super) fn audit_line(stored: &[u8]) -> Vec<u8> {
    let mut line = format!("{{\"audit\":\"{}\",\"entry\":", Hash::of(stored)).into_bytes();
    line.extend_from_slice(stored);
    line.push(b'}');
    line
}

/// The stored bytes of an entry, unless the line is none or its hash is another.
pub(super) fn audit_entry(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"{\"audit\":\"")?;
    let (hash, rest) = rest.split_at_checked(64)?;
    let stored = rest.strip_prefix(b"\",\"entry\":")?.strip_suffix(b"}")?;
    (Hash::of(stored).to_string().as_bytes() == hash).then_some(stored)
}

/// A blob: as text where it is text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BlobLine {
    pub(super) blob: BlobId,
    pub(super) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    base64: Option<String>,
}

impl BlobLine {
    pub(super) fn of(blob: BlobId, content: Vec<u8>) -> Self {
        let bytes = content.len() as u64;
        let (text, base64) = match String::from_utf8(content) {
            Ok(text) => (Some(text), None),
            Err(other) => (None, Some(STANDARD.encode(other.as_bytes()))),
        };
        BlobLine { blob, bytes, text, base64 }
    }

    /// What it holds.
    pub(super) fn content(self) -> Option<Vec<u8>> {
        match (self.text, self.base64) {
            (Some(text), None) => Some(text.into_bytes()),
            (None, Some(encoded)) => STANDARD.decode(encoded).ok(),
            _ => None,
        }
    }
}

/// A blob that an event refers to and that is not here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct LeftOutLine {
    pub(super) left_out: BlobId,
    pub(super) why: WhyLeftOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WhyLeftOut {
    /// It is larger than a bundle may hold, by itself or with the others.
    TooLarge,
    /// It is in the store no longer.
    NotStored,
    /// It is a picture that no person has passed.
    Private,
}

/// What the last line says about all before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Seal {
    pub(super) format: String,
    pub(super) version: u32,
    pub(super) run_id: RunId,
    pub(super) lines: u64,
    pub(super) bytes: u64,
    /// Of every byte before the seal.
    pub(super) sha256: String,
    pub(super) parts: Vec<SealedPart>,
    pub(super) chains: Vec<SealedChain>,
    /// Where the installation's own log stood.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) installation: Option<SealedLog>,
    pub(super) public_key: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SealedPart {
    pub(super) part: Part,
    pub(super) lines: u64,
    pub(super) sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SealedChain {
    pub(super) run_id: RunId,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) parent_run_id: Option<RunId>,
    pub(super) state: String,
    pub(super) events: u64,
    pub(super) head: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SealedLog {
    pub(super) entries: u64,
    pub(super) head: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SealLine {
    pub(super) seal: Seal,
    /// Over the bytes of the seal, as they stand in the line.
    pub(super) signature: String,
}
