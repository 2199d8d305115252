//! The audit bundle: everything that is recorded of a run in one file, which anybody can check without this installation.
//!
//! It is text, one JSON object per line: a header; the events of the run and of the runs that came from it, each the exact bytes
//! that were stored; the approvals as they follow from the events; the installation's entries about these runs; the blobs that the
//! events refer to; and a seal that counts and digests all of it, names the end of each chain, and is signed. [`verify`] needs
//! nothing but the file. It is a module of this crate, since only here runs are both read from a store and known for what they
//! mean.
//!
//! It opens no file, keeps no key, and says nothing about who is to be trusted: whose key signed a bundle is for the reader to know.

mod account;
mod error;
mod export;
mod family;
mod format;
mod key;
mod lines;
#[cfg(test)]
mod tests;
mod verify;

pub use error::{BundleBreak, BundleBreakKind, BundleError};
pub use export::{Exported, Origin, export};
pub use key::{Fingerprint, InvalidFingerprint, SigningKey};
pub use verify::{Checked, CheckedRun, verify};

/// The largest blob that a bundle holds; of a larger one it says that it is left out.
pub const BLOB_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What all blobs of a bundle hold together at most.
pub const BLOBS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The longest line: a blob of which every byte has to be escaped, and what stands around it.
pub const LINE_BYTES_MAX: usize = 6 * BLOB_BYTES_MAX + 4096;
/// The most runs of one bundle.
pub const RUNS_MAX: usize = 1000;
