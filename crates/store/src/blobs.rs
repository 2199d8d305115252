//! Big things: what an event holds of them, and their ids.

use runyard_domain::BlobId;
use runyard_redact::Safe;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Blobs, StorageError};

/// The largest blob.
pub const BLOB_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The longest text that stands in an event itself.
pub const INLINE_BYTES_MAX: usize = 16 * 1024;
/// How much of the beginning and of the end of a longer text the event shows.
const SHOWN_BYTES: usize = 4 * 1024;

/// The id of a content.
pub fn blob_id(content: &[u8]) -> BlobId {
    BlobId::from_bytes(Sha256::digest(content).into())
}

/// What an event says of a text of any length: the text itself, or its beginning and end, its size, what was cut, and the
/// blob that holds all of it. The blobs go with the event ([`NewEvent::blobs`](crate::NewEvent)).
pub async fn bounded_text(
    blobs: &dyn Blobs,
    text: Safe<String>,
) -> Result<(Safe<Value>, Vec<BlobId>), StorageError> {
    let size = text.len();
    if size <= INLINE_BYTES_MAX {
        return Ok((Safe::object([("text", text.into()), ("truncated", false.into())]), Vec::new()));
    }
    let (beginning, end) = (text.prefix(SHOWN_BYTES), text.suffix(SHOWN_BYTES));
    let cut = size - beginning.len() - end.len();
    let id = blobs.put(text.into()).await?;
    let shown = Safe::object([
        ("text", beginning.into()),
        ("textEnd", end.into()),
        ("truncated", true.into()),
        ("bytes", (size as u64).into()),
        ("cutBytes", (cut as u64).into()),
        ("blob", id.into()),
    ]);
    Ok((shown, vec![id]))
}
